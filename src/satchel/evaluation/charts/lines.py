"""Lines with points, what is between their bounds, and their names."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from satchel.evaluation.charts.axes import Axis, Scale, placed
from satchel.evaluation.charts.drawing import Box, Size, fitting, grid, nothing, picture, shown, width_of
from satchel.evaluation.charts.marks import LABEL_GAP, Look, looks, spread

_LEFT, _TOP, _BOTTOM, _ALONE_RIGHT = 74, 48, 52, 24
_NAME_AFTER: Final = 28
_MOST_FOR_NAMES: Final = 0.36
_STEPS: Final = 40
_BEYOND: Final = "5 5"


@dataclass(frozen=True, slots=True)
class Series:
    """What was measured under one name.

    `bands` has the lower and the upper bound of each point. Points are joined, unless a fitted `line` is drawn through
    them, which is dashed beyond the last.
    """

    name: str
    points: Sequence[tuple[float, float]]
    _: KW_ONLY
    bands: Sequence[tuple[float, float]] | None = None
    emphasised: bool = False
    line: Callable[[float], float] | None = None
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class _Point:
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Plot:
    """One series with its points that can be drawn, and its scales."""

    series: Series
    points: list[_Point]
    look: Look
    x: Scale
    y: Scale

    def places(self) -> list[tuple[float, float]]:
        return [(self.x.at(one.x), self.y.at(one.y)) for one in self.points]


def line_chart(title: str, x: Axis, y: Axis, series: Sequence[Series], *, size: Size | None = None) -> str:
    """A picture of some series; where there are several, each ends in its name."""
    size = size or Size()
    known = [(one, found) for one in series if (found := _points(one, x, y))]
    box = _box(size, [one.name for one, _ in known])
    size = Size(width=size.width, height=int(max(size.height, box.bottom + _BOTTOM)))
    points = [point for _, found in known for point in found]
    across = placed(x, [one.x for one in points], box.left, box.right)
    up = placed(y, [bound for one in points for bound in (one.low, one.y, one.high)], box.bottom, box.top)
    styles = looks([one.emphasised for one, _ in known], [one.dashed for one, _ in known])
    plots = [_Plot(one, found, look, across, up) for (one, found), look in zip(known, styles, strict=True)]
    parts = grid(box, across, up)
    for plot in sorted(plots, key=lambda one: one.series.emphasised):
        parts += [*_bounds(plot), *_line(plot), *_marks(plot)]
    parts += _names(plots, box, size) if len(plots) > 1 else []
    return picture(title, _told(plots), size, parts if plots else [*parts, *nothing(box)])


def _points(one: Series, x: Axis, y: Axis) -> list[_Point]:
    bands = one.bands if one.bands is not None else [(b, b) for _, b in one.points]
    return [
        _Point(a, b, *((low, high) if y.holds(low) and y.holds(high) else (b, b)))
        for (a, b), (low, high) in zip(one.points, bands, strict=True)
        if x.holds(a) and y.holds(b)
    ]


def _box(size: Size, names: Sequence[str]) -> Box:
    widest = max((width_of(name) for name in names), default=0)
    right = min(_NAME_AFTER + widest + 8, size.width * _MOST_FOR_NAMES) if len(names) > 1 else _ALONE_RIGHT
    bottom = max(size.height - _BOTTOM, _TOP + LABEL_GAP * (len(names) - 1))
    return Box(left=_LEFT, right=round(size.width - right), top=_TOP, bottom=bottom)


def _bounds(plot: _Plot) -> list[str]:
    if plot.series.bands is None:
        return []
    colour, x, y = f"c{plot.look.colour}", plot.x, plot.y
    if len(plot.points) == 1:
        point = plot.points[0]
        at, low, high = x.at(point.x), y.at(point.low), y.at(point.high)
        return [
            f'<path class="{colour}" d="M{at:g} {low:g}V{high:g}M{at - 4:g} {low:g}h8m-8 {high - low:g}h8"'
            f' stroke="currentColor" fill="none" stroke-width="1.5" opacity="{plot.look.opacity:g}"/>'
        ]
    edge = [(one.x, one.high) for one in plot.points] + [(one.x, one.low) for one in reversed(plot.points)]
    way = " ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in edge)
    return [f'<polygon class="{colour}" points="{way}" fill="currentColor" opacity="{0.16 * plot.look.opacity:.2g}"/>']


def _line(plot: _Plot) -> list[str]:
    line = plot.series.line
    if line is None:
        return [plot.look.path(plot.places())] if len(plot.points) > 1 else []
    first, last = min(one.x for one in plot.points), max(one.x for one in plot.points)
    parts = []
    for low, high, dash in ((first, last, None), (last, plot.x.high, _BEYOND)):
        found = [(a, line(a)) for a in plot.x.between(low, high, _STEPS)] if low < high else []
        way = [(plot.x.at(a), plot.y.at(b)) for a, b in found if plot.y.low <= b <= plot.y.high]
        parts += [plot.look.path(way, dash=dash)] if len(way) > 1 else []
    return parts


def _marks(plot: _Plot) -> list[str]:
    return [
        plot.look.mark(*place, title=shown(f"{plot.series.name}: {_tell(plot, one)}"))
        for place, one in zip(plot.places(), plot.points, strict=True)
    ]


def _names(plots: Sequence[_Plot], box: Box, size: Size) -> list[str]:
    """Beside the last points, and never on top of each other."""
    ends = [_end(plot) for plot in plots]
    parts = []
    for plot, (x, y), at in zip(plots, ends, spread([y for _, y in ends], box.top, box.bottom), strict=True):
        bold = ' class="strong"' if plot.series.emphasised else ""
        name = html.escape(fitting(plot.series.name, size.width - box.right - _NAME_AFTER - 4))
        if abs(at - y) > 1 or x < box.right:
            parts.append(
                f'<path class="c{plot.look.colour}" d="M{x:g} {y:g}L{box.right + 9:g} {at:g}" stroke="currentColor"'
                ' fill="none" stroke-width="1" stroke-dasharray="1 2" opacity="0.8"/>'
            )
        parts.append(plot.look.mark(box.right + 17, at))
        parts.append(f'<text{bold} x="{box.right + _NAME_AFTER:g}" y="{at + 4:g}">{name}</text>')
    return parts


def _end(plot: _Plot) -> tuple[float, float]:
    """Where a line stops."""
    if plot.series.line is None:
        return max(plot.places())
    return plot.x.end, plot.y.at(min(max(plot.series.line(plot.x.high), plot.y.low), plot.y.high))


def _tell(plot: _Plot, one: _Point) -> str:
    told = f"{plot.x.axis.tell(one.x)} → {plot.y.axis.tell(one.y)}"
    if plot.series.bands is None:
        return told
    return f"{told} ({plot.y.axis.tell(one.low)} to {plot.y.axis.tell(one.high)})"


def _told(plots: Sequence[_Plot]) -> str:
    return "; ".join(f"{plot.series.name}: " + ", ".join(_tell(plot, one) for one in plot.points) for plot in plots)
