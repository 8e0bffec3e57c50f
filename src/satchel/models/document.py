"""A document as it was read, page after page of Markdown, and a page as a library stores it."""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, NamedTuple

from satchel.errors import InvalidInput


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


MOST_MARKDOWN_BYTES: Final = 64_000_000
"""No document's text is longer; a field that unpacks to more was made to do harm."""

_BORDER: Final = re.compile(r"^<!-- page (\d{1,9}) -->$", re.MULTILINE)
_LIKE_A_BORDER: Final = re.compile(r"^(\\*<!-- page \d+ -->)$", re.MULTILINE)
_ESCAPED: Final = re.compile(r"^\\(\\*<!-- page \d+ -->)$", re.MULTILINE)

# How other programs mark the beginning of a page in a document's Markdown; the number is the page's, or one less.
_NUMBERED_BORDERS: Final = (
    (re.compile(r"^\s*<!--\s*page(?:[ _-]?n(?:umber|o))?\s*[:=]?\s*\"?(\d{1,9})\"?\s*-->", re.M | re.I), 0),
    (re.compile(r"^\{(\d{1,9})\}-{10,}[ \t]*$", re.M), 1),
    (re.compile(r"^#{1,6}[ \t]+page[ \t]+(\d{1,9})[ \t]*$", re.M | re.I), 0),
    (re.compile(r"^-{2,}[ \t]*page[ \t]+(\d{1,9})[ \t]*-{2,}[ \t]*$", re.M | re.I), 0),
    (re.compile(r"^\[page[ \t]+(\d{1,9})\][ \t]*$", re.M | re.I), 0),
)  # fmt: skip
_BREAKS: Final = re.compile(r"\f|^[ \t]*<!--[ \t]*page[ _-]?break[ \t]*-->[ \t]*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMetadata:
    """What is kept of a page: the fields' names are those of the collections that hold them."""

    doc_id: str
    filename: str
    page: int
    extension: str
    timestamp: str = ""
    source_path: str | None = None
    image_path: str | None = None
    thumb_path: str | None = None
    section_path: str | None = None
    parent_heading: str | None = None
    num_headings: int = 0
    num_tables: int = 0
    num_pictures: int = 0
    full_markdown_compressed: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields that have a value: a collection holds no nothings."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> PageMetadata:
        """The metadata out of what a collection holds, by whomever it was filled; what is of another type is left."""
        values: dict[str, Any] = {}
        for own in fields(cls):
            value, kind = stored.get(own.name), _TYPES[str(own.type)]
            if kind is int and isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, kind) and not isinstance(value, bool):
                values[own.name] = value
        if "doc_id" not in values or values.get("page", 0) < 1:
            raise InvalidInput("metadata", dict(list(stored.items())[:8]), "must hold doc_id, and page from 1 on")
        values.setdefault("filename", values["doc_id"])
        _, dot, suffix = values["filename"].rpartition(".")
        values["extension"] = (values.get("extension") or (suffix.lower() if dot else "")).lstrip(".")
        return cls(**values)


_TYPES: Final = {"str": str, "int": int, "str | None": str}


def whole_markdown(pages: Sequence[tuple[int, str]]) -> str:
    """All pages as one text, each under a line that says its number; no page can hold such a line of its own."""
    return "\n".join(f"<!-- page {number} -->\n" + _LIKE_A_BORDER.sub(r"\\\1", text) for number, text in pages)


def is_border(line: str) -> bool:
    """Whether a line of a whole document is the one above a page."""
    return line.startswith("<!-- page ") and _BORDER.match(line) is not None


def extract_page_content(markdown: str, page: int) -> str | None:
    """The text of one page out of a whole document's, or None where its borders are not marked.

    Documents that other programs wrote are understood too: numbered marks of several makes, form feeds, page breaks.
    """
    if isinstance(page, bool) or not isinstance(page, int) or page < 1:
        raise InvalidInput("page", page, "must be a whole number from 1 on")
    if markdown.startswith("<!-- page ") and _BORDER.match(markdown):
        content = next((text for number, text in _between(markdown, _BORDER, 0) if number == page), None)
        return None if content is None else _ESCAPED.sub(r"\1", content)
    for border, less in _NUMBERED_BORDERS:
        parts = list(_between(markdown, border, less))
        numbers = [number for number, _ in parts]
        if parts and numbers == sorted(set(numbers)):
            return next((text.strip("\r\n") for number, text in parts if number == page), None)
    parts_by_break = _BREAKS.split(markdown)
    if len(parts_by_break) > 1:
        return parts_by_break[page - 1].strip("\r\n") if page <= len(parts_by_break) else None
    return None


def _between(markdown: str, border: re.Pattern[str], less: int) -> Iterator[tuple[int, str]]:
    marks = list(border.finditer(markdown))
    ends = [*(mark.start() - 1 for mark in marks[1:]), len(markdown)]
    for mark, end in zip(marks, ends, strict=False):
        yield int(mark[1]) + less, markdown[mark.end() + 1 : max(end, mark.end() + 1)]


def compress_markdown(markdown: str) -> str:
    """A text as a collection's field holds it: gzip, then base64; the same text gives the same field."""
    packed = gzip.compress(markdown.encode("utf-8", "surrogatepass"), mtime=0)
    return base64.b64encode(packed).decode("ascii")


def expand_markdown(field: str, *, most_bytes: int = MOST_MARKDOWN_BYTES) -> str:
    """The text in such a field; one that unpacks to more than `most_bytes` is refused before it has done so."""
    try:
        packed = base64.b64decode(field, validate=True)
        machine = zlib.decompressobj(wbits=31)
        data = machine.decompress(packed, most_bytes + 1)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise InvalidInput("full_markdown_compressed", field[:40], f"is not gzip in base64 ({error})") from None
    if len(data) > most_bytes:
        raise InvalidInput("full_markdown_compressed", field[:40], f"unpacks to more than {most_bytes:,} bytes")
    if not machine.eof:
        raise InvalidInput("full_markdown_compressed", field[:40], "breaks off before its end")
    return data.decode("utf-8", "replace")
