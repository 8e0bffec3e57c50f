"""Read untrusted documents into pages of Markdown in confined child processes."""
