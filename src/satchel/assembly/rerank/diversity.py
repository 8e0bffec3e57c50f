"""Maximal marginal relevance: a hit is worth what it adds to those chosen before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.text.units import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.candidate import Candidate

# Carbonell and Goldstein's lambda: relevance weighs more than novelty, so an off-topic hit does not win by
# being different.
RELEVANCE_WEIGHT = 0.7


# Each choice is compared with every hit that is left, so the time grows with the square. What a context could hold is
# among the most relevant few hundred; the rest keep their order behind them.
POOL = 200


def diversity_scores(items: Sequence[Candidate]) -> dict[int, float]:
    """A score for each item, falling in the order in which the items would be chosen."""
    by_relevance = sorted(items, key=lambda item: -item.relevance)
    scores = _chosen(by_relevance[:POOL])
    floor = min(scores.values(), default=1.0)
    for item in by_relevance[POOL:]:
        scores[item.place] = floor * item.relevance
    return scores


def _chosen(items: Sequence[Candidate]) -> dict[int, float]:
    bags = [words(item.text or item.summary) for item in items]
    likeness = [0.0] * len(items)
    left = set(range(len(items)))
    scores: dict[int, float] = {}
    ceiling = 1.0
    while left:
        gain, best = max(
            (RELEVANCE_WEIGHT * items[i].relevance - (1 - RELEVANCE_WEIGHT) * likeness[i], -i) for i in left
        )
        best = -best
        left.remove(best)
        # Scores stay in 0..1 and never rise, so that the order they give is the order of choice.
        ceiling = min(ceiling, max(0.0, gain / RELEVANCE_WEIGHT))
        scores[items[best].place] = ceiling
        for i in left:
            likeness[i] = max(likeness[i], _jaccard(bags[i], bags[best]))
    return scores


def _jaccard(one: set[str], other: set[str]) -> float:
    shared = len(one & other)
    union = len(one) + len(other) - shared
    return shared / union if union else 0.0
