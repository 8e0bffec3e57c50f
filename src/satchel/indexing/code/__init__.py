"""Reading code: source text in; blocks, pieces and the names they refer to out."""
