"""Shared parts of all charts: axes, scales, the grid, escaped text, and the SVG document."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from satchel.text.visible import make_visible_line

# Round multiples of a power of ten: labels stay short.
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
# Ticks per axis, roughly: more labels collide on a small chart, fewer make values hard to read off.
_TARGET_TICKS: Final = 5
# Below this many decades, powers of ten alone are too few ticks; multiples by 2 and 5 are added.
_MIN_DECADES_FOR_POWERS: Final = 1.5
# Share of the axis left free at an open end: no point is drawn on the frame.
_PAD_SHARE: Final = 0.05
# For ratios and exponents: above the rounding error of a float64 (about 1e-16), far below a pixel.
_TOLERANCE: Final = 1e-9
# Em per character: a generous estimate for sans-serif fonts, because text that is too wide would be clipped.
_LETTER_EM: Final = 0.62
# Em per East Asian wide character: these fill a square of one em.
_WIDE_LETTER_EM: Final = 1.05


@dataclass(frozen=True, slots=True)
class Axis:
    """Quantity on an axis; the axis spans at least `low` to `high`, and extends to include all values."""

    title: str
    _: KW_ONLY
    logarithmic: bool = False
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float] | None = None
    percent: bool = False

    def label(self, value: float) -> str:
        """Tick label of a value, in few digits."""
        return f"{value * 100:.3g} %" if self.percent else short(value)

    def holds(self, value: float) -> bool:
        """True if the value has a place on an axis of this kind."""
        return math.isfinite(value) and (value > 0 or not self.logarithmic)

    def position(self, value: float) -> float:
        """Position of a value on the axis: the value, or the logarithm on a logarithmic axis."""
        return math.log10(value) if self.logarithmic else value

    def value(self, position: float) -> float:
        """The value at a position; the inverse of `position`."""
        return 10**position if self.logarithmic else position


class Scale(NamedTuple):
    """An axis with pixel positions on a picture."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Pixel position of a value."""
        low, high, position = map(self.axis.position, (self.low, self.high, value))
        return round(self.start + (position - low) / (high - low) * (self.end - self.start), 1)

    def between(self, first: float, last: float, count: int) -> list[float]:
        """Values at equal distances on the axis, from `first` to `last`."""
        low, high = self.axis.position(first), self.axis.position(last)
        return [self.axis.value(low + (high - low) * i / count) for i in range(count + 1)]


def placed(axis: Axis, values: Iterable[float], start: float, end: float) -> Scale:
    """Scale of the axis, wide enough for all values and ticks."""
    limits = (limit for limit in (axis.low, axis.high) if limit is not None)
    known = list(filter(axis.holds, (*values, *limits, *(axis.ticks or ()))))
    low, high = _widened(axis, min(known, default=1.0), max(known, default=1.0))
    if axis.ticks is None:
        ticks = _powers(low, high) if axis.logarithmic else _multiples(low, high)
        return Scale(axis, ticks[0], ticks[-1], start, end, tuple(ticks))
    # A little more room at the ends that are not given.
    first, last = axis.position(low), axis.position(high)
    room = (last - first) * _PAD_SHARE
    low = axis.value(first - (room if axis.low is None else 0))
    high = axis.value(last + (room if axis.high is None else 0))
    return Scale(axis, low, high, start, end, tuple(filter(axis.holds, axis.ticks)))


