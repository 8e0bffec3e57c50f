"""The recipe for a workspace (S4): a request in, the sections of its context out.

Only collectors, the access check and the user's activity read the store; everything after them is reckoned from what
they brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.layout import SectionLayout, source_of
from satchel.assembly.pack import PackingRules
from satchel.assembly.pipeline import Built, Provenance, Recipe, build
from satchel.assembly.rerank import Ranking
from satchel.assembly.trim import ContentTruncator
from satchel.models.chunk import Candidate, Piece, Shortened
from satchel.models.context import BuildStatistics, ContextKind
from satchel.models.options import OverflowPolicy
from satchel.models.results import ContextItem, ContextMetadata, ContextPayload, ContextSection, SectionType
from satchel.ports.block_tree import steps_from
from satchel.workspace.admit import AdmittedBlocks, admit_blocks, is_block
from satchel.workspace.collectors import COLLECTORS
from satchel.workspace.collectors.activity import actors_of
from satchel.workspace.gather import gather
from satchel.workspace.signals import RECENCY_DAYS, CompositeRelevanceScorer, affinities
from satchel.workspace.trim import shorten_blocks

if TYPE_CHECKING:
    from satchel.assembly.trim import Trimmer
    from satchel.models.options import ContextConfig, TokenBudget, TruncationConfig
    from satchel.models.request import ContextRequest
    from satchel.ports.language_model import LanguageModel
    from satchel.tokens.counter import TokenCounter
    from satchel.workspace.collectors import CollectorContext

_ACTIVITIES_READ: Final = 300
"""The latest of a user's edits and views say what the user works on; older ones add little."""

_PATIENCE: Final = 0.5
"""Half of a section's room may go to short blocks before a better, longer one is cut into the rest."""

_NO_LIMIT: Final = 1_000_000
"""The budget alone limits how many blocks are shown."""


class Tools(NamedTuple):
    """What a build works with beside the store."""

    counter: TokenCounter
    config: ContextConfig
    executor: Executor
    language_model: LanguageModel | None = None


def build_payload(request: ContextRequest, view: CollectorContext, tools: Tools) -> ContextPayload:
    """The context for a request."""
    started = perf_counter()
    generation = view.store.generation
    gathered = gather(request, view, tools.executor)
    pinned = pinned_by(request, view)
    with view.store.snapshot():
        readable = admit_blocks(request, view, gathered, pinned)
        ranking = _rank(request, view, tools.config, readable)
    candidates, admitted = readable.admitted(pinned)
    budget, truncation = _budget(request, tools.config), tools.config.truncation
    truncator = ContentTruncator(tools.counter, query=request.query, language_model=tools.language_model)
    recipe = Recipe(
        kind=ContextKind.WORKSPACE,
        rank=lambda _: ranking,
        layouts=[section_layout(request, tools.config, tools.counter)],
        rules=section_rules(budget, truncation, shorten_blocks(truncator, truncation), pinned),
        provenance_of=_provenance,
        shorten=_with_given_trims,
    )
    built = build(candidates, admitted, recipe)
    notes = (*gathered.notes, *filter(None, built.packed.notes.values()))
    statistics = BuildStatistics(
        build_time=timedelta(seconds=perf_counter() - started),
        characters_made_visible=sum(candidate.made_visible for candidate in candidates),
        generation=generation,
        cached=gathered.cached,
        collectors_used=tuple(gathered.used),
        collectors_failed=gathered.failed,
    )
    considered = sum(is_block(block.item) for block in readable.blocks)
    return _payload(request, view, built, statistics, tuple(dict.fromkeys(notes)), considered=considered)


def section_layout(request: ContextRequest, config: ContextConfig, counter: TokenCounter) -> SectionLayout:
    """How the sections of the request's context are written."""
    return SectionLayout(
        request.format,
        counter,
        dict(COLLECTORS.entries()),
        request.query,
        system=request.system_prompt,
        citations=config.citations,
        metadata_hints=config.metadata_hints,
    )


def pinned_by(request: ContextRequest, view: CollectorContext) -> frozenset[str]:
    """The blocks that come before all others: what is focused, and what the caller named."""
    focused = {block.id for block in (view.focus, *view.pages) if block is not None}
    return frozenset(focused | set(request.hints.include_blocks))


