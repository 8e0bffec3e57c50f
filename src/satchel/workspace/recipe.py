"""The recipe for workspace contexts (S4): build the sections of a context from a request.

Only the collectors, the access check and the query for the user's activity read the store; all later stages compute
on the collected items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import timedelta
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.layout import Layout, source_of
from satchel.assembly.pack import PackingRules, Trimmer
from satchel.assembly.pipeline import Built, Ranking, Recipe, build
from satchel.assembly.render.format import SYSTEM_SECTION, Document
from satchel.models.chunk import Candidate, Piece, Section, alone
from satchel.models.context import BuildStatistics, ContextKind
from satchel.models.options import ContextBuildOptions, OverflowPolicy, TokenBudget
from satchel.models.results import ContextItem, ContextMetadata, ContextPayload, ContextSection, SectionType
from satchel.ports.block_tree import steps_from
from satchel.text.visible import make_visible
from satchel.workspace.collectors import COLLECTORS, CollectorContext
from satchel.workspace.collectors.activity import actors_of
from satchel.workspace.collectors.semantic import DUE, MAX_DATED_TASKS, OVERDUE
from satchel.workspace.gather import AdmittedBlocks, admit_blocks, candidate_of, gather, is_block
from satchel.workspace.signals import RECENCY_DAYS, CompositeRelevanceScorer, affinities
from satchel.workspace.trim import ContentTruncator, shorten_blocks

if TYPE_CHECKING:
    from satchel.assembly.pack import Trimmer
    from satchel.models.options import ContextConfig, TokenBudget, TruncationConfig
    from satchel.models.request import ContextRequest
    from satchel.ports.language_model import LanguageModel
    from satchel.tokens.counter import TokenCounter

# Read per actor: the latest edits and views show the user's current work; older activity adds little.
_MAX_ACTIVITIES: Final = 300

# Up to half of a section's room may go to short blocks before a better, longer block is trimmed into the rest.
_PATIENCE_SHARE: Final = 0.5

# More blocks than any budget has room for: only the token budget limits a workspace context.
_UNLIMITED_PIECES: Final = 1_000_000


class BuildTools(NamedTuple):
    """Services for a build besides the store: token counter, configuration, thread pool and language model."""

    counter: TokenCounter
    config: ContextConfig
    executor: Executor
    language_model: LanguageModel | None = None


def build_payload(
    request: ContextRequest, view: CollectorContext, tools: BuildTools, notice: str = ""
) -> ContextPayload:
    """Build the context for a request: collect, admit, rank, pack and render; `notice` is the text's first line."""
    started = perf_counter()
    gathered = gather(request, view, tools.executor)
    # Focused blocks and blocks named by the caller come before all others.
    pinned = frozenset({block.id for block in view.focused} | set(request.hints.include_blocks))
    with view.store.snapshot():
        readable = admit_blocks(request, view, gathered, pinned)
        ranking = _rank(request, view, tools.config, readable)
    budget, truncation = request.token_budget or tools.config.token_budget, tools.config.truncation
    if request.system_prompt:
        budget = replace(budget, system=0)  # the prompt is rendered and counted as overhead
    truncator = ContentTruncator(tools.counter, query=request.query, language_model=tools.language_model)
    recipe = Recipe(
        kind=ContextKind.WORKSPACE,
        rank=lambda _: ranking,
        layouts=[SectionLayout(request, tools.config, tools.counter, notice)],
        rules=section_rules(budget, truncation, shorten_blocks(truncator, truncation), pinned),
    )
    built = build(readable.candidates, readable.admitted, recipe)
    statistics = BuildStatistics(
        build_time=timedelta(seconds=perf_counter() - started),
        characters_made_visible=sum(candidate.made_visible for candidate in built.candidates),
        generation=view.generation,
        cached=gathered.cached,
        collectors_used=tuple(gathered.used),
        collectors_failed=gathered.failed,
    )
    payload = _payload(request, view, built, gathered.notes, statistics)
    return replace(payload, config=tools.config, counter=tools.counter)


class SectionLayout(Layout):
    """Layout with the blocks under their section titles and the question at the end."""

    costs_add_up = True

    def __init__(self, request: ContextRequest, config: ContextConfig, counter: TokenCounter, notice: str = "") -> None:
        options = ContextBuildOptions(format=request.format, include_citations=config.citations)
        super().__init__(options, counter, metadata_hints=config.metadata_hints)
        self.separator = self.format.block_separator
        self._entries = dict(COLLECTORS.entries())
        self._query = request.query
        self._notice = notice
        self._system = [_system_section(request.system_prompt)] if request.system_prompt else []

    def arrange(self, candidates: Sequence[Candidate]) -> list[Section]:
        """The sections in the order of their collectors; the caller's instructions come first."""
        sections = list(self._system)
        numbers = count(1)
        for name, entry in self._entries.items():
            blocks = [block for block in candidates if block.section == name]
            if not blocks and not entry.always:
                continue
            blocks.sort(key=lambda block: (-block.score if entry.ranked else 0.0, block.place))
            pieces = [alone(block, next(numbers) if entry.cited else 0) for block in blocks]
            scored = tuple(piece._replace(relevance=piece.lead.score) for piece in pieces)
            sections.append(Section(entry.title, scored, name))
        return sections

    def document(self, sections: list[Section]) -> Document:
        """A document of the sections and the question."""
        return Document(sections, query=self._query, notice=self._notice)

    def cost_of(self, candidate: Candidate) -> int:
        """The token cost of the block, with a citation number only in cited sections."""
        return self.cost(alone(candidate, self.typical_number if self._entries[candidate.section].cited else 0))

    def overhead(self, candidates: Sequence[Candidate]) -> int:
        """Tokens of the titles, the instructions and the question."""
        sometimes = {block.section for block in candidates if not self._entries[block.section].always}
        empty = (Section(self._entries[name].title, (), name) for name in sorted(sometimes))
        return self.draft([]).tokens + sum(map(self.section_tokens, empty))


