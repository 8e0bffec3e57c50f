"""Packs units by expected value: depth in what is probably right before breadth in what probably is not.

Each file has a probability of being needed, and each of its blocks a share of that need. Every block offers renditions
of growing size: an excerpt of complete statements, and the whole block. Packing takes the rendition that adds the most
expected value per token, again and again, until the budget is full or nothing left is worth its tokens.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.pipeline import Formed, Merged
from satchel.assembly.units import (
    CLOSING,
    LineWorths,
    SourceText,
    UnitText,
    best_runs,
    lines_between,
    on_its_own,
    plain_heading,
    unit_text,
)
from satchel.models.block import BlockType
from satchel.models.context import Reason
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.statements import LineRun
from satchel.text.visible import make_visible_line, make_visible_lines
from satchel.text.words import IDENTIFIER

if TYPE_CHECKING:
    from satchel.models.chunk import Candidate
    from satchel.tokens.counter import TokenCounter

Sources = Callable[[str], SourceText | None]
"""Returns the text and the spans of a file; None if only the found lines are known."""

# Value of showing a file at all, as a share of showing all that is needed of it: the reader can open the rest. In a
# small budget most of the value is to name the right places; a large budget shows them whole.
_FILE_KNOWN_SHARE: Final = 0.4
_FILE_KNOWN_SHARE_SMALL: Final = 0.6
_SMALL_BUDGET_TOKENS: Final = 1000

# Value of a block's head, as a share of the whole block: it says what the block is.
_HEAD_SHARE: Final = 0.5

# Value of an excerpt of a passage, as a share of what its words promise: any of its sentences may be the answer.
_PASSAGE_EXCERPT_SHARE: Final = 0.35

# Weight of the question's words against plain length in the value of the lines shown.
_WORTH_WEIGHT: Final = 0.6

# Tokens of a heading without its path, a fence and a separator: of a new file, and of a further piece of the same file.
_FILE_FRAME_TOKENS: Final = 20
_PIECE_FRAME_TOKENS: Final = 18

# Characters of a path per token.
_PATH_CHARS_PER_TOKEN: Final = 4

# The found pieces of a file share its need by their own scores to this power: the best one is mostly the right one.
_PIECE_SHARPNESS: Final = 3.0

# The smallest excerpt, as a share of the budget, within these bounds in tokens: eight lines say what a block is about.
_EXCERPT_BUDGET_SHARE: Final = 0.09
_MIN_EXCERPT_TOKENS: Final = 90
_MAX_EXCERPT_TOKENS: Final = 160

# Three or four sentences: an answer is a sentence with its neighbours.
_MIN_PASSAGE_EXCERPT_TOKENS: Final = 140

# A block up to this many times the smallest excerpt is shown whole or not at all.
_WHOLE_OR_NOTHING: Final = 1.5

# No block takes more than this share of the budget; the definition that was asked for by name may take half.
_MAX_BLOCK_SHARE: Final = 0.45
_DEFINITION_SHARE: Final = 0.5

# Of the need of a file that defines what was asked for: half is the definition itself.
_DEFINITION_NEED: Final = 0.5

# Of the other half, where the name has several definitions in the file (overloads, implementations of traits).
_OVERLOADS_NEED: Final = 0.6
_MAX_OVERLOADS: Final = 4

# Least expected value of all tokens of a large budget: a token with less is more likely to distract than to help.
# Whoever gives a larger budget wants more to be looked at, so the least value of a token falls with it. On the
# development questions 0.12 shows 0.01 more of the expected files at 8,000 tokens, and half as much text again.
_MIN_VALUE_OF_BUDGET: Final = 0.2
_LARGE_BUDGET_TOKENS: Final = 3300  # smaller budgets are for depth: their unspent tokens help nobody

# Smaller renditions count as this many tokens: otherwise lines that fit anywhere would go before lines that answer.
_MIN_COUNTED_TOKENS: Final = 40

# Smaller renditions of passages count as this many: passages are taken by their probability, not by their shortness. Of
# 40 to 800, the best coverage of contracts at 1,000 to 4,000 tokens.
_MIN_COUNTED_PASSAGE_TOKENS: Final = 300

# With less room left, not even the heading and a line of another block fit.
_MIN_ROOM_TOKENS: Final = 30

# A unit with fewer tokens is a fragment: `end`, `}`, an import.
_MIN_UNIT_TOKENS: Final = 12

# Blocks of a file that are looked at, those with the most need: bounds the time of a question.
_MAX_BLOCKS_PER_FILE: Final = 8

# Characters of code per token, on the low side: in a small budget even a small file is too long to be one unit.
_MIN_CHARS_PER_TOKEN: Final = 3

# Tokens of the elision lines of an excerpt.
_ELISION_TOKENS: Final = 24

# Of a longer block only the lines around the found lines are looked at: bounds the time of a question.
_MAX_LINES: Final = 200

# Blocks of a file with at most so many lines between them are one unit: an elision costs less than a heading.
_MAX_GAP_LINES: Final = 12

# Names in the heading of a unit of several blocks; more would be longer than the path.
_MAX_NAMES: Final = 3

# Budgets from here on have room to show whole what is probable.
_FULL_BUDGET_TOKENS: Final = 4000

# Of a longer section only the found passages are shown: about 600 tokens.
_LARGE_SECTION_CHARS: Final = 2400

# A shorter block is shown with the lines around it: a declaration says little without its neighbours.
_MIN_BLOCK_CHARS: Final = 60

# A shorter block has less to say, whatever words it holds: it gets less of the need.
_FULL_BLOCK_CHARS: Final = 240

# The need of lines outside of all definitions of a file, beside the same lines in a definition: they set things up.
_LOOSE_SHARE: Final = 0.25

# Less text outside of all named blocks says nothing on its own.
_MIN_LOOSE_CHARS: Final = 40

# Copies for another system or version have most lines in common; two methods of one kind have less.
_TWIN_SHARE: Final = 0.6

# Fewer lines may be alike by chance: a getter, a re-export.
_MIN_TWIN_LINES: Final = 6

# Shorter lines are brackets and keywords, which every block has.
_MIN_TWIN_LINE_CHARS: Final = 3

# A file that defines what the best block uses is more probable than a file that shares only words with the question.
_COMPANION_LIFT: Final = 2.0
_MAX_COMPANION: Final = 0.5  # but not as probable as a good hit

# Shorter names (`get`, `id`) are used everywhere, and say nothing about which definition is meant.
_MIN_COMPANION_CHARS: Final = 5

_SYMBOL_END: Final = re.compile(r"[.:#/~]+")
"""Parts a qualified name; what follows the last is the name itself."""

_LOCALE: Final = re.compile(r"(?<![^/])[a-z]{2}(?:[-_](?:[A-Z]{2}|[a-z]{2}|[Hh]an[st]))?/")
"""A folder named by a language: `de/`, `pt-br/`, `zh-hant/`."""
_ENGLISH: Final = re.compile(r"(?<![^/])en(?:[-_][a-zA-Z]{2})?/")

_IMPORT: Final = re.compile(
    r"\s*(?:(?:pub(?:\([a-z]+\))? )?(?:use|mod|extern crate)\b"
    r"|(?:import|from|package|using|require\w*|include|alias|open|module)\b|#\s*(?:include|pragma|import|ifndef|endif)\b"
    r"|export (?:\*|\{[^}]*\}) from\b|[\w:]+(?:::\{|,)?,?$|[\w\s:,{}*]+[,}];?$|\};?$)"
)
"""A line of an import or of a list of exports: it names everything and explains nothing."""

_FRONT_MATTER: Final = frozenset({"---", "+++"})
"""The first line of a Markdown file with metadata before its text."""

_CALLABLE: Final = frozenset({BlockType.FUNCTION, BlockType.METHOD, BlockType.MACRO})
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
        return LineRun(
            max(first, min(run.first for run in self.found) - _MAX_LINES // 4),
            min(last, max(run.last for run in self.found) + _MAX_LINES // 4),
        )

    @cached_property
    def text(self) -> str:
        """The block's own lines."""
        return self.source.text(self.lines)

    @cached_property
    def line_set(self) -> frozenset[str]:
        """The distinct lines, to recognize copies."""
        lines = map(str.strip, self.text.split("\n"))
        return frozenset(line for line in lines if len(line) > _MIN_TWIN_LINE_CHARS)


