"""Finds the blocks around found lines: the smallest blocks that stand on their own, without what says nothing alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.units import CLOSING, SourceText
from satchel.models.block import BlockType
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.statements import LineRun

if TYPE_CHECKING:
    from satchel.models.chunk import Candidate

# Of a longer block only the lines around the found lines are looked at: bounds the time of a question.
_MAX_LINES: Final = 600

# Of a longer section only the found passages are shown: about 600 tokens.
_LARGE_SECTION_CHARS: Final = 2400

# A shorter block is shown with the lines around it: a declaration says little without its neighbours.
MIN_BLOCK_CHARS: Final = 60

# A shorter block has less to say, whatever words it holds: it gets less of the need.
_FULL_BLOCK_CHARS: Final = 240

# The need of lines outside of all definitions of a file, beside the same lines in a definition: they set things up.
_LOOSE_SHARE: Final = 0.25

# Less text outside of all named blocks says nothing on its own.
_MIN_LOOSE_CHARS: Final = 40

# Shorter lines are brackets and keywords, which every block has.
_MIN_TWIN_LINE_CHARS: Final = 3

_IMPORT: Final = re.compile(
    r"\s*(?:(?:pub(?:\([a-z]+\))? )?(?:use|mod|extern crate)\b"
    r"|(?:import|from|package|using|require\w*|include|alias|open|module|namespace)\b"
    r"|#\s*(?:include|pragma|import|ifndef|endif)\b"
    r"|export (?:\*|\{[^}]*\}) from\b|(?:const|let|var|local)\s[^=]*=\s*require\b|if TYPE_CHECKING:"
    r"|[\w:]+(?:::\{|,)?,?$|[\w\s:,{}*]+[,}];?$|\};?$|(?:[\w.]+ )?\"[^\"\s]+\"$|[()]$"
    r"|<\?php|declare\(|[\"']use \w+[\"'];?$)"
)
"""A line of an import or of a list of exports: it names everything and explains nothing."""

_COMMENT: Final = re.compile(r"\s*(?:#(?!\[)|//(?!!)|/\*|\*|--)")

_FRONT_MATTER: Final = frozenset({"---", "+++"})
"""The first line of a Markdown file with metadata before its text."""

CALLABLE: Final = frozenset({BlockType.FUNCTION, BlockType.METHOD, BlockType.MACRO})

_INNER: Final = frozenset({BlockType.FIELD, BlockType.CONSTANT, BlockType.TYPE})
"""Kinds of spans that do not stand on their own inside another block."""


class Rendition(NamedTuple):
    """Lines of a block that may be shown, with their estimated tokens and the share of the block's value."""

    runs: tuple[LineRun, ...]
    tokens: int
    value: float


