"""Composition root: the only package with imports of stores and integrations."""
