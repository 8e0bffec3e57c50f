"""Convert a document to the stored text and outline: pages, sections on pages, pieces.

The text consists of all pages, each under a line with the page number. A piece lies on a single page; a section that
crosses a page border is cut there, and the next page names the section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.split import read_sections, with_own_names
from satchel.models.block import BlockType
from satchel.models.document import whole_markdown
from satchel.models.files import PageUnit, page_unit
from satchel.models.outline import WHOLE_FILE, Outline, OutlineBlock, OutlinePage
from satchel.text.secrets import redact

if TYPE_CHECKING:
    from satchel.models.document import Bookmark, Document, Page
    from satchel.models.outline import OutlinePiece

BETWEEN_HEADINGS: Final = " > "

_OTHER_LINE_ENDS: Final = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Converters escape all possible markup; `max\_len` would be neither found nor quoted as `max_len`.
_NEEDLESS_ESCAPE: Final = re.compile(r"(?<=[^\\\n])\\([_*~$<>])|(?<![^\n])\\(?=_)")
_TABLE_RULE: Final = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?)?\s*\|?\s*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"[*_`]{1,3}|\[([^\]]*)\]\([^)]*\)")
_MAX_HEADING_CHARS: Final = 120  # headings are part of citations; longer headings are cut
_MAX_TRAIL_HEADINGS: Final = 4  # the innermost; more would lengthen every citation


class ReadDocument(NamedTuple):
    """A document's text and outline for the store."""

    text: str
    outline: Outline


def outline_document(path: str, document: Document) -> ReadDocument:
    """The text and the outline of a document, without its secrets."""
    document = _redacted(document)
    texts = [(page.number, redact(_page_text(page))) for page in document.pages]
    text = whole_markdown(texts)
    outline = _Outliner(page_unit(path) or PageUnit.PAGE, _headings_by_page(document.bookmarks))
    for page, part in zip(document.pages, _parts(text, len(texts)), strict=True):
        outline.add(page, part)
    unique = with_own_names(Outline("markdown", tuple(outline.blocks), tuple(outline.pieces)))
    note = "; ".join(document.notes)
    return ReadDocument(text, unique._replace(pages=tuple(outline.pages), title=document.title, note=note))


def _redacted(document: Document) -> Document:
    """The document with marks in place of secrets, but for the text of its pages, which is made from its Markdown."""
    pages = (page._replace(captions=tuple(map(redact, page.captions))) for page in document.pages)
    bookmarks = (bookmark._replace(title=redact(bookmark.title)) for bookmark in document.bookmarks)
    return document._replace(pages=tuple(pages), title=redact(document.title), bookmarks=tuple(bookmarks))


def _page_text(page: Page) -> str:
    """The text of a page; text recognized in pictures comes last, marked as a quotation."""
    text = _NEEDLESS_ESCAPE.sub(r"\1", _OTHER_LINE_ENDS.sub("\n", page.markdown).strip("\n"))
    seen = _OTHER_LINE_ENDS.sub("\n", page.seen).strip()
    if not seen:
        return text
    quoted = "\n".join(f"> {line}" for line in seen.split("\n") if line.strip())
    return f"{text}\n\n> In a picture:\n{quoted}".lstrip("\n")


class _Part(NamedTuple):
    """A page's part of the whole text: the first line (from 1), and the start offset."""

    first_line: int
    start: int
    text: str


def _parts(text: str, count: int) -> Iterator[_Part]:
    """Each page's part of the whole text, starting below the page marker; no page can contain a marker."""
    line = start = 0
    borders = [match.start() for match in re.finditer(r"^<!-- page \d+ -->$", text, re.MULTILINE)]
    assert len(borders) == count
    for border, after in zip(borders, [*borders[1:], len(text) + 1][:count], strict=True):
        line += text.count("\n", start, border)
        start = border
        begin = text.index("\n", border) + 1
        yield _Part(line + 2, begin, text[begin : after - 1])


