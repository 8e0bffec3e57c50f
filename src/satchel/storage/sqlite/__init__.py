"""The store inside one folder: a SQLite file as the truth, and what is derived from it for search."""
