"""A document as it was read: page after page of Markdown.

Plain tuples: they come from a child process that read a file which anybody may have made.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class PageUnit(StrEnum):
    """What a document's pages are called: what has no real pages is cited by its sections."""

    PAGE = "page"
    SLIDE = "slide"
    SHEET = "sheet"
    SECTION = "section"
    CHAPTER = "chapter"
    PICTURE = "picture"


_UNITS: Final = {
    "pdf": PageUnit.PAGE,
    "pptx": PageUnit.SLIDE,
    "ppt": PageUnit.SLIDE,
    "odp": PageUnit.SLIDE,
    "xlsx": PageUnit.SHEET,
    "xls": PageUnit.SHEET,
    "ods": PageUnit.SHEET,
    "csv": PageUnit.SHEET,
    "tsv": PageUnit.SHEET,
    "docx": PageUnit.SECTION,
    "doc": PageUnit.SECTION,
    "odt": PageUnit.SECTION,
    "rtf": PageUnit.SECTION,
    "html": PageUnit.SECTION,
    "htm": PageUnit.SECTION,
    "xhtml": PageUnit.SECTION,
    "epub": PageUnit.CHAPTER,
    "png": PageUnit.PICTURE,
    "jpg": PageUnit.PICTURE,
    "jpeg": PageUnit.PICTURE,
    "tif": PageUnit.PICTURE,
    "tiff": PageUnit.PICTURE,
    "webp": PageUnit.PICTURE,
    "bmp": PageUnit.PICTURE,
    "gif": PageUnit.PICTURE,
}

DOCUMENTS: Final = frozenset(_UNITS)
"""The suffixes of what can be read as a document."""

PICTURES: Final = frozenset(name for name, unit in _UNITS.items() if unit is PageUnit.PICTURE)

PLAIN_TOO: Final = frozenset({"html", "htm", "xhtml", "csv", "tsv"}) | PICTURES
"""Those that are as often something else: source, data, or a picture of nothing to read."""


def extension_of(path: str) -> str:
    """A file's suffix in lower case, without its dot."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem else ""


def page_unit(path: str) -> PageUnit | None:
    """What the pages of the document at a path are called; None for what is read as plain text."""
    return _UNITS.get(extension_of(path))


def page_words(path: str, page: int) -> str:
    """`page 3`, `slide 3`, `section 3`: how a place in a document is told."""
    return f"{page_unit(path) or PageUnit.PAGE} {page}"


class Page(NamedTuple):
    """One page: its number (from 1), what it says, and what is on it beside text."""

    number: int
    markdown: str
    name: str = ""
    """What the document itself calls it: a sheet's name, a slide's or a chapter's title."""
    captions: tuple[str, ...] = ()
    """What is written under and over its figures and tables."""
    seen: str = ""
    """What is written in its pictures, as far as it was read there and does not stand in `markdown`."""
    pictures: int = 0
    is_recognized: bool = False
    """Whether `markdown` was read from a picture of the page (OCR)."""


class Bookmark(NamedTuple):
    """An entry of the document's own table of contents."""

    level: int
    title: str
    page: int


class Document(NamedTuple):
    """A document, read. `notes` say what could not be read and what to do about it."""

    pages: tuple[Page, ...] = ()
    title: str = ""
    bookmarks: tuple[Bookmark, ...] = ()
    notes: tuple[str, ...] = ()


class Unreadable(NamedTuple):
    """Why a document could not be read, in words for its owner."""

    reason: str
