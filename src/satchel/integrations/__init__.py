"""Adapters to embedders, language models, frameworks, Chroma and Ray."""
