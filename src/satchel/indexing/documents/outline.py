"""From a document that was read to the text and the outline that the store keeps: pages, the sections on them, pieces.

The text is that of all pages, each under a line with its number. A piece stands on one page; a section that goes on
over the border is cut there, and the page says in which section it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.read_outline import with_own_names
from satchel.indexing.sections import read_sections
from satchel.models.block import BlockType
from satchel.models.document import whole_markdown
from satchel.models.files import PageUnit, page_unit
from satchel.models.outline import WHOLE_FILE, Outline, OutlineBlock, OutlinePage

if TYPE_CHECKING:
    from satchel.models.document import Bookmark, Document, Page
    from satchel.models.outline import OutlinePiece

BETWEEN_HEADINGS: Final = " > "

_OTHER_LINE_ENDS: Final = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Converters guard whatever could be markup; `max\_len` is then neither found nor quoted as what it is.
_NEEDLESS_ESCAPE: Final = re.compile(r"(?<=[^\\\n])\\([_*~$<>])|(?<![^\n])\\(?=_)")
_TABLE_RULE: Final = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?)?\s*\|?\s*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"[*_`]{1,3}|\[([^\]]*)\]\([^)]*\)")
_MOST_HEADING_CHARS: Final = 120
_MOST_DEPTH: Final = 4


class ReadDocument(NamedTuple):
    """A document as the store keeps it."""

    text: str
    outline: Outline


def outline_document(path: str, document: Document) -> ReadDocument:
    """The text and the outline of a document."""
    unit = page_unit(path) or PageUnit.PAGE
    texts = [(page.number, _page_text(page)) for page in document.pages]
    text = whole_markdown(texts)
    made = _Made(text, unit, _headings_by_page(document.bookmarks))
    for page, part in zip(document.pages, _parts(text, len(texts)), strict=True):
        made.add(page, part)
    outline = with_own_names(Outline("markdown", tuple(made.blocks), tuple(made.pieces)))
    note = "; ".join(document.notes)
    return ReadDocument(text, outline._replace(pages=tuple(made.pages), title=document.title, note=note))


def _page_text(page: Page) -> str:
    """What a page says; what is written in its pictures comes last, and is told apart."""
    text = _NEEDLESS_ESCAPE.sub(r"\1", _OTHER_LINE_ENDS.sub("\n", page.markdown).strip("\n"))
    seen = _OTHER_LINE_ENDS.sub("\n", page.seen).strip()
    if not seen:
        return text
    quoted = "\n".join(f"> {line}" for line in seen.split("\n") if line.strip())
    return f"{text}\n\n> In a picture:\n{quoted}".lstrip("\n")


class _Part(NamedTuple):
    """Where a page's text is in the whole: its first line (from 1), and its place."""

    first_line: int
    start: int
    text: str


def _parts(text: str, count: int) -> Iterator[_Part]:
    """The pages' parts of the whole text; each begins below its border, which no page can hold."""
    line = start = 0
    borders = [match.start() for match in re.finditer(r"^<!-- page \d+ -->$", text, re.MULTILINE)]
    assert len(borders) == count
    for border, after in zip(borders, [*borders[1:], len(text) + 1][:count], strict=True):
        line += text.count("\n", start, border)
        start = border
        begin = text.index("\n", border) + 1
        yield _Part(line + 2, begin, text[begin : after - 1])


