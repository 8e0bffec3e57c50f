"""S4's allocator, assembler and validation under its names: the one packer and the one set of formats, for items."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from xml.etree import ElementTree

from satchel.assembly.layout import Draft, Layout
from satchel.assembly.pack import pack
from satchel.assembly.render.format import Document, Sheet, format_for
from satchel.models.chunk import Candidate, Piece, Section, alone
from satchel.models.context import Fate, Reason
from satchel.models.options import ContextBuildOptions, ContextFormat, TokenBudget, TruncationConfig
from satchel.models.results import (
    SECTION_TITLES,
    ContextItem,
    ContextPayload,
    ContextSection,
    ContextValidationResult,
    SectionType,
    ValidationCheck,
)
from satchel.workspace.build import section_rules, shown_item
from satchel.workspace.collectors import COLLECTORS
from satchel.workspace.gather import candidate_of
from satchel.workspace.trim import ContentTruncator, shorten_blocks

if TYPE_CHECKING:
    from satchel.models.search import Filters
    from satchel.ports.store import Store
    from satchel.tokens.counter import TokenCounter


class Verdict(NamedTuple):
    """What became of an item: the fate, why, and what it costs or would cost."""

    fate: Fate
    reason: Reason
    tokens: int


@dataclass(frozen=True, slots=True)
class AllocatedContext:
    """The items that are in, trimmed where they had to be, and what they use of the budget."""

    items: tuple[ContextItem, ...]
    used_tokens: int
    remaining_budget: int
    verdicts: tuple[Verdict, ...] = ()
    """One for each item that was given, in that order."""


class BudgetAllocator(Protocol):
    """Decides which items are in."""

    def allocate(self, items: Sequence[ContextItem], budget: TokenBudget) -> AllocatedContext:
        """The items that fit."""
        ...


@dataclass
class GreedyBudgetAllocator:
    """Takes the best first, section by section within the reservations, then from all of them with what is left.

    `cost` counts an item as it will be written; `overhead` is what the text takes beside its items. Items that are
    `pinned` (the focus, what the caller named) come before all others of their section.
    """

    cost: Callable[[ContextItem], int]
    truncator: ContentTruncator
    _: KW_ONLY
    truncation: TruncationConfig | None = None
    overhead: int = 0
    pinned: Iterable[str] = ()

    def __post_init__(self) -> None:
        self._truncation = self.truncation or TruncationConfig()
        self._trimmer = shorten_blocks(self.truncator, self._truncation)

    def allocate(self, items: Sequence[ContextItem], budget: TokenBudget) -> AllocatedContext:
        """The items that fit, by descending relevance; one that does not fit is trimmed or left, and the next tried."""
        layout = _PricedLayout(self.cost, self.overhead)
        rules = replace(
            section_rules(budget, self._truncation, self._trimmer, frozenset(self.pinned)),
            max_tokens=max(budget.total - budget.shrunk().system, 0),
            total_tokens=max(budget.total, self.overhead),
        )
        blocks = [candidate_of(item, place)._replace(score=item.relevance) for place, item in enumerate(items)]
        taken = {block.place: block for block in pack(blocks, layout, rules).draft.candidates}
        verdicts = [_verdict(block, taken.get(block.place), layout) for block in blocks]
        used = sum(verdict.tokens for verdict in verdicts if verdict.fate is not Fate.DROPPED)
        shown = tuple(shown_item(taken[place]) for place in sorted(taken))
        return AllocatedContext(shown, used, budget.total - used, tuple(verdicts))

    def estimate_tokens(self, item: ContextItem) -> int:
        """What the item takes once it is written."""
        return self.cost(item)

    def truncate_to_fit(self, item: ContextItem, room: int) -> ContextItem | None:
        """The item cut so that it takes at most `room`; None if too little would be left."""
        if room < self._truncation.min_tokens:
            return None
        trimmed = self._trimmer(candidate_of(item, 0), room, _PricedLayout(self.cost, 0).cost_of)
        return shown_item(trimmed.candidate) if trimmed else None


class _PricedLayout(Layout):
    """Items that cost what a function says."""

    costs_add_up = True

    def __init__(self, price: Callable[[ContextItem], int], overhead: int) -> None:
        self._price = price
        self._overhead = overhead

    def arrange(self, candidates: Sequence[Candidate]) -> list[Section]:
        """One section with everything."""
        return [Section(None, tuple(alone(block, 0) for block in candidates))]

    def cost_of(self, candidate: Candidate) -> int:
        """The price of the item."""
        return self._price(shown_item(candidate))

    def overhead(self, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - the caller knows
        """What the caller says the text takes beside its items."""
        return self._overhead

    def draft(self, candidates: list[Candidate]) -> Draft:
        """Nothing is rendered: the prices are added up."""
        tokens = self._overhead + sum(map(self.cost_of, candidates))
        return Draft(candidates, self.arrange(candidates), Sheet(), tokens)


class ContextAssembler:
    """Writes sections and the question as one text, in any format."""

    def __init__(
        self,
        format: ContextFormat | str = ContextFormat.MARKDOWN,
        *,
        metadata_hints: bool = True,
        citations: bool = True,
    ) -> None:
        options = ContextBuildOptions(format=format, include_citations=citations)
        self._format = format_for(options, metadata_hints=metadata_hints)

    def assemble(self, sections: Sequence[ContextSection], query: str) -> str:
        """The whole text; sections that are always there say so if they have no items."""
        given = {str(section.type): section for section in sections}
        shown = []
        for name in (SectionType.SYSTEM.value, *COLLECTORS.names()):
            section = given.get(name) or ContextSection(type=name, title=SECTION_TITLES.get(name, name))  # type: ignore[call-overload]
            if section.items or (name != SectionType.SYSTEM and COLLECTORS.get(name).always):
                shown.append(_section(section))
        return "".join(self._format.document(Document(shown, query=query)).parts)

    def format_section(self, section: ContextSection) -> str:
        """A section's items, or that there are none."""
        sheet = Sheet()
        self._format.add_blocks(sheet, _section(section))
        return "".join(sheet.parts)

    def format_item(self, item: ContextItem) -> str:
        """An item: where it is from, what it is, and what it says."""
        return "".join(self._format.piece(_piece(item)))

    def section_text(self, section: ContextSection) -> str:
        """A section with its title, as it stands in the text."""
        sheet = Sheet()
        self._format.add_section(sheet, _section(section))
        return "".join(sheet.parts)


