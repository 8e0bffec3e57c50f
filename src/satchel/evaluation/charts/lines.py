"""Line charts with points and confidence bands; colour, shape, dash and a label at the end identify each series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, NamedTuple

from satchel.evaluation.charts.drawing import FULL, Axis, Box, Drawing, Scale, Size, escaped, fitting, placed, width_of

COLOURS: Final = 6
"""c0 to c5 in chart.css: contrast with the background of at least 3, and a CIELAB distance of at least 25 between two
colours, also with each of the three kinds of colour blindness."""
# Pixels between the baselines of two series names: closer lines of text would overlap.
LABEL_GAP: Final = 18.0
# Margins in pixels: room for the tick labels, the title, the axis title, and the right edge of a single series.
_LEFT, _TOP, _BOTTOM, _ALONE_RIGHT = 74, 48, 52, 24
# From the plot to the name: room for the leader line and the mark between them.
_NAME_OFFSET_PX: Final = 28
# Share of the picture: wider names are cut, so that the plot keeps most of the width.
_MAX_NAMES_WIDTH_SHARE: Final = 0.36
# Segments per fitted curve: more make the SVG larger, fewer make the corners visible.
_CURVE_STEPS: Final = 40
_BEYOND: Final = "5 5"
_DASHES: Final = ("", "7 4", "2 3", "9 3 2 3")
# Around 0,0; each about as heavy as a circle of radius 4.5.
_SHAPES: Final = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.8L5.8 0L0 5.8L-5.8 0Z",
    "M0-5.4L5.2 4H-5.2Z",
    "M0 5.4L5.2-4H-5.2Z",
)


@dataclass(frozen=True, slots=True)
class Series:
    """Measured points under a common name.

    `bands` has the lower and the upper bound of each point. Lines join the points, unless a fitted `line` is set;
    the fitted line is dashed beyond the last point.
    """

    name: str
    points: Sequence[tuple[float, float]]
    _: KW_ONLY
    bands: Sequence[tuple[float, float]] | None = None
    emphasised: bool = False
    line: Callable[[float], float] | None = None
    dashed: bool = False


class Look(NamedTuple):
    """Colour, shape, dash, width and opacity of a series."""

    colour: int
    shape: int
    dash: str
    width: float
    opacity: float

    def mark(self, x: float, y: float, title: str = "") -> str:
        """SVG of a point; the (already escaped) title appears under the mouse pointer."""
        hover = f"<title>{title}</title>" if title else ""
        return (
            f'<path class="c{self.colour} halo" d="{_SHAPES[self.shape]}" transform="translate({x:g} {y:g})"'
            f' fill="currentColor" opacity="{self.opacity:g}">{hover}</path>'
        )

    def path(self, points: Sequence[tuple[float, float]], dash: str) -> str:
        """SVG path of a line through pixel positions."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        return (
            f'<polyline class="c{self.colour}" points="{_way(points)}" fill="none" stroke="currentColor"'
            f' stroke-width="{self.width:g}" opacity="{self.opacity:g}"{dashes}/>'
        )


class _Point(NamedTuple):
    x: float
    y: float
    low: float
    high: float


class _Plot(NamedTuple):
    """A series with scales and the points that fit on the scales."""

    series: Series
    points: list[_Point]
    look: Look
    x: Scale
    y: Scale

    def places(self) -> list[tuple[float, float]]:
        return [(self.x.at(point.x), self.y.at(point.y)) for point in self.points]

    def numbers(self, point: _Point) -> str:
        """The numbers of a point as text."""
        label = self.y.axis.label
        bounds = "" if self.series.bands is None else f" ({label(point.low)} to {label(point.high)})"
        return f"{self.x.axis.label(point.x)} → {label(point.y)}{bounds}"


def line_chart(title: str, x: Axis, y: Axis, series: Sequence[Series], *, size: Size = FULL) -> str:
    """Line chart as SVG; with several series, each line ends in the name of the series."""
    known = [(each, points) for each in series if (points := _points(each, x, y))]
    box = _box(size, [each.name for each, _ in known])
    size = Size(width=size.width, height=int(max(size.height, box.bottom + _BOTTOM)))
    points = [point for _, some in known for point in some]
    across = placed(x, [point.x for point in points], box.left, box.right)
    up = placed(y, [value for point in points for value in point[1:]], box.bottom, box.top)
    styles = looks([each.emphasised for each, _ in known], [each.dashed for each, _ in known])
    plots = [_Plot(each, some, look, across, up) for (each, some), look in zip(known, styles, strict=True)]
    picture = Drawing(title, size)
    picture.grid(box, across, up)
    for plot in sorted(plots, key=lambda plot: plot.series.emphasised):
        picture.parts += [*_bounds(plot), *_line(plot), *_marks(plot)]
    picture.parts += _names(plots, box, size) if len(plots) > 1 else []
    picture.facts += [f"{plot.series.name}: {', '.join(map(plot.numbers, plot.points))}" for plot in plots]
    return picture.svg(empty=None if plots else box)


