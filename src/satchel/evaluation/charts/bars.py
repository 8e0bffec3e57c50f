"""Bar charts: a histogram of values, and a reliability chart of relevance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from satchel.evaluation.charts.drawing import FULL, Axis, Box, Drawing, Size, escaped, placed, short, step_for, width_of
from satchel.evaluation.estimates import Bin

# Largest value over the median: above this ratio, equal bins would put most values into the first bars.
_LONG_TAIL_RATIO: Final = 8
# Between: narrower bars cannot be distinguished on a small chart, fewer hide the shape of the distribution.
_MAX_BINS, _MIN_BINS = 24, 6
# Up to this count every whole number gets a tick; round steps would give fractions of a question.
_MAX_COUNTS_WITH_OWN_TICK: Final = 5
# Layout in pixels: a line of small text per mark below the title; the strip of counts and the gap above the strip.
_MARK_ROW, _MARKS_TOP = 17, 44
_STRIP, _BETWEEN = 54, 22
# Radius in pixels: the smallest point stays visible, the largest does not hide the next bin.
_SMALL_MARK, _LARGE_MARK = 3.5, 9.0


class Mark(NamedTuple):
    """A named value on the axis."""

    name: str
    value: float


def histogram(
    title: str, x_title: str, values: Sequence[float], *, marks: Sequence[Mark] = (), size: Size = FULL
) -> str:
    """Histogram of the values as SVG; lines mark the named values.

    The axis is logarithmic if a few values are much larger than the rest.
    """
    known = sorted(filter(math.isfinite, values))
    logarithmic = bool(known) and known[0] > 0 and known[-1] > _LONG_TAIL_RATIO * known[len(known) // 2]
    edges = _logarithmic_edges(known) if logarithmic else _edges(known)
    counts = [
        sum(low <= value < high or value == high == edges[-1] for value in known) for low, high in pairwise(edges)
    ]
    x, y = _axes(f"{x_title}, logarithmic" if logarithmic else x_title, edges, counts, logarithmic=logarithmic)
    marks = [mark for mark in marks if x.holds(mark.value)]
    box = Box(left=62, right=size.width - 24, top=_MARKS_TOP + _MARK_ROW * len(marks), bottom=size.height - 52)
    across = placed(x, [*edges, *(mark.value for mark in marks)], box.left, box.right)
    up = placed(y, [0, *counts], box.bottom, box.top)
    picture = Drawing(title, size)
    picture.grid(box, across, up, upright=False)
    for (low, high), count in zip(pairwise(edges), counts, strict=True):
        left, right, top = across.at(low), across.at(high), up.at(count)
        fact = f"{x.label(low)} to {x.label(high)}: {y.label(count)}"
        picture.facts.append(fact)
        picture.parts.append(
            f'<rect class="c0" x="{left + 0.5:g}" y="{top:g}" width="{max(right - left - 1, 1):g}"'
            f' height="{max(box.bottom - top, 0):g}"'
            f' fill="currentColor" opacity="0.6"><title>{escaped(fact)}</title></rect>'
        )
    for row, mark in enumerate(marks):
        picture.facts.append(f"{mark.name}: {x.label(mark.value)}")
        _draw_mark(picture, box, across.at(mark.value), _MARKS_TOP + _MARK_ROW * row + 8, picture.facts[-1])
    return picture.svg(empty=None if known else box)


def _axes(title: str, edges: Sequence[float], counts: Sequence[int], *, logarithmic: bool) -> tuple[Axis, Axis]:
    low = high = None
    if len(edges) == 2:  # one bar has room at its sides
        low, high = 2 * edges[0] - edges[1], 2 * edges[1] - edges[0]
    most = max(counts, default=1)
    ticks = tuple(range(most + 1)) if most <= _MAX_COUNTS_WITH_OWN_TICK else None
    return Axis(title, logarithmic=logarithmic, low=low, high=high), Axis("questions", low=0, ticks=ticks, high=most)


def _edges(known: Sequence[float]) -> list[float]:
    if not known:
        return []
    if known[0] == known[-1]:
        middle, half = known[0], abs(known[0]) / _MIN_BINS or 0.5
        return [middle - half, middle + half]
    span = known[-1] - known[0]
    step = step_for(span, min(_MAX_BINS, max(_MIN_BINS, math.ceil(2 * math.sqrt(len(known))))))
    first, last = math.floor(known[0] / step), math.floor(known[-1] / step) + 1
    return [round(i * step, 12) for i in range(first, last + 1)]


def _logarithmic_edges(known: Sequence[float]) -> list[float]:
    """Bin edges, eight per power of ten: each edge is a third larger than the edge before."""
    first, last = math.floor(8 * math.log10(known[0])), math.floor(8 * math.log10(known[-1])) + 1
    return [10 ** (i / 8) for i in range(first, last + 1)]


def _draw_mark(picture: Drawing, box: Box, at: float, top: float, text: str) -> None:
    place = f'x1="{at:g}" x2="{at:g}" y1="{top - 10:g}" y2="{box.bottom}"'
    picture.parts.append(f'<line class="axis" {place} stroke-dasharray="4 3"/>')
    has_room = at + 6 + width_of(text, 12) < box.right
    picture.small_text(at + 6 if has_room else at - 6, top, escaped(text), "start" if has_room else "end")


def reliability_chart(bins: Sequence[Bin], *, size: Size = FULL) -> str:
    """Reliability chart: share of right hits by stated relevance, above hit counts; the diagonal is ideal."""
    bottom = size.height - 52
    strip = Box(left=74, right=size.width - 24, top=bottom - _STRIP, bottom=bottom)
    box = Box(left=strip.left, right=strip.right, top=48, bottom=strip.top - _BETWEEN)
    x = placed(Axis("stated relevance", low=0, high=1, percent=True), (), box.left, box.right)
    y = placed(Axis("share of relevant hits", low=0, high=1, percent=True), (), box.bottom, box.top)
    picture = Drawing("Stated relevance and share of relevant hits", size)
    picture.grid(strip, x, placed(Axis("", ticks=()), (), 0, 1), upright=False)
    picture.grid(box, x, y, below=False)
    diagonal = f'x1="{box.left}" y1="{box.bottom}" x2="{box.right}" y2="{box.top}"'
    picture.parts.append(f'<line class="axis" {diagonal} stroke-dasharray="4 4"/>')
    most = max((group.hits for group in bins), default=1)
    for group in bins:
        fact = f"stated {group.stated * 100:.3g} %, relevant {group.right * 100:.3g} % of {group.hits:,} hits"
        picture.facts.append(fact)
        at, left, right = x.at(group.stated), x.at(group.low), x.at(group.high)
        top = strip.bottom - round((_STRIP - 14) * group.hits / most, 1)
        radius = _SMALL_MARK + (_LARGE_MARK - _SMALL_MARK) * math.sqrt(group.hits / most)
        hover = f"<title>{escaped(fact)}</title>"
        picture.parts += [
            f'<line class="c1" x1="{at:g}" x2="{at:g}" y1="{y.at(group.stated):g}" y2="{y.at(group.right):g}"'
            ' stroke="currentColor" stroke-width="2" opacity="0.7"/>',
            f'<circle class="c0 halo" cx="{at:g}" cy="{y.at(group.right):g}" r="{radius:.1f}" fill="currentColor">'
            f"{hover}</circle>",
            f'<rect class="c5" x="{left + 1:g}" y="{top:g}" width="{right - left - 2:g}"'
            f' height="{strip.bottom - top:g}" fill="currentColor" opacity="0.5">{hover}</rect>',
        ]
        picture.small_text((left + right) / 2, top - 3, short(group.hits))
    picture.small_text(box.left - 8, strip.bottom - 4, "hits", "end")
    return picture.svg(empty=None if bins else box)