@dataclass(frozen=True)
class UnitPacker:
    """Packs the units of files for a question into a budget."""

    counter: TokenCounter
    budget: int
    """Tokens for the units with their headings."""
    sources: Sources
    worths: LineWorths
    symbol: str = ""
    """The name of the definition that the question asks for, if it is nothing but a name."""
    fill_all: bool = False

    def form(self, candidates: Sequence[Candidate]) -> Formed:
        """The units for the candidates within the budget, and what became of each candidate."""
        files = _by_file(candidates)
        selection = _Selection(self, files, self.budget)
        by_path: dict[str, list[FoundBlock]] = defaultdict(list)
        for block in selection.chosen():
            by_path[block.candidates[0].path or block.candidates[0].id].append(block)
        units: list[Candidate] = []
        unit_of: dict[int, Candidate] = {}
        for blocks in by_path.values():
            for members in _together(blocks):
                units.append(unit := self._unit(members))
                unit_of |= {candidate.place: unit for block in members for candidate in block.candidates}
        kept = {unit.place for unit in units}
        merged = {place: Merged(unit, Reason.COVERED) for place, unit in unit_of.items() if place not in kept}
        for twin, original in selection.twins.items():
            if twin not in unit_of and original in unit_of:
                merged[twin] = Merged(unit_of[original], Reason.DUPLICATE)
        dropped = {
            candidate.place: Reason.OVER_BUDGET if selection.is_too_long(candidate) else Reason.NOT_WORTH_ITS_TOKENS
            for candidate in candidates
            if candidate.place not in kept and candidate.place not in merged
        }
        return Formed(units, dropped, merged)

    @cached_property
    def least(self) -> float:
        """The least expected value per token."""
        return 0.0 if self.fill_all else _MIN_VALUE_OF_BUDGET / max(self.budget, _LARGE_BUDGET_TOKENS)

    @cached_property
    def known_share(self) -> float:
        """The value of showing a file at all, as a share of showing all that is needed of it."""
        large = (self.budget - _SMALL_BUDGET_TOKENS) / (_FULL_BUDGET_TOKENS - _SMALL_BUDGET_TOKENS)
        return _FILE_KNOWN_SHARE_SMALL + (_FILE_KNOWN_SHARE - _FILE_KNOWN_SHARE_SMALL) * max(0.0, min(1.0, large))

    def blocks_of(self, file: FileNeed) -> list[FoundBlock]:
        """The blocks of a file that contain found lines and may be worth their tokens, most needed first."""
        source = self.sources(file.candidates[0].path)
        if source is not None:
            most_chars = int(self.budget * _MAX_BLOCK_SHARE * _MIN_CHARS_PER_TOKEN)
            source.small_chars = min(source.small_chars, most_chars)
        blocks = file.blocks(source, self.worths, self.symbol) if source is not None else file.blocks_as_found()
        blocks.sort(key=lambda block: (-block.share, block.lines))
        least = self.least * _MIN_COUNTED_TOKENS
        needed = [block for block in blocks if file.probability * block.share >= least or block is blocks[0]]
        return needed[:_MAX_BLOCKS_PER_FILE]

    def larger(self, block: FoundBlock) -> Iterator[Rendition]:
        """The next larger excerpt of a block, and the whole block, where they differ from what is chosen."""
        if block.value == 1.0 or block.refused or block.is_twin:
            return
        whole = self._estimated(block)
        smallest = max(_MIN_EXCERPT_TOKENS, min(int(self.budget * _EXCERPT_BUDGET_SHARE), _MAX_EXCERPT_TOKENS))
        if block.candidates[0].is_passage:
            smallest = max(smallest, _MIN_PASSAGE_EXCERPT_TOKENS)
        largest = int(self.budget * (_DEFINITION_SHARE if block.is_definition else _MAX_BLOCK_SHARE))
        if whole <= largest or whole <= smallest:
            yield Rendition((block.lines,), whole, 1.0)
        if whole <= _WHOLE_OR_NOTHING * smallest or (block.is_definition and whole <= largest):
            return
        had = block.chosen.tokens if block.chosen else 0
        room = next((room for room in (smallest, 3 * smallest, largest) if had * 1.3 < room < whole), 0)
        if room:
            yield self._excerpt(block, room)

    def _excerpt(self, block: FoundBlock, room: int) -> Rendition:
        """The head and the best statements of a block in about `room` tokens."""
        source, lines = block.source, block.near
        worth_of = partial(self.worths.of_run, source, found=block.found)
        head = [
            run for run in source.head(block.span) if block.lines.first <= run.first and run.last <= block.lines.last
        ]
        runs = best_runs(source, lines, head, worth_of, int(room / self._per_char(block)))
        chars = sum(map(source.chars, runs))
        worth = sum(map(worth_of, runs)) / (worth_of(lines) or 1.0)
        share = _WORTH_WEIGHT * min(1.0, worth) + (1 - _WORTH_WEIGHT) * min(1.0, chars / source.chars(lines))
        tokens = int(chars * self._per_char(block)) + _ELISION_TOKENS
        value = _HEAD_SHARE + (1 - _HEAD_SHARE) * share
        if block.candidates[0].is_passage:
            value = share * _PASSAGE_EXCERPT_SHARE
        return Rendition(tuple(runs), max(room, tokens), value)

    def _estimated(self, block: FoundBlock) -> int:
        """The tokens of the whole block; estimated where exact counting would not change a decision."""
        return int(len(block.text) * self._per_char(block)) + 1

    def _per_char(self, block: FoundBlock) -> float:
        """The tokens per character in the found part of the file."""
        if not block.source.tokens_per_char:
            text = block.candidates[0].text
            block.source.tokens_per_char = self.counter.count(text) / max(1, len(text))
        return block.source.tokens_per_char

    def _unit(self, blocks: Sequence[FoundBlock]) -> Candidate:
        """The unit that shows the chosen lines of some blocks of a file."""
        candidates = [candidate for block in blocks for candidate in block.candidates]
        best = max(candidates, key=lambda candidate: (candidate.score, -candidate.place))
        source = blocks[0].source
        name, kind, shown = _shown(blocks)
        text, made_visible = make_visible_lines(shown.text)
        return best._replace(
            id=f"{best.path}:{shown.first}-{shown.last}" if best.path else best.id,
            name=make_visible_line(name).text or best.path or best.name,
            type=kind or best.type,
            text=text,
            made_visible=made_visible,
            first_line=shown.first,
            last_line=shown.last,
            whole_lines=False,
            elided=shown.elided,
            leads=any(block.is_definition for block in blocks),
            copies=tuple(dict.fromkeys(path for block in blocks for path in block.copies)),
            of_lines=0 if name or shown.last - shown.first + 1 == len(source.lines) else len(source.lines),
        )


