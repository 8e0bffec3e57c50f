"""Reading files on a Ray cluster."""
