"""Looking into office files and e-books, which are zips, before any parser does."""

from __future__ import annotations

import io
import zipfile
from typing import Final
from xml.etree.ElementTree import Element, ParseError, fromstring

from satchel.indexing.documents.tidy import unreadable
from satchel.models.document import Unreadable
from satchel.text.zip_entries import BROKEN_ZIP, grows_too_much

_MOST_ENTRIES: Final = 20_000
_MOST_BYTES: Final = 1_000_000_000
_MOST_MARKUP_BYTES: Final = 400_000_000

_ENCRYPTED: Final = 1

_MARKUP: Final = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".vml", ".svg")
# E-books name the type of their pages; office files name none. Entities are nobody's honest need.
_TYPED: Final = (".ncx", ".xhtml", ".html", ".htm", ".opf", ".svg")

BROKEN: Final = (*BROKEN_ZIP, KeyError)
"""The same, and that a part is not there."""


def part_of(archive: zipfile.ZipFile, place: str, most_bytes: int) -> bytes:
    """A part of an archive that was not objected to, or nothing when it is not there or is longer than that."""
    try:
        entry = archive.getinfo(place)
        return archive.read(entry) if entry.file_size <= most_bytes else b""
    except BROKEN:
        return b""


def markup_of(archive: zipfile.ZipFile, place: str, most_bytes: int) -> Element | None:
    """A part of such an archive as a tree; None for what is no markup, as it was not looked into for entities."""
    data = part_of(archive, place, most_bytes) if place.lower().endswith(_MARKUP) else b""
    try:
        # No entities are declared in it (`objection_to`), and Expat has its own guard besides.
        return fromstring(data) if data else None  # noqa: S314
    except (ParseError, ValueError, LookupError):
        return None


def local_name(element: Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def objection_to(data: bytes) -> Unreadable | None:
    """Why a zip must not be unpacked, or None."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _to_sizes(archive.infolist()) or _to_markup(archive)
    except BROKEN:
        return Unreadable("is damaged: its archive cannot be unpacked")


def _to_sizes(entries: list[zipfile.ZipInfo]) -> Unreadable | None:
    if len(entries) > _MOST_ENTRIES:
        return unreadable(f"is a zip bomb: {len(entries):,} files in one archive")
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        return Unreadable("is encrypted; save it without a password to have it read")
    total = sum(entry.file_size for entry in entries)
    if total > _MOST_BYTES:
        return unreadable(f"is a zip bomb: it unpacks to {total:,} bytes")
    for entry in entries:
        if grows_too_much(entry):
            return unreadable(f"is a zip bomb: a part of it grows to {entry.file_size:,} bytes")
    return None


def _to_markup(archive: zipfile.ZipFile) -> Unreadable | None:
    left = _MOST_MARKUP_BYTES
    for entry in archive.infolist():
        name = entry.filename.lower()
        if not name.endswith(_MARKUP):
            continue
        left -= entry.file_size
        if left < 0:
            return unreadable(f"holds more than {_MOST_MARKUP_BYTES:,} bytes of markup")
        # Read to its end: a part that is longer than it says does not have the checksum that it says.
        text = archive.read(entry).replace(b"\0", b"")
        if b"<!ENTITY" in text or (b"<!DOCTYPE" in text and not name.endswith(_TYPED)):
            return Unreadable("declares XML entities, which can grow without end")
    return None