def _rank(request: ContextRequest, view: CollectorContext, config: ContextConfig, readable: AdmittedBlocks) -> Ranking:
    """The score of each block from its five signals."""
    focus = view.focus or next(iter(view.pages), None)
    alive = [block for block in readable.blocks if block.merged_into is None]
    items = [block.item for block in alive if is_block(block.item)]
    since = view.now - timedelta(days=RECENCY_DAYS)
    activities = [
        activity
        for actor in actors_of(request, view)
        for activity in view.store.recent(view.filters, actor=actor, since=since, limit=_ACTIVITIES_READ)
    ]
    scorer = CompositeRelevanceScorer(
        config.ranking.weights,
        distances=None if focus is None else steps_from(focus.id, readable.trails),
        affinities=affinities(request.user, items, activities, readable.trails, view.now),
        now=view.now,
    )
    signals = {block.place: scorer.signals(block.item, request) for block in alive}
    return Ranking(
        {place: scorer.weighted(values) for place, values in signals.items()},
        {place: {name: round(value, 4) for name, value in values.items()} for place, values in signals.items()},
    )


def _budget(request: ContextRequest, config: ContextConfig) -> TokenBudget:
    budget = request.token_budget or config.token_budget
    # Instructions that are written are counted with what the text takes anyhow.
    return replace(budget, system=0) if request.system_prompt else budget


def section_rules(
    budget: TokenBudget, truncation: TruncationConfig, trimmer: Trimmer, pinned: frozenset[str]
) -> PackingRules:
    """How the sections of a workspace share a budget."""
    return PackingRules(
        max_tokens=max(1, budget.total - budget.shrunk().system),
        total_tokens=budget.total,
        max_pieces=_NO_LIMIT,
        overflow=OverflowPolicy.TRUNCATE,
        reservations=reservations(budget),
        trimmer=trimmer,
        min_trimmed_tokens=truncation.min_tokens,
        patience=_PATIENCE,
        pinned=pinned,
    )


def reservations(budget: TokenBudget) -> dict[str, int]:
    """What each section is sure of: its field of the budget, or the share that its collector asks for."""
    shrunk = budget.shrunk()
    return {
        name: int(getattr(shrunk, name) if entry.share is None else entry.share * budget.total)
        for name, entry in COLLECTORS.entries()
    }


def _with_given_trims(candidates: Sequence[Candidate]) -> Shortened:
    """The blocks as they are, with the receipts of those that a collector has cut."""
    trims = {block.place: origin_of(block).trim for block in candidates}
    return Shortened(candidates, {place: trim for place, trim in trims.items() if trim})


def _provenance(block: Candidate) -> Provenance:
    item = origin_of(block)
    return Provenance(f"{item.section}: {', '.join(item.reasons)}", item.signals)


def origin_of(block: Candidate) -> ContextItem:
    """The item that a collector made of the block."""
    assert isinstance(block.origin, ContextItem)
    return block.origin


def _payload(
    request: ContextRequest,
    view: CollectorContext,
    built: Built,
    statistics: BuildStatistics,
    notes: tuple[str, ...],
    *,
    considered: int,
) -> ContextPayload:
    sections = tuple(
        ContextSection(
            type=section.name,
            title=section.title or "",
            items=tuple(_item(piece, built) for piece in section.pieces),
            token_count=0 if section.name == SectionType.SYSTEM else built.layout.section_tokens(section),
        )
        for section in built.draft.sections
    )
    blocks = [piece for piece in built.draft.pieces if piece.number]
    metadata = ContextMetadata(
        total_tokens=built.draft.tokens,
        timestamp=view.now.isoformat(),
        focus_block_id=request.focus.block_id if request.focus else None,
        focus_page_id=request.focus.page_id if request.focus else None,
        collectors_used=statistics.collectors_used,
        blocks_included=len(blocks),
        blocks_considered=considered,
    )
    return ContextPayload(
        **built.fields,
        sources=tuple(source_of(piece, piece.lead.section) for piece in blocks),
        notes=notes,
        statistics=statistics,
        originals={piece.lead.id: _whole_text(piece) for piece in sorted(built.draft.pieces, key=lambda p: p.number)},
        sections=sections,
        metadata=metadata,
        request=request,
    )


def _item(piece: Piece, built: Built) -> ContextItem:
    """The item as it was written."""
    block = piece.lead
    if not isinstance(block.origin, ContextItem):
        return ContextItem(
            block_id=block.id,
            block_type=block.type,
            content=piece.text,
            relevance=1.0,
            section=block.section,
            reasons=("given by the caller",),
        )
    item = block.origin
    cut_now = piece.trim is not None and piece.trim != item.trim
    return replace(
        item,
        content=piece.text,
        relevance=piece.relevance,
        signals=built.ranking.signals[block.place],
        number=piece.number,
        trim=piece.trim,
        whole=_whole_text(piece) if cut_now else item.whole,
    )


def _whole_text(piece: Piece) -> str:
    """The text of a block before anything was cut."""
    item = piece.lead.origin
    if not isinstance(item, ContextItem):
        return piece.text
    return item.content if item.whole is None else item.whole
