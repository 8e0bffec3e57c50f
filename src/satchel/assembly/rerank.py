"""Reranking: hits are scored again, and every signal that had a say is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import RerankerMissing
from satchel.models.options import RerankingStrategy
from satchel.text.words import distinct_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.chunk import Candidate
    from satchel.ports.cross_encoder import CrossEncoder


_STOP_WORDS: Final = frozenset(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my"
    " no not of on or our should so than that the their them then there these they this to was we were what when"
    " where which who why will with would you your".split()
)


def keyword_signals(items: Sequence[Candidate], query: str) -> dict[int, float]:
    """For each item, the share of the query's keywords that its text, path or name holds (0..1)."""
    keywords = distinct_words(query)
    keywords = (keywords - _STOP_WORDS) or keywords
    if not keywords:
        return {item.place: 0.0 for item in items}
    return {
        item.place: len(keywords & distinct_words(f"{item.text}\n{item.summary}\n{item.path}\n{item.name}"))
        / len(keywords)
        for item in items
    }


FADES_OVER = timedelta(days=30)

# What is known to be neither old nor new stands in the middle.
UNDATED = 0.5


def recency_signals(items: Sequence[Candidate], now: datetime | None) -> tuple[dict[int, float], datetime | None]:
    """For each item 1 if changed at the moment of reference, falling to 0 over 30 days; and that moment.

    Without `now`, the newest hit is the reference: the same hits then give the same bytes on any day.
    """
    dates = {item.place: _aware(item.modified) for item in items if item.modified is not None}
    reference = _aware(now) if now is not None else max(dates.values(), default=None)
    signals = dict.fromkeys((item.place for item in items), UNDATED)
    if reference is not None:
        for index, modified in dates.items():
            signals[index] = min(1.0, max(0.0, 1 - (reference - modified) / FADES_OVER))
    return signals, reference


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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
    bags = [distinct_words(item.text or item.summary) for item in items]
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


# A hit in which every keyword of the query stands closes this share of its distance to 1. A boost can only
# lift, so hits that the retriever found for other reasons keep their place among themselves.
KEYWORD_BOOST = 0.3

# Freshness decides between hits of like relevance; it does not lift an irrelevant one over a relevant one.
RECENCY_SHARE = 0.3

# Which signals a hit's score was made of, by the hit's index.
Signals = dict[int, dict[str, float]]


class Ranking(NamedTuple):
    """A score from 0 to 1 for each item's index, the signals behind it, and what the caller should know."""

    scores: dict[int, float]
    signals: Signals
    note: str | None = None


def rerank(
    items: Sequence[Candidate],
    strategy: RerankingStrategy,
    *,
    query: str | None,
    now: datetime | None,
    cross_encoder: CrossEncoder | None,
) -> Ranking:
    """Score the items again by the strategy; without what it needs, by relevance, saying so."""
    scores = {item.place: item.relevance for item in items}
    match strategy:
        case RerankingStrategy.KEYWORD_BOOST if query:
            found = keyword_signals(items, query)
            boosted = {i: s + (1 - s) * KEYWORD_BOOST * found[i] for i, s in scores.items()}
            return Ranking(boosted, {i: {"keywords": share} for i, share in found.items()})
        case RerankingStrategy.DIVERSITY:
            diverse = diversity_scores(items)
            return Ranking(diverse, {i: {"diversity": score} for i, score in diverse.items()})
        case RerankingStrategy.RECENCY:
            fresh, reference = recency_signals(items, now)
            mixed = {i: (1 - RECENCY_SHARE) * s + RECENCY_SHARE * fresh[i] for i, s in scores.items()}
            note = f"recency is measured from {reference.isoformat()}" if reference else "no hit has a date"
            return Ranking(mixed, {i: {"recency": value} for i, value in fresh.items()}, note)
        case RerankingStrategy.CROSS_ENCODER:
            return _by_cross_encoder(items, query, cross_encoder, scores)
    return Ranking(scores, {})


def _by_cross_encoder(
    items: Sequence[Candidate], query: str | None, cross_encoder: CrossEncoder | None, scores: dict[int, float]
) -> Ranking:
    if cross_encoder is None:
        raise RerankerMissing(RerankingStrategy.CROSS_ENCODER)
    if not query:
        return Ranking(scores, {}, "reranking by a cross-encoder needs a query; hits keep their relevance")
    judged = cross_encoder.score(query, [item.text or item.summary for item in items])
    new = {item.place: min(1.0, max(0.0, float(s))) for item, s in zip(items, judged, strict=True)}
    return Ranking(new, {i: {"cross_encoder": score} for i, score in new.items()})
