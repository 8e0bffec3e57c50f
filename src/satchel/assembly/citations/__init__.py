"""Checks the citation markers, quotations and statements of an answer against the context."""