@dataclass(eq=False)
class _Selection:
    """Takes the rendition with the greatest added value per token, again and again, until the room is full."""

    packer: UnitPacker
    files: Sequence[FileNeed]
    room: int
    offers: list[_Offer] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)
    definition: FoundBlock | None = None
    """The first definition of what was asked for by name."""
    texts: list[tuple[FoundBlock, frozenset[str]]] = field(default_factory=list)
    """The chosen blocks, each with its lines."""
    is_full: bool = False
    """True if no further block can fit."""
    twins: dict[int, int] = field(default_factory=dict)
    """The places of candidates whose text is shown elsewhere, and the place of what is shown."""

    def chosen(self) -> list[FoundBlock]:
        """The chosen blocks, file by file."""
        unread = list(reversed(self._without_translations()))
        while True:
            # A file is read only when it could be best: nothing is worth more than all of its need in few tokens.
            while unread and (not self.offers or unread[-1].most_per_token > max(self.packer.least, self._best)):
                file = unread.pop()
                file.found += self.packer.blocks_of(file)
                for block in file.found:
                    self._offer(file, block)
            # The best block is shown however little it is worth: an empty answer helps nobody.
            self.is_full = self.room < _MIN_ROOM_TOKENS
            if (
                self.is_full
                or not self.offers
                or (self._best < self.packer.least and any(file.is_open for file in self.files))
            ):
                return [block for file in self.files for block in file.found if block.chosen] or self._smallest()
            offer = heappop(self.offers)
            if offer.block.chosen is offer.instead_of:
                is_first = not self.texts
                self._take(offer)
                self._offer(offer.file, offer.block)
                if is_first and self.texts:
                    unread = _with_companions(unread, offer.block)

    def _smallest(self) -> list[FoundBlock]:
        """The best block in its smallest rendition, where not even that fits: it will be trimmed with a receipt."""
        best = next((file.found[0] for file in self.files if file.found), None)
        if best is None:
            return []
        best.refused = False
        whole = Rendition((best.lines,), 0, 1.0)
        best.chosen = min(self.packer.larger(best), key=lambda rendition: rendition.tokens, default=whole)
        return [best]

    def is_too_long(self, candidate: Candidate) -> bool:
        """True if a candidate that was not chosen did not fit."""
        blocks = [block for file in self.files for block in file.found if candidate in block.candidates]
        return self.is_full or any(block.refused for block in blocks)

    @property
    def _best(self) -> float:
        return self.offers[0].per_token

    def _offer(self, file: FileNeed, block: FoundBlock) -> None:
        """Offer the next larger renditions of a block."""
        if block.is_definition:
            self.definition = self.definition or block
        for rendition in self.packer.larger(block):
            worth = file.value_per_token(block, rendition, self.packer.known_share)
            if block is self.definition and not block.chosen:
                worth = math.inf  # what was asked for by name comes first
            heappush(self.offers, _Offer(-worth, next(self.order), file, block, rendition, block.chosen))

    def _take(self, offer: _Offer) -> None:
        """Choose the rendition if it fits, and if it is no copy of what is shown already."""
        block = offer.block
        if not block.chosen and (twin := self._twin(block)):
            self.twins |= {candidate.place: twin.candidates[0].place for candidate in block.candidates}
            block.is_twin = True
            twin.copies.append(block.candidates[0].path)
            return
        frame = offer.file.frame(block)
        block.chosen = offer.rendition
        shown = _shown([block])[2]
        tokens = self.packer.counter.count(shown.text)
        cost = tokens - block.tokens + frame
        if cost > self.room or self._is_fragment(block, shown):
            block.chosen, block.refused = offer.instead_of, True
            return
        self.room -= cost
        if not offer.instead_of:
            self.texts.append((block, block.line_set))
        offer.file.is_open = True
        block.tokens = tokens

    def _is_fragment(self, block: FoundBlock, shown: UnitText) -> bool:
        """True for a single short line: it says less than the heading above it."""
        if block.is_definition:
            return False
        lines = [line for run in shown.shown for line in block.source.text(run).split("\n") if line.strip()]
        return len(lines) <= 1 and self.packer.counter.count("".join(lines)) < _MIN_UNIT_TOKENS

    def _twin(self, block: FoundBlock) -> FoundBlock | None:
        """The chosen block of another file with mostly the same lines: a copy for another system or version."""
        lines, path = block.line_set, block.candidates[0].path
        if len(lines) < _MIN_TWIN_LINES:
            return None
        for other, others in self.texts:
            if other.candidates[0].path != path and len(lines & others) >= _TWIN_SHARE * len(lines | others):
                return other
        return None

    def _without_translations(self) -> list[FileNeed]:
        """The files, of the translations of a text only one; it is as probable as the best of them."""
        groups: dict[str, list[FileNeed]] = defaultdict(list)
        for file in self.files:
            groups[_LOCALE.sub("*/", file.candidates[0].path) or str(file.candidates[0].place)].append(file)
        kept = []
        for group in groups.values():
            original = min(
                group, key=lambda file: (_ENGLISH.search(file.candidates[0].path) is None, -file.probability)
            )
            paths = {file.candidates[0].path for file in group}
            if len(paths) == 1:
                kept += group
                continue
            original.probability = max(file.probability for file in group)
            same_path = [file for file in group if file.candidates[0].path == original.candidates[0].path]
            kept += same_path
            place = original.candidates[0].place
            self.twins |= {c.place: place for file in group if file not in same_path for c in file.candidates}
        return sorted(kept, key=lambda file: -file.probability)


