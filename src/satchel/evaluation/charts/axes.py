"""Where a value stands on an axis, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
_ABOUT_TICKS: Final = 5
_FEW_DECADES: Final = 1.5
_PAD: Final = 0.05
_NEAR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Axis:
    """What is told along one side; from `low` to `high` at least, and as far as there are values."""

    title: str
    _: KW_ONLY
    logarithmic: bool = False
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float] | None = None
    percent: bool = False

    def tell(self, value: float) -> str:
        """A value in few digits."""
        return f"{value * 100:.3g} %" if self.percent else short(value)

    def holds(self, value: float) -> bool:
        """Whether the value has a place on an axis of this kind."""
        return math.isfinite(value) and (value > 0 or not self.logarithmic)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis in its place on a picture."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high, here = (_bent(self.axis, one) for one in (self.low, self.high, value))
        return round(self.start + (here - low) / (high - low) * (self.end - self.start), 1)

    def between(self, first: float, last: float, count: int) -> list[float]:
        """Values that stand at equal distances from each other."""
        low, high = _bent(self.axis, first), _bent(self.axis, last)
        found = [low + (high - low) * i / count for i in range(count + 1)]
        return [10**one for one in found] if self.axis.logarithmic else found


def placed(axis: Axis, values: Iterable[float], start: float, end: float) -> Scale:
    """The axis as far as its values and ticks go."""
    told = [one for one in (axis.low, axis.high) if one is not None]
    known = [one for one in (*values, *told, *(axis.ticks or ())) if axis.holds(one)]
    low, high = _widened(axis, min(known, default=1.0), max(known, default=1.0))
    if axis.ticks is not None:
        ticks = tuple(one for one in axis.ticks if axis.holds(one))
        low, high = _padded(axis, low, high)
    else:
        ticks = tuple(_powers(low, high) if axis.logarithmic else _multiples(low, high))
        low, high = ticks[0], ticks[-1]
    return Scale(axis, low, high, start, end, ticks)


def short(value: float) -> str:
    """A number in three digits."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def step_for(span: float, about: int) -> float:
    """A round number that goes into a span about so many times."""
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next(one * power for one in _STEPS if one * power >= rough * (1 - _NEAR))


def _bent(axis: Axis, value: float) -> float:
    return math.log10(value) if axis.logarithmic else value


def _widened(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """Two ends that are apart from each other."""
    if high - low > abs(high) * _NEAR:
        return low, high
    if axis.logarithmic:
        return low / 2, high * 2
    return (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)


def _padded(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """A little more room at the ends that were not told."""
    first, last = _bent(axis, low), _bent(axis, high)
    room = (last - first) * _PAD
    first -= room if axis.low is None else 0
    last += room if axis.high is None else 0
    return (10**first, 10**last) if axis.logarithmic else (first, last)


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten around the values; with their doubles and halves where these would be few."""
    first, last = math.floor(math.log10(low) + _NEAR), math.ceil(math.log10(high) - _NEAR)
    if math.log10(high / low) >= _FEW_DECADES:
        return [10.0**i for i in range(first, last + 1)]
    found = [step * 10.0**i for i in range(first, last + 1) for step in _STEPS[:3]]
    start = max(i for i, one in enumerate(found) if one <= low * (1 + _NEAR))
    end = min(i for i, one in enumerate(found) if one >= high * (1 - _NEAR))
    return found[start : end + 1]


def _multiples(low: float, high: float) -> list[float]:
    step = step_for(high - low, _ABOUT_TICKS)
    first, last = math.floor(low / step + _NEAR), math.ceil(high / step - _NEAR)
    return [round(i * step, 12) for i in range(first, last + 1)]
