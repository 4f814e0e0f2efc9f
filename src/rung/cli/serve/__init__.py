"""Commands that run servers: service, gateway, MCP server, hook server; and the tokens of the service."""
