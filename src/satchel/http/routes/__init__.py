"""The routes of the HTTP API, grouped by topic into modules."""
