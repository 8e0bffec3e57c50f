"""Chooses the most valuable set of candidates within the budget (knapsack).

The objective is submodular. Two greedy solutions are made, by value and by value per token; local search then improves
the better solution by removing or forcing in a candidate and filling up again, while the value rises.
`tests/assembly/test_knapsack.py` measures the result against the exact optimum on small cases.

The best-scored candidate that fits at all is always in the set: a sum of uncalibrated scores would otherwise trade the
best candidate for several cheap ones (docs/decisions/0012).
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from satchel.text.words import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Coverage:
    """The value of a set of candidates: the sum of their scores, with shared lines and sentences counted once.

    A candidate spreads its score over its lines and sentences by their length. A set is worth, for every line or
    sentence, the most that any of its candidates gives for that unit. The value is monotone and submodular: more is
    never worth less, and the gain of a candidate only shrinks as the set grows. Without repetitions the value is the
    sum of scores.
    """

    def __init__(self, scores: Sequence[float], texts: Sequence[str]) -> None:
        unit_sets = list(map(units, texts))
        times = Counter(chain.from_iterable(unit_sets))
        self._alone: list[float] = []
        self._shared: list[dict[str, float]] = []
        for score, text_units in zip(scores, unit_sets, strict=True):
            worth = score / (sum(map(len, text_units)) or 1)
            shared = {unit: len(unit) * worth for unit in sorted(text_units) if times[unit] > 1}
            self._shared.append(shared)
            self._alone.append(score - sum(shared.values()))
        self.overlaps = any(self._shared)

    def value(self, chosen: Iterable[int]) -> float:
        """The value of the set."""
        covered: dict[str, float] = {}
        return sum(self.gain(covered, i, take=True) for i in chosen)

    def gain(self, covered: dict[str, float], i: int, *, take: bool = False) -> float:
        """The value that candidate `i` adds to the covered units; `take` also marks the units of `i` as covered."""
        gained, cover = self._alone[i], covered if take else {}
        for unit, worth in self._shared[i].items():
            had = covered.get(unit, 0.0)
            if worth > had:
                gained += worth - had
                cover[unit] = worth
        return gained


# Sets tried by local search: bounds the time for very many candidates; fewer trials miss improvements.
_MAX_TRIALS = 64

# Smaller gains are rounding errors of the float sum, on which local search could go round in circles.
_MIN_IMPROVEMENT = 1e-9

# A candidate that adds less than this share of its score mostly repeats the set, and waits for the second pass.
# Higher: more variety; lower: more repetition while new text is left out.
_MIN_NEW_SHARE = 0.5


class Offer(NamedTuple):
    """A candidate for the knapsack: score, cost in rendered tokens, and the text by which repetition is detected."""

    score: float
    cost: int
    text: str


def pack_by_value(candidates: Sequence[Offer], capacity: int, limit: int) -> list[int]:
    """The positions of the chosen candidates, ascending; at most `limit`, together at most `capacity` tokens."""
    affordable = [i for i, candidate in enumerate(candidates) if candidate.cost <= capacity]
    if len(affordable) <= limit and sum(candidates[i].cost for i in affordable) <= max(capacity, 0):
        return affordable
    packer = _Packer([candidates[i] for i in affordable], capacity, limit)
    return sorted(affordable[i] for i in packer.best())


class _Packer:
    def __init__(self, candidates: Sequence[Offer], capacity: int, limit: int) -> None:
        self._costs = [max(candidate.cost, 1) for candidate in candidates]
        self._scores = [candidate.score for candidate in candidates]
        self._capacity = capacity
        self._limit = limit
        self._coverage = Coverage(self._scores, [candidate.text for candidate in candidates])
        everyone = range(len(candidates))
        self._by_score = sorted(everyone, key=lambda i: (-self._scores[i], i))
        self._by_ratio = sorted(everyone, key=lambda i: (-self._scores[i] / self._costs[i], i))
        self._anchor = self._by_score[0]

    def best(self) -> list[int]:
        starts = (self._fill([self._anchor], self._by_score), self._fill([self._anchor], self._by_ratio))
        chosen = max(starts, key=self._coverage.value)
        worth = self._coverage.value(chosen)
        trials = _MAX_TRIALS
        improved = True
        while improved and trials > 0:
            improved = False
            for trial in islice(self._neighbours(chosen), trials):
                trials -= 1
                value = self._coverage.value(trial)
                if value > worth + _MIN_IMPROVEMENT:
                    chosen, worth, improved = trial, value, True
                    break
        return chosen

    def _neighbours(self, chosen: list[int]) -> Iterator[list[int]]:
        """Neighbours of the chosen set for local search: a candidate removed or forced in, then filled up."""
        inside = set(chosen)
        worst_first = [i for i in reversed(self._by_ratio) if i in inside and i != self._anchor]
        for i in worst_first:
            remaining = [k for k in chosen if k != i]
            yield self._fill(remaining, self._by_ratio, without=i)
            yield self._fill(remaining, self._by_score, without=i)
        for j in [j for j in self._by_score if j not in inside][: _MAX_TRIALS // 4]:
            yield self._fill(self._forced(worst_first, j), self._by_ratio)

    def _forced(self, worst_first: list[int], j: int) -> list[int]:
        """The anchor, `j`, and the candidates of the set with the best score per token while there is room."""
        chosen = [self._anchor]
        room = self._capacity - self._costs[self._anchor]
        for i in [j, *reversed(worst_first)]:
            if self._costs[i] <= room and len(chosen) < self._limit:
                chosen.append(i)
                room -= self._costs[i]
        return chosen

    def _fill(self, start: list[int], order: list[int], without: int = -1) -> list[int]:
        """The start set filled up in the given order; candidates that mostly repeat the set come in a second pass."""
        chosen = list(start)
        covered: dict[str, float] = {}
        for i in chosen:
            self._coverage.gain(covered, i, take=True)
        room = self._capacity - sum(self._costs[i] for i in chosen)
        taken = {*chosen, without}
        least = min(self._costs)
        for novelty in (_MIN_NEW_SHARE, 0.0) if self._coverage.overlaps else (0.0,):
            for i in order:
                if len(chosen) >= self._limit or room < least:
                    return chosen
                if self._costs[i] > room or i in taken:
                    continue
                if novelty and self._coverage.gain(covered, i) < novelty * self._scores[i]:
                    continue
                chosen.append(i)
                taken.add(i)
                room -= self._costs[i]
                self._coverage.gain(covered, i, take=True)
        return chosen
