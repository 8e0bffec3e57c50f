"""Retrieval turns a question into ranked hits, checked against the files on disk."""
