"""What Xberg's reading of Word and PowerPoint files lacks: whole sentences, heading levels, slides in order, notes."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from satchel.indexing.documents.tidy import tidy
from satchel.indexing.documents.zips import BROKEN, Illustrated, local_name, markup_of

_MOST_STYLE_BYTES: Final = 20_000_000
_MOST_HEAD_BYTES: Final = 2_000_000
_MOST_HEAD_PARAGRAPHS: Final = 200
_DEEPEST: Final = 6
_AT_ONCE: Final = 1 << 16

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)$")
_FENCE: Final = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_LETTERS: Final = re.compile(r"[\W_]+")

# What a mark stands for is written at the end of the text, indented.
_NOTE: Final = re.compile(r"^\[\^(cmt)?(\d{1,9})\]:[ \t]*\n?[ \t]*(?=\S)", re.MULTILINE)
_MARK: Final = re.compile(r"\[\^(\d{1,9})\]|\[cmt:(\d{1,9})\]|\[\^cmt(\d{1,9})\]")
_AT_END: Final = re.compile(r"(?:\[\^(?:cmt)?\d{1,9}\]|\[cmt:\d{1,9}\])+$")


def without_marks(markdown: str, *, at_ends: bool) -> str:
    """The Markdown without marks of notes and comments inside of paragraphs, where they break words and quotations.

    A note's mark at the end of its paragraph is kept if asked for; the notes and comments themselves always are.
    """
    known = {(note[1] or "", note[2]) for note in _NOTE.finditer(markdown)}
    if not known:
        return markdown
    marked: set[str] | None = set() if at_ends else None
    lines = markdown.split("\n")
    bare = (line if _NOTE.match(f"{line}\nx") else _line_without(line, known, marked) for line in lines)
    return _NOTE.sub(lambda note: "Comment: " if note[1] else f"[^{note[2]}]: ", "\n".join(bare))


def _line_without(line: str, known: set[tuple[str, str]], marked: set[str] | None) -> str:
    def is_note(mark: re.Match[str]) -> bool:
        # Inside of sentences, notes have the numbers of the file, which are others than those at its end.
        return bool(mark[1]) or ("cmt", mark[2] or mark[3]) in known

    end = _AT_END.search(line.rstrip())
    bare = _MARK.sub(lambda mark: "" if is_note(mark) else mark[0], line)
    if bare == line or end is None or marked is None:
        return bare
    bare = bare.rstrip()
    for mark in _MARK.finditer(end[0]):
        if mark[1] and ("", mark[1]) in known and mark[1] not in marked:
            marked.add(mark[1])
            bare += mark[0]
    return bare


def in_levels(data: bytes, markdown: str) -> str:
    """The Markdown with every heading one deeper than the document's title, if it has one in that style."""
    titles = {_letters(text) for text in _titles(data)} - {""}
    if not titles:
        return markdown
    lines = markdown.split("\n")
    fenced = False
    headings: list[tuple[int, re.Match[str]]] = []
    for at, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.match(line)):
            headings.append((at, heading))
    deeper = [(at, heading) for at, heading in headings if len(heading[1]) > 1 or _letters(heading[2]) not in titles]
    if len(deeper) == len(headings):
        return markdown
    for at, heading in deeper:
        lines[at] = f"{'#' * min(len(heading[1]) + 1, _DEEPEST)} {heading[2]}"
    return "\n".join(lines)


def _titles(data: bytes) -> Iterator[str]:
    """The paragraphs at a document's beginning that are in the style for its title, whatever its language calls it."""
    with suppress(ParseError, *BROKEN), zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = _title_styles(markup_of(archive, "word/styles.xml", _MOST_STYLE_BYTES))
        for paragraph in islice(_paragraphs(archive), _MOST_HEAD_PARAGRAPHS):
            if any(local_name(part) == "pStyle" and _value(part) in names for part in paragraph.iter()):
                yield "".join(part.text or "" for part in paragraph.iter() if local_name(part) == "t")


def _title_styles(styles: Element | None) -> set[str]:
    names = {"Title"}
    for style in styles.iter() if styles is not None else ():
        is_title = any(local_name(part) == "name" and _value(part).lower() == "title" for part in style)
        if is_title and local_name(style) == "style":
            names.update(value for key, value in style.attrib.items() if key.rpartition("}")[2] == "styleId")
    return names


def _paragraphs(archive: zipfile.ZipFile) -> Iterator[Element]:
    """The first paragraphs of the text; no entities are declared in it (`check_zip`)."""
    parser: XMLPullParser[Any] = XMLPullParser(("end",))
    with archive.open("word/document.xml") as file:
        for data in islice(iter(partial(file.read, _AT_ONCE), b""), _MOST_HEAD_BYTES // _AT_ONCE):
            parser.feed(data)
            for *_, element in parser.read_events():
                if isinstance(element, Element) and local_name(element) == "p":
                    yield element


def _value(element: Element) -> str:
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == "val"), "")


def _letters(text: str) -> str:
    return _LETTERS.sub("", text).casefold()


_NUMBER: Final = re.compile(r"slides/slide(\d{1,9})\.xml$")
_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MOST_SHOW_BYTES: Final = 20_000_000
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
            relations = markup_of(archive, "ppt/_rels/presentation.xml.rels", _MOST_SHOW_BYTES)
            show = markup_of(archive, "ppt/presentation.xml", _MOST_SHOW_BYTES)
            if relations is None or show is None:
                return slides
            numbers = {
                relation.get("Id"): int(match[1])
                for relation in relations.iter()
                if (match := _NUMBER.search(relation.get("Target", "")))
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
    listed = dict.fromkeys(part.get(_ID) for part in show.iter() if local_name(part) == "sldId")
    ordered = [by_number[numbers[name]] for name in listed if name in numbers] or list(by_number.values())
    return [slide._replace(page=slide.page._replace(number=at)) for at, slide in enumerate(ordered, 1)]


def _notes(archive: zipfile.ZipFile, slides: dict[int, Illustrated]) -> Iterator[tuple[int, str]]:
    """The notes of the slides that have some: the slide's own relations name their file."""
    met: set[str] = set()
    for number in slides:
        relations = markup_of(archive, f"ppt/slides/_rels/slide{number}.xml.rels", _MOST_NOTES_BYTES)
        for part in relations.iter() if relations is not None else ():
            is_here = part.get("Type", "").rpartition("/")[2] == "notesSlide" and part.get("TargetMode") != "External"
            place = posixpath.normpath(posixpath.join("/ppt/slides", part.get("Target", ""))).lstrip("/")
            if not is_here or place in met:
                continue  # a page of notes is one slide's
            met.add(place)
            page = markup_of(archive, place, _MOST_NOTES_BYTES)
            text = tidy("\n".join(_note_paragraphs(page)))[:_MOST_NOTES_CHARS].strip() if page is not None else ""
            if text:
                yield number, text


def _note_paragraphs(page: Element) -> Iterator[str]:
    for shape in _outermost(page, "sp"):
        if any(local_name(part) == "ph" and part.get("type") in _NO_NOTES for part in shape.iter()):
            continue
        for paragraph in _outermost(shape, "p"):
            parts = _outermost(paragraph, "t", "br")
            yield "".join("\n" if local_name(part) == "br" else part.text or "" for part in parts)


def _outermost(root: Element, *names: str) -> Iterator[Element]:
    """The parts of those names that are in no other such part, in order."""
    left = [root]
    while left:
        part = left.pop()
        if local_name(part) in names:
            yield part
        else:
            left.extend(reversed(part))