def _with_companions(unread: list[FileNeed], best: FoundBlock) -> list[FileNeed]:
    """The files in their order, those before that define what the best block calls, imports or inherits from."""
    names = {name for name in IDENTIFIER.findall(best.text) if len(name) >= _MIN_COMPANION_CHARS}
    for file in unread:
        if any(_SYMBOL_END.split(candidate.name)[-1] in names for candidate in file.candidates):
            file.probability = max(file.probability, min(_COMPANION_LIFT * file.probability, _MAX_COMPANION))
    return sorted(unread, key=lambda file: file.probability)


class _Offer(NamedTuple):
    """A rendition of a block that may be taken next, instead of the one chosen so far."""

    negated: float
    """The value per token with a minus sign: the best offer comes first."""
    order: int
    file: FileNeed
    block: FoundBlock
    rendition: Rendition
    instead_of: Rendition | None

    @property
    def per_token(self) -> float:
        """The expected value that the rendition adds per token."""
        return -self.negated


@dataclass(eq=False)
class FileNeed:
    """A file that may be needed: its probability, and the found candidates in it, best first."""

    probability: float
    candidates: list[Candidate]
    found: list[FoundBlock] = field(default_factory=list)
    is_open: bool = False

    @property
    def most_per_token(self) -> float:
        """More than any rendition can be worth per token."""
        return self.probability / (_FILE_FRAME_TOKENS + _MIN_COUNTED_TOKENS)

    def value_per_token(self, block: FoundBlock, rendition: Rendition, known_share: float) -> float:
        """The expected value that a rendition of a block adds per token; a tiny one is not better for being tiny."""
        if self.is_passage:
            known_share = 0.0  # a document that is only named answers nothing
        added = block.share * (rendition.value - block.value) * (1 - known_share)
        if not self.is_open and block is self.found[0]:
            added += known_share
        cost = rendition.tokens - block.tokens + self.frame(block)
        least = _MIN_COUNTED_PASSAGE_TOKENS if self.is_passage else _MIN_COUNTED_TOKENS
        return self.probability * added / max(least, cost)

    @property
    def is_passage(self) -> bool:
        """True for a passage of a document, which has a probability of its own."""
        return self.candidates[0].is_passage

    def frame(self, block: FoundBlock) -> int:
        """The tokens of the heading that the block's first rendition needs."""
        if block.chosen:
            return 0
        path_tokens = len(self.candidates[0].path) // _PATH_CHARS_PER_TOKEN
        return _PIECE_FRAME_TOKENS if self.is_open else _FILE_FRAME_TOKENS + path_tokens

    @cached_property
    def _shares(self) -> list[float]:
        """The share of the file's need in each candidate."""
        scores = [max(candidate.signals.get("piece", 0.0), 1e-6) ** _PIECE_SHARPNESS for candidate in self.candidates]
        return [score / sum(scores) for score in scores]

    def blocks_as_found(self) -> list[FoundBlock]:
        """The candidates as they were found, for a file whose current outline is not known."""
        blocks = []
        for candidate, share in zip(self.candidates, self._shares, strict=True):
            text = candidate.text.split("\n")
            lines = LineRun(first := candidate.first_line or 1, first + len(text) - 1)
            span = OutlineBlock(candidate.type, candidate.name, candidate.name, WHOLE_FILE, lines.first, lines.last)
            source = SourceText([*[""] * (first - 1), *text])
            blocks.append(FoundBlock(source, span, lines, lines, share, found=[lines], candidates=[candidate]))
        return blocks

    def blocks(self, source: SourceText, worths: LineWorths, symbol: str) -> list[FoundBlock]:
        """The blocks around the found lines, each with its share of the need."""
        blocks: dict[LineRun, FoundBlock] = {}
        for candidate, share in zip(self.candidates, self._shares, strict=True):
            last = min(candidate.last_line or 1, len(source.lines))
            everything = list(_segments(source, LineRun(candidate.first_line or 1, last)))
            segments = [segment for segment in everything if not _is_scrap(*segment)]
            if candidate is self.candidates[-1] and not blocks and not segments:
                segments = _instead_of_scraps(source) or everything[:1]
            worth_of = [worths.of_run(source, lines) * _fullness(block) for block, lines in segments]
            for (block, lines), worth in zip(segments, worth_of, strict=True):
                known = blocks.setdefault(block.lines, block)
                known.share += share * worth / (sum(worth_of) or 1.0)
                known.found.append(lines)
                if candidate not in known.candidates:
                    known.candidates.append(candidate)
        if symbol:
            self._prefer_definition(source, blocks, symbol)
        return list(blocks.values())

    def _prefer_definition(self, source: SourceText, blocks: dict[LineRun, FoundBlock], symbol: str) -> None:
        """Give half of the need to the block that defines the name, found or not, and most of the rest to overloads."""
        named = [span for span in source.spans if symbol in (span.name, source.plain(span.qualified))]
        named.sort(key=lambda span: (span.type == BlockType.IMPL, span.first_line - span.last_line))
        if not named:
            return
        definition, *overloads = [self._definition(source, span, blocks) for span in named[: 1 + _MAX_OVERLOADS]]
        definition.is_definition = True
        others = sum(block.share for block in blocks.values()) or 1.0
        rest = (1 - _DEFINITION_NEED) * (1 - _OVERLOADS_NEED if overloads else 1.0)
        for block in blocks.values():
            block.share *= rest / others
        for overload in overloads:
            overload.share = (1 - _DEFINITION_NEED) * _OVERLOADS_NEED / len(overloads)
        definition.share = _DEFINITION_NEED if blocks or overloads else 1.0
        blocks |= {block.lines: block for block in (*overloads, definition)}

    def _definition(self, source: SourceText, span: OutlineBlock, blocks: dict[LineRun, FoundBlock]) -> FoundBlock:
        """The block of a span that has the name, in place of the found blocks inside it."""
        lines = LineRun(span.first_line, span.last_line)
        if source.chars(lines) <= _MIN_BLOCK_CHARS:
            lines = source.paragraph(lines)
        definition = FoundBlock(source, span, lines, lines, found=[lines], candidates=self.candidates[:1])
        for inside in [place for place in blocks if lines.first <= place.first and place.last <= lines.last]:
            block = blocks.pop(inside)
            definition.candidates += [each for each in block.candidates if each not in definition.candidates]
        return definition


