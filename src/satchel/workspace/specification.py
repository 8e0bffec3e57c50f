"""S4's allocator, assembler and validation: adapters from items to the common packer and formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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
from satchel.tokens.registry import counter_for
from satchel.workspace.collectors import COLLECTORS
from satchel.workspace.gather import candidate_of
from satchel.workspace.recipe import section_rules, shown_item
from satchel.workspace.trim import ContentTruncator, shorten_blocks

if TYPE_CHECKING:
    from satchel.models.search import Filters
    from satchel.ports.store import Store
    from satchel.tokens.counter import TokenCounter


class ItemVerdict(NamedTuple):
    """The fate of an item, the reason, and the tokens of the item (if dropped: the tokens needed)."""

    fate: Fate
    reason: Reason
    tokens: int


@dataclass(frozen=True, slots=True)
class AllocatedContext:
    """The packed items (trimmed where necessary) and the tokens used and left."""

    items: tuple[ContextItem, ...]
    used_tokens: int
    remaining_budget: int
    verdicts: tuple[ItemVerdict, ...] = ()
    """A verdict for each input item, in input order."""


class BudgetAllocator(Protocol):
    """Packs items into a token budget (S4)."""

    def allocate(self, items: Sequence[ContextItem], budget: TokenBudget) -> AllocatedContext:
        """Pack the items within the budget."""
        ...


@dataclass
class GreedyBudgetAllocator:
    """Packs the best items of each section within its reservation, then the best of all sections in the rest.

    `cost` counts the tokens of a rendered item; without it an item costs the tokens of its content, as S4 counts them.
    `overhead` is the tokens of the text besides items. `pinned` items (the focus, blocks included by the caller) come
    before all others of their section.
    """

    cost: Callable[[ContextItem], int] = field(default_factory=lambda: _content_tokens)
    truncator: ContentTruncator = field(default_factory=lambda: ContentTruncator(counter_for("o200k_base")))
    _: KW_ONLY
    truncation: TruncationConfig | None = None
    overhead: int = 0
    pinned: Iterable[str] = ()

    def __post_init__(self) -> None:
        self._truncation = self.truncation or TruncationConfig()
        self._trimmer = shorten_blocks(self.truncator, self._truncation)

    def allocate(self, items: Sequence[ContextItem], budget: TokenBudget) -> AllocatedContext:
        """Pack items by descending relevance; an item over the budget is trimmed or skipped."""
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
        packed = tuple(shown_item(taken[place]) for place in sorted(taken))
        return AllocatedContext(packed, used, budget.total - used, tuple(verdicts))

    def estimate_tokens(self, item: ContextItem) -> int:
        """The tokens of the rendered item."""
        return self.cost(item)

    def truncate_to_fit(self, item: ContextItem, room: int) -> ContextItem | None:
        """The item trimmed to at most `room` tokens; None if too little text would be left."""
        if room < self._truncation.min_tokens:
            return None
        trimmed = self._trimmer(candidate_of(item, 0), room, _PricedLayout(self.cost, 0).cost_of)
        return shown_item(trimmed.candidate) if trimmed else None


def _content_tokens(item: ContextItem) -> int:
    return counter_for("o200k_base").count(item.content)


class _PricedLayout(Layout):
    """Layout whose item costs come from a function."""

    costs_add_up = True

    def __init__(self, price: Callable[[ContextItem], int], overhead: int) -> None:
        self._price = price
        self._overhead = overhead

    def arrange(self, candidates: Sequence[Candidate]) -> list[Section]:
        """A single section with all candidates."""
        return [Section(None, tuple(alone(block, 0) for block in candidates))]

    def cost_of(self, candidate: Candidate) -> int:
        """The cost of the item, from the cost function."""
        return self._price(shown_item(candidate))

    def overhead(self, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - the caller knows
        """The overhead from the caller."""
        return self._overhead

    def draft(self, candidates: list[Candidate]) -> Draft:
        """A draft without text; its tokens are the sum of the costs."""
        tokens = self._overhead + sum(map(self.cost_of, candidates))
        return Draft(candidates, self.arrange(candidates), Sheet(), tokens)


class ContextAssembler:
    """Renders sections and the question as text in any format (S4)."""

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
        """Render all sections and the question; mandatory sections appear even without items."""
        by_name = {str(section.type): section for section in sections}
        rendered = []
        for name in (SectionType.SYSTEM.value, *COLLECTORS.names()):
            section = by_name.get(name) or ContextSection(type=name, title=SECTION_TITLES.get(name, name))  # type: ignore[call-overload]
            if section.items or (name != SectionType.SYSTEM and COLLECTORS.get(name).always):
                rendered.append(_section(section))
        return "".join(self._format.document(Document(rendered, query=query)).parts)

    def format_section(self, section: ContextSection) -> str:
        """Render the items of a section, or a notice for an empty section."""
        sheet = Sheet()
        self._format.add_blocks(sheet, _section(section))
        return "".join(sheet.parts)

    def format_item(self, item: ContextItem) -> str:
        """Render an item: origin, type and content."""
        return "".join(self._format.piece(_piece(item)))

    def section_text(self, section: ContextSection) -> str:
        """Render a section with its title, as in the whole text."""
        sheet = Sheet()
        self._format.add_section(sheet, _section(section))
        return "".join(sheet.parts)


def _section(section: ContextSection) -> Section:
    return Section(section.title, tuple(map(_piece, section.items)), str(section.type))


def _piece(item: ContextItem) -> Piece:
    return alone(candidate_of(item, 0), item.number)


def _verdict(block: Candidate, taken: Candidate | None, layout: Layout) -> ItemVerdict:
    if taken is None:
        return ItemVerdict(Fate.DROPPED, Reason.OVER_BUDGET, layout.cost_of(block))
    if taken is block:
        return ItemVerdict(Fate.KEPT, Reason.FITS, layout.cost_of(block))
    return ItemVerdict(Fate.TRIMMED, Reason.TRIMMED_TO_FIT, layout.cost_of(taken))


_NO_BLOCKS: Final = frozenset({SectionType.HISTORY, SectionType.SYSTEM})
_HEADING: Final = re.compile(r"^### (.+)$", re.MULTILINE)


class Measure(NamedTuple):
    """References for validating a payload: budget, assembler, token counter, and the current store."""

    budget: TokenBudget
    assembler: ContextAssembler
    counter: TokenCounter
    store: Store
    filters: Filters


def validate(payload: ContextPayload, measure: Measure) -> ContextValidationResult:
    """Run all checks on a payload; failed checks have a detail text."""
    return ContextValidationResult((*_of_text(payload, measure), *_of_items(payload), *_of_blocks(payload, measure)))


def _of_text(payload: ContextPayload, measure: Measure) -> Iterator[ValidationCheck]:
    tokens = measure.counter.count(payload.serialized)
    yield _check(
        "budget", tokens <= measure.budget.total, f"the text has {tokens} tokens, the budget {measure.budget.total}"
    )
    stated = payload.metadata.total_tokens
    yield _check("token-count", tokens == stated, f"the text has {tokens} tokens, the metadata say {stated}")
    wrong = [
        str(section.type)
        for section in payload.sections
        if section.type != SectionType.SYSTEM
        and section.token_count != measure.counter.count(measure.assembler.section_text(section))
    ]
    yield _check(
        "section-token-counts", not wrong, f"token_count is not the count of the rendered section: {', '.join(wrong)}"
    )
    query = payload.request.query if payload.request else ""
    same = measure.assembler.assemble(payload.sections, query) == payload.serialized
    yield _check("text-shows-sections", same, "the text differs from the rendered sections")
    yield _check("parses", *_parses(payload))


def _of_items(payload: ContextPayload) -> Iterator[ValidationCheck]:
    items = payload.items
    outside = [item.block_id for item in items if not 0 <= item.relevance <= 1]
    yield _check("relevance-range", not outside, f"blocks with a relevance outside 0..1: {outside[:3]}")
    blocks = _blocks(payload)
    ids = [item.block_id for item in blocks]
    yield _check("distinct-blocks", len(set(ids)) == len(ids), "a block appears more than once")
    numbers = [item.number for item in blocks]
    yield _check(
        "citation-numbers",
        numbers == list(range(1, len(numbers) + 1)),
        f"the numbers are {numbers[:10]}, not 1, 2, 3, …",
    )
    silent = [item.block_id for item in items if item.whole is not None and item.trim is None]
    yield _check("receipts", not silent, f"blocks trimmed without a receipt: {silent[:3]}")
    excluded = set(payload.request.hints.exclude_blocks) if payload.request else set()
    included = sorted(excluded & set(ids))
    yield _check("excluded-blocks", not included, f"excluded blocks in the context: {included[:3]}")
    counted = payload.metadata.blocks_included
    considered = payload.metadata.blocks_considered
    problem = f"{len(blocks)} blocks, but blocks_included={counted} and blocks_considered={considered}"
    yield _check("block-counts", counted == len(blocks) <= considered, problem)


def _of_blocks(payload: ContextPayload, measure: Measure) -> Iterator[ValidationCheck]:
    ids = [item.block_id for item in _blocks(payload)]
    readable = measure.store.trails(ids, measure.filters)
    hidden = sum(block_id not in readable for block_id in ids)
    yield _check("permissions", not hidden, f"the user may not read {hidden} of the {len(ids)} blocks")
    now = measure.store.generation_for(measure.filters)
    then = payload.statistics.generation
    yield _check("up-to-date", now == then, f"built from generation {then}, but the workspace has generation {now}")


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
        titles = [section.title for section in payload.sections if section.type != SectionType.SYSTEM]
        missing = [title for title in titles if title not in _HEADING.findall(payload.serialized)]
        return not missing, f"the text has no heading for {', '.join(missing)}"
    return True, ""


def _check(name: str, passed: bool, problem: str) -> ValidationCheck:
    return ValidationCheck(name, passed, "" if passed else problem)
