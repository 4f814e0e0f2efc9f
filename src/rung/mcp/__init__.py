"""MCP server: agents report failures and get the next recovery step, by the same decisions as everywhere else."""
