"""Commands that run agents: one command, or a pipeline."""
