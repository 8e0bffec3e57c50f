"""Office files, web pages and e-books, by Xberg: bytes in, Markdown out, no network and no OCR."""

from __future__ import annotations

import asyncio
import html
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, XMLParser, XMLPullParser, fromstring

from satchel.indexing.documents import equations
from satchel.indexing.documents.charts import with_charts
from satchel.indexing.documents.paging import (
    cut_tables,
    first_heading,
    into_pages,
    parted_tables,
    without_empty_columns,
)
from satchel.indexing.documents.recognition import DocumentSource
from satchel.indexing.documents.tidy import CannotRead, captions_in, decoded, one_line, tidy, without_pictures
from satchel.indexing.documents.web_pages import main_content
from satchel.indexing.documents.zips import (
    BROKEN,
    Illustrated,
    check_zip,
    illustrated,
    local_name,
    markup_of,
    places_in,
    read_inlays,
)
from satchel.models.document import Document, Page
from satchel.models.files import DOCUMENT_KINDS, PageUnit

_MAX_STYLES_BYTES: Final = 20_000_000  # of word/styles.xml, parsed whole: bounds memory; larger styles are ignored
_MAX_HEAD_BYTES: Final = 2_000_000  # of word/document.xml: bounds the search; a title stands at the beginning
_MAX_HEAD_PARAGRAPHS: Final = 200  # bounds the search; a title stands at the beginning
_MAX_HEADING_LEVEL: Final = 6  # Markdown has six levels of headings
_XML_CHUNK_BYTES: Final = 1 << 16  # fed to the parser at a time; reading stops after the last paragraph needed

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)$")
_FENCE: Final = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_LETTERS: Final = re.compile(r"[\W_]+")

# The text of a note stands at the end of the document, indented.
_NOTE: Final = re.compile(r"^\[\^(cmt)?(\d{1,9})\]:[ \t]*\n?[ \t]*(?=\S)", re.MULTILINE)
_MARK: Final = re.compile(r"\[\^(\d{1,9})\]|\[cmt:(\d{1,9})\]|\[\^cmt(\d{1,9})\]")
_AT_END: Final = re.compile(r"(?:\[\^(?:cmt)?\d{1,9}\]|\[cmt:\d{1,9}\])+$")


def without_marks(markdown: str, *, at_ends: bool) -> str:
    """The Markdown without marks of notes and comments inside paragraphs, where marks break words and quotations.

    With `at_ends`, a note's mark at the end of a paragraph is kept; the notes and comments themselves always are.
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
        # Inside sentences, notes have the numbers of the file, which differ from the numbers at the end.
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
    """The Markdown with every heading a level deeper than the document's title; unchanged without a title style."""
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
        lines[at] = f"{'#' * min(len(heading[1]) + 1, _MAX_HEADING_LEVEL)} {heading[2]}"
    return "\n".join(lines)


def _titles(data: bytes) -> Iterator[str]:
    """Paragraphs at the start of a document in the title style, under any localized style name."""
    with suppress(ParseError, *BROKEN), zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = _title_styles(markup_of(archive, "word/styles.xml", _MAX_STYLES_BYTES))
        for paragraph in islice(_paragraphs(archive), _MAX_HEAD_PARAGRAPHS):
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
    """The first paragraphs of the text; `check_zip` has rejected archives with entity declarations."""
    parser: XMLPullParser[Any] = XMLPullParser(("end",))
    with archive.open("word/document.xml") as file:
        for data in islice(iter(partial(file.read, _XML_CHUNK_BYTES), b""), _MAX_HEAD_BYTES // _XML_CHUNK_BYTES):
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
_MAX_PRESENTATION_BYTES: Final = 20_000_000  # bounds memory; slides of larger presentations stay in file order
_MAX_NOTES_BYTES: Final = 2_000_000  # of a slide's notes as XML: bounds memory; larger notes are left out
_MAX_NOTES_CHARS: Final = 100_000  # of a slide: notes should not crowd out the slides; the rest is cut

# Placeholders on a page of notes that are not notes.
_NO_NOTES: Final = frozenset({"sldImg", "sldNum", "dt", "hdr", "ftr"})


def in_shown_order(data: bytes, slides: list[Illustrated]) -> list[Illustrated]:
    """The slides in presentation order with speaker notes, from slides in the order of file numbers.

    The order stays unchanged if slides cannot be matched to files.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            relations = markup_of(archive, "ppt/_rels/presentation.xml.rels", _MAX_PRESENTATION_BYTES)
            show = markup_of(archive, "ppt/presentation.xml", _MAX_PRESENTATION_BYTES)
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
            for number, slide in by_number.items():
                markdown = with_charts(slide.page.markdown, archive, number)
                by_number[number] = slide._replace(page=slide.page._replace(markdown=markdown))
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
    """Speaker notes by slide number; the slide's relations name the file with the notes."""
    seen_paths: set[str] = set()
    for number in slides:
        relations = markup_of(archive, f"ppt/slides/_rels/slide{number}.xml.rels", _MAX_NOTES_BYTES)
        for part in relations.iter() if relations is not None else ():
            is_here = part.get("Type", "").rpartition("/")[2] == "notesSlide" and part.get("TargetMode") != "External"
            place = posixpath.normpath(posixpath.join("/ppt/slides", part.get("Target", ""))).lstrip("/")
            if not is_here or place in seen_paths:
                continue  # a page of notes is one slide's
            seen_paths.add(place)
            page = markup_of(archive, place, _MAX_NOTES_BYTES)
            text = tidy("\n".join(_note_paragraphs(page)))[:_MAX_NOTES_CHARS].strip() if page is not None else ""
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
    """Elements with the given names, in document order, without elements nested in a match."""
    left = [root]
    while left:
        part = left.pop()
        if local_name(part) in names:
            yield part
        else:
            left.extend(reversed(part))


_MIME_TYPES: Final = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "doc": "application/msword",
    "ppt": "application/vnd.ms-powerpoint",
    "xls": "application/vnd.ms-excel",
    "rtf": "application/rtf",
    "html": "text/html",
}
_ZIPPED: Final = frozenset({"docx", "pptx", "xlsx", "odt", "odp", "ods"})
_FOLDERS: Final = {"docx": "word", "pptx": "ppt/slides"}
_WITH_MARKS: Final = frozenset({"docx", "odt"})
_MAX_TABLE_CELLS: Final = 5_000_000  # bounds the memory of Xberg for huge sheets
_MAX_HTML_DEPTH: Final = 1000  # bounds the recursion of Xberg on hostile nesting

