"""Pages of a workspace as text: the lines of their blocks in reading order, and their sections.

A block of a note is small: a list item has about eight words. It is found by its words, and shown with its section.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from satchel.assembly.units import SourceText
from satchel.errors import UnknownBlock
from satchel.models.block import PAGE_TYPES, TASK_TYPES, Block, BlockType
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.models.search import Expansion
from satchel.text.statements import LineRun
from satchel.workspace.block_text import is_code, own_text

if TYPE_CHECKING:
    from satchel.models.search import Filters, SearchHit
    from satchel.ports.block_tree import BlockTree

# Blocks read of a page: more than a long note has; of a longer page, the first.
MAX_PAGE_BLOCKS: Final = 2000

# Nesting of blocks below a page: headings and lists in lists; what is nested deeper is left out.
MAX_PAGE_DEPTH: Final = 24

_MAX_HEADING_LEVEL: Final = 6  # Markdown has no deeper headings

_LINE_NUMBERS: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")

_IN_LISTS: Final = frozenset({BlockType.LIST_ITEM, *TASK_TYPES})
_QUOTED: Final = frozenset({BlockType.QUOTE, BlockType.CALLOUT})


@dataclass(frozen=True, slots=True)
class PageText:
    """A page, or another block with all blocks below, as Markdown lines.

    The spans of `source` are the page and its headings; `qualified` is the id of the block. `lines` maps the id of
    each block to its own lines.
    """

    page: Block
    source: SourceText
    lines: Mapping[str, LineRun]

    def place_of(self, hit: SearchHit) -> LineRun | None:
        """The lines of a found part of a block; None if the block is not on the page."""
        own = self.lines.get(hit.block_id)
        if own is None:
            return None
        wanted = hit.content.split("\n")
        first = next((n for n in range(own.first, own.last + 1) if wanted[0] in self.source.lines[n - 1]), own.first)
        return LineRun(first, min(own.last, first + len(wanted) - 1))

    def holds(self, shown: Sequence[LineRun]) -> tuple[str, ...]:
        """The ids of the blocks with lines among the shown lines, in reading order."""
        ids, lasts = list(self.lines), [own.last for own in self.lines.values()]
        held: dict[str, None] = {}
        for run in shown:
            for i in range(bisect_left(lasts, run.first), len(ids)):
                if self.lines[ids[i]].first > run.last:
                    break
                held[ids[i]] = None
        return tuple(held)


def read_pages(
    ids: Sequence[str], tree: BlockTree, filters: Filters, excluded: frozenset[str] = frozenset()
) -> dict[str, PageText]:
    """The readable pages among the given ids as text, without the excluded blocks and what is below them."""
    pages = tree.blocks(ids, filters)
    below = tree.descendants(ids, filters, limit=MAX_PAGE_BLOCKS, deepest=MAX_PAGE_DEPTH)
    return {page_id: page_without(excluded, page, below.get(page_id, ())) for page_id, page in pages.items()}


def page_without(excluded: frozenset[str], page: Block, below: Sequence[Block]) -> PageText:
    """The page without the excluded blocks; its lines keep their numbers in the whole page, as `expand` counts them."""
    whole = page_text(page, below)
    if excluded.isdisjoint(block.id for block in below):
        return whole
    part = page_text(page, [block for block in below if block.id not in excluded])
    numbers: list[int] = []
    for block_id, own in part.lines.items():
        # The lines of a block, and an empty line before it.
        shift = whole.lines[block_id].first - own.first
        numbers += range(len(numbers) + 1 + shift, own.last + 1 + shift)
    return replace(part, source=replace(part.source, numbers=numbers))


def page_text(page: Block, below: Sequence[Block]) -> PageText:
    """The page as text; pages inside the page are named, and have a text of their own."""
    return _Writer(page).written(below)


def page_sections(page: Block, below: Sequence[Block]) -> Iterator[tuple[Sequence[str], str]]:
    """The content of a page section by section: the ids of the blocks in a section, and its text."""
    text = page_text(page, below)
    source = text.source
    for index, span in enumerate(source.spans):
        members = source.members(index)
        last = source.spans[members[0]].first_line - 1 if members else span.last_line
        # The title of the page is shown with its summary.
        first = text.lines[page.id].last + 1 if not index and page.id in text.lines else span.first_line
        held = text.holds([LineRun(first, last)]) if first <= last else ()
        if held:
            own = [text.lines[block_id] for block_id in held]
            yield held, source.text(LineRun(own[0].first, own[-1].last))


def expand_block(block_id: str, tree: BlockTree, filters: Filters) -> Expansion | None:
    """The text of a block with all blocks below, or the lines `first-last` of this text (`id:12-40`).

    None if the workspace has no such block, or if the block was read from a source file.
    """
    block, lines = tree.block(block_id, filters), None
    if block is None:
        base, _, numbers = block_id.rpartition(":")
        lines = _LINE_NUMBERS.fullmatch(numbers)
        block = tree.block(base, filters) if base and lines else None
    if block is None or is_code(block):
        return None
    text = read_pages([block.id], tree, filters)[block.id].source.lines
    first, last = (int(lines[1]), int(lines[2] or lines[1])) if lines else (1, max(1, len(text)))
    if not 1 <= first <= last <= max(1, len(text)):
        raise UnknownBlock(block_id, [f"{block.id}:1-{len(text)}"])
    return Expansion(block_id, "", first, last, "\n".join(text[first - 1 : last]), block.language)


class _Writer:
    """Writes the blocks of a page as lines."""

    def __init__(self, page: Block) -> None:
        self._page = page
        self._lines: list[str] = []
        self._own: dict[str, LineRun] = {}
        self._indents: dict[str, str] = {}
        """The indentation of the blocks below a block."""
        self._headings: list[tuple[Block, int, int]] = []
        """The page and its headings, each with the level and the first line."""
        self._is_list = False
        self._has_title = True

    def written(self, below: Sequence[Block]) -> PageText:
        # Many notes repeat their title as their first heading.
        first = below[0] if below and self._page.type in PAGE_TYPES else None
        self._has_title = not (first and first.type == BlockType.HEADING and first.title == self._page.title)
        self._write(self._page, "")
        inside = {self._page.id}
        for block in below:
            if block.parent not in inside:
                continue
            if block.type not in PAGE_TYPES:
                inside.add(block.id)
            self._write(block, self._indents.get(block.parent or "", ""))
        return PageText(self._page, SourceText(self._lines, self._spans(), is_prose=True), self._own)

    def _write(self, block: Block, indent: str) -> None:
        text = list(self._block_lines(block))
        if block is self._page or block.type == BlockType.HEADING:
            level = 0 if block is self._page else _level(block)
            self._headings.append((block, level, len(self._lines) + 1 + bool(self._lines)))
        in_list = block.type in _IN_LISTS
        self._indents[block.id] = indent + " " * _marker_width(text) if in_list else indent
        if not any(line.strip() for line in text):
            return
        if self._lines and not (in_list and self._is_list):
            self._lines.append("")
        self._is_list = in_list
        first = len(self._lines) + 1
        self._lines += [f"{indent}{line}" if line else line for line in text]
        self._own[block.id] = LineRun(first, len(self._lines))

    def _block_lines(self, block: Block) -> Iterator[str]:
        text = own_text(block)
        if block.type == BlockType.HEADING or (block is self._page and block.type in PAGE_TYPES):
            if block.title and (block is not self._page or self._has_title):
                yield f"{'#' * (1 if block.type in PAGE_TYPES else _level(block))} {' '.join(block.title.split())}"
            yield from block.content.split("\n") if block.content.strip() else ()
        elif block.type in PAGE_TYPES:
            yield f"[[{' '.join(block.title.split())}]]"
        elif block.type == BlockType.LIST_ITEM:
            number = block.metadata.get("number")
            yield from _marked(f"{number}. " if isinstance(number, int) else "- ", text)
        elif block.type in _QUOTED:
            yield from (f"> {line}".rstrip() for line in text.split("\n"))
        elif block.type == BlockType.CODE:
            fence = "`" * max(3, 1 + _longest_run(block.content, "`"))
            yield f"{fence}{block.language or ''}"
            yield from block.content.split("\n")
            yield fence
        else:
            yield from text.split("\n")

    def _spans(self) -> list[OutlineBlock]:
        spans: list[OutlineBlock] = []
        last_line = max(1, len(self._lines))
        for i, (block, level, first) in enumerate(self._headings):
            after = next((line for _, other, line in self._headings[i + 1 :] if other <= level), last_line + 2)
            parent = next((j for j in range(i - 1, -1, -1) if self._headings[j][1] < level), WHOLE_FILE)
            name = " ".join(block.title.split())
            spans.append(OutlineBlock(block.type, name, block.id, parent, min(first, last_line), max(first, after - 2)))
        return spans


def _level(block: Block) -> int:
    level = block.metadata.get("level")
    return max(1, min(level, _MAX_HEADING_LEVEL)) if isinstance(level, int) else 2


def _marked(marker: str, text: str) -> Iterator[str]:
    """The lines of a list item: the marker before the first line, the rest indented below its text."""
    first, *rest = text.split("\n")
    yield f"{marker}{first}"
    yield from (f"{' ' * len(marker)}{line}" if line else line for line in rest)


def _marker_width(text: Sequence[str]) -> int:
    marker, space, _ = text[0].partition(" ") if text else ("", "", "")
    return len(marker) + len(space)


def _longest_run(text: str, sign: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == sign else 0
        longest = max(longest, run)
    return longest
