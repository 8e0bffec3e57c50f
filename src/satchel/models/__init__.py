"""Frozen value types without I/O."""
