"""From a request to a payload, stage by stage: collect → gate → merge → rank → budget → assemble.

Only the first two read the world. Everything after them is reckoned from what they brought.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field, replace
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import BudgetCannotBeMet, SatchelError
from satchel.model.block import PAGE_TYPES
from satchel.model.ledger import Fate, Ledger, LedgerEntry, Reason
from satchel.model.payload import (
    SECTION_TITLES,
    ContextItem,
    ContextMetadata,
    ContextPayload,
    ContextSection,
    ItemMetadata,
    SectionType,
)
from satchel.pipeline.budget.allocate import GreedyBudgetAllocator, Verdict
from satchel.pipeline.budget.truncate import ContentTruncator
from satchel.pipeline.collect import ContextCollector, Sight
from satchel.pipeline.collect.activity import ActivityCollector, actors_of
from satchel.pipeline.collect.focus import FocusCollector
from satchel.pipeline.collect.history import HistoryCollector
from satchel.pipeline.collect.relations import RelationCollector
from satchel.pipeline.collect.semantic import Search, SemanticCollector
from satchel.pipeline.collect.show import item_of
from satchel.pipeline.rank.composite import RECENCY_DAYS, CompositeRelevanceScorer, affinities
from satchel.pipeline.write.workspace import ContextAssembler
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.model.context_config import ContextConfig
    from satchel.model.request import ContextRequest
    from satchel.ports.language_model import LanguageModel
    from satchel.ports.store import Step
    from satchel.tokens.counter import TokenCounter

_log: Final = logging.getLogger(__name__)
_DEEDS_LOOKED_AT: Final = 300
_SAME_TEXT_CHARS: Final = 40
"""Shorter texts (`Notes`, `Done`) repeat without being repetitions."""

_HINTED: Final = 1.0
_LEFT_OUT: Final = frozenset({Reason.BELOW_RELEVANCE, Reason.UNRELATED, Reason.EMPTY})
_EVIDENCE: Final = 0.05
_ANY_NUMBER: Final = 88
"""Numbers are given at the end; until then one of two digits stands for them all."""

_ORDERED_AS_FOUND: Final = frozenset({SectionType.FOCUS, SectionType.HISTORY, SectionType.SYSTEM})
_NO_BLOCKS: Final = frozenset({SectionType.HISTORY, SectionType.SYSTEM})


class Tools(NamedTuple):
    """What a build works with beside the store."""

    search: Search
    counter: TokenCounter
    config: ContextConfig
    executor: Executor
    language_model: LanguageModel | None = None


@dataclass(slots=True)
class _Considered:
    """An item on its way: what it is, in which order it was found, and what became of it."""

    item: ContextItem
    order: int
    collected: float
    fate: Fate = Fate.DROPPED
    reason: Reason = Reason.OVER_BUDGET
    tokens: int = 0
    into: str | None = None
    evidence: float = 0.0
    """How likely the search holds it to be an answer."""


@dataclass(slots=True)
class _Findings:
    """What the collectors brought."""

    items: list[ContextItem] = field(default_factory=list)
    below: list[ContextItem] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cached: bool = False


def build_payload(request: ContextRequest, sight: Sight, tools: Tools) -> ContextPayload:
    """The context for a request."""
    started = perf_counter()
    generation = sight.store.generation
    found = _collect(request, sight, tools)
    considered, trails, made_visible = _gate(request, sight, found)
    pinned = _pinned(request, sight)
    _merge(considered, pinned)
    for one in considered:
        if (
            one.item.weak
            and one.evidence < _EVIDENCE
            and one.fate is not Fate.MERGED
            and one.item.block_id not in pinned
        ):
            one.reason = Reason.UNRELATED
    alive = [one for one in considered if one.fate is not Fate.MERGED and one.reason is not Reason.EXCLUDED]
    _rank(request, sight, tools.config, alive, trails)
    for one in alive:
        if not one.item.content.strip():
            one.reason = Reason.EMPTY
    candidates = [one for one in alive if one.reason not in _LEFT_OUT]
    writing = _Writing(request, tools)
    sections, text = writing.write(writing.choose(candidates, pinned, found.notes))
    numbers = {item.block_id: item.number for section in sections for item in section.items if item.number}
    included = [item for section in sections for item in section.items if section.type not in _NO_BLOCKS]
    metadata = ContextMetadata(
        total_tokens=tools.counter.count(text),
        timestamp=sight.now.isoformat(),
        focus_block_id=request.focus.block_id if request.focus else None,
        focus_page_id=request.focus.page_id if request.focus else None,
        collectors_used=tuple(found.used),
        collectors_failed=found.failed,
        blocks_included=len(included),
        blocks_considered=len([one for one in considered if one.item.section not in _NO_BLOCKS]),
        generation=generation,
        cached=found.cached,
        build_ms=(perf_counter() - started) * 1000,
        characters_made_visible=made_visible,
    )
    return ContextPayload(
        sections=tuple(sections),
        metadata=metadata,
        serialized=text,
        ledger=Ledger(tuple(_entry(one, numbers) for one in considered)),
        notes=tuple(dict.fromkeys(found.notes)),
        request=request,
    )


# -- collecting


def _collect(request: ContextRequest, sight: Sight, tools: Tools) -> _Findings:
    """Run the collectors side by side; one that fails or is late is reported and done without."""
    found = _Findings()
    running = [
        (collector, tools.executor.submit(collector.collect, request))
        for collector in _collectors(request, sight, tools.search)
    ]
    wait([future for _, future in running], timeout=sight.config.deadline_ms / 1000)
    for collector, future in running:
        problem = _problem(future, sight.config.deadline_ms)
        if problem:
            future.cancel()
            found.failed[collector.name] = problem
            found.notes.append(f"the {collector.name} collector {problem}; the context is without it")
            continue
        found.used.append(collector.name)
        found.items += future.result()
        if isinstance(collector, SemanticCollector):
            found.below = collector.below
            found.cached = collector.cached
            found.notes += collector.notes
    wanted = sight.store.blocks(request.hints.include_blocks, sight.filters) if request.hints.include_blocks else {}
    if len(wanted) < len(request.hints.include_blocks):
        found.notes.append(f"{len(request.hints.include_blocks) - len(wanted)} of the blocks to include were not found")
    for block in wanted.values():
        found.items.append(item_of(block, _HINTED, SectionType.SEMANTIC, "asked for by the caller"))
    return found


def _collectors(request: ContextRequest, sight: Sight, search: Search) -> list[ContextCollector]:
    config = sight.config
    chosen: list[tuple[bool, Callable[[], ContextCollector]]] = [
        (config.focus.enabled, lambda: FocusCollector(sight)),
        (config.semantic.enabled, lambda: SemanticCollector(sight, search)),
        (config.relations.enabled, lambda: RelationCollector(sight)),
        (config.activity.enabled, lambda: ActivityCollector(sight)),
        (config.history.enabled and bool(request.conversation_history), lambda: HistoryCollector(sight)),
    ]
    return [make() for enabled, make in chosen if enabled]


def _problem(future: Future[list[ContextItem]], deadline_ms: int) -> str:
    if not future.done():
        return f"did not finish within {deadline_ms} ms"
    error = future.exception()
    if error is None:
        return ""
    if not isinstance(error, SatchelError):
        _log.error("a collector failed", exc_info=error)
    # Our own errors say what is wrong without saying anything about what may not be read.
    return f"failed: {error}" if isinstance(error, SatchelError) else f"failed: {type(error).__name__}"


def _gate(
    request: ContextRequest, sight: Sight, found: _Findings
) -> tuple[list[_Considered], Mapping[str, Sequence[Step]], int]:
    """The last look at the world: who is still readable, and where it stands."""
    ids = list(dict.fromkeys(item.block_id for item in (*found.items, *found.below) if item.section not in _NO_BLOCKS))
    with sight.store.snapshot():
        trails = sight.store.trails(ids, sight.filters)
    considered: list[_Considered] = []
    excluded = frozenset(request.hints.exclude_blocks)
    made_visible = 0
    below = {id(item) for item in found.below}
    for item in (*found.items, *found.below):
        if item.section not in _NO_BLOCKS and item.block_id not in trails:
            continue
        content, changes = make_visible(item.content)
        made_visible += changes
        placed = _placed(item, trails.get(item.block_id, ()))
        shown = replace(item, content=content, metadata=placed, number=_ANY_NUMBER * (item.section not in _NO_BLOCKS))
        evidence = item.relevance if item.section is SectionType.SEMANTIC else 0.0
        one = _Considered(shown, len(considered), item.relevance, evidence=evidence)
        if item.block_id in excluded:
            one.reason = Reason.EXCLUDED
        elif id(item) in below:
            one.reason = Reason.BELOW_RELEVANCE
        considered.append(one)
    return considered, trails, made_visible


def _placed(item: ContextItem, trail: Sequence[Step]) -> ItemMetadata:
    """The page's title and the breadcrumb, from the outside in, as far as the user may read."""
    if not trail:
        return item.metadata
    page = next((step for step in trail if step.type in PAGE_TYPES), None)
    path = item.metadata.path or tuple(step.title for step in reversed(trail[1:]) if step.title)
    title = page.title if page is not None and page.title else None
    return ItemMetadata(page_title=title, path=path, last_modified=item.metadata.last_modified)


