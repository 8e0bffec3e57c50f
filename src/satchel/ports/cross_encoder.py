"""A cross-encoder: a model for the relevance of a text to a question, with both read together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class CrossEncoder(Protocol):
    """Scores how well texts answer a query."""

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A relevance from 0 to 1 for each text, in the given order."""
