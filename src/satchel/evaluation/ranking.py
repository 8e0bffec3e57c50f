"""How good an order is: NDCG, recall, the first right hit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from satchel.evaluation.answers import Shown
from satchel.evaluation.dataset import Expected
from satchel.evaluation.judging import matches

DEPTH: Final = 10
RECALLED_AT: Final = (1, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Figures of one question's hits."""

    ndcg: float
    recall: dict[int, float]
    reciprocal_rank: float


def rank(hits: Sequence[Shown], expected: Sequence[Expected]) -> Ranking:
    """Every expected thing counts once, at the first hit that matches it; recall counts distinct files."""
    files = _by_file(hits)
    places = [_first([[hit] for hit in hits], one) for one in expected]
    by_file = [_first(files, one) for one in expected]
    found = [place for place in places if place is not None]
    return Ranking(
        ndcg=ndcg(found, len(expected)),
        recall={k: sum(at is not None and at <= k for at in by_file) / len(expected) for k in RECALLED_AT},
        reciprocal_rank=1 / min(found) if found else 0.0,
    )


def ndcg(places: Sequence[int], wanted: int, depth: int = DEPTH) -> float:
    """The gain of right hits at these places (from 1), as a share of the best there is.

    Things that one hit holds together count as one.
    """
    gain = sum(_discount(place) for place in set(places) if place <= depth)
    apart = wanted - (len(places) - len(set(places)))
    return gain / sum(_discount(place) for place in range(1, min(depth, apart) + 1))


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


def _first(hits: Sequence[Sequence[Shown]], one: Expected) -> int | None:
    return next((place for place, some in enumerate(hits, 1) if any(matches(hit, one) for hit in some)), None)


def _by_file(hits: Sequence[Shown]) -> list[list[Shown]]:
    """The hits of each file and page together at the place of its first, so that recall@5 is of five files."""
    together: dict[tuple[str, int | None], list[Shown]] = {}
    for hit in hits:
        together.setdefault((hit.path or hit.text, hit.page), []).append(hit)
    return list(together.values())