# -- merging and ranking


def _merge(considered: Sequence[_Considered], pinned: set[str]) -> None:
    """One entry for each block, with everything that was said for it, and none for a text that is there already."""
    by_block: dict[tuple[bool, str], _Considered] = {}
    for one in considered:
        if one.reason is Reason.EXCLUDED:
            continue
        first = by_block.setdefault((one.item.section in _NO_BLOCKS, one.item.block_id), one)
        if first is not one:
            _join(first, one)
    by_text: dict[str, _Considered] = {}
    for one in sorted(by_block.values(), key=lambda one: (-one.collected, one.order)):
        text = " ".join(one.item.content.split())
        if len(text) < _SAME_TEXT_CHARS or one.item.section in _NO_BLOCKS or one.item.block_id in pinned:
            continue
        same = by_text.setdefault(text, one)
        if same is not one:
            one.fate, one.reason, one.into = Fate.MERGED, Reason.DUPLICATE, same.item.block_id


def _join(first: _Considered, other: _Considered) -> None:
    """Put what was said for the same block together: the higher relevance, the fuller text, all the reasons."""
    mine, theirs = first.item, other.item
    # What a search found of a block that is here anyhow adds a reason, not a text.
    is_fuller = theirs.section is not SectionType.SEMANTIC and len(theirs.content) > len(mine.content)
    fuller = theirs if is_fuller or not mine.content else mine
    dates = [item.metadata.last_modified for item in (mine, theirs) if item.metadata.last_modified]
    first.item = replace(
        mine,
        content=fuller.content,
        language=fuller.language,
        relevance=max(mine.relevance, theirs.relevance),
        reasons=mine.reasons
        if other.reason is Reason.BELOW_RELEVANCE
        else tuple(dict.fromkeys((*mine.reasons, *theirs.reasons))),
        signals={**theirs.signals, **mine.signals},
        metadata=replace(mine.metadata, last_modified=max(dates) if dates else None),
        weak=mine.weak and (theirs.weak or theirs.section is SectionType.SEMANTIC),
    )
    if first.reason is Reason.BELOW_RELEVANCE and other.reason is not Reason.BELOW_RELEVANCE:
        first.reason = other.reason
    first.collected = max(first.collected, other.collected)
    first.evidence = max(first.evidence, other.evidence)
    other.fate, other.reason, other.into = Fate.MERGED, Reason.SAME_BLOCK, mine.block_id


