"""How documents are read."""

from __future__ import annotations

from typing import NamedTuple


class ReadOptions(NamedTuple):
    """Whether scans and pictures are recognized and in which languages, and how much of a document is read at most."""

    ocr: bool = True
    languages: str = "eng"
    """Tesseract's names of them, with `+` between: `eng+deu`."""
    most_pages: int = 5000
    most_chars: int = 30_000_000
    read_seconds: float = 90.0
    """How long the pages of one PDF may take; what was not reached by then is left out."""
    ocr_seconds: float = 600.0
    """How long the scans of one document may take, beyond what reading it takes."""
    engine: str = ""
    """`tesseract` or `rapidocr`; empty for the first of them that is there."""
    picture_seconds: float = 30.0
    """How long the pictures on pages with text may take, beyond what scans may take."""
