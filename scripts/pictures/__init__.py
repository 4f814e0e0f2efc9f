"""Pictures of README, made from the running program."""
