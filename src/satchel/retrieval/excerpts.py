"""When room is short, a part of each of many pieces tells more than all of a few: the lines that were asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from satchel.text.terms import terms


class Excerpt(NamedTuple):
    """A run of lines of a piece: how many lines stand before it, how many it has, and its text."""

    before: int
    lines: int
    text: str


def excerpt(text: str, asked: Mapping[str, float], most_chars: int) -> Excerpt:
    """The run of lines within `most_chars` that says most of what was asked; at least one line, never part of one."""
    lines = text.split("\n")
    if len(text) <= most_chars:
        return Excerpt(0, len(lines), text)
    worth = [_worth(line, asked) for line in lines]
    best, best_value = (0, 1), -1.0
    first = size = 0
    value = 0.0
    for last, line in enumerate(lines):
        size += len(line) + 1
        value += worth[last]
        while size > most_chars and first < last:
            size -= len(lines[first]) + 1
            value -= worth[first]
            first += 1
        # A run that begins at the top shows what the piece is; it wins over an equal one further down.
        if value > best_value + 1e-9:
            best, best_value = (first, last + 1), value
    first, after = _whole(best, lines, most_chars)
    return Excerpt(first, after - first, "\n".join(lines[first:after]))


def _worth(line: str, asked: Mapping[str, float]) -> float:
    found = {term for term in terms(line) if term in asked}
    return sum(asked[term] for term in found) + 0.01 * bool(line.strip())


def _whole(run: tuple[int, int], lines: list[str], most_chars: int) -> tuple[int, int]:
    """Begin the run at a line that is indented no deeper than what follows, and let go of blank lines at its ends."""
    first, after = run
    size = sum(len(line) + 1 for line in lines[first:after])
    indent = min((_indent(line) for line in lines[first:after] if line.strip()), default=0)
    # Room that is left goes to the lines above, up to the head of what the run is in.
    while first > 0 and size + len(lines[first - 1]) + 1 <= most_chars:
        first -= 1
        size += len(lines[first]) + 1
        if lines[first].strip() and _indent(lines[first]) < indent:
            break
    while after < len(lines) and size + len(lines[after]) + 1 <= most_chars:
        size += len(lines[after]) + 1
        after += 1
    while first < after - 1 and not lines[first].strip():
        first += 1
    while after > first + 1 and not lines[after - 1].strip():
        after -= 1
    return first, after


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
