"""A library of pages in Chroma: one collection of how they look, one of what they say (the extra `chroma`)."""

from __future__ import annotations

from satchel.integrations.chroma.library import ChromaLibrary

__all__ = ["ChromaLibrary"]
