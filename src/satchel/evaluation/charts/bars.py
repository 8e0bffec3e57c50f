"""Bars: how many are how large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from satchel.evaluation.charts.axes import Axis, placed, step_for
from satchel.evaluation.charts.drawing import Box, Size, grid, nothing, picture, shown, width_of

_LEFT, _RIGHT, _TOP, _BOTTOM, _MARK_ROW = 62, 24, 44, 52, 17
_LONG_TAIL: Final = 8
_MOST_BINS, _FEWEST_BINS = 24, 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, from a value to another."""

    start: float
    end: float
    value: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A value on the axis that has a name."""

    name: str
    value: float


def bar_chart(
    title: str, x: Axis, y: Axis, bars: Sequence[Bar], *, marks: Sequence[Mark] = (), size: Size | None = None
) -> str:
    """A picture of bars side by side, with some values marked by lines."""
    size = size or Size()
    known = [one for one in bars if x.holds(one.start) and x.holds(one.end) and y.holds(one.value)]
    named = [one for one in marks if x.holds(one.value)]
    box = Box(left=_LEFT, right=size.width - _RIGHT, top=_TOP + _MARK_ROW * len(named), bottom=size.height - _BOTTOM)
    ends = [end for one in known for end in (one.start, one.end)]
    across = placed(x, [*ends, *(one.value for one in named)], box.left, box.right)
    up = placed(y, [0, *(one.value for one in known)], box.bottom, box.top)
    parts = grid(box, across, up, upright=False)
    told = []
    for one in known:
        left, right, top = across.at(one.start), across.at(one.end), up.at(one.value)
        said = f"{x.tell(one.start)} to {x.tell(one.end)}: {y.tell(one.value)}"
        told.append(said)
        parts.append(
            f'<rect class="c0" x="{left + 0.5:g}" y="{top:g}" width="{max(right - left - 1, 1):g}"'
            f' height="{max(box.bottom - top, 0):g}"'
            f' fill="currentColor" opacity="0.6"><title>{shown(said)}</title></rect>'
        )
    for row, mark in enumerate(named):
        at, said = across.at(mark.value), f"{mark.name}: {x.tell(mark.value)}"
        told.append(said)
        parts += _mark(box, at, _TOP + _MARK_ROW * row + 8, said)
    return picture(title, "; ".join(told), size, parts if known else [*parts, *nothing(box)])


def histogram(
    title: str, x_title: str, values: Sequence[float], *, marks: Sequence[Mark] = (), size: Size | None = None
) -> str:
    """How many of the values are how large; by powers where a few are much larger than the rest."""
    known = sorted(one for one in values if math.isfinite(one))
    bent = bool(known) and known[0] > 0 and known[-1] > _LONG_TAIL * known[len(known) // 2]
    edges = _bent_edges(known) if bent else _edges(known)
    bars = [
        Bar(low, high, sum(low <= one < high or (one == high == edges[-1]) for one in known))
        for low, high in pairwise(edges)
    ]
    alone = edges if len(edges) == 2 else ()  # one bar has room at its sides
    x = Axis(
        f"{x_title}, logarithmic" if bent else x_title,
        logarithmic=bent,
        low=2 * alone[0] - alone[1] if alone else None,
        high=2 * alone[1] - alone[0] if alone else None,
    )
    most = max((one.value for one in bars), default=1)
    y = Axis("questions", low=0, ticks=tuple(range(int(most) + 1)) if most <= 5 else None, high=most)
    return bar_chart(title, x, y, bars, marks=marks, size=size)


def _edges(known: Sequence[float]) -> list[float]:
    if not known:
        return []
    if known[0] == known[-1]:
        middle, half = known[0], abs(known[0]) / _FEWEST_BINS or 0.5
        return [middle - half, middle + half]
    span = known[-1] - known[0]
    step = step_for(span, min(_MOST_BINS, max(_FEWEST_BINS, math.ceil(2 * math.sqrt(len(known))))))
    first, last = math.floor(known[0] / step), math.floor(known[-1] / step) + 1
    return [round(i * step, 12) for i in range(first, last + 1)]


def _bent_edges(known: Sequence[float]) -> list[float]:
    """Eight to a power of ten: from one to the next is a third more."""
    first, last = math.floor(8 * math.log10(known[0])), math.floor(8 * math.log10(known[-1])) + 1
    return [10 ** (i / 8) for i in range(first, last + 1)]


def _mark(box: Box, at: float, top: float, said: str) -> list[str]:
    after = at + 6 + width_of(said, 12) < box.right
    x, anchor = (at + 6, "start") if after else (at - 6, "end")
    return [
        f'<line class="axis" x1="{at:g}" x2="{at:g}" y1="{top - 10:g}" y2="{box.bottom}" stroke-dasharray="4 3"/>',
        f'<text class="small" x="{x:g}" y="{top:g}" text-anchor="{anchor}">{shown(said)}</text>',
    ]
