"""Cuts an item's text so that what is left of it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from satchel.models.item import Trim

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.models.item import Item
    from satchel.tokens.counter import TokenCounter

# Wrappers can cost a few tokens more around a shorter text; after this many tries it is not going to fit.
_MAX_TRIES = 6


class Trimmed(NamedTuple):
    """The item with the text that is left, and the receipt."""

    item: Item
    trim: Trim


def trim_to_fit(
    item: Item, room: int, counter: TokenCounter, cost: Callable[[Item, Trim], int], min_content_length: int
) -> Trimmed | None:
    """The beginning of the item that costs at most `room` once written, or None if too little would be left."""
    allowance = room
    for _ in range(_MAX_TRIES):
        if allowance <= 0:
            return None
        text = _whole_lines(counter.prefix(item.text, allowance), item.text)
        if len(text) < min_content_length or len(text) >= len(item.text):
            return None
        trimmed = _cut(item, text)
        over = cost(trimmed.item, trimmed.trim) - room
        if over <= 0:
            return trimmed
        # The text may have ended well before the allowance, at a line; taking off from that would change nothing.
        allowance = min(allowance, counter.count(text)) - over
    return None


def _whole_lines(text: str, full: str) -> str:
    """The text up to its last whole line that says something, unless that would throw most of it away."""
    if not full.startswith(text + "\n"):
        newline = text.rfind("\n")
        text = text[:newline] if newline > len(text) // 2 else text
    blank = text.find("\n", len(text.rstrip()))
    return text if blank < 0 else text[:blank]


def _cut(item: Item, text: str) -> Trimmed:
    missing = item.text[len(text) :]
    missing_lines = missing.removeprefix("\n").rstrip("\n").count("\n") + 1
    last_line = item.last_line
    if item.whole_lines and item.first_line is not None:
        last_line = item.first_line + text.count("\n")
    shorter = item._replace(text=text, last_line=last_line)
    return Trimmed(shorter, Trim(item.id, missing_lines, len(missing)))
