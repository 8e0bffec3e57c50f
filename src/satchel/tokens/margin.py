"""Counts for models whose tokenizer nobody outside can run: another tokenizer's, plus a declared margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.tokens.counter import TokenCounter


class MarginCounter:
    """Counts with `inner` and adds `margin_percent`, rounded up."""

    exact = False

    def __init__(self, name: str, inner: TokenCounter, margin_percent: int) -> None:
        self.name = name
        self.inner = inner
        self.margin_percent = margin_percent

    def count(self, text: str) -> int:
        """The stand-in's count with the margin on top."""
        return self._with_margin(self.inner.count(text))

    def count_joined(self, parts: Sequence[str], known: dict[str, int]) -> int:
        """The same for the parts joined."""
        return self._with_margin(self.inner.count_joined(parts, known))

    def fits(self, text: str, limit: int) -> bool:
        """Whether the text has at most `limit` tokens with the margin."""
        return limit >= 0 and self.inner.fits(text, self._without_margin(limit))

    def prefix(self, text: str, limit: int) -> str:
        """A longest beginning within `limit` tokens with the margin."""
        return self.inner.prefix(text, self._without_margin(limit))

    def suffix(self, text: str, limit: int) -> str:
        """A longest end within `limit` tokens with the margin."""
        return self.inner.suffix(text, self._without_margin(limit))

    def _with_margin(self, count: int) -> int:
        return -(-count * (100 + self.margin_percent) // 100)

    def _without_margin(self, limit: int) -> int:
        return max(limit, 0) * 100 // (100 + self.margin_percent)