# Xberg writes a horizontal rule before each slide of OpenDocument, then the slide's name as a heading.
_ODP_SLIDE: Final = re.compile(r"^-----\n\n## (.*)$", re.MULTILINE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,1000})</title", re.IGNORECASE)
_TITLE_SEARCH_CHARS: Final = 20_000  # `<title>` stands in the head of a page; bounds the search
_MARKUP_IN_NAME: Final = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)|#(?=#*$)")
_ENTITIES: Final = re.compile(rb"<!ENTITY", re.IGNORECASE)


def read_text(source: DocumentSource) -> Document:
    """The pages of plain text."""
    return Document(into_pages(tidy(decoded(source.data))))


def read_office(source: DocumentSource) -> Document:
    """The pages of an office file or a web page: slides, sheets, or sections for formats without pages."""
    kind, data, *_ = source
    if kind in _ZIPPED:
        check_zip(data)
    if kind == "html":
        return read_web_page(data)
    result = extract(kind, equations.with_marks(data) if kind == "docx" else data)
    unit = DOCUMENT_KINDS.get(kind).unit
    if unit in (PageUnit.SLIDE, PageUnit.SHEET):
        pages = list(_own_pages(kind, result))
        pages = in_shown_order(data, pages) if kind == "pptx" else pages
    else:
        content = without_marks(tidy(result.content), at_ends=kind == "docx") if kind in _WITH_MARKS else result.content
        content = in_levels(data, equations.in_place(content)) if kind == "docx" else content
        pages = _sections(content, _FOLDERS.get(kind, ""))
    if kind not in _ZIPPED:
        pages = [Illustrated(page) for page, _ in pages]
    title = one_line(tidy(result.metadata.title or "")) or (first_heading(pages[0].page.markdown) if pages else "")
    return _document(source, pages, title, unit)


def _document(
    source: DocumentSource, pages: Sequence[Illustrated], title: str, unit: str, notes: Sequence[str] = ()
) -> Document:
    """The document with at most `most_pages` pages, and the text recognized in pictures."""
    _, data, options, recognition = source
    most = options.most_pages
    if len(pages) > most:
        notes = (*notes, f"has {len(pages):,} {unit}s; the first {most:,} were read")
    read = read_inlays(pages[:most], data, recognition)
    return Document(read, title, (), (*notes, *recognition.notes()))


def read_web_page(data: bytes) -> Document:
    """The sections of a web page."""
    if _ENTITIES.search(data):
        raise CannotRead("declares XML entities, which can expand without limit")
    text = decoded(data)
    result = extract("html", main_content(text).encode())
    pages = tuple(page for page, _ in _sections(result.content))
    return Document(pages, title_of(text) or first_heading(tidy(result.content)))


def title_of(text: str) -> str:
    """The text of a web page's `<title>` element."""
    title = _TITLE.search(text[:_TITLE_SEARCH_CHARS])
    return one_line(html.unescape(tidy(title[1]))) if title else ""


def extract(kind: str, data: bytes) -> Any:
    """Xberg's result for the bytes; raises CannotRead if Xberg fails or returns nothing."""
    from xberg import _xberg

    source = _xberg.ExtractInput.from_bytes(data, _MIME_TYPES[kind], f"document.{kind}")

    async def run() -> Any:
        return await _xberg.extract(input=source, config=_config())

    try:
        result = asyncio.run(run())
    except (RuntimeError, ValueError, OSError) as error:
        raise _refused(kind, str(error)) from None
    if not result.results:
        raise _refused(kind, result.errors[0].message if result.errors else "no content")
    return result.results[0]


