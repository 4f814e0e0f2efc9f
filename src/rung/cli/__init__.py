"""The `rung` command: one module per subcommand, which imports heavy packages only when it runs."""