@dataclass(slots=True)
class _Outliner:
    """Builder of a document's outline."""

    unit: PageUnit
    bookmarks: dict[int, tuple[str, ...]]
    """Headings from the table of contents, by the page on which an entry begins."""
    blocks: list[OutlineBlock] = field(default_factory=list)
    pieces: list[OutlinePiece] = field(default_factory=list)
    pages: list[OutlinePage] = field(default_factory=list)
    marked: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    def add(self, page: Page, part: _Part) -> None:
        """Add a page to the outline."""
        inner = read_sections(part.text, "markdown")
        last_line = part.first_line + part.text.count("\n")
        trail, trails = self._trails(inner.blocks, page.number, part.text)
        parent_heading = trail[-1] if trail else ""
        name = _plain(page.name) or parent_heading or f"{self.unit} {page.number}"
        section_path = BETWEEN_HEADINGS.join(trail)
        self.blocks.append(
            OutlineBlock(
                type=BlockType.PAGE.value,
                name=name,
                qualified=f"{self.unit}-{page.number}",
                parent=WHOLE_FILE,
                first_line=part.first_line,
                last_line=last_line,
                signature=name,
                doc=section_path,
                page=page.number,
            )
        )
        self.pages.append(
            OutlinePage(
                number=page.number,
                first_line=part.first_line,
                last_line=last_line,
                name=_plain(page.name),
                section_path=section_path,
                parent_heading=parent_heading,
                headings=len(inner.blocks),
                tables=len(_TABLE_RULE.findall(part.text)),
                pictures=page.pictures,
                captions=page.captions,
                is_recognized=page.is_recognized,
            )
        )
        self._add_sections(inner, trails, part, page.number)

    def _add_sections(self, inner: Outline, trails: list[tuple[str, ...]], part: _Part, number: int) -> None:
        """Add the sections and pieces of a page; the page's own block must be the last block."""
        own = len(self.blocks) - 1
        lines_above = part.first_line - 1
        # The page's own block stands before its sections: WHOLE_FILE, which is -1, becomes the page.
        self.blocks += [
            block._replace(
                qualified=f"{self.blocks[own].qualified}/{block.qualified}",
                parent=own + 1 + block.parent,
                first_line=block.first_line + lines_above,
                last_line=block.last_line + lines_above,
                doc=BETWEEN_HEADINGS.join(above),
                page=number,
            )
            for block, above in zip(inner.blocks, trails, strict=True)
        ]
        self.pieces += [
            piece._replace(
                first_line=piece.first_line + lines_above,
                last_line=piece.last_line + lines_above,
                start=piece.start + part.start,
                end=piece.end + part.start,
                block=own + 1 + piece.block,
                defines=tuple(own + 1 + i for i in piece.defines),
                page=number,
            )
            for piece in inner.pieces
        ]

    def _trails(
        self, blocks: Sequence[OutlineBlock], number: int, text: str
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The headings above a page, and the headings above each section of the page.

        A document's table of contents takes precedence over headings recognized in the text; without a table of
        contents, the headings at the end of a page apply to the start of the next page.
        """
        trails: list[tuple[str, ...]] = []
        for block in blocks:
            above = trails[block.parent] if block.parent != WHOLE_FILE else ()
            trails.append((*above, _plain(block.name))[-_MAX_TRAIL_HEADINGS:])
        begins = bool(blocks) and not any(map(str.strip, text.split("\n")[: blocks[0].first_line - 1]))
        at_start = trails[0] if begins else self.open
        self.open = trails[-1] if trails else self.open
        if self.bookmarks:
            # An entry that begins on this page applies; on a page without entries, the last entry before.
            self.marked = self.bookmarks.get(number, self.marked)
            return self.marked, [(*self.marked[:1], *trail)[-_MAX_TRAIL_HEADINGS:] for trail in trails]
        return at_start, trails


def _headings_by_page(bookmarks: Sequence[Bookmark]) -> dict[int, tuple[str, ...]]:
    """Headings of the first table-of-contents entry on each page, outermost first."""
    headings: dict[int, tuple[str, ...]] = {}
    open_: list[Bookmark] = []
    for bookmark in bookmarks:
        while open_ and open_[-1].level >= bookmark.level:
            open_.pop()
        open_.append(bookmark)
        headings.setdefault(bookmark.page, tuple(_plain(above.title) for above in open_[-_MAX_TRAIL_HEADINGS:]))
    return headings


def _plain(heading: str) -> str:
    """A heading for display: on a single line, without markup."""
    return " ".join(_MARKUP.sub(lambda mark: mark[1] or "", heading).split())[:_MAX_HEADING_CHARS]
