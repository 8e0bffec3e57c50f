"""The kinds of documents, and a document as it was read: page after page of Markdown.

Plain tuples: they come from a child process that read a file which anybody may have made.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from satchel.registry import Registry


class PageUnit(StrEnum):
    """What a document's pages are called: what has no real pages is cited by its sections."""

    PAGE = "page"
    SLIDE = "slide"
    SHEET = "sheet"
    SECTION = "section"
    CHAPTER = "chapter"
    PICTURE = "picture"


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document: how its files are recognized, and who reads them.

    A package adds kinds of its own through the entry-point group `satchel.document_kinds` (docs/documents.md).
    """

    unit: PageUnit
    reader: str
    """`module:function`; it gets a `DocumentSource` in a confined process and returns a Document or Unreadable."""
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    """How its bytes begin; without any other sign (`zip_folder`, …) the suffix alone decides."""
    zip_mime: bytes = b""
    """What the entry `mimetype` of its archive says."""
    zip_folder: str = ""
    """A folder that only its archives have."""
    ole_stream: str = ""
    """A stream that only its compound files have."""
    is_text: bool = False
    """True if its files are text, so that one with binary bytes is something else."""
    is_often_source: bool = False
    """True if its files are as often something else: source, data, or a picture of nothing to read."""
    needs_extra: bool = True
    """True if it is read with the libraries of Satchel's extra `documents`."""


def _our_kinds() -> dict[str, DocumentKind]:
    table = tomllib.loads(resources.files("satchel.models").joinpath("document_kinds.toml").read_text("utf-8"))
    for kind in table.values():
        kind["unit"] = PageUnit(kind["unit"])
        kind["suffixes"] = tuple(kind["suffixes"])
        kind["magic"] = tuple(sign.encode("latin-1") for sign in kind.get("magic", ()))
        kind["zip_mime"] = kind.get("zip_mime", "").encode()
    return {name: DocumentKind(**kind) for name, kind in table.items()}


DOCUMENT_KINDS: Final = Registry("document kind", "satchel.document_kinds", _our_kinds(), DocumentKind)
"""Every kind by its name: ours (`document_kinds.toml`), and those that installed packages add."""


@cache
def _kind_names() -> dict[str, str]:
    """The name of the kind that each suffix stands for; ours come before those of plug-ins."""
    names: dict[str, str] = {}
    for name, kind in DOCUMENT_KINDS.entries():
        for suffix in kind.suffixes:
            names.setdefault(suffix, name)
    return names


@cache
def document_suffixes(*, often_source: bool | None = None) -> frozenset[str]:
    """The suffixes of what can be read as a document; only of kinds that are (or are not) often source."""
    return frozenset(
        suffix
        for suffix, name in _kind_names().items()
        if often_source in (None, DOCUMENT_KINDS.get(name).is_often_source)
    )


def extension_of(path: str) -> str:
    """A file's suffix in lower case, without its dot."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem else ""


def kind_name(path: str) -> str:
    """The name of the document kind that a path's suffix stands for, else the suffix."""
    suffix = extension_of(path)
    return _kind_names().get(suffix, suffix)


def page_unit(path: str) -> PageUnit | None:
    """What the pages of the document at a path are called; None for what is read as plain text."""
    name = _kind_names().get(extension_of(path))
    return DOCUMENT_KINDS.get(name).unit if name else None


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
