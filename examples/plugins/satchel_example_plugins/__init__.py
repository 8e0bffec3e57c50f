"""A plug-in of each kind for Satchel."""
