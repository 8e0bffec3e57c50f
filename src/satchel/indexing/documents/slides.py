"""What a presentation's files say of its slides: the order in which they are shown, and their speaker's notes."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from satchel.indexing.documents.inlays import Illustrated
from satchel.indexing.documents.tidy import tidy
from satchel.indexing.documents.zips import BROKEN, local_name, markup_of

_NUMBER: Final = re.compile(r"slides/slide(\d{1,9})\.xml$")
_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MOST_BYTES: Final = 20_000_000
_MOST_NOTES_BYTES: Final = 2_000_000
_MOST_NOTES_CHARS: Final = 100_000

# What stands on a page of notes besides them.
_NO_NOTES: Final = frozenset({"sldImg", "sldNum", "dt", "hdr", "ftr"})


def in_shown_order(data: bytes, slides: list[Illustrated]) -> list[Illustrated]:
    """The slides, given in the order of their files' numbers, as they are shown, with their notes.

    They are left as given when it cannot be told which is which.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            relations = markup_of(archive, "ppt/_rels/presentation.xml.rels", _MOST_BYTES)
            show = markup_of(archive, "ppt/presentation.xml", _MOST_BYTES)
            if relations is None or show is None:
                return slides
            numbers = {
                one.get("Id"): int(found[1])
                for one in relations.iter()
                if (found := _NUMBER.search(one.get("Target", "")))
            }
            if len(numbers) != len(slides):
                return slides
            by_number = dict(zip(sorted(numbers.values()), slides, strict=True))
            for number, notes in _notes(archive, by_number):
                slide = by_number[number]
                markdown = f"{slide.page.markdown}\n\nSpeaker notes: {notes}".lstrip("\n")
                by_number[number] = slide._replace(page=slide.page._replace(markdown=markdown))
    except BROKEN:
        return slides
    listed = [one.get(_ID) for one in show.iter() if local_name(one) == "sldId"]
    shown = [by_number[numbers[name]] for name in dict.fromkeys(listed) if name in numbers]
    shown = shown or list(by_number.values())
    return [one._replace(page=one.page._replace(number=at)) for at, one in enumerate(shown, 1)]


def _notes(archive: zipfile.ZipFile, slides: dict[int, Illustrated]) -> Iterator[tuple[int, str]]:
    """The notes of the slides that have some: the slide's own relations name their file."""
    met: set[str] = set()
    for number in slides:
        relations = markup_of(archive, f"ppt/slides/_rels/slide{number}.xml.rels", _MOST_NOTES_BYTES)
        for one in relations.iter() if relations is not None else ():
            if one.get("Type", "").rpartition("/")[2] != "notesSlide" or one.get("TargetMode") == "External":
                continue
            place = posixpath.normpath(posixpath.join("/ppt/slides", one.get("Target", ""))).lstrip("/")
            if place in met:
                continue  # a page of notes is one slide's
            met.add(place)
            page = markup_of(archive, place, _MOST_NOTES_BYTES)
            text = tidy("\n".join(_paragraphs(page)))[:_MOST_NOTES_CHARS].strip() if page is not None else ""
            if text:
                yield number, text


def _paragraphs(page: Element) -> Iterator[str]:
    for shape in _outermost(page, "sp"):
        if any(local_name(one) == "ph" and one.get("type") in _NO_NOTES for one in shape.iter()):
            continue
        for paragraph in _outermost(shape, "p"):
            yield "".join(
                "\n" if local_name(one) == "br" else one.text or "" for one in _outermost(paragraph, "t", "br")
            )


def _outermost(root: Element, *names: str) -> Iterator[Element]:
    """The parts of those names that are in no other such part, in order."""
    left = [root]
    while left:
        one = left.pop()
        if local_name(one) in names:
            yield one
        else:
            left.extend(reversed(one))
