"""Formats: pieces in, text out. Each output parses, whatever is in the pieces."""
