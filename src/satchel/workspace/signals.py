"""Relevance of an item for a user and a focus: the weighted sum of five signals from 0 to 1.

| signal | meaning |
|---|---|
| semantic | the relevance from the collector: how near to the focus, how likely an answer |
| structural | max(0, 1 - 0.1 d) for d steps through the tree from the focus; 0.5 without a focus |
| recency | max(0, 1 - age / 30 days); 0.5 without a date; with a time range, 1 inside and 0 outside |
| type_match | how well the type fits the words of the question; 1 for a type hinted by the caller |
| user_affinity | the user's activity on the block and on its page in the last 30 days |
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from satchel.models.block import PAGE_TYPES, Action, Activity, BlockType
from satchel.models.options import RankingWeights

if TYPE_CHECKING:
    from satchel.models.request import ContextRequest, User
    from satchel.models.results import ContextItem
    from satchel.ports.block_tree import Step

NEUTRAL: Final = 0.5
"""The value of a signal without any data (S4)."""

TYPE_WEIGHTS: Final[Mapping[str, tuple[str, float]]] = {
    BlockType.TODO: ("task", 0.9),
    BlockType.KANBAN_CARD: ("task", 0.9),
    BlockType.PAGE: ("summary", 0.8),
}
"""By block type: the word in a question that prefers the type, and the signal then (S4); `NEUTRAL` otherwise."""

RECENCY_DAYS: Final = 30  # S4: freshness decays over 30 days
_STEP_PENALTY: Final = 0.1  # S4: structural score lost per step from the focus
_DAY: Final = timedelta(days=1)
# An edit shows more interest than a view.
_ACTION_WEIGHTS: Final[Mapping[str, float]] = {Action.EDIT: 1.0, Action.COMMIT: 1.0, Action.VIEW: 0.5}

# Activity elsewhere on the page counts half: evidence for the page, but not for the block.
_SAME_PAGE_WEIGHT: Final = 0.5

# A preferred type counts as neutral at least, below any pinned page (1.0).
_PREFERRED_TYPE_AFFINITY: Final = 0.5


class RelevanceScorer(Protocol):
    """Scores items for a request (S4)."""

    def score(self, item: ContextItem, request: ContextRequest) -> float:
        """The score of the item, from 0 to 1."""
        ...


@dataclass(frozen=True, slots=True)
class CompositeRelevanceScorer:
    """Scores items by five weighted signals.

    `distances` are the steps through the tree from the focus (None: no focus), `affinities` the user's activity on each
    block; the caller reads both beforehand, because scoring does no I/O.
    """

    weights: RankingWeights = RankingWeights()  # noqa: RUF009 - frozen
    _: KW_ONLY
    distances: Mapping[str, int] | None = None
    affinities: Mapping[str, float] = field(default_factory=dict)
    now: datetime = field(default_factory=partial(datetime.now, UTC))

    def score(self, item: ContextItem, request: ContextRequest) -> float:
        """The weighted sum of the five signals, from 0 to 1."""
        return self.weighted(self.signals(item, request))

    def signals(self, item: ContextItem, request: ContextRequest) -> dict[str, float]:
        """The five signals by name."""
        return {
            "semantic": self.semantic_score(item),
            "structural": self.structural_score(item),
            "recency": self.recency_score(item, request),
            "type_match": self.type_match_score(item, request),
            "user_affinity": self.user_affinity_score(item),
        }

    def weighted(self, signals: Mapping[str, float]) -> float:
        """The weighted sum of the signals, clamped to 0..1."""
        total: float = sum(value * getattr(self.weights, name) for name, value in signals.items())
        return max(0.0, min(1.0, total))

    def semantic_score(self, item: ContextItem) -> float:
        """The relevance from the collector."""
        return item.relevance

    def structural_score(self, item: ContextItem) -> float:
        """Closeness to the focus: 1 minus 0.1 per step through the tree."""
        if self.distances is None:
            return NEUTRAL
        distance = self.tree_distance(item.block_id)
        return 0.0 if distance is None else max(0.0, 1 - _STEP_PENALTY * distance)

    def recency_score(self, item: ContextItem, request: ContextRequest) -> float:
        """Freshness of the last change; with a time range, 1 inside the range and 0 outside."""
        changed = item.metadata.last_modified
        if changed is None:
            return NEUTRAL
        if request.hints.time_range is not None:
            return float(request.hints.time_range.holds(changed))
        age = self.now - (changed if changed.tzinfo else changed.replace(tzinfo=UTC))
        return min(1.0, max(0.0, 1 - age / (RECENCY_DAYS * _DAY)))

    def type_match_score(self, item: ContextItem, request: ContextRequest) -> float:
        """Fit of the block type with the hints and the words of the question."""
        if item.block_type in request.hints.prioritize_types:
            return 1.0
        word, weight = TYPE_WEIGHTS.get(item.block_type, ("", NEUTRAL))
        return weight if word and word in request.query.casefold() else NEUTRAL

    def user_affinity_score(self, item: ContextItem) -> float:
        """Activity of the user on the block and its page."""
        return self.affinities.get(item.block_id, 0.0)

    def tree_distance(self, block_id: str) -> int | None:
        """The steps from the focus, or None if no readable path connects the block."""
        return None if self.distances is None else self.distances.get(block_id)


def affinities(
    user: User,
    items: Iterable[ContextItem],
    activities: Sequence[Activity],
    trails: Mapping[str, Sequence[Step]],
    now: datetime,
) -> dict[str, float]:
    """Affinity of a user to each item: 1 - e^-(activity); recent activity counts more, activity on the page half."""
    of_block: dict[str, float] = defaultdict(float)
    of_page: dict[str, float] = defaultdict(float)
    for activity in activities:
        age = (now - activity.timestamp) / _DAY
        worth = _ACTION_WEIGHTS.get(activity.action, 0.0) * min(1.0, max(0.0, 1 - age / RECENCY_DAYS))
        of_block[activity.block] += worth
        of_page[page_of(trails.get(activity.block, ())) or ""] += worth
    values: dict[str, float] = {}
    for item in items:
        trail = trails.get(item.block_id, ())
        if any(step.id in user.pinned for step in trail):
            values[item.block_id] = 1.0
            continue
        block_activity = of_block[item.block_id]
        page = page_of(trail)
        page_activity = of_page[page] - block_activity if page else 0.0
        value = 1 - math.exp(-(block_activity + _SAME_PAGE_WEIGHT * max(0.0, page_activity)))
        if item.block_type in user.preferred_types:
            value = max(value, _PREFERRED_TYPE_AFFINITY)
        if value:
            values[item.block_id] = value
    return values


def page_of(trail: Sequence[Step]) -> str | None:
    """The id of the page that contains a block, or of the block if the block is a page."""
    return next((step.id for step in trail if step.type in PAGE_TYPES), None)