def short(value: float) -> str:
    """The number with three significant digits."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def step_for(span: float, about: int) -> float:
    """Round step width that divides a span into about `about` parts."""
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - _TOLERANCE))


def _widened(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """Ends of the axis, moved apart if both are (almost) the same value."""
    if high - low > abs(high) * _TOLERANCE:
        return low, high
    if axis.logarithmic:
        return low / 2, high * 2
    return (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)


def _powers(low: float, high: float) -> list[float]:
    """Ticks at powers of ten around the values; also at 2 and 5 times these powers if the powers are few."""
    first, last = math.floor(math.log10(low) + _TOLERANCE), math.ceil(math.log10(high) - _TOLERANCE)
    if math.log10(high / low) >= _MIN_DECADES_FOR_POWERS:
        return [10.0**i for i in range(first, last + 1)]
    ticks = [step * 10.0**i for i in range(first, last + 1) for step in _STEPS[:3]]
    start = max(i for i, tick in enumerate(ticks) if tick <= low * (1 + _TOLERANCE))
    end = min(i for i, tick in enumerate(ticks) if tick >= high * (1 - _TOLERANCE))
    return ticks[start : end + 1]


def _multiples(low: float, high: float) -> list[float]:
    step = step_for(high - low, _TARGET_TICKS)
    first, last = math.floor(low / step + _TOLERANCE), math.ceil(high / step - _TOLERANCE)
    return [round(i * step, 12) for i in range(first, last + 1)]


class Size(NamedTuple):
    """Width and height of a picture in pixels."""

    width: int = 760
    height: int = 420


FULL: Final = Size()


class Box(NamedTuple):
    """The part of a picture inside the axes."""

    left: float
    right: float
    top: float
    bottom: float


@cache
def _style() -> str:
    """The rules of chart.css on one line, for the style element of every picture."""
    return files(__package__).joinpath("chart.css").read_text("utf-8").replace("\n", "")


def escaped(text: str) -> str:
    """Text escaped for SVG and HTML; hidden characters become visible."""
    return html.escape(make_visible_line(text).text)


def width_of(text: str, size: float = 13) -> float:
    """Estimated width of a text in pixels; the estimate is generous."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (_LETTER_EM * (len(text) - wide) + _WIDE_LETTER_EM * wide)


def fitting(text: str, room: float, size: float = 13) -> str:
    """Escaped text, cut to the given width."""
    text = make_visible_line(text).text
    if width_of(text, size) > room:
        while text and width_of(f"{text}…", size) > room:
            text = text[:-1]
        text = f"{text.rstrip()}…"
    return html.escape(text)


@dataclass(slots=True)
class Drawing:
    """An SVG picture under construction; `facts` are the text alternative for screen readers."""

    title: str
    size: Size
    parts: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    def small_text(self, x: float, y: float, text: str, anchor: str = "middle") -> None:
        """Add an already escaped text in small letters."""
        self.parts.append(f'<text class="small" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>')

    def grid(self, box: Box, x: Scale, y: Scale, *, upright: bool = True, below: bool = True) -> None:
        """Draw lines, numbers and titles of both axes; the x lines and everything below the box are optional."""
        for value in x.ticks:
            at = x.at(value)
            if upright:
                self.parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{box.top}" y2="{box.bottom}"/>')
            if below:
                self.small_text(at, box.bottom + 18, x.axis.label(value))
        for value in y.ticks:
            at = y.at(value)
            self.parts.append(f'<line class="grid" x1="{box.left}" x2="{box.right}" y1="{at}" y2="{at}"/>')
            self.small_text(box.left - 8, round(at + 4, 1), y.axis.label(value), "end")
        self.parts.append(f'<line class="axis" x1="{box.left}" x2="{box.right}" y1="{box.bottom}" y2="{box.bottom}"/>')
        if below:
            name = fitting(x.axis.title, box.right - box.left, 12)
            self.small_text(round((box.left + box.right) / 2, 1), box.bottom + 40, name)
        place = f"translate(17 {(box.top + box.bottom) / 2:g}) rotate(-90)"
        name = fitting(y.axis.title, box.bottom - box.top, 12)
        self.parts.append(f'<text class="small" transform="{place}" text-anchor="middle">{name}</text>')

    def svg(self, *, empty: Box | None = None) -> str:
        """The picture as SVG; with `empty`, the box says "nothing was measured"."""
        if empty:
            self.small_text((empty.left + empty.right) / 2, (empty.top + empty.bottom) / 2, "nothing was measured")
        width, height, description = self.size.width, self.size.height, "; ".join(self.facts)
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img">',
            f"<title>{escaped(self.title)}</title><desc>{escaped(description)}</desc><style>{_style()}</style>",
            f'<rect class="ground" width="{width}" height="{height}" rx="6"/>',
            f'<text class="title" x="16" y="26">{fitting(self.title, width - 32, 15)}</text>',
        ]
        return "\n".join([*head, *self.parts, "</svg>", ""])