def _fullness(block: FoundBlock) -> float:
    """1 for a block with enough text to answer; less for a declaration, and for lines outside of all definitions."""
    is_loose = not block.span.qualified and not block.source.is_prose
    return min(1.0, block.source.chars(block.lines) / _FULL_BLOCK_CHARS) * (_LOOSE_SHARE if is_loose else 1.0)


def _segments(source: SourceText, found: LineRun) -> Iterator[tuple[FoundBlock, LineRun]]:
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


def _is_scrap(block: FoundBlock, lines: LineRun) -> bool:
    """True for a short constant or a few characters outside of all definitions, for imports, and for front matter."""
    if block.source.is_prose and lines.first == 1 and block.source.lines[0].strip() in _FRONT_MATTER:
        return not block.span.qualified
    text = [line for line in block.source.text(lines).split("\n") if line.strip()]
    is_short = sum(len(line.strip()) for line in text) < _MIN_LOOSE_CHARS
    is_whole = bool(block.span.qualified) and block.lines == block.around and not block.source.is_prose
    if is_whole and is_short and block.span.type in _INNER:
        return True  # `logger = getLogger(__name__)`
    return not is_whole and (is_short or (not block.source.is_prose and all(map(_IMPORT.match, text))))


def _instead_of_scraps(source: SourceText) -> list[tuple[FoundBlock, LineRun]]:
    """The first block of a file of which only scraps were found."""
    for span in source.spans:
        if span.type != BlockType.MODULE:
            line = LineRun(span.first_line, span.first_line)
            return [(_block_at(source, span.first_line, line), line)]
    return []


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
        lines = source.sentences(lines) if source.is_prose else lines
        return FoundBlock(source, _unnamed(lines), lines, lines)
    span = source.spans[index]
    whole = LineRun(max(span.first_line, page.first), min(span.last_line, page.last))
    chars = source.chars(whole)
    if source.is_prose and chars > _LARGE_SECTION_CHARS:
        return FoundBlock(source, span, _passage(source, index, LineRun(line, min(found.last, page.last))), whole)
    members = [member for member in source.members(index) if source.spans[member].type not in _INNER]
    if chars <= _MIN_BLOCK_CHARS and not source.has_pages:
        near = source.paragraph(whole)
        if source.chars(near) <= _MIN_BLOCK_CHARS:
            near = source.with_neighbour(near, source.small_chars)
        return FoundBlock(source, span, near, near)
    if not members or chars <= source.small_chars or span.type in _CALLABLE:
        return FoundBlock(source, span, whole, whole)
    # Of a class or section with members: the lines around the given line that belong to no member.
    before = [source.spans[member].last_line for member in members if source.spans[member].last_line < line]
    after = [source.spans[member].first_line for member in members if source.spans[member].first_line > line]
    own = LineRun(max(before, default=whole.first - 1) + 1, min(after, default=whole.last + 1) - 1)
    return FoundBlock(source, span, source.without_blank_ends(own, CLOSING), whole)


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
        is_part = span.type in _INNER or around.type in _CALLABLE or source.size(around) <= source.small_chars
        if not is_part:
            break
        index = parent
    return index


