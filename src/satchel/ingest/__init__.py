"""The write path: what is in a folder, and what of it is worth reading."""
