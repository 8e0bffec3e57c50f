"""Zip archives of office files and e-books: checks against zip bombs, parts, and embedded pictures."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, fromstring

from satchel.indexing.documents.figures import Picture, is_worth_reading, text_in_pictures
from satchel.indexing.documents.pictures import frame_at, with_picture
from satchel.indexing.documents.recognition import Recognition
from satchel.indexing.documents.tidy import CannotRead, picture_places, tidy, without_pictures
from satchel.models.document import Page, Unreadable
from satchel.text.zip_entries import BROKEN_ZIP, grows_too_much

if TYPE_CHECKING:
    from PIL.Image import Image


_MAX_ENTRIES: Final = 20_000  # zip bomb: documents have far fewer parts (docs/documents.md)
_MAX_UNPACKED_BYTES: Final = 1_000_000_000  # zip bomb: of the 2 GB for a child (MEMORY_BYTES)
_MAX_MARKUP_BYTES: Final = 400_000_000  # bounds the time: all markup is searched for entities

_ENCRYPTED_FLAG: Final = 1  # bit 0 of an entry's flags in the zip format

_MARKUP: Final = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".vml", ".svg")
# Pages of e-books have a DOCTYPE, parts of office files have none. No honest document declares entities.
_TYPED: Final = (".ncx", ".xhtml", ".html", ".htm", ".opf", ".svg")

BROKEN: Final = (*BROKEN_ZIP, KeyError)
"""Errors of broken archives (BROKEN_ZIP), and KeyError for a missing part."""


def part_of(archive: zipfile.ZipFile, place: str, most_bytes: int) -> bytes:
    """A part of an archive accepted by `check_zip`; empty if missing or longer than `most_bytes`."""
    try:
        entry = archive.getinfo(place)
        return archive.read(entry) if entry.file_size <= most_bytes else b""
    except BROKEN:
        return b""


def markup_of(archive: zipfile.ZipFile, place: str, most_bytes: int) -> Element | None:
    """A part of a checked archive as an XML tree; None for parts without a markup suffix, not checked for entities."""
    data = part_of(archive, place, most_bytes) if place.lower().endswith(_MARKUP) else b""
    try:
        # `check_zip` has refused entity declarations, and Expat limits their expansion, too.
        return fromstring(data) if data else None  # noqa: S314
    except (ParseError, ValueError, LookupError):
        return None


def local_name(element: Element) -> str:
    """The name of an element without the namespace."""
    return element.tag.rpartition("}")[2]


def check_zip(data: bytes) -> None:
    """Raise CannotRead if the zip must not be unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_sizes(archive.infolist())
            _check_markup(archive)
    except BROKEN:
        raise CannotRead("is damaged: its archive cannot be unpacked") from None


def _check_sizes(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > _MAX_ENTRIES:
        raise CannotRead(f"is a zip bomb: {len(entries):,} files in one archive")
    if any(entry.flag_bits & _ENCRYPTED_FLAG for entry in entries):
        raise CannotRead("is encrypted; save it without a password")
    total = sum(entry.file_size for entry in entries)
    if total > _MAX_UNPACKED_BYTES:
        raise CannotRead(f"is a zip bomb: it unpacks to {total:,} bytes")
    for entry in entries:
        if grows_too_much(entry):
            raise CannotRead(f"is a zip bomb: an entry unpacks to {entry.file_size:,} bytes")


def _check_markup(archive: zipfile.ZipFile) -> None:
    left = _MAX_MARKUP_BYTES
    for entry in archive.infolist():
        name = entry.filename.lower()
        if not name.endswith(_MARKUP):
            continue
        left -= entry.file_size
        if left < 0:
            raise CannotRead(f"contains more than {_MAX_MARKUP_BYTES:,} bytes of markup")
        # Read the whole part: a part longer than declared fails the check of its CRC.
        text = archive.read(entry).replace(b"\0", b"")
        if b"<!ENTITY" in text or (b"<!DOCTYPE" in text and not name.endswith(_TYPED)):
            raise CannotRead("declares XML entities, which can expand without limit")


_MAX_PICTURE_BYTES: Final = 30_000_000  # bounds memory; larger pictures are not recognized
_MAX_PICTURES_ON_PAGE: Final = 50  # bounds the time for OCR; further pictures are not recognized


class Illustrated(NamedTuple):
    """A page, and the paths of the page's pictures in the archive."""

    page: Page
    places: tuple[str, ...] = ()


def places_in(markdown: str, folder: str) -> tuple[str, ...]:
    """Paths in the archive of a page's pictures, resolved against the page's folder."""
    return tuple(
        posixpath.normpath(posixpath.join(folder, unquote(place)))
        for place in picture_places(markdown)[:_MAX_PICTURES_ON_PAGE]
        if ":" not in place
    )


def illustrated(page: Page, folder: str) -> Illustrated:
    """The page with alternative texts in place of pictures; `folder` is the page's folder in the archive."""
    markdown, pictures = without_pictures(page.markdown)
    return Illustrated(page._replace(markdown=tidy(markdown), pictures=pictures), places_in(page.markdown, folder))


def read_inlays(pages: Sequence[Illustrated], data: bytes, recognition: Recognition) -> tuple[Page, ...]:
    """The pages with the text recognized in pictures."""
    if not recognition.is_wanted or not any(places for _, places in pages):
        return tuple(page for page, _ in pages)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        every = dict.fromkeys(place for _, places in pages for place in places)
        worth = {
            place: Picture(place, partial(_picture, archive, place)) for place in every if _is_worth(archive, place)
        }
        pictures = [(page.markdown, [worth[place] for place in places if place in worth]) for page, places in pages]
        seen = text_in_pictures(pictures, recognition)
        return tuple(page._replace(seen=text) for (page, _), text in zip(pages, seen, strict=True))


def _is_worth(archive: zipfile.ZipFile, place: str) -> bool:
    data = part_of(archive, place, _MAX_PICTURE_BYTES)
    answer = with_picture(data, lambda image: is_worth_reading(*image.size)) if data else False
    return answer is True


def _picture(archive: zipfile.ZipFile, place: str) -> Image | None:
    picture = with_picture(part_of(archive, place, _MAX_PICTURE_BYTES), lambda image: frame_at(image, 1))
    return None if isinstance(picture, Unreadable) else picture
