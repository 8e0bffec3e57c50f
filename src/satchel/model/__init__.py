"""Frozen values: what goes in, what comes out, and what the stages hand to each other. No I/O."""
