"""An MCP server: agents report what went wrong and are told the next step, by the same decisions as every other way in."""
