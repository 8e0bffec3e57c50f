"""Packs units by expected value: depth in what is probably right before breadth in what probably is not.

Each file has a probability of being needed, and each of its blocks a share of that need. Every block offers renditions
of growing size: an excerpt of complete statements, and the whole block. Packing takes the rendition that adds the most
expected value per token, again and again, until the budget is full or nothing left is worth its tokens.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.found_blocks import (
    CALLABLE,
    MIN_BLOCK_CHARS,
    FoundBlock,
    Rendition,
    fullness,
    instead_of_scraps,
    is_scrap,
    segments_of,
)
from satchel.assembly.pipeline import Formed, Merged
from satchel.assembly.unit_forming import form_unit, together
from satchel.assembly.units import (
    MIN_UNIT_TOKENS,
    LineWorths,
    SourceText,
    UnitText,
    best_runs,
)
from satchel.models.block import BlockType
from satchel.models.context import Reason
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.languages import is_in_english, shared_path
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

# Whoever asks for all of something is answered by many places, each in few lines.
_FILE_KNOWN_SHARE_LIST: Final = 0.8

_SMALL_BUDGET_TOKENS: Final = 1000

# Value of a block's head, as a share of the whole block: it says what the block is.
_HEAD_SHARE: Final = 0.4

# Value of an excerpt of a passage, as a share of what its words promise: any of its sentences may be the answer.
_PASSAGE_EXCERPT_SHARE: Final = 0.35

# Weight of the question's words against plain length in the value of the lines shown.
_WORTH_WEIGHT: Final = 0.6

# Estimated tokens of a heading without its path, a fence and a separator: of a new file, and of a further piece of it.
_FILE_FRAME_TOKENS: Final = 20

_PIECE_FRAME_TOKENS: Final = 18

# Tokens of the fences around a unit and of the blank lines below it.
_FENCE_TOKENS: Final = 9

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

# Whoever asks for a name wants its definition, then to see it used: a use is worth some lines, whatever its score.
_USE_PROBABILITY: Final = 0.1

_MAX_USES: Final = 5

# Of a file's need, at least for all members of the classes in which something was found.
_SIBLINGS_NEED: Final = 0.2

_MUCH_NEEDED: Final = 0.1  # of the file's need: such a member is offered early as it is

# Least expected value of all tokens of a large budget: a token with less is more likely to distract than to help.
# Whoever gives a larger budget wants more to be looked at, so the least value of a token falls with it. On the
# development questions 0.12 shows 0.01 more of the expected files at 8,000 tokens, and half as much text again.
_MIN_VALUE_OF_BUDGET: Final = 0.2

_LARGE_BUDGET_TOKENS: Final = 3300  # smaller budgets are for depth: their unspent tokens help nobody

# The least expected value of a passage per token: any sentence may be the answer. With three times as much, plain notes
# show 6 of 100 answers less at 4,000 tokens.
_MIN_PASSAGE_VALUE_PER_TOKEN: Final = 0.000016

# Smaller renditions count as this many tokens: otherwise lines that fit anywhere would go before lines that answer.
_MIN_COUNTED_TOKENS: Final = 40

# Smaller renditions of passages count as this many: passages are taken by their probability, not by their shortness. Of
# 40 to 800, the best coverage of contracts at 1,000 to 4,000 tokens.
_MIN_COUNTED_PASSAGE_TOKENS: Final = 300

# Times that what did not fit is offered again, in the room that was left over.
_MAX_REFILLS: Final = 2

# With less room left, not even the heading and a line of another block fit.
_MIN_ROOM_TOKENS: Final = 30

# A unit with so many times the score of the first unit of its file stands before it.
_FAR_BETTER: Final = 2.0

# Blocks of a file that are looked at, those with the most need: bounds the time of a question.
_MAX_BLOCKS_PER_FILE: Final = 14

# Characters of code per token, on the low side: in a small budget even a small file is too long to be one unit.
_MIN_CHARS_PER_TOKEN: Final = 3

# Tokens of the elision lines of an excerpt.
_ELISION_TOKENS: Final = 24

# Budgets from here on have room to show whole what is probable.
_FULL_BUDGET_TOKENS: Final = 4000

# Copies for another system or version have most lines in common; two methods of one kind have less.
_TWIN_SHARE: Final = 0.6

# Fewer lines may be alike by chance: a getter, a re-export.
_MIN_TWIN_LINES: Final = 6

# A file that defines what the best block uses is more probable than a file that shares only words with the question.
_COMPANION_LIFT: Final = 2.0

_MAX_COMPANION: Final = 0.5  # but not as probable as a good hit

# Shorter names (`get`, `id`) are used everywhere, and say nothing about which definition is meant.
_MIN_COMPANION_CHARS: Final = 5

_MAX_REASONS: Final = 3  # in a heading; the ledger has them all

_SYMBOL_END: Final = re.compile(r"[.:#/~]+")
"""Parts a qualified name; what follows the last is the name itself."""


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
    is_list: bool = False
    """True if the question asks for all of something."""

    def form(self, candidates: Sequence[Candidate]) -> Formed:
        """The units for the candidates within the budget, and what became of each candidate."""
        files = _by_file(candidates)
        if self.symbol and not self.fill_all:
            _raise_uses(files, _SYMBOL_END.split(self.symbol)[-1])
        selection = _Selection(self, files, self.budget)
        formed = self._formed(selection.chosen())
        # Blocks that stand together share a heading, so that there may be more room than was counted.
        for _ in range(_MAX_REFILLS):
            free = self.budget - self._cost(unit for unit, _ in formed)
            if free - selection.room < _MIN_ROOM_TOKENS or not selection.fill(free):
                break
            formed = self._formed(selection.taken())
        # Members of a class together cost its head, too: what was taken last is given back until all of it fits.
        while self._cost(unit for unit, _ in formed) > self.budget and selection.give_back():
            formed = self._formed(selection.taken())
        units = _best_first(_as_relevant_as_their_files([unit for unit, _ in formed], files))
        unit_of = {
            candidate.place: unit
            for unit, (_, members) in zip(units, formed, strict=True)
            for block in members
            for candidate in block.candidates
        }
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

    def _formed(self, blocks: Sequence[FoundBlock]) -> list[tuple[Candidate, list[FoundBlock]]]:
        """The units of the chosen blocks, file by file, each with its blocks."""
        by_path: dict[str, list[FoundBlock]] = defaultdict(list)
        for block in blocks:
            by_path[block.candidates[0].path or block.candidates[0].id].append(block)
        return [(self._unit(members), members) for of_file in by_path.values() for members in together(of_file)]

    def _cost(self, units: Iterable[Candidate]) -> int:
        """The tokens of units with their headings."""
        tokens, paths = 0, set[str]()
        for unit in units:
            path = "" if unit.path in paths else unit.path
            lines = f"lines {unit.first_line}-{unit.last_line}, {unit.elided} not shown"
            tokens += self.frame_tokens(path, unit.name, lines) + self.counter.count(unit.text)
            paths.add(unit.path)
        return tokens

    def frame_tokens(self, path: str, name: str, lines: str) -> int:
        """The tokens of a unit's heading, fence and separator; without a path for a further unit of a file."""
        place = f"### {path} · " if path else ""
        return self.counter.count(f"[00] {place}{name} ({lines})") + _FENCE_TOKENS

    def least(self, file: FileNeed) -> float:
        """The least expected value per token of a file."""
        if self.fill_all:
            return 0.0
        if file.is_passage:
            return _MIN_PASSAGE_VALUE_PER_TOKEN
        # The rest of a file that is certainly needed is worth more than the beginnings of files that hardly are.
        return (1 - file.probability) * _MIN_VALUE_OF_BUDGET / max(self.budget, _LARGE_BUDGET_TOKENS)

    @cached_property
    def known_share(self) -> float:
        """The value of showing a file at all, as a share of showing all that is needed of it."""
        if self.is_list:
            return _FILE_KNOWN_SHARE_LIST
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
        least = self.least(file) * _MIN_COUNTED_TOKENS
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
            if room not in block.excerpts:
                block.excerpts[room] = self._excerpt(block, room)
            yield block.excerpts[room]

    def _excerpt(self, block: FoundBlock, room: int) -> Rendition:
        """The head and the best statements of a block in about `room` tokens."""
        source = block.source
        worth_of = partial(self.worths.of_run, source, found=block.found)
        head = [
            run for run in source.head(block.span) if block.lines.first <= run.first and run.last <= block.lines.last
        ]
        runs = best_runs(source, block.near, head, worth_of, int(room / self._per_char(block)))
        chars = sum(map(source.chars, runs))
        worth = sum(map(worth_of, runs)) / (worth_of(block.lines) or 1.0)
        share = _WORTH_WEIGHT * min(1.0, worth) + (1 - _WORTH_WEIGHT) * min(1.0, chars / source.chars(block.lines))
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
        name, kind, shown = form_unit(blocks)
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
            why=_reasons(candidates),
            of_lines=0 if name or shown.last - shown.first + 1 == len(source.lines) else len(source.lines),
        )