def _refused(kind: str, message: str) -> CannotRead:
    if "encrypt" in message.lower() or "password" in message.lower():
        return CannotRead("is encrypted; save it without a password")
    # Xberg's message quotes the untrusted file, and is not passed on.
    return CannotRead(f"is a damaged {kind.upper()}")


@lru_cache(maxsize=1)
def _config() -> Any:
    from xberg import _xberg

    return _xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        enable_quality_processing=False,
        output_format=_xberg.OutputFormat("markdown"),
        pages=_xberg.PageConfig(extract_pages=True),
        html_options=_xberg.ConversionOptions(extract_metadata=False, max_depth=_MAX_HTML_DEPTH),
        security_limits=_xberg.SecurityLimits(max_table_cells=_MAX_TABLE_CELLS, max_content_size=1 << 30),
        concurrency=_xberg.ConcurrencyConfig(max_threads=1),
        max_archive_depth=0,
    )


def _sections(content: str, folder: str = "") -> list[Illustrated]:
    return [illustrated(page, folder) for page in into_pages(tidy(content))]


def _own_pages(kind: str, result: Any) -> Iterator[Illustrated]:
    if kind == "odp":
        _, *parts = _ODP_SLIDE.split(result.content)
        for number, (name, text) in enumerate(zip(parts[::2], parts[1::2], strict=True), 1):
            yield _page(number, text, one_line(name), kind)
    elif not result.pages:
        yield _page(1, result.content, "", kind)
    else:
        for number, page in enumerate(result.pages, 1):
            name = one_line(page.sheet_name or "")
            text = page.content.strip("\n").removeprefix(f"## {page.sheet_name}") if name else page.content
            if name and text.strip():
                text = f"## {_escaped(name)}\n\n{text}"
            # In a PPTX, Xberg matches notes to slides by file number, which is wrong; see `in_shown_order`.
            if page.speaker_notes and kind != "pptx":
                text += f"\n\nSpeaker notes: {page.speaker_notes}"
            yield _page(number, text, name, kind)


def _escaped(name: str) -> str:
    """The name, with Markdown markup escaped, as the text of a heading."""
    return _MARKUP_IN_NAME.sub(r"\\\g<0>", name)


def _page(number: int, text: str, name: str, kind: str) -> Illustrated:
    markdown, pictures = without_pictures(tidy(text))
    markdown = cut_tables(without_empty_columns(parted_tables(tidy(markdown))))
    page = Page(number, markdown, name or first_heading(markdown), captions_in(markdown), pictures=pictures)
    return Illustrated(page, places_in(text, _FOLDERS.get(kind, "")))


_MAX_CHAPTERS: Final = 5000  # as many as pages of a document (ReadOptions.most_pages)
_PAGE_TYPES: Final = ("application/xhtml+xml", "text/html")


def read_epub(source: DocumentSource) -> Document:
    """The chapters of an e-book, long chapters cut into sections."""
    check_zip(source.data)
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            return _read_chapters(archive, source)
    except (ParseError, *BROKEN):
        raise CannotRead("is a damaged EPUB: its list of chapters cannot be read") from None


def _read_chapters(archive: zipfile.ZipFile, source: DocumentSource) -> Document:
    place = _package_path(archive)
    package = _parsed(archive, place)
    pages: list[Illustrated] = []
    unread = 0
    for path in _chapters(package, place):
        try:
            text = decoded(archive.read(path))
            content = tidy(extract("html", text.encode()).content)
        except (CannotRead, *BROKEN):
            unread += 1
            continue
        title = one_line(first_heading(content)) or title_of(text)
        for page in into_pages(content, within=title):
            pages.append(illustrated(page._replace(number=len(pages) + 1), posixpath.dirname(path)))
    if not pages:
        raise CannotRead("is an EPUB without a readable chapter")
    titles = (part.text for part in package.iter() if part.tag.endswith("}title") and part.text)
    notes = [f"{unread:,} of its chapters could not be read"] if unread else []
    return _document(source, pages, one_line(tidy(next(titles, ""))), "section", notes)


def _package_path(archive: zipfile.ZipFile) -> str:
    container = _parsed(archive, "META-INF/container.xml")
    for part in container.iter():
        if local_name(part) == "rootfile" and (path := part.get("full-path")):
            return path
    raise ParseError("no package")


def _chapters(package: Element, place: str) -> list[str]:
    folder = posixpath.dirname(place)
    items = {
        part.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(part.get("href", ""))))
        for part in package.iter()
        if local_name(part) == "item" and part.get("media-type", _PAGE_TYPES[0]) in _PAGE_TYPES
    }
    spine = dict.fromkeys(part.get("idref", "") for part in package.iter() if local_name(part) == "itemref")
    return [items[name] for name in islice(spine, _MAX_CHAPTERS) if name in items]


def _parsed(archive: zipfile.ZipFile, path: str) -> Element:
    # `check_zip` has refused entity declarations, and Expat limits their expansion, too.
    return fromstring(archive.read(path), XMLParser())  # noqa: S314
