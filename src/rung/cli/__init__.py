"""The `rung` command: one file per subcommand, heavy imports inside the one that needs them."""
