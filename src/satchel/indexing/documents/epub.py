"""E-books: the chapters in the order in which they are read."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, XMLParser, fromstring

from satchel.indexing.documents.inlays import Illustrated, illustrated, read_inlays
from satchel.indexing.documents.office import decoded, extract, title_of
from satchel.indexing.documents.options import ReadOptions
from satchel.indexing.documents.paging import first_heading, into_pages
from satchel.indexing.documents.recognition import DocumentSource, Recognition
from satchel.indexing.documents.tidy import one_line, tidy, unreadable
from satchel.indexing.documents.zips import BROKEN, local_name, objection_to
from satchel.models.document import Document, Unreadable

_MOST_CHAPTERS: Final = 5000
_PAGE_TYPES: Final = ("application/xhtml+xml", "text/html")


def read_epub(source: DocumentSource) -> Document | Unreadable:
    """The chapters of an e-book, long ones cut into sections."""
    _, data, options, recognition = source
    problem = objection_to(data)
    if problem is not None:
        return problem
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive, data, options, recognition)
    except (ParseError, *BROKEN):
        return Unreadable("is a damaged EPUB: its table of chapters cannot be read")


def _read(
    archive: zipfile.ZipFile, data: bytes, options: ReadOptions, recognition: Recognition
) -> Document | Unreadable:
    place = _package_path(archive)
    package = _parsed(archive, place)
    pages: list[Illustrated] = []
    unread = 0
    for path in _chapters(package, place):
        try:
            text = decoded(archive.read(path))
        except BROKEN:
            unread += 1
            continue
        result = extract("html", text.encode())
        if isinstance(result, Unreadable):
            unread += 1
            continue
        content = tidy(result.content)
        title = one_line(first_heading(content)) or title_of(text)
        for page in into_pages(content, within=title):
            pages.append(illustrated(page._replace(number=len(pages) + 1), posixpath.dirname(path)))
    if not pages:
        return unreadable("is an EPUB without a chapter that can be read")
    notes = [f"{unread:,} of its chapters could not be read"] if unread else []
    if len(pages) > options.most_pages:
        notes.append(f"has {len(pages):,} sections; the first {options.most_pages:,} were read")
    title = next((one.text for one in package.iter() if one.tag.endswith("}title") and one.text), "")
    read = read_inlays(pages[: options.most_pages], data, recognition)
    return Document(read, one_line(tidy(title or "")), (), (*notes, *recognition.notes()))


def _package_path(archive: zipfile.ZipFile) -> str:
    container = _parsed(archive, "META-INF/container.xml")
    for one in container.iter():
        if local_name(one) == "rootfile" and one.get("full-path"):
            return one.get("full-path", "")
    raise ParseError("no package")


def _chapters(package: Element, place: str) -> Iterator[str]:
    folder = posixpath.dirname(place)
    items = {
        one.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(one.get("href", ""))))
        for one in package.iter()
        if local_name(one) == "item" and one.get("media-type", _PAGE_TYPES[0]) in _PAGE_TYPES
    }
    spine = [one.get("idref", "") for one in package.iter() if local_name(one) == "itemref"]
    for name in list(dict.fromkeys(spine))[:_MOST_CHAPTERS]:
        if name in items:
            yield items[name]


def _parsed(archive: zipfile.ZipFile, path: str) -> Element:
    # No entities are declared in it (`objection_to`), and Expat has its own guard besides.
    return fromstring(archive.read(path), XMLParser())  # noqa: S314