def _reasons(candidates: Iterable[Candidate]) -> str:
    """What speaks for a unit: the reasons of its candidates, the best ones' first."""
    best_first = sorted(candidates, key=lambda candidate: -candidate.score)
    reasons = dict.fromkeys(reason for each in best_first for reason in filter(None, each.why.split("; ")))
    return "; ".join(list(reasons)[:_MAX_REASONS])


@dataclass(eq=False)
class _Selection:
    """Takes the rendition with the greatest added value per token, again and again, until the room is full."""

    packer: UnitPacker
    files: Sequence[FileNeed]
    room: int
    unread: list[FileNeed] = field(default_factory=list)
    """The files whose blocks were not offered so far, most probable last."""
    offers: list[_Offer] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=count)
    definition: FoundBlock | None = None
    """The first definition of what was asked for by name."""
    texts: list[tuple[FoundBlock, frozenset[str]]] = field(default_factory=list)
    """The chosen blocks, each with its lines."""
    takes: list[tuple[FoundBlock, Rendition | None]] = field(default_factory=list)
    """The choices in order: a block, and its rendition before."""
    is_full: bool = False
    """True if no further block can fit."""
    twins: dict[int, int] = field(default_factory=dict)
    """The places of candidates whose text is shown elsewhere, and the place of what is shown."""

    def chosen(self) -> list[FoundBlock]:
        """The chosen blocks, file by file."""
        self.unread = list(reversed(self._without_translations()))
        self._take_offers()
        return self.taken() or self._smallest()

    def fill(self, room: int) -> bool:
        """Offer again what did not fit, now that there is more room; False if nothing was added."""
        before = len(self.takes)
        self.room, self.offers = room, []
        for file in self.files:
            for block in file.found:
                block.refused = False
                self._offer(file, block)
        self._take_offers()
        return len(self.takes) > before

    def _take_offers(self) -> None:
        """Take one offer after the other while there is room and something is worth its tokens."""
        while True:
            # A file is read only when it could be best: nothing is worth more than all of its need in few tokens.
            while self.unread and self._may_be_best(self.unread[-1]):
                file = self.unread.pop()
                file.found += self.packer.blocks_of(file)
                for block in file.found:
                    self._offer(file, block)
            self.is_full = self.room < _MIN_ROOM_TOKENS
            if self.is_full or not self.offers:
                return
            offer = heappop(self.offers)
            # The best block is shown however little it is worth: an empty answer helps nobody.
            is_worth_it = offer.per_token >= self.packer.least(offer.file) or not self.texts
            if is_worth_it and offer.block.chosen is offer.instead_of:
                is_first = not self.texts
                self._take(offer)
                self._offer(offer.file, offer.block)
                if is_first and self.texts:
                    self.unread = _with_companions(self.unread, offer.block)

    def taken(self) -> list[FoundBlock]:
        """The blocks that are chosen now, file by file."""
        return [block for file in self.files for block in file.found if block.chosen]

    def give_back(self) -> bool:
        """Undo the last choice; False if only the first is left."""
        if len(self.takes) < 2:
            return False
        block, block.chosen = self.takes[-1][0], self.takes[-1][1]
        self.takes.pop()
        block.refused = True
        return True

    def _may_be_best(self, file: FileNeed) -> bool:
        """True if a block of the file may be worth more per token than every offer, and than the least."""
        if not self.offers:
            return not self.texts or file.most_per_token > self.packer.least(file)
        return file.most_per_token > max(self.packer.least(file), self._best)

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
            if block is self.definition:
                worth = math.inf  # what was asked for by name comes first, as whole as it may be
            heappush(self.offers, _Offer(-worth, next(self.order), file, block, rendition, block.chosen))

    def _take(self, offer: _Offer) -> None:
        """Choose the rendition if it fits, and if it is no copy of what is shown already."""
        block = offer.block
        if not block.chosen and (twin := self._twin(block)):
            self.twins |= {candidate.place: twin.candidates[0].place for candidate in block.candidates}
            block.is_twin = True
            twin.copies.append(block.candidates[0].path)
            return
        block.chosen = offer.rendition
        name, _, shown = form_unit([block])
        frame = 0 if offer.instead_of else self._frame(offer.file, block, name, shown)
        tokens = self.packer.counter.count(shown.text)
        cost = tokens - block.tokens + frame
        if cost > self.room or self._is_fragment(block, shown):
            block.chosen, block.refused = offer.instead_of, True
            return
        self.room -= cost
        self.takes.append((block, offer.instead_of))
        if not offer.instead_of:
            self.texts.append((block, block.line_set))
        offer.file.is_open = True
        block.tokens = tokens

    def _frame(self, file: FileNeed, block: FoundBlock, name: str, shown: UnitText) -> int:
        """The tokens of a block's own heading, fence and separator."""
        path = "" if file.is_open else block.candidates[0].path
        lines = f"lines {shown.first}-{shown.last}, {shown.elided} not shown"
        return self.packer.frame_tokens(path, name, lines)

    def _is_fragment(self, block: FoundBlock, shown: UnitText) -> bool:
        """True for a single short line: it says less than the heading above it. A page, or a block, may be short."""
        if block.is_definition or block.candidates[0].page is not None or not block.candidates[0].path:
            return False
        lines = [line for run in shown.shown for line in block.source.text(run).split("\n") if line.strip()]
        return len(lines) <= 1 and self.packer.counter.count("".join(lines)) < MIN_UNIT_TOKENS

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
            groups[shared_path(file.candidates[0].path) or str(file.candidates[0].place)].append(file)
        kept = []
        for group in groups.values():
            original = min(group, key=lambda file: (not is_in_english(file.candidates[0].path), -file.probability))
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
        cost = rendition.tokens - block.tokens + self.estimated_frame(block)
        least = _MIN_COUNTED_PASSAGE_TOKENS if self.is_passage else _MIN_COUNTED_TOKENS
        return self.probability * added / max(least, cost)

    @property
    def is_passage(self) -> bool:
        """True for a passage of a document, which has a probability of its own."""
        return self.candidates[0].is_passage

    def estimated_frame(self, block: FoundBlock) -> int:
        """The tokens of the heading that the block's first rendition needs, without counting: for offers."""
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
            everything = list(segments_of(source, LineRun(candidate.first_line or 1, last)))
            segments = [segment for segment in everything if not is_scrap(*segment)]
            if candidate is self.candidates[-1] and not blocks and not segments:
                segments = instead_of_scraps(source) or everything[:1]
            worth_of = [worths.of_run(source, lines) * fullness(block) for block, lines in segments]
            for (block, lines), worth in zip(segments, worth_of, strict=True):
                known = blocks.setdefault(block.lines, block)
                known.share += share * worth / (sum(worth_of) or 1.0)
                known.found.append(lines)
                if candidate not in known.candidates:
                    known.candidates.append(candidate)
        if symbol:
            self._prefer_definition(source, blocks, symbol)
        elif not source.is_prose:
            self._add_siblings(source, blocks, worths)
        return list(blocks.values())

    def _add_siblings(self, source: SourceText, blocks: dict[LineRun, FoundBlock], worths: LineWorths) -> None:
        """Give the members beside those that are needed most a share, too: what was found may call what answers."""
        parents = {block.span.parent for block in blocks.values() if block.span.qualified} - {WHOLE_FILE}
        found = list(blocks)
        siblings = []
        for index in (member for parent in sorted(parents) for member in source.members(parent)):
            span = source.spans[index]
            lines = LineRun(span.first_line, span.last_line)
            is_inside = any(run.first <= lines.last and lines.first <= run.last for run in found if run != lines)
            if span.type in CALLABLE and source.chars(lines) > MIN_BLOCK_CHARS and not is_inside:
                new = FoundBlock(source, span, lines, lines, found=[lines], candidates=self.candidates[:1])
                block = blocks.get(lines, new)
                siblings += [block] if block.share < _MUCH_NEEDED else []
        worth_of = [worths.of_run(source, block.lines) for block in siblings]
        for block, worth in zip(siblings, worth_of, strict=True):
            # Half of it in equal parts: the answer may be in other words than the question.
            part = 0.5 / len(siblings) + 0.5 * worth / (sum(worth_of) or 1.0)
            block.share = max(block.share, _SIBLINGS_NEED * part)
            blocks[block.lines] = block

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
        if source.chars(lines) <= MIN_BLOCK_CHARS:
            lines = source.paragraph(lines)
        definition = FoundBlock(source, span, lines, lines, found=[lines], candidates=self.candidates[:1])
        for inside in [place for place in blocks if lines.first <= place.first and place.last <= lines.last]:
            block = blocks.pop(inside)
            definition.candidates += [each for each in block.candidates if each not in definition.candidates]
        return definition


