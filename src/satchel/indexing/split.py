"""Cutting a text into pieces at the best borders: the lines of a piece belong together.

Every reader says where a cut would be natural, and how natural: level 0 is a border between top-level things, higher
levels lie deeper inside. A piece grows to the most natural border that keeps it within its size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from satchel.models.outline import WHOLE_FILE, OutlineBlock, OutlinePiece

MOST_CHARS: Final = 1400
"""A piece longer than this is cut, if there is a line to cut at."""

_LEAST_CHARS: Final = 350
"""A piece shorter than this is not closed for the sake of a slightly better border."""


def line_starts(text: str) -> list[int]:
    """Where each line starts, and one past the end."""
    starts = [0]
    position = text.find("\n")
    while position >= 0:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def cut(
    text: str, starts: Sequence[int], borders: Mapping[int, int], blocks: Sequence[OutlineBlock]
) -> tuple[OutlinePiece, ...]:
    """The pieces of a text; `borders` maps lines (from 0) before which a cut is natural to its level."""
    places = _Places(blocks)
    pieces = []
    for run in _runs(starts, borders):
        first, after = _without_blank_ends(run, text, starts)
        if first < after:
            end = starts[after]
            if text[end - 1] == "\n":
                end -= 1
            block, defines = places.of(first + 1, after)
            pieces.append(OutlinePiece(first + 1, after, starts[first], end, block, defines))
    return tuple(pieces)


def _without_blank_ends(run: tuple[int, int], text: str, starts: Sequence[int]) -> tuple[int, int]:
    first, after = run
    while first < after and not text[starts[first] : starts[first + 1]].strip():
        first += 1
    while after > first and not text[starts[after - 1] : starts[after]].strip():
        after -= 1
    return first, after


def _runs(starts: Sequence[int], borders: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    last = len(starts) - 1
    rows = sorted(row for row in borders if 0 < row < last)
    first = 0
    while first < last:
        after = _end_of_run(first, last, starts, rows, borders)
        yield first, after
        first = after


def _end_of_run(first: int, last: int, starts: Sequence[int], rows: Sequence[int], borders: Mapping[int, int]) -> int:
    limit = last
    if starts[last] - starts[first] > MOST_CHARS:
        limit = max(bisect_right(starts, starts[first] + MOST_CHARS) - 1, first + 1)
    window = rows[bisect_right(rows, first) : bisect_right(rows, limit)]
    # The rest of something that was cut ends where that ends: it is not joined with what follows.
    level = borders.get(first, 0)
    outside = next((row for row in window if borders[row] // 2 < level // 2), None)
    if outside is not None:
        return outside
    if limit == last or not window:
        return limit
    long_enough = [row for row in window if starts[row] - starts[first] >= _LEAST_CHARS]
    # Of equally natural borders the last one: fewer pieces.
    return min(long_enough or window, key=lambda row: (borders[row], -row))


class _Places:
    """Which blocks a run of lines lies in, and which begin in it."""

    def __init__(self, blocks: Sequence[OutlineBlock]) -> None:
        self._blocks = blocks
        self._order = sorted(range(len(blocks)), key=lambda i: (blocks[i].first_line, -blocks[i].last_line))
        self._first = [blocks[i].first_line for i in self._order]

    def of(self, first: int, last: int) -> tuple[int, tuple[int, ...]]:
        begin = bisect_right(self._first, first - 1)
        end = bisect_right(self._first, last)
        defines = tuple(self._order[begin:end])
        inner = WHOLE_FILE
        # The nearest block before or at the first line that reaches to the last one, or one of its parents.
        candidate = self._order[end - 1] if end else WHOLE_FILE
        if begin and not defines:
            candidate = self._order[begin - 1]
        while candidate != WHOLE_FILE:
            block = self._blocks[candidate]
            if block.first_line <= first and block.last_line >= last:
                inner = candidate
                break
            candidate = block.parent
        outermost = [i for i in defines if self._blocks[i].parent not in defines]
        if len(outermost) == 1 and self._blocks[outermost[0]].parent == inner:
            # One definition and what stands around it: it is the subject.
            inner = outermost[0]
        return inner, defines