def _system_section(instructions: str) -> Section:
    """The caller's instructions as a section."""
    item = ContextItem(
        block_id="system",
        block_type="system",
        content=make_visible(instructions).text,
        relevance=1.0,
        section=SYSTEM_SECTION,
        reasons=("given by the caller",),
    )
    return Section("Instructions", (alone(candidate_of(item, -1), 0),), SYSTEM_SECTION)


def _rank(request: ContextRequest, view: CollectorContext, config: ContextConfig, readable: AdmittedBlocks) -> Ranking:
    """Score each block by the weighted sum of its five signals."""
    unmerged = [candidate for candidate in readable.candidates if candidate.place not in readable.admitted.merged]
    items = {candidate.place: origin_of(candidate) for candidate in unmerged}
    since = view.now - timedelta(days=RECENCY_DAYS)
    activities = [
        activity
        for actor in actors_of(request, view)
        for activity in view.store.recent(view.filters, actor=actor, since=since, limit=_MAX_ACTIVITIES)
    ]
    scorer = CompositeRelevanceScorer(
        config.ranking.weights,
        distances=steps_from(view.focused[0].id, readable.trails) if view.focused else None,
        affinities=affinities(request.user, filter(is_block, items.values()), activities, readable.trails, view.now),
        now=view.now,
    )
    signals = {place: scorer.signals(item, request) for place, item in items.items()}
    return Ranking(
        {place: scorer.weighted(values) for place, values in signals.items()},
        {place: {name: round(value, 4) for name, value in values.items()} for place, values in signals.items()},
    )


def section_rules(
    budget: TokenBudget, truncation: TruncationConfig, trimmer: Trimmer, pinned: frozenset[str]
) -> PackingRules:
    """Packing rules: the reservation of each section and the common budget."""
    shrunk = budget.shrunk()
    return PackingRules(
        max_tokens=max(1, budget.total - shrunk.system),
        total_tokens=budget.total,
        max_pieces=_UNLIMITED_PIECES,
        overflow=OverflowPolicy.TRUNCATE,
        # Each section reserves its field of the budget, or the share of its collector entry.
        reservations={
            name: int(getattr(shrunk, name) if entry.share is None else entry.share * budget.total)
            for name, entry in COLLECTORS.entries()
        },
        trimmer=trimmer,
        min_trimmed_tokens=truncation.min_tokens,
        patience=_PATIENCE_SHARE,
        pinned=pinned,
    )


def origin_of(block: Candidate) -> ContextItem:
    """The collector's item behind a candidate."""
    assert isinstance(block.origin, ContextItem)
    return block.origin


def _own_notes(built: Built) -> Iterator[str]:
    """Notes on secrets, and on tasks that are left out of a list that was asked for."""
    yield from built.common_notes()
    dated = [candidate for candidate in built.candidates if {OVERDUE, DUE} & set(origin_of(candidate).reasons)]
    shown = {candidate.place for piece in built.packed.draft.pieces for candidate in piece.candidates}
    count = sum(candidate.place in shown for candidate in dated)
    if count < len(dated):
        total = f"{len(dated)} or more" if len(dated) >= MAX_DATED_TASKS else str(len(dated))
        yield f"{count} of {total} tasks are shown, those due first; a larger budget shows more"


def _payload(
    request: ContextRequest, view: CollectorContext, built: Built, notes: list[str], statistics: BuildStatistics
) -> ContextPayload:
    sections = tuple(
        ContextSection(
            type=section.name,
            title=section.title or "",
            items=tuple(_written_item(piece, built.ranking) for piece in section.pieces),
            token_count=0 if section.name == SectionType.SYSTEM else built.layout.section_tokens(section),
        )
        for section in built.packed.draft.sections
    )
    by_number = sorted(built.packed.draft.pieces, key=lambda piece: piece.number)
    blocks = [piece for piece in built.packed.draft.pieces if piece.number]
    metadata = ContextMetadata(
        total_tokens=built.packed.draft.tokens,
        timestamp=view.now.isoformat(),
        focus_block_id=request.focus.block_id if request.focus else None,
        focus_page_id=request.focus.page_id if request.focus else None,
        collectors_used=statistics.collectors_used,
        blocks_included=len(blocks),
        blocks_considered=sum(is_block(origin_of(candidate)) for candidate in built.candidates),
    )
    return ContextPayload(
        **built.fields,
        sources=tuple(source_of(piece, piece.lead.section) for piece in blocks),
        notes=tuple(dict.fromkeys((*notes, *filter(None, built.packed.notes.values()), *_own_notes(built)))),
        statistics=statistics,
        originals={piece.lead.id: _whole_text(origin_of(piece.lead)) for piece in by_number},
        sections=sections,
        metadata=metadata,
        request=request,
    )


def _written_item(piece: Piece, ranking: Ranking) -> ContextItem:
    """The item as rendered, with final relevance, signals and citation number."""
    signals = ranking.signals.get(piece.lead.place, {})
    return replace(shown_item(piece.lead), relevance=piece.relevance, signals=signals, number=piece.number)


def shown_item(block: Candidate) -> ContextItem:
    """The item with the text that is left after trimming."""
    item = origin_of(block)
    if block.trim is None or block.trim == item.trim:
        return item
    return replace(item, content=block.text, whole=_whole_text(item), trim=block.trim, elided=block.elided)


def _whole_text(item: ContextItem) -> str:
    """The text of a block before trimming."""
    return item.content if item.whole is None else item.whole