def _raise_uses(files: list[FileNeed], name: str) -> None:
    """Make the first files that use the name probable enough to be shown after its definition."""
    uses = [file for file in files if any(name in IDENTIFIER.findall(each.text) for each in file.candidates)]
    for file in uses[:_MAX_USES]:
        file.probability = max(file.probability, _USE_PROBABILITY)
    files.sort(key=lambda file: -file.probability)


def _as_relevant_as_their_files(units: Sequence[Candidate], files: Sequence[FileNeed]) -> list[Candidate]:
    """The units, the best of each file as relevant as the file: its best lines may be among those elided."""
    scores = {file.candidates[0].path: max(each.score for each in file.candidates) for file in files}
    best: dict[str, Candidate] = {}
    for unit in units:
        if unit.path and not unit.is_passage and unit.score > best.get(unit.path, unit._replace(score=-1.0)).score:
            best[unit.path] = unit
    return [unit._replace(score=scores[unit.path]) if best.get(unit.path) is unit else unit for unit in units]


def _best_first(units: Sequence[Candidate]) -> list[Candidate]:
    """The units, the best of a file leading the others if it is far better than the first of them by line."""
    of_files: dict[str, list[Candidate]] = defaultdict(list)
    for unit in units:
        of_files[unit.path or unit.id].append(unit)
    leading = set()
    for members in of_files.values():
        best = max(members, key=lambda unit: unit.score)
        first = min(members, key=lambda unit: unit.first_line or 0)
        if not any(unit.leads for unit in members) and best.score >= _FAR_BETTER * first.score:
            leading.add(best.place)
    return [unit._replace(leads=unit.leads or unit.place in leading) for unit in units]


def _by_file(candidates: Sequence[Candidate]) -> list[FileNeed]:
    """The files of the candidates, most probable first."""
    groups: dict[object, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        # A passage of a document has a probability of its own, as a file of code has.
        is_alone = candidate.is_passage or not candidate.path
        groups[candidate.place if is_alone else candidate.path].append(candidate)
    files = [FileNeed(max(candidate.score for candidate in group), group) for group in groups.values()]
    return sorted(files, key=lambda file: -file.probability)