def _together(blocks: Sequence[FoundBlock]) -> list[list[FoundBlock]]:
    """The blocks of a file in units: members of one class together, and neighbours without a gap."""
    units: list[list[FoundBlock]] = []
    for block in sorted(blocks, key=lambda block: block.lines):
        last = units[-1][-1] if units else None
        is_same_page = last is not None and last.source.page(last.lines.first) == last.source.page(block.lines.first)
        if last is not None and is_same_page and (_belong_together(last, block) or _gap(last, block) <= _MAX_GAP_LINES):
            units[-1].append(block)
        else:
            units.append([block])
    return units


def _belong_together(one: FoundBlock, other: FoundBlock) -> bool:
    """True for parts of a section, for members of a class, and for a class and its member."""
    if one.source.is_prose:
        return bool(one.span.qualified) and one.span == other.span
    around = _class_of(one)
    return around is not None and around == _class_of(other)


def _class_of(block: FoundBlock) -> OutlineBlock | None:
    span = block.span
    if not span.qualified or span.type in _CALLABLE:
        return block.source.spans[span.parent] if span.qualified and span.parent != WHOLE_FILE else None
    return span


def _gap(one: FoundBlock, other: FoundBlock) -> int:
    return lines_between(one.source, one.lines, other.lines)


def _shown(blocks: Sequence[FoundBlock]) -> tuple[str, str, UnitText]:
    """The name, the kind and the text of a unit."""
    source, first = blocks[0].source, blocks[0]
    runs = [run for block in blocks for run in block.runs]
    is_within = first.lines.first >= first.span.first_line and first.lines.last <= first.span.last_line
    if (len(blocks) == 1 and is_within) or (
        source.is_prose and all(_belong_together(first, block) for block in blocks)
    ):
        around, name, kind = first.around, source.name(first.span), first.span.type
        if not source.is_prose and first.lines.first > first.span.first_line:
            runs += source.head(first.span)
    elif (parent := _class_of(first)) and not source.is_prose and all(_class_of(block) == parent for block in blocks):
        runs += source.head(parent)
        names = [block.span.name for block in blocks if block.span != parent]
        name = source.plain(f"{parent.qualified}.{names[0]}" if len(names) == 1 else parent.qualified)
        around, kind = LineRun(parent.first_line, parent.last_line), parent.type
    else:
        around = LineRun(first.lines.first, max(block.around.last for block in blocks))
        name, kind = _names(source, blocks), first.span.type
    around, runs = on_its_own(source, around, runs)
    return name, kind, unit_text(source, around, runs)


def _names(source: SourceText, blocks: Sequence[FoundBlock]) -> str:
    """The names of the outermost definitions or sections in a unit of several blocks."""
    inside = {index for block in blocks for index in source.inside(block.lines)}
    shown = [source.spans[index] for index in sorted(inside) if source.spans[index].parent not in inside]
    shown = shown or [block.span for block in blocks if block.span.qualified]
    if len(shown) == 1:
        return source.name(shown[0])
    names = list(dict.fromkeys(plain_heading(span.name) if source.is_prose else span.name for span in shown))
    return ", ".join([*names[:_MAX_NAMES], "…"] if len(names) > _MAX_NAMES else names)


def _by_file(candidates: Sequence[Candidate]) -> list[FileNeed]:
    """The files of the candidates, most probable first."""
    groups: dict[object, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        # A passage of a document has a probability of its own, as a file of code has.
        is_alone = candidate.is_passage or not candidate.path
        groups[candidate.place if is_alone else candidate.path].append(candidate)
    files = [FileNeed(max(candidate.score for candidate in group), group) for group in groups.values()]
    return sorted(files, key=lambda file: -file.probability)