class _Made:
    """The outline in the making."""

    def __init__(self, text: str, unit: PageUnit, bookmarks: dict[int, tuple[str, ...]]) -> None:
        self.blocks: list[OutlineBlock] = []
        self.pieces: list[OutlinePiece] = []
        self.pages: list[OutlinePage] = []
        self._text = text
        self._unit = unit
        self._bookmarks = bookmarks
        self._marked: tuple[str, ...] = ()
        self._open: tuple[str, ...] = ()

    def add(self, page: Page, part: _Part) -> None:
        """One more page."""
        inner = read_sections(part.text, "markdown")
        last_line = part.first_line + part.text.count("\n")
        ways = self._ways(inner.blocks, page.number, part.text)
        own = len(self.blocks)
        name = _plain(page.name) or (ways.page[-1] if ways.page else "")
        label = f"{self._unit}-{page.number}"
        section_path = BETWEEN_HEADINGS.join(ways.page)
        self.blocks.append(
            OutlineBlock(
                type=BlockType.PAGE.value,
                name=name or f"{self._unit} {page.number}",
                qualified=label,
                parent=WHOLE_FILE,
                first_line=part.first_line,
                last_line=last_line,
                signature=name or f"{self._unit} {page.number}",
                doc=section_path,
                page=page.number,
            )
        )
        for block, way in zip(inner.blocks, ways.blocks, strict=True):
            self.blocks.append(
                block._replace(
                    qualified=f"{label}/{block.qualified}",
                    parent=own if block.parent == WHOLE_FILE else own + 1 + block.parent,
                    first_line=block.first_line + part.first_line - 1,
                    last_line=block.last_line + part.first_line - 1,
                    doc=BETWEEN_HEADINGS.join(way),
                    page=page.number,
                )
            )
        for piece in inner.pieces:
            self.pieces.append(
                piece._replace(
                    first_line=piece.first_line + part.first_line - 1,
                    last_line=piece.last_line + part.first_line - 1,
                    start=piece.start + part.start,
                    end=piece.end + part.start,
                    block=own if piece.block == WHOLE_FILE else own + 1 + piece.block,
                    defines=tuple(own + 1 + i for i in piece.defines),
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
                parent_heading=ways.page[-1] if ways.page else "",
                headings=len(inner.blocks),
                tables=len(_TABLE_RULE.findall(part.text)),
                pictures=page.pictures,
                captions=page.captions,
                is_recognized=page.is_recognized,
            )
        )

    def _ways(self, blocks: Sequence[OutlineBlock], number: int, text: str) -> _Ways:
        """The headings above a page and above each of its sections.

        A document's own table of contents knows better than we do what is a heading; without one, what was open at
        the end of a page is open at the start of the next.
        """
        carried = self._open
        ways: list[tuple[str, ...]] = []
        for block in blocks:
            above = ways[block.parent] if block.parent != WHOLE_FILE else ()
            ways.append((*above, _plain(block.name))[-_MOST_DEPTH:])
        if ways:
            self._open = ways[-1]
        begins = bool(blocks) and not text[: _offset_of(text, blocks[0].first_line)].strip()
        at_start = ways[0] if begins else carried
        if self._bookmarks:
            # What begins on this page holds for it; what began earlier, for those on which nothing begins.
            self._marked = self._bookmarks.get(number, self._marked)
            return _Ways(self._marked, [(*self._marked[:1], *way)[-_MOST_DEPTH:] for way in ways])
        return _Ways(at_start, ways)


class _Ways(NamedTuple):
    page: tuple[str, ...]
    blocks: list[tuple[str, ...]]


def _offset_of(text: str, line: int) -> int:
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    return at


def _headings_by_page(bookmarks: Sequence[Bookmark]) -> dict[int, tuple[str, ...]]:
    """For each page on which an entry of the table of contents begins, the first of them with those above it."""
    found: dict[int, tuple[str, ...]] = {}
    open_: list[Bookmark] = []
    for one in bookmarks:
        while open_ and open_[-1].level >= one.level:
            open_.pop()
        open_.append(one)
        found.setdefault(one.page, tuple(_plain(each.title) for each in open_[-_MOST_DEPTH:]))
    return found


def _plain(heading: str) -> str:
    """A heading as it is told: in one line, and without markup."""
    return " ".join(_MARKUP.sub(lambda found: found[1] or "", heading).split())[:_MOST_HEADING_CHARS]