def _rank(
    request: ContextRequest,
    sight: Sight,
    config: ContextConfig,
    alive: Sequence[_Considered],
    trails: Mapping[str, Sequence[Step]],
) -> None:
    focus = sight.focus or next(iter(sight.pages), None)
    items = [one.item for one in alive if one.item.section not in _NO_BLOCKS]
    since = sight.now - timedelta(days=RECENCY_DAYS)
    deeds = [
        deed
        for actor in actors_of(request, sight)
        for deed in sight.store.recent(sight.filters, actor=actor, since=since, limit=_DEEDS_LOOKED_AT)
    ]
    scorer = CompositeRelevanceScorer(
        config.ranking.weights,
        distances=None if focus is None else _distances(focus.id, trails),
        affinities=affinities(request.user, items, deeds, trails, sight.now),
        now=sight.now,
    )
    for one in alive:
        signals = scorer.signals(one.item, request)
        one.item = replace(
            one.item,
            relevance=scorer.weighted(signals),
            signals={name: round(value, 4) for name, value in signals.items()},
        )


def _distances(focus: str, trails: Mapping[str, Sequence[Step]]) -> dict[str, int]:
    """The steps from the focus to each block through what both have above them."""
    up = {step.id: i for i, step in enumerate(trails.get(focus, ()))}
    found: dict[str, int] = {}
    for block, trail in trails.items():
        meeting = next(((i, step.id) for i, step in enumerate(trail) if step.id in up), None)
        if meeting is not None:
            found[block] = meeting[0] + up[meeting[1]]
    return found


def _pinned(request: ContextRequest, sight: Sight) -> set[str]:
    focused = {block.id for block in (sight.focus, *sight.pages) if block is not None}
    return focused | set(request.hints.include_blocks)


# -- budget and text


