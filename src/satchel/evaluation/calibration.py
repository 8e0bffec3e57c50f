"""Whether a relevance of 0.8 is right in eight of ten cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BINS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Hits of about the same relevance."""

    low: float
    high: float
    hits: int
    said: float
    """Their mean relevance."""
    right: float
    """The share of them that is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far what is said is from what is right."""

    hits: int
    brier: float
    """The mean square of the difference; 0 is perfect, 0.25 is what one gets by always saying one half."""
    error: float
    """The mean distance between said and right over the bins, weighed by their hits (ECE)."""
    bins: tuple[Bin, ...]


def calibrate(judged: Sequence[tuple[float, bool]]) -> Calibration | None:
    """The calibration of hits, each as its relevance and whether it was right; None where there are none."""
    if not judged:
        return None
    judged = [(min(max(said, 0.0), 1.0), right) for said, right in judged]
    bins = tuple(found for i in range(BINS) if (found := _bin(judged, i)))
    return Calibration(
        hits=len(judged),
        brier=sum((said - right) ** 2 for said, right in judged) / len(judged),
        error=sum(one.hits * abs(one.said - one.right) for one in bins) / len(judged),
        bins=bins,
    )


def _bin(judged: Sequence[tuple[float, bool]], number: int) -> Bin | None:
    inside = [(said, right) for said, right in judged if min(int(said * BINS), BINS - 1) == number]
    if not inside:
        return None
    return Bin(
        low=number / BINS,
        high=(number + 1) / BINS,
        hits=len(inside),
        said=sum(said for said, _ in inside) / len(inside),
        right=sum(right for _, right in inside) / len(inside),
    )
