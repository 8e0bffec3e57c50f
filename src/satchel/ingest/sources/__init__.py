"""Where blocks come from besides code and documents: other people's workspaces, read as records."""
