"""The third stage: hits are scored again, and every signal that had a say is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from satchel.assembly.rerank.diversity import diversity_scores
from satchel.assembly.rerank.keywords import keyword_signals
from satchel.assembly.rerank.recency import recency_signals
from satchel.errors import RerankerMissing
from satchel.models.options import RerankingStrategy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from satchel.models.candidate import Candidate
    from satchel.ports.cross_encoder import CrossEncoder

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
