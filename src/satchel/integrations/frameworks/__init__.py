"""Hits and contexts of other frameworks and JSON files, read and written."""
