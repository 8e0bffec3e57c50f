"""Parsed documents (pages of Markdown), and the metadata of a page in a library."""

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
    """A page of a document: number (from 1), Markdown text, captions and pictures."""

    number: int
    markdown: str
    name: str = ""
    """The name in the document: the name of a sheet, the title of a slide or chapter."""
    captions: tuple[str, ...] = ()
    """Captions of the figures and tables."""
    seen: str = ""
    """Text recognized in the pictures that is not already in `markdown`."""
    pictures: int = 0
    is_recognized: bool = False
    """True if `markdown` comes from OCR of the page."""


class Bookmark(NamedTuple):
    """An entry of the document's table of contents."""

    level: int
    title: str
    page: int


class Document(NamedTuple):
    """A parsed document. `notes` name unreadable parts and the remedy."""

    pages: tuple[Page, ...] = ()
    title: str = ""
    bookmarks: tuple[Bookmark, ...] = ()
    notes: tuple[str, ...] = ()


class Unreadable(NamedTuple):
    """The reason for an unreadable document, in words for the owner."""

    reason: str


MOST_MARKDOWN_BYTES: Final = 64_000_000
"""Limit against zip bombs, in bytes: no real document has a longer text."""

_BORDER: Final = re.compile(r"^<!-- page (\d{1,9}) -->$", re.MULTILINE)
_LIKE_A_BORDER: Final = re.compile(r"^(\\*<!-- page \d+ -->)$", re.MULTILINE)
_ESCAPED: Final = re.compile(r"^\\(\\*<!-- page \d+ -->)$", re.MULTILINE)

# Page markers of other programs in Markdown, with the number to add: some count pages from 0.
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
    """Stored metadata of a page; the field names are the keys in the vector collections."""

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
        """The fields with a value; collections cannot store None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> PageMetadata:
        """Read metadata from a collection of any origin; values of a wrong type are ignored."""
        values: dict[str, Any] = {}
        for attribute in fields(cls):
            value, kind = stored.get(attribute.name), _TYPES[str(attribute.type)]
            if kind is int and isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, kind) and not isinstance(value, bool):
                values[attribute.name] = value
        if "doc_id" not in values or values.get("page", 0) < 1:
            raise InvalidInput(
                "metadata", dict(list(stored.items())[:8]), "must contain doc_id, and page of at least 1"
            )
        values.setdefault("filename", values["doc_id"])
        _, dot, suffix = values["filename"].rpartition(".")
        values["extension"] = (values.get("extension") or (suffix.lower() if dot else "")).lstrip(".")
        return cls(**values)


_TYPES: Final = {"str": str, "int": int, "str | None": str}


def whole_markdown(pages: Sequence[tuple[int, str]]) -> str:
    """Join pages into a single text, each below a page marker; markers inside pages are escaped."""
    return "\n".join(f"<!-- page {number} -->\n" + _LIKE_A_BORDER.sub(r"\\\1", text) for number, text in pages)


def is_border(line: str) -> bool:
    """True if a line of a joined document is a page marker."""
    return line.startswith("<!-- page ") and _BORDER.match(line) is not None


def extract_page_content(markdown: str, page: int) -> str | None:
    """The text of a page from a joined document, or None without page markers or without the page.

    Markers of other programs work, too: numbered markers of several formats, form feeds, page breaks.
    """
    if isinstance(page, bool) or not isinstance(page, int) or page < 1:
        raise InvalidInput("page", page, "must be a whole number of at least 1")
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
    """Compress a text for a field of a collection: gzip, then base64; the result is deterministic."""
    packed = gzip.compress(markdown.encode("utf-8", "surrogatepass"), mtime=0)
    return base64.b64encode(packed).decode("ascii")


def expand_markdown(field: str, *, most_bytes: int = MOST_MARKDOWN_BYTES) -> str:
    """Decompress a field of `compress_markdown`; stops at `most_bytes` and raises InvalidInput (zip bomb)."""
    try:
        packed = base64.b64decode(field, validate=True)
        machine = zlib.decompressobj(wbits=31)
        data = machine.decompress(packed, most_bytes + 1)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise InvalidInput(
            "full_markdown_compressed", field[:40], f"is not base64-encoded gzip data ({error})"
        ) from None
    if len(data) > most_bytes:
        raise InvalidInput(
            "full_markdown_compressed", field[:40], f"unpacks to more than {most_bytes:,} bytes (zip bomb)"
        )
    if not machine.eof:
        raise InvalidInput("full_markdown_compressed", field[:40], "is truncated: the end of the gzip data is missing")
    return data.decode("utf-8", "replace")