class _Writing:
    """Chooses what fits, and writes it."""

    def __init__(self, request: ContextRequest, tools: Tools) -> None:
        self._request = request
        self._counter = tools.counter
        self._truncation = tools.config.truncation
        self._truncator = ContentTruncator(tools.counter, query=request.query, language_model=tools.language_model)
        self._assembler = ContextAssembler.for_format(
            request.format, metadata_hints=tools.config.metadata_hints, citations=tools.config.citations
        )
        self._system = _system_section(request)
        budget = request.token_budget or tools.config.token_budget
        # Instructions that are written are counted with what the text takes anyhow.
        self._budget = replace(budget, system=0) if self._system else budget

    def choose(self, candidates: Sequence[_Considered], pinned: set[str], notes: list[str]) -> list[_Considered]:
        """The candidates that fit, trimmed where they had to be."""
        allocator = GreedyBudgetAllocator(
            self._cost,
            self._truncator,
            truncation=self._truncation,
            overhead=self._overhead(candidates),
            pinned=pinned,
        )
        allocated = allocator.allocate([one.item for one in candidates], self._budget)
        kept = iter(allocated.items)
        chosen: list[_Considered] = []
        for one, verdict in zip(candidates, allocated.verdicts, strict=True):
            _judge(one, verdict, notes)
            if verdict.fate is not Fate.DROPPED:
                one.item = next(kept)
                chosen.append(one)
        return chosen

    def write(self, kept: list[_Considered]) -> tuple[list[ContextSection], str]:
        """The sections and the text; should counts not have added up, the least relevant item gives way."""
        limit = max(1, self._budget.total - self._budget.shrunk().system)
        while True:
            sections = self._sections(kept)
            text = self._assembler.assemble(sections, self._request.query)
            if not kept or self._counter.fits(text, limit):
                return sections, text
            least = min(kept, key=lambda one: (one.item.relevance, -one.order))
            least.fate, least.reason = Fate.DROPPED, Reason.OVER_BUDGET
            kept.remove(least)

    def _cost(self, item: ContextItem) -> int:
        return self._counter.count(self._assembler.cost_text(item))

    def _overhead(self, candidates: Sequence[_Considered]) -> int:
        """What the text takes without any item."""
        bare = self._assembler.assemble([self._system] if self._system else [], self._request.query)
        overhead = self._counter.count(bare)
        if overhead > self._budget.total:
            raise BudgetCannotBeMet(self._budget.total, overhead)
        if any(one.item.section is SectionType.HISTORY for one in candidates):
            history = ContextSection(type=SectionType.HISTORY, title=SECTION_TITLES[SectionType.HISTORY])
            overhead += self._counter.count(self._assembler.written(history))
        return overhead

    def _sections(self, kept: Sequence[_Considered]) -> list[ContextSection]:
        sections = [self._system] if self._system else []
        number = 0
        for kind in SectionType:
            chosen = [one for one in kept if one.item.section is kind]
            if kind is SectionType.SYSTEM or (kind is SectionType.HISTORY and not chosen):
                continue
            if kind not in _ORDERED_AS_FOUND:
                chosen.sort(key=lambda one: (-one.item.relevance, one.order))
            items = [one.item for one in chosen]
            if kind not in _NO_BLOCKS:
                items = [replace(item, number=number + i) for i, item in enumerate(items, start=1)]
                number += len(items)
            section = ContextSection(type=kind, title=SECTION_TITLES[kind], items=tuple(items))
            sections.append(replace(section, token_count=self._counter.count(self._assembler.written(section))))
        return sections


def _judge(one: _Considered, verdict: Verdict, notes: list[str]) -> None:
    one.fate, one.reason, one.tokens = verdict.fate, verdict.reason, verdict.tokens
    if verdict.note:
        one.reason = Reason.FELL_BACK
        notes.append(verdict.note)


def _system_section(request: ContextRequest) -> ContextSection | None:
    if not request.system_prompt:
        return None
    item = ContextItem(
        block_id="system",
        block_type="system",
        content=make_visible(request.system_prompt).text,
        relevance=1.0,
        section=SectionType.SYSTEM,
        reasons=("given by the caller",),
    )
    return ContextSection(type=SectionType.SYSTEM, title=SECTION_TITLES[SectionType.SYSTEM], items=(item,))


def _entry(one: _Considered, numbers: Mapping[str, int]) -> LedgerEntry:
    written = one.fate in (Fate.KEPT, Fate.TRIMMED)
    return LedgerEntry(
        id=one.item.block_id,
        fate=one.fate,
        reason=one.reason,
        relevance=one.collected,
        score=one.item.relevance,
        tokens=one.tokens,
        number=(numbers.get(one.item.block_id) or None) if written else None,
        into=one.into,
        collector=f"{one.item.section.value}: {', '.join(one.item.reasons)}",
        signals=one.item.signals,
    )
