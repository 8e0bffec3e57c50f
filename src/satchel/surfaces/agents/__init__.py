"""Agents and where they keep the list of the MCP servers they start."""
