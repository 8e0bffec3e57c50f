"""A model that reads a question and a text together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class CrossEncoder(Protocol):
    """Scores how well texts answer a query."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One relevance from 0 to 1 for each text, in the order given."""
