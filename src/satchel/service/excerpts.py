"""Excerpts of hits: the part of a text that answers a question."""

from __future__ import annotations

from collections.abc import Callable

from satchel.retrieval.excerpts import excerpt
from satchel.retrieval.query import understand


def excerpt_maker(question: str) -> Callable[[str, int], str]:
    """A function that cuts a text to the part of at most so many characters that answers the question best."""
    terms = understand(question).terms
    return lambda text, chars: excerpt(text, terms, chars).text
