"""The MCP server: the tools and the pieces of the index as resources, over stdio and streamable HTTP."""
