"""Foreign scores as relevances from 0 to 1, by a rule chosen by the caller."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from satchel.errors import InvalidHit

if TYPE_CHECKING:
    from collections.abc import Sequence

# The retriever selected the hit and gave no evidence against it.
UNSCORED = 1.0


class ScoreKind(StrEnum):
    """Meaning of a score: a relevance in 0..1, a cosine in -1..1, a distance (0 is best), or only an order."""

    RELEVANCE = "relevance"
    COSINE = "cosine"
    DISTANCE = "distance"
    RANK = "rank"


def relevances(scores: Sequence[float | None], kind: ScoreKind) -> list[float]:
    """A relevance for each score, in the given order (best first, for `RANK`)."""
    if kind is ScoreKind.RANK:
        # From 1 down to 0.5, so that the default threshold lets every hit through.
        return [1 - i / (2 * max(len(scores) - 1, 1)) for i in range(len(scores))]
    return [UNSCORED if score is None else _relevance(i, _finite(i, score), kind) for i, score in enumerate(scores)]


def _finite(index: int, score: float) -> float:
    try:
        return float(score)
    except (OverflowError, TypeError, ValueError):
        raise InvalidHit(f"hits[{index}].score", score, "must be a number") from None


def _relevance(index: int, score: float, kind: ScoreKind) -> float:
    if kind is ScoreKind.DISTANCE:
        if not score >= 0 or math.isinf(score):
            raise InvalidHit(f"hits[{index}].score", score, "a distance must be 0 or more")
        return 1 / (1 + score)
    if kind is ScoreKind.COSINE:
        # Rounding takes the cosine of a text with itself a little past 1.
        if not -1.001 <= score <= 1.001:
            raise InvalidHit(f"hits[{index}].score", score, "a cosine must be from -1 to 1")
        return min(1.0, max(0.0, (1 + score) / 2))
    if not 0 <= score <= 1:
        raise InvalidHit(
            f"hits[{index}].score",
            score,
            "is not a relevance from 0 to 1; set scores='cosine', 'distance', or 'rank' (any other, e.g. BM25)",
        )
    return score
