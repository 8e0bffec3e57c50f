"""Office files, web pages and e-books, by Xberg: bytes in, Markdown out, no network and no recognizing."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from satchel.indexing.documents.inlays import Illustrated, illustrated, places_in, read_inlays
from satchel.indexing.documents.paging import cut_tables, first_heading, into_pages, without_empty_columns
from satchel.indexing.documents.recognition import DocumentSource
from satchel.indexing.documents.slides import in_shown_order
from satchel.indexing.documents.tidy import captions_in, one_line, tidy, without_pictures
from satchel.indexing.documents.word import in_levels, without_marks
from satchel.indexing.documents.zips import objection_to
from satchel.models.document import Document, Page, Unreadable
from satchel.models.files import DOCUMENT_KINDS, PageUnit

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
_MOST_CELLS: Final = 5_000_000
_MOST_TREE_DEPTH: Final = 1000

# Xberg writes a slide of OpenDocument as a rule, then its name as a heading.
_ODP_SLIDE: Final = re.compile(r"^-----\n\n## (.*)$", re.MULTILINE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{1,1000})</title", re.IGNORECASE)
_LOOKED_AT_FOR_TITLE: Final = 20_000
_MARKUP_IN_NAME: Final = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)|#(?=#*$)")
_CHARSET: Final = re.compile(rb"charset\s*=\s*[\"']?\s*([\w-]{2,40})", re.IGNORECASE)
_ENTITIES: Final = re.compile(rb"<!ENTITY", re.IGNORECASE)


def read_text(source: DocumentSource) -> Document:
    """The pages of plain text."""
    return Document(into_pages(tidy(decoded(source.data))))


def read_office(source: DocumentSource) -> Document | Unreadable:
    """The pages of an office file or a web page: slides, sheets, or sections where there are none of its own."""
    kind, data, options, recognition = source
    problem = objection_to(data) if kind in _ZIPPED else None
    if problem is not None:
        return problem
    if kind == "html":
        return read_web_page(data)
    result = extract(kind, data)
    if isinstance(result, Unreadable):
        return result
    unit = DOCUMENT_KINDS.get(kind).unit
    if unit in (PageUnit.SLIDE, PageUnit.SHEET):
        found = list(_own_pages(kind, result))
        found = in_shown_order(data, found) if kind == "pptx" else found
    else:
        content = without_marks(tidy(result.content), at_ends=kind == "docx") if kind in _WITH_MARKS else result.content
        content = in_levels(data, content) if kind == "docx" else content
        found = _sections(content, _FOLDERS.get(kind, ""))
    count = len(found)
    notes = [f"has {count:,} {unit}s; the first {options.most_pages:,} were read"] if count > options.most_pages else []
    found = found[: options.most_pages]
    pages = read_inlays(found, data, recognition) if kind in _ZIPPED else tuple(one.page for one in found)
    title = one_line(tidy(result.metadata.title or ""))
    notes += recognition.notes()
    return Document(pages, title or (first_heading(pages[0].markdown) if pages else ""), (), tuple(notes))


def read_web_page(data: bytes) -> Document | Unreadable:
    """The sections of a web page."""
    if _ENTITIES.search(data):
        return Unreadable("declares XML entities, which can grow without end")
    text = decoded(data)
    result = extract("html", text.encode())
    if isinstance(result, Unreadable):
        return result
    title = title_of(text)
    pages = tuple(one.page for one in _sections(result.content))
    return Document(pages, title or first_heading(tidy(result.content)))


def title_of(text: str) -> str:
    """What a web page says its title is."""
    found = _TITLE.search(text[:_LOOKED_AT_FOR_TITLE])
    return one_line(html.unescape(tidy(found[1]))) if found else ""


def decoded(data: bytes) -> str:
    """The text that bytes are: as they say, as UTF-8, or as Windows in the West would have it."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(name, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    told = _CHARSET.search(data[:1024])
    try:
        return data.decode(told[1].decode() if told else "cp1252", "replace")
    except LookupError:
        return data.decode("cp1252", "replace")


def extract(kind: str, data: bytes) -> Any:
    """What Xberg makes of the bytes, or why nothing."""
    from xberg import _xberg

    given = _xberg.ExtractInput.from_bytes(data, _MIME_TYPES[kind], f"document.{kind}")

    async def run() -> Any:
        return await _xberg.extract(input=given, config=_config())

    try:
        result = asyncio.run(run())
    except (RuntimeError, ValueError, OSError) as error:
        return _why_not(kind, str(error))
    if not result.results:
        return _why_not(kind, result.errors[0].message if result.errors else "nothing in it")
    return result.results[0]


def _why_not(kind: str, message: str) -> Unreadable:
    if "encrypt" in message.lower() or "password" in message.lower():
        return Unreadable("is encrypted; save it without a password to have it read")
    # The message quotes the file; what a stranger wrote is no reason of ours.
    return Unreadable(f"is a damaged {kind.upper()}")


@lru_cache(maxsize=1)
def _config() -> Any:
    from xberg import _xberg

    return _xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        enable_quality_processing=False,
        output_format=_xberg.OutputFormat("markdown"),
        pages=_xberg.PageConfig(extract_pages=True),
        html_options=_xberg.ConversionOptions(extract_metadata=False, max_depth=_MOST_TREE_DEPTH),
        security_limits=_xberg.SecurityLimits(max_table_cells=_MOST_CELLS, max_content_size=1 << 30),
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
            # In a PPTX, Xberg gives the notes to slides whose files have the same numbers, which are others.
            if page.speaker_notes and kind != "pptx":
                text += f"\n\nSpeaker notes: {page.speaker_notes}"
            yield _page(number, text, name, kind)


def _escaped(name: str) -> str:
    """A name as the text of a heading that says just that."""
    return _MARKUP_IN_NAME.sub(r"\\\g<0>", name)


def _page(number: int, text: str, name: str, kind: str) -> Illustrated:
    markdown, pictures = without_pictures(tidy(text))
    markdown = cut_tables(without_empty_columns(tidy(markdown)))
    page = Page(number, markdown, name or first_heading(markdown), captions_in(markdown), pictures=pictures)
    return Illustrated(page, places_in(text, _FOLDERS.get(kind, "")))
