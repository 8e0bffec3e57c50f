"""What a context shows of its sources: whole definitions, marked excerpts, and as little else as possible."""