@dataclass(eq=False)
class FoundBlock:
    """A block with found lines: its share of the file's need, its renditions, and the chosen rendition.

    `lines` are the block's own lines: of a class or section without the members that are blocks themselves. `around`
    are all of its lines: what is not shown of them is elided.
    """

    source: SourceText
    span: OutlineBlock
    lines: LineRun
    around: LineRun
    share: float = 0.0
    found: list[LineRun] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    excerpts: dict[int, Rendition] = field(default_factory=dict)
    """The excerpts that were made, by their room in tokens."""
    is_definition: bool = False
    chosen: Rendition | None = None
    refused: bool = False
    """True if a rendition did not fit: larger ones will not fit either."""
    is_twin: bool = False
    """True if a chosen block of another file has mostly the same lines."""
    copies: list[str] = field(default_factory=list)
    """The paths of the files whose blocks are twins of this block."""
    tokens: int = 0
    """The tokens of the chosen rendition."""

    @property
    def runs(self) -> tuple[LineRun, ...]:
        """The chosen lines."""
        return self.chosen.runs if self.chosen else ()

    @property
    def value(self) -> float:
        """The share of the block's value in the chosen lines."""
        return self.chosen.value if self.chosen else 0.0

    @property
    def near(self) -> LineRun:
        """The block's own lines; of a very long block, those around the found lines."""
        first, last = self.lines.first, self.lines.last
        if last - first < _MAX_LINES:
            return self.lines
        above = max(first, min(run.first for run in self.found) - _MAX_LINES // 4)
        below = min(last, max(run.last for run in self.found) + _MAX_LINES // 4)
        return LineRun(self.source.statement_start(above, first), below)

    @cached_property
    def text(self) -> str:
        """The block's own lines."""
        return self.source.text(self.lines)

    @cached_property
    def line_set(self) -> frozenset[str]:
        """The distinct lines, to recognize copies."""
        lines = map(str.strip, self.text.split("\n"))
        return frozenset(line for line in lines if len(line) > _MIN_TWIN_LINE_CHARS)


def segments_of(source: SourceText, found: LineRun) -> Iterator[tuple[FoundBlock, LineRun]]:
    """The blocks around the found lines, each with the found lines in it."""
    line = found.first
    while line <= found.last:
        if source.is_border(line):
            line += 1
            continue
        block = _block_at(source, line, found)
        lines = LineRun(line, max(line, min(block.lines.last, found.last)))
        yield block, lines
        line = lines.last + 1


def is_scrap(block: FoundBlock, lines: LineRun) -> bool:
    """True for a short constant or a few characters outside of all definitions, for imports, and for front matter."""
    if block.source.is_prose and lines.first == 1 and block.source.lines[0].strip() in _FRONT_MATTER:
        return not block.span.qualified
    text = _texts(block.source, lines)
    is_short = sum(len(line.strip()) for line in text) < _MIN_LOOSE_CHARS
    is_whole = bool(block.span.qualified) and block.lines == block.around and not block.source.is_prose
    if is_whole and is_short and block.span.type in _INNER:
        return True  # `logger = getLogger(__name__)`
    return not is_whole and (is_short or (not block.source.is_prose and _are_imports(text)))


def _texts(source: SourceText, lines: LineRun) -> list[str]:
    return [line for line in source.text(lines).split("\n") if line.strip()]


def _are_imports(text: Sequence[str]) -> bool:
    """True for lines of imports, with the comments between them; comments alone may explain a file."""
    code = [line for line in text if not _COMMENT.match(line)]
    return all(map(_IMPORT.match, code or text))


def instead_of_scraps(source: SourceText) -> list[tuple[FoundBlock, LineRun]]:
    """The first block of a file of which only scraps were found."""
    for span in source.spans:
        if span.type != BlockType.MODULE:
            line = LineRun(span.first_line, span.first_line)
            return [(_block_at(source, span.first_line, line), line)]
    return []


def fullness(block: FoundBlock) -> float:
    """1 for a block with enough text to answer; less for a declaration, and for lines outside of all definitions."""
    is_loose = not block.span.qualified and not block.source.is_prose
    return min(1.0, block.source.chars(block.lines) / _FULL_BLOCK_CHARS) * (_LOOSE_SHARE if is_loose else 1.0)


def _block_at(source: SourceText, line: int, found: LineRun) -> FoundBlock:
    """The smallest block around a line that stands on its own, with its own lines; of a small file, all of it.

    A block of a document ends with its page: it is cited by the page.
    """
    page = source.page(line)
    everything = source.without_blank_ends(page, CLOSING) if source.has_pages else source.whole
    if source.chars(everything) <= source.small_chars and everything.first <= line <= everything.last:
        span = _span_of(source, everything)
        return FoundBlock(source, span, everything, everything)
    index = _standing(source, source.innermost(line))
    if index == WHOLE_FILE:
        following = source.inside(LineRun(line + 1, found.last))
        last = min(page.last, source.spans[following[0]].first_line - 1 if following else found.last)
        lines = source.without_blank_ends(LineRun(line, max(line, last)), CLOSING)
        lines = source.sentences(lines) if source.is_prose else _before_imports(source, lines)
        return FoundBlock(source, _unnamed(lines), lines, lines)
    span = source.spans[index]
    whole = LineRun(max(span.first_line, page.first), min(span.last_line, page.last))
    chars = source.chars(whole)
    if source.is_prose and chars > _LARGE_SECTION_CHARS:
        return FoundBlock(source, span, _passage(source, index, LineRun(line, min(found.last, page.last))), whole)
    members = [member for member in source.members(index) if source.spans[member].type not in _INNER]
    if chars <= MIN_BLOCK_CHARS and not source.has_pages:
        near = source.paragraph(whole)
        if source.chars(near) <= MIN_BLOCK_CHARS:
            near = source.with_neighbour(near, source.small_chars)
        return FoundBlock(source, span, near, near)
    if not members or chars <= source.small_chars or span.type in CALLABLE:
        return FoundBlock(source, span, whole, whole)
    # Of a class or section with members: the lines around the given line that belong to no member.
    before = [source.spans[member].last_line for member in members if source.spans[member].last_line < line]
    after = [source.spans[member].first_line for member in members if source.spans[member].first_line > line]
    own = LineRun(max(before, default=whole.first - 1) + 1, min(after, default=whole.last + 1) - 1)
    return FoundBlock(source, span, source.without_blank_ends(own, CLOSING), whole)


def _is_import_or_comment(line: str) -> bool:
    return bool(_IMPORT.match(line) or _COMMENT.match(line))


def _before_imports(source: SourceText, lines: LineRun) -> LineRun:
    """The lines up to the imports that end them; all lines if they are nothing but imports, or end otherwise."""
    last = lines.last
    while last > lines.first and all(map(_is_import_or_comment, _texts(source, LineRun(last, last)))):
        last -= 1
    following = _texts(source, LineRun(last + 1, lines.last)) if last < lines.last else []
    if last == lines.first or not any(map(_IMPORT.match, following)):
        return lines
    return source.without_blank_ends(LineRun(lines.first, last))


def _span_of(source: SourceText, lines: LineRun) -> OutlineBlock:
    """The only outermost span that begins in the lines, or a span without a name."""
    inside = source.inside(lines)
    outermost = [source.spans[index] for index in inside if source.spans[index].parent not in inside]
    return outermost[0] if len(outermost) == 1 else _unnamed(lines)


def _unnamed(lines: LineRun) -> OutlineBlock:
    return OutlineBlock("", "", "", WHOLE_FILE, lines.first, lines.last)


def _passage(source: SourceText, index: int, found: LineRun) -> LineRun:
    """The found lines of a long section, widened to whole sentences, without the sections inside."""
    span = source.spans[index]
    after = [source.spans[member].first_line for member in source.members(index)]
    last = min([span.last_line, found.last, *(line - 1 for line in after if line > found.first)])
    return source.sentences(LineRun(found.first, max(found.first, last)))


def _standing(source: SourceText, index: int) -> int:
    """The span or the span around it that stands on its own: no field, no nested function, no part of a small class."""
    while index != WHOLE_FILE:
        span, parent = source.spans[index], source.spans[index].parent
        if span.type == BlockType.MODULE:
            break  # of a namespace only the lines that belong to no definition in it
        if parent == WHOLE_FILE or source.spans[parent].type == BlockType.MODULE:
            break
        around = source.spans[parent]
        is_part = span.type in _INNER or around.type in CALLABLE or source.size(around) <= source.small_chars
        if not is_part:
            break
        index = parent
    return index
