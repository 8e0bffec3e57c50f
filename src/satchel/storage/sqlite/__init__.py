"""The store in a folder: a SQLite file with the committed data, and search data derived from the file."""