def _section(section: ContextSection) -> Section:
    return Section(section.title, tuple(map(_piece, section.items)), str(section.type))


def _piece(item: ContextItem) -> Piece:
    return alone(candidate_of(item, 0), item.number)


def _verdict(block: Candidate, taken: Candidate | None, layout: Layout) -> Verdict:
    if taken is None:
        return Verdict(Fate.DROPPED, Reason.OVER_BUDGET, layout.cost_of(block))
    if taken is block:
        return Verdict(Fate.KEPT, Reason.FITS, layout.cost_of(block))
    return Verdict(Fate.TRIMMED, Reason.TRIMMED_TO_FIT, layout.cost_of(taken))


_NO_BLOCKS: Final = frozenset({SectionType.HISTORY, SectionType.SYSTEM})
_HEADING: Final = re.compile(r"^### (.+)$", re.MULTILINE)


class Measure(NamedTuple):
    """What a payload is measured by: the budget, the writer and counter that made it, and the store as it is now."""

    budget: TokenBudget
    assembler: ContextAssembler
    counter: TokenCounter
    store: Store
    filters: Filters


def validate(payload: ContextPayload, measure: Measure) -> ContextValidationResult:
    """Every check, whether it passed, and if not why."""
    return ContextValidationResult((*_of_text(payload, measure), *_of_items(payload), *_of_blocks(payload, measure)))


def _of_text(payload: ContextPayload, measure: Measure) -> Iterator[ValidationCheck]:
    tokens = measure.counter.count(payload.serialized)
    yield _check("budget", tokens <= measure.budget.total, f"{tokens} of {measure.budget.total} tokens")
    told = payload.metadata.total_tokens
    yield _check("token-count", tokens == told, f"the text has {tokens} tokens, the metadata say {told}")
    wrong = [
        str(section.type)
        for section in payload.sections
        if section.type != SectionType.SYSTEM
        and section.token_count != measure.counter.count(measure.assembler.section_text(section))
    ]
    yield _check("section-token-counts", not wrong, f"not as written: {', '.join(wrong)}")
    query = payload.request.query if payload.request else ""
    same = measure.assembler.assemble(payload.sections, query) == payload.serialized
    yield _check("text-shows-sections", same, "the text is not what the sections give")
    yield _check("parses", *_parses(payload))


def _of_items(payload: ContextPayload) -> Iterator[ValidationCheck]:
    items = payload.items
    outside = [item.block_id for item in items if not 0 <= item.relevance <= 1]
    yield _check("relevance-range", not outside, f"outside 0..1: {outside[:3]}")
    blocks = _blocks(payload)
    ids = [item.block_id for item in blocks]
    yield _check("distinct-blocks", len(set(ids)) == len(ids), "a block is in twice")
    numbers = [item.number for item in blocks]
    yield _check("citation-numbers", numbers == list(range(1, len(numbers) + 1)), f"{numbers[:10]} is not 1, 2, 3, …")
    silent = [item.block_id for item in items if item.whole is not None and item.trim is None]
    yield _check("receipts", not silent, f"cut without saying so: {silent[:3]}")
    excluded = set(payload.request.hints.exclude_blocks) if payload.request else set()
    found = sorted(excluded & set(ids))
    yield _check("excluded-blocks", not found, f"in although excluded: {found[:3]}")
    counted = payload.metadata.blocks_included
    yield _check("block-counts", counted == len(blocks) <= payload.metadata.blocks_considered, f"{counted} counted")


def _of_blocks(payload: ContextPayload, measure: Measure) -> Iterator[ValidationCheck]:
    ids = [item.block_id for item in _blocks(payload)]
    readable = measure.store.trails(ids, measure.filters)
    hidden = sum(one not in readable for one in ids)
    yield _check("permissions", not hidden, f"{hidden} of the blocks may not be read by this user now")
    now = measure.store.generation
    then = payload.statistics.generation
    yield _check("up-to-date", now == then, f"made from generation {then}, the workspace is at {now}")


def _blocks(payload: ContextPayload) -> list[ContextItem]:
    return [item for section in payload.sections if section.type not in _NO_BLOCKS for item in section.items]


def _parses(payload: ContextPayload) -> tuple[bool, str]:
    format = payload.request.format if payload.request else ContextFormat.MARKDOWN
    try:
        if format is ContextFormat.JSON:
            json.loads(payload.serialized)
        elif format is ContextFormat.XML:
            ElementTree.fromstring(payload.serialized)  # noqa: S314 - our own text, without entities
    except (ValueError, ElementTree.ParseError) as error:
        return False, str(error)
    if format is ContextFormat.MARKDOWN:
        wanted = [section.title for section in payload.sections if section.type != SectionType.SYSTEM]
        missing = [title for title in wanted if title not in _HEADING.findall(payload.serialized)]
        return not missing, f"no heading for {', '.join(missing)}"
    return True, ""


def _check(name: str, passed: bool, problem: str) -> ValidationCheck:
    return ValidationCheck(name, passed, "" if passed else problem)
