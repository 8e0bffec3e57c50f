"""Readers and writers for hits and contexts of foreign frameworks and JSON files."""
