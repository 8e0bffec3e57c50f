"""Read code: from source text to blocks, pieces and references between names."""
