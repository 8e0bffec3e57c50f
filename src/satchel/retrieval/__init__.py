"""A question in, ranked and fresh hits out."""
