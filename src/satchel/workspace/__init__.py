"""Blocks of a workspace: editing, access, collectors, signals and validation."""
