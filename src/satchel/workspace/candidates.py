"""Between collecting and writing: what is still readable, where it stands, what is said twice, what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from satchel.models.block import PAGE_TYPES
from satchel.models.ledger import Fate, Reason
from satchel.models.payload import (
    ContextItem,
    ItemMetadata,
    SectionType,
)
from satchel.ports.store import Step, steps_from
from satchel.text.visible import make_visible_lines
from satchel.workspace.collectors import Sight
from satchel.workspace.collectors.activity import actors_of
from satchel.workspace.signals import RECENCY_DAYS, CompositeRelevanceScorer, affinities

if TYPE_CHECKING:
    from satchel.models.context_config import ContextConfig
    from satchel.models.request import ContextRequest


_DEEDS_LOOKED_AT: Final = 300
_SAME_TEXT_CHARS: Final = 40
"""Shorter texts (`Notes`, `Done`) repeat without being repetitions."""

_ANY_NUMBER: Final = 88
"""Numbers are given at the end; until then one of two digits stands for them all."""

_EVIDENCE: Final = 0.05
"""What a search has to find for something whose place alone says little for it."""

_LEFT_OUT: Final = frozenset({Reason.EXCLUDED, Reason.BELOW_RELEVANCE, Reason.UNRELATED, Reason.EMPTY})

NO_BLOCKS: Final = frozenset({SectionType.HISTORY, SectionType.SYSTEM})
"""Sections of what is no block."""


@dataclass(slots=True)
class Findings:
    """What the collectors brought."""

    items: list[ContextItem] = field(default_factory=list)
    below: list[ContextItem] = field(default_factory=list)
    stood_back: list[ContextItem] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cached: bool = False


@dataclass(slots=True)
class Considered:
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


def gate(
    request: ContextRequest, sight: Sight, found: Findings
) -> tuple[list[Considered], Mapping[str, Sequence[Step]], int]:
    """The last look at the world: who is still readable, and where it stands."""
    focused = [block.id for block in (sight.focus, *sight.pages) if block is not None]
    everything = (*found.items, *found.below, *found.stood_back)
    collected = [id_ for item in everything if item.section not in NO_BLOCKS for id_ in (item.block_id, *item.holds)]
    ids = list(dict.fromkeys((*focused, *collected)))
    with sight.store.snapshot():
        trails = sight.store.trails(ids, sight.filters)
    considered: list[Considered] = []
    excluded = frozenset(request.hints.exclude_blocks)
    made_visible = 0
    below = {id(item) for item in found.below}
    back = {id(item) for item in found.stood_back}
    for item in everything:
        if item.section not in NO_BLOCKS and not trails.keys() >= {item.block_id, *item.holds}:
            continue
        content, changes = make_visible_lines(item.content)
        made_visible += changes
        placed = _placed(item, trails.get(item.block_id, ()))
        shown = replace(
            item,
            content=content,
            whole=None if item.whole is None else make_visible_lines(item.whole).text,
            metadata=placed,
            number=_ANY_NUMBER * (item.section not in NO_BLOCKS),
        )
        evidence = item.relevance if item.section is SectionType.SEMANTIC else 0.0
        one = Considered(shown, len(considered), item.relevance, evidence=evidence)
        if item.block_id in excluded:
            one.reason = Reason.EXCLUDED
        elif id(item) in below:
            one.reason = Reason.BELOW_RELEVANCE
        elif id(item) in back:
            one.reason = Reason.EMPTY
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


def merge(considered: Sequence[Considered], pinned: set[str]) -> None:
    """One entry for each block, with everything that was said for it, and none for a text that is there already."""
    by_block: dict[tuple[bool, str], Considered] = {}
    for one in considered:
        place = (one.item.section in NO_BLOCKS, one.item.block_id)
        if one.reason is Reason.EXCLUDED or (one.reason is Reason.EMPTY and place not in by_block):
            continue
        first = by_block.setdefault(place, one)
        if first is not one:
            _join(first, one)
    by_text: dict[str, Considered] = {}
    for one in sorted(by_block.values(), key=lambda one: (-one.collected, one.order)):
        text = " ".join(one.item.content.split())
        if len(text) < _SAME_TEXT_CHARS or one.item.section in NO_BLOCKS or one.item.block_id in pinned:
            continue
        same = by_text.setdefault(text, one)
        if same is not one:
            one.fate, one.reason, one.into = Fate.MERGED, Reason.DUPLICATE, same.item.block_id


def _join(first: Considered, other: Considered) -> None:
    """Put what was said for the same block together: the higher relevance, the fuller text, all the reasons."""
    mine, theirs = first.item, other.item
    # What a search found of a block that is here anyhow adds a reason, not a text.
    is_fuller = theirs.section is not SectionType.SEMANTIC and len(theirs.content) > len(mine.content)
    fuller = theirs if is_fuller or not mine.content else mine
    dates = [item.metadata.last_modified for item in (mine, theirs) if item.metadata.last_modified]
    first.item = replace(
        mine,
        content=fuller.content,
        whole=fuller.whole,
        trim=fuller.trim,
        language=fuller.language,
        holds=fuller.holds,
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


def sift(considered: Sequence[Considered], pinned: set[str]) -> list[Considered]:
    """Those that may be shown; of the others it is said why not."""
    for one in considered:
        if one.fate is Fate.MERGED or one.reason in (Reason.EXCLUDED, Reason.BELOW_RELEVANCE, Reason.EMPTY):
            continue
        if not one.item.content.strip():
            one.reason = Reason.EMPTY
        elif one.item.weak and one.evidence < _EVIDENCE and one.item.block_id not in pinned:
            one.reason = Reason.UNRELATED
    return [one for one in considered if one.fate is not Fate.MERGED and one.reason not in _LEFT_OUT]


def rank(
    request: ContextRequest,
    sight: Sight,
    config: ContextConfig,
    alive: Sequence[Considered],
    trails: Mapping[str, Sequence[Step]],
) -> None:
    """Give each the score of its five signals."""
    focus = sight.focus or next(iter(sight.pages), None)
    items = [one.item for one in alive if one.item.section not in NO_BLOCKS]
    since = sight.now - timedelta(days=RECENCY_DAYS)
    deeds = [
        deed
        for actor in actors_of(request, sight)
        for deed in sight.store.recent(sight.filters, actor=actor, since=since, limit=_DEEDS_LOOKED_AT)
    ]
    scorer = CompositeRelevanceScorer(
        config.ranking.weights,
        distances=None if focus is None else steps_from(focus.id, trails),
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


def pinned_by(request: ContextRequest, sight: Sight) -> set[str]:
    """The blocks that come before all others: what is focused, and what the caller named."""
    focused = {block.id for block in (sight.focus, *sight.pages) if block is not None}
    return focused | set(request.hints.include_blocks)
