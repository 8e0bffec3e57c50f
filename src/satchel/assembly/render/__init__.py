"""Formats render pieces into text. Each output parses, whatever the pieces contain."""
