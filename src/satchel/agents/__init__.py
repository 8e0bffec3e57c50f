"""Coding agents' settings: registering Satchel's MCP server with them."""
