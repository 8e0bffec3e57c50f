"""File preparation on a Ray cluster."""
