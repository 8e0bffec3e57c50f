"""How a candidate is cut so that what is left of it fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from satchel.models.candidate import Candidate, CandidateKind, Trim

if TYPE_CHECKING:
    from satchel.tokens.counter import TokenCounter

# Wrappers can cost a few tokens more around a shorter text; after this many tries it is not going to fit.
_MAX_TRIES = 6


class Trimmed(NamedTuple):
    """A candidate with the text that is left of it, the receipt, and what the caller should know about the cut."""

    candidate: Candidate
    trim: Trim
    note: str = ""


Cost = Callable[[Candidate, Trim], int]
"""The tokens of a trimmed candidate once it is written."""

Trimmer = Callable[[Candidate, int, Cost], Trimmed | None]
"""Cuts a candidate so that it costs at most so many tokens; None if too little would be left."""


def keep_beginning(counter: TokenCounter, min_content_length: int) -> Trimmer:
    """A trimmer that keeps whole lines from the beginning of a chunk."""

    def trim(candidate: Candidate, room: int, cost: Cost) -> Trimmed | None:
        # An entity is cut to its length already; half a summary helps nobody.
        if candidate.kind is CandidateKind.ENTITY:
            return None
        allowance = room
        for _ in range(_MAX_TRIES):
            if allowance <= 0:
                return None
            text = _whole_lines(counter.prefix(candidate.text, allowance), candidate.text)
            if len(text) < min_content_length or len(text) >= len(candidate.text):
                return None
            trimmed = _cut(candidate, text)
            over = cost(trimmed.candidate, trimmed.trim) - room
            if over <= 0:
                return trimmed
            # The text may have ended well before the allowance, at a line; taking off from that would change nothing.
            allowance = min(allowance, counter.count(text)) - over
        return None

    return trim


def _whole_lines(text: str, full: str) -> str:
    """The text up to its last whole line that says something, unless that would throw most of it away."""
    if not full.startswith(text + "\n"):
        newline = text.rfind("\n")
        text = text[:newline] if newline > len(text) // 2 else text
    blank = text.find("\n", len(text.rstrip()))
    return text if blank < 0 else text[:blank]


def _cut(item: Candidate, text: str) -> Trimmed:
    missing = item.text[len(text) :]
    missing_lines = missing.removeprefix("\n").rstrip("\n").count("\n") + 1
    last_line = item.last_line
    if item.whole_lines and item.first_line is not None:
        last_line = item.first_line + text.count("\n")
    shorter = item._replace(text=text, last_line=last_line)
    return Trimmed(shorter, Trim(item.id, missing_lines, len(missing)))
