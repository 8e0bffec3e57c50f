"""Service layer under the command line, HTTP and MCP: clients, options, identity, automatic indexing, the factory."""
