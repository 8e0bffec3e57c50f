"""What Xberg's reading of Word and PowerPoint files lacks: whole sentences, heading levels, slides in order, notes."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
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
    known = {(found[1] or "", found[2]) for found in _NOTE.finditer(markdown)}
    if not known:
        return markdown
    named: set[str] = set()
    lines = []
    for line in markdown.split("\n"):
        note = _NOTE.match(f"{line}\nx")
        lines.append(line if note else _line_without(line, known, named if at_ends else None))
    return _NOTE.sub(lambda found: "Comment: " if found[1] else f"[^{found[2]}]: ", "\n".join(lines))


def _line_without(line: str, known: set[tuple[str, str]], named: set[str] | None) -> str:
    def is_note(mark: re.Match[str]) -> bool:
        # Inside of sentences, notes have the numbers of the file, which are others than those at its end.
        return bool(mark[1]) or ("cmt", mark[2] or mark[3]) in known

    end = _AT_END.search(line.rstrip())
    bare = _MARK.sub(lambda mark: "" if is_note(mark) else mark[0], line)
    if bare == line or end is None or named is None:
        return bare
    kept = []
    for mark in _MARK.finditer(end[0]):
        if mark[1] and ("", mark[1]) in known and mark[1] not in named:
            named.add(mark[1])
            kept.append(mark[0])
    return bare.rstrip() + "".join(kept)


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
        elif not fenced and (found := _HEADING.match(line)):
            headings.append((at, found))
    is_title = [len(found[1]) == 1 and _letters(found[2]) in titles for _, found in headings]
    if not any(is_title):
        return markdown
    for (at, found), stays in zip(headings, is_title, strict=True):
        if not stays:
            lines[at] = f"{'#' * min(len(found[1]) + 1, _DEEPEST)} {found[2]}"
    return "\n".join(lines)


def _titles(data: bytes) -> Iterator[str]:
    """The paragraphs at a document's beginning that are in the style for its title, whatever its language calls it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = _title_styles(markup_of(archive, "word/styles.xml", _MOST_STYLE_BYTES))
            for paragraph in islice(_paragraphs(archive), _MOST_HEAD_PARAGRAPHS):
                if any(local_name(one) == "pStyle" and _value(one) in names for one in paragraph.iter()):
                    yield "".join(one.text or "" for one in paragraph.iter() if local_name(one) == "t")
    except (ParseError, *BROKEN):
        return


def _title_styles(styles: Element | None) -> set[str]:
    names = {"Title"}
    for style in styles.iter() if styles is not None else ():
        if local_name(style) == "style" and any(
            local_name(one) == "name" and _value(one).lower() == "title" for one in style
        ):
            names.update(value for key, value in style.attrib.items() if key.rpartition("}")[2] == "styleId")
    return names


def _paragraphs(archive: zipfile.ZipFile) -> Iterator[Element]:
    """The first paragraphs of the text; no entities are declared in it (`check_zip`)."""
    parser: XMLPullParser[Any] = XMLPullParser(("end",))
    with archive.open("word/document.xml") as file:
        for _ in range(_MOST_HEAD_BYTES // _AT_ONCE):
            data = file.read(_AT_ONCE)
            if not data:
                return
            parser.feed(data)
            for event in parser.read_events():
                one = event[-1]
                if isinstance(one, Element) and local_name(one) == "p":
                    yield one


def _value(one: Element) -> str:
    return next((value for key, value in one.attrib.items() if key.rpartition("}")[2] == "val"), "")


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
            text = tidy("\n".join(_note_paragraphs(page)))[:_MOST_NOTES_CHARS].strip() if page is not None else ""
            if text:
                yield number, text


def _note_paragraphs(page: Element) -> Iterator[str]:
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
