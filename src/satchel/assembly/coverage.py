"""What a set of hits is worth: the sum of their scores, where saying the same thing twice counts once.

A hit spreads its score over its lines and sentences by their length. A set is worth, for every line or sentence in
it, the most that one of its hits gives for it. That is monotone and submodular: more is never worth less, and what
a hit adds can only shrink as others are added. A set without repetitions is worth the sum of its scores.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from satchel.text.words import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Coverage:
    """The value of sets of hits."""

    def __init__(self, scores: Sequence[float], texts: Sequence[str]) -> None:
        everyone = [units(text) for text in texts]
        seen: Counter[str] = Counter()
        for found in everyone:
            seen.update(found)
        repeated = {unit for unit, times in seen.items() if times > 1}
        self._alone: list[float] = []
        self._shared: list[dict[str, float]] = []
        for score, found in zip(scores, everyone, strict=True):
            worth = score / (sum(map(len, found)) or 1)
            shared = {unit: len(unit) * worth for unit in sorted(found & repeated)}
            self._shared.append(shared)
            self._alone.append(score - sum(shared.values()))
        self.overlaps = any(self._shared)

    def value(self, chosen: Iterable[int]) -> float:
        """What the set is worth."""
        covered: dict[str, float] = {}
        return sum(self.add(covered, i) for i in chosen)

    def gain(self, covered: dict[str, float], i: int) -> float:
        """What hit `i` would add to what is covered."""
        gained = self._alone[i]
        for unit, worth in self._shared[i].items():
            had = covered.get(unit, 0.0)
            if worth > had:
                gained += worth - had
        return gained

    def add(self, covered: dict[str, float], i: int) -> float:
        """What hit `i` adds to what is covered, which it then is."""
        gained = self._alone[i]
        for unit, worth in self._shared[i].items():
            had = covered.get(unit, 0.0)
            if worth > had:
                gained += worth - had
                covered[unit] = worth
        return gained
