"""A page library in Chroma: a visual and a text collection (the extra `chroma`)."""

from __future__ import annotations

from satchel.integrations.chroma.chroma_library import ChromaLibrary

__all__ = ["ChromaLibrary"]