def _points(series: Series, x: Axis, y: Axis) -> list[_Point]:
    bands = series.bands if series.bands is not None else [(b, b) for _, b in series.points]
    return [
        _Point(a, b, *((low, high) if y.holds(low) and y.holds(high) else (b, b)))
        for (a, b), (low, high) in zip(series.points, bands, strict=True)
        if x.holds(a) and y.holds(b)
    ]


def _box(size: Size, names: Sequence[str]) -> Box:
    widest = max(map(width_of, names), default=0)
    right = min(_NAME_OFFSET_PX + widest + 8, size.width * _MAX_NAMES_WIDTH_SHARE) if len(names) > 1 else _ALONE_RIGHT
    bottom = max(size.height - _BOTTOM, _TOP + LABEL_GAP * (len(names) - 1))
    return Box(left=_LEFT, right=round(size.width - right), top=_TOP, bottom=bottom)


def _way(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


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
    edge = [(point.x, point.high) for point in plot.points] + [(point.x, point.low) for point in plot.points[::-1]]
    way = _way([(x.at(a), y.at(b)) for a, b in edge])
    return [f'<polygon class="{colour}" points="{way}" fill="currentColor" opacity="{0.16 * plot.look.opacity:.2g}"/>']


def _line(plot: _Plot) -> list[str]:
    line = plot.series.line
    if line is None:
        return [plot.look.path(plot.places(), plot.look.dash)] if len(plot.points) > 1 else []
    first, last = min(point.x for point in plot.points), max(point.x for point in plot.points)
    parts = []
    for low, high, dash in ((first, last, plot.look.dash), (last, plot.x.high, _BEYOND)):
        fitted = [(a, line(a)) for a in plot.x.between(low, high, _CURVE_STEPS)] if low < high else []
        way = [(plot.x.at(a), plot.y.at(b)) for a, b in fitted if plot.y.low <= b <= plot.y.high]
        parts += [plot.look.path(way, dash)] if len(way) > 1 else []
    return parts


def _marks(plot: _Plot) -> list[str]:
    return [
        plot.look.mark(*place, title=escaped(f"{plot.series.name}: {plot.numbers(point)}"))
        for place, point in zip(plot.places(), plot.points, strict=True)
    ]


def _names(plots: Sequence[_Plot], box: Box, size: Size) -> list[str]:
    """SVG of the series names beside the last points; names never overlap."""
    ends = [_end(plot) for plot in plots]
    parts = []
    for plot, (x, y), at in zip(plots, ends, spread([y for _, y in ends], box.top, box.bottom), strict=True):
        bold = ' class="strong"' if plot.series.emphasised else ""
        name = fitting(plot.series.name, size.width - box.right - _NAME_OFFSET_PX - 4)
        if abs(at - y) > 1 or x < box.right:
            parts.append(
                f'<path class="c{plot.look.colour}" d="M{x:g} {y:g}L{box.right + 9:g} {at:g}" stroke="currentColor"'
                ' fill="none" stroke-width="1" stroke-dasharray="1 2" opacity="0.8"/>'
            )
        parts.append(plot.look.mark(box.right + 17, at))
        parts.append(f'<text{bold} x="{box.right + _NAME_OFFSET_PX:g}" y="{at + 4:g}">{name}</text>')
    return parts


def _end(plot: _Plot) -> tuple[float, float]:
    """Pixel position of the end of a line."""
    if plot.series.line is None:
        return max(plot.places())
    return plot.x.end, plot.y.at(min(max(plot.series.line(plot.x.high), plot.y.low), plot.y.high))


def looks(emphasised: Sequence[bool], dashed: Sequence[bool]) -> list[Look]:
    """Look of each series; an emphasised series alone has the first colour, and all remaining series are fainter."""
    one_stands_out = any(emphasised) and not all(emphasised)
    free = range(1, COLOURS) if one_stands_out else range(COLOURS)
    width, opacity = (1.5, 0.8) if one_stands_out else (2, 0.9)
    styles, count = [], 0
    for strong, broken in zip(emphasised, dashed, strict=True):
        if one_stands_out and strong:
            styles.append(Look(colour=0, shape=0, dash=_DASHES[broken], width=3, opacity=1))
            continue
        turn, place = divmod(count, len(free))
        shape, dash = (place + turn + one_stands_out) % len(_SHAPES), _DASHES[(turn + broken) % len(_DASHES)]
        styles.append(Look(colour=free[place], shape=shape, dash=dash, width=width, opacity=opacity))
        count += 1
    return styles


def spread(wishes: Sequence[float], low: float, high: float) -> list[float]:
    """Label positions in order, as near as possible to the wishes and at least `LABEL_GAP` apart.

    Without enough room, labels go beyond `high`.
    """
    order = sorted(range(len(wishes)), key=lambda i: (wishes[i], i))
    # With the gaps taken out, labels may stand in one place: those that would pass each other share their mean.
    pools: list[tuple[float, int]] = []
    for place, i in enumerate(order):
        mean, count = wishes[i] - place * LABEL_GAP, 1
        while pools and pools[-1][0] > mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    most = max(low, high - (len(wishes) - 1) * LABEL_GAP)
    flat = [min(max(mean, low), most) for mean, count in pools for _ in range(count)]
    places = [0.0] * len(wishes)
    for place, i in enumerate(order):
        places[i] = round(flat[place] + place * LABEL_GAP, 1)
    return places
