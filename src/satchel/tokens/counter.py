"""Token counters: count, compare with a limit, and cut text to a limit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from satchel.text.boundaries import boundary_at_or_after, boundary_at_or_before, next_boundary

# How far beyond the cut of the binary search to look for a longer text that still fits: merging across the cut can make
# a longer text cost less, but only within about one long word.
_STRETCH_GRAPHEMES = 12


class TokenCounter(Protocol):
    """Counts tokens by a particular method."""

    @property
    def name(self) -> str:
        """Name of the counting method."""

    @property
    def exact(self) -> bool:
        """True if the counts come from the model's own tokenizer."""

    def count(self, text: str) -> int:
        """Number of tokens in the text."""

    def count_joined(self, parts: Sequence[str], known: dict[str, int]) -> int:
        """Number of tokens in the concatenated parts.

        `known` caches the counts of a build by text: no text is counted twice.
        """

    def fits(self, text: str, limit: int) -> bool:
        """True if the text has at most `limit` tokens; stops counting once the answer is known."""

    def prefix(self, text: str, limit: int) -> str:
        """A longest prefix of the text within `limit` tokens, cut between graphemes."""

    def suffix(self, text: str, limit: int) -> str:
        """A longest suffix of the text within `limit` tokens, cut between graphemes."""


class CountingByCalls(ABC):
    """The remaining methods of a token counter, implemented by calls of `count`."""

    max_chars_per_token: int | None = None
    """Maximum characters of a token; None if unbounded."""

    @abstractmethod
    def count(self, text: str) -> int:
        """Number of tokens in the text."""

    def count_joined(self, parts: Sequence[str], known: dict[str, int]) -> int:  # noqa: ARG002 - nothing adds up
        """Number of tokens in the concatenated parts."""
        return self.count("".join(parts))

    def fits(self, text: str, limit: int) -> bool:
        """True if the text has at most `limit` tokens."""
        if self.max_chars_per_token is not None and len(text) > limit * self.max_chars_per_token:
            return False
        return self.count(text) <= limit

    def prefix(self, text: str, limit: int) -> str:
        """A longest prefix of the text within `limit` tokens, cut between graphemes."""
        if limit <= 0:
            return text if self.fits(text, limit) else ""  # white space may count for nothing
        text = text[: self._reach(text, limit)]
        if self.fits(text, limit):
            return text
        cut = _bisect(0, len(text), lambda end: self.count(text[:end]) <= limit)
        return text[: self._settle_end(text, cut, limit)]

    def suffix(self, text: str, limit: int) -> str:
        """A longest suffix of the text within `limit` tokens, cut between graphemes."""
        if limit <= 0:
            return text if self.fits(text, limit) else ""
        text = text[len(text) - self._reach(text, limit) :]
        if self.fits(text, limit):
            return text
        size = _bisect(0, len(text), lambda length: self.count(text[len(text) - length :]) <= limit)
        start = boundary_at_or_after(text, len(text) - size)
        while start < len(text) and self.count(text[start:]) > limit:
            start = next_boundary(text, start)
        return text[start:]

    def _settle_end(self, text: str, cut: int, limit: int) -> int:
        """The cut moved to a grapheme boundary: back until the text fits, then on while a longer text still fits."""
        cut = boundary_at_or_before(text, cut)
        while cut > 0 and self.count(text[:cut]) > limit:
            cut = boundary_at_or_before(text, cut - 1)
        best = cut
        for _ in range(_STRETCH_GRAPHEMES):
            if cut >= len(text):
                break
            cut = next_boundary(text, cut)
            if self.count(text[:cut]) <= limit:
                best = cut
        return best

    def _reach(self, text: str, limit: int) -> int:
        """Maximum number of characters in `limit` tokens, plus room for the grapheme at the edge."""
        if self.max_chars_per_token is None:
            return len(text)
        return min(len(text), max(limit, 0) * self.max_chars_per_token + 64)


def _bisect(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The largest fitting number, by binary search on an (almost) monotonic property; 0 if no number fits."""
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
