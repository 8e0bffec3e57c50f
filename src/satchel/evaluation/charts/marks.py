"""How series are told apart: colour, shape and dash, and names beside their ends that never touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from satchel.evaluation.charts.drawing import COLOURS

LABEL_GAP: Final = 18.0
_DASHES: Final = ("", "7 4", "2 3", "9 3 2 3")
# Around 0,0; each about as heavy as a circle of radius 4.5.
_SHAPES: Final = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.8L5.8 0L0 5.8L-5.8 0Z",
    "M0-5.4L5.2 4H-5.2Z",
    "M0 5.4L5.2-4H-5.2Z",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How one series is drawn."""

    colour: int
    shape: int
    dash: str
    width: float
    opacity: float

    def mark(self, x: float, y: float, title: str = "") -> str:
        """A point; its title, already escaped, is told when one points at it."""
        told = f"<title>{title}</title>" if title else ""
        return (
            f'<path class="c{self.colour} halo" d="{_SHAPES[self.shape]}" transform="translate({x:g} {y:g})"'
            f' fill="currentColor" opacity="{self.opacity:g}">{told}</path>'
        )

    def path(self, points: Sequence[tuple[float, float]], *, dash: str | None = None) -> str:
        """A line through places."""
        way = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = self.dash if dash is None else dash
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        return (
            f'<polyline class="c{self.colour}" points="{way}" fill="none" stroke="currentColor"'
            f' stroke-width="{self.width:g}" opacity="{self.opacity:g}"{dashes}/>'
        )


def looks(emphasised: Sequence[bool], dashed: Sequence[bool]) -> list[Look]:
    """The look of each series; where one is emphasised it has the first colour alone, and the others step back."""
    one_stands_out = any(emphasised) and not all(emphasised)
    free = range(1, COLOURS) if one_stands_out else range(COLOURS)
    found, count = [], 0
    for strong, broken in zip(emphasised, dashed, strict=True):
        if one_stands_out and strong:
            found.append(Look(colour=0, shape=0, dash=_DASHES[broken], width=3, opacity=1))
            continue
        turn, place = divmod(count, len(free))
        found.append(
            Look(
                colour=free[place],
                shape=(place + turn + one_stands_out) % len(_SHAPES),
                dash=_DASHES[(turn + broken) % len(_DASHES)],
                width=1.5 if one_stands_out else 2,
                opacity=0.8 if one_stands_out else 0.9,
            )
        )
        count += 1
    return found


def spread(wanted: Sequence[float], low: float, high: float, gap: float = LABEL_GAP) -> list[float]:
    """Places as near as can be to the wanted ones, in their order, none nearer to another than the gap.

    Where there is not room enough for all, they go beyond `high`.
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    # With the gaps taken out, labels may stand in one place: those that would pass each other share their mean.
    pools: list[tuple[float, int]] = []
    for place, i in enumerate(order):
        mean, count = wanted[i] - place * gap, 1
        while pools and pools[-1][0] > mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    most = max(low, high - (len(wanted) - 1) * gap)
    flat = [min(max(mean, low), most) for mean, count in pools for _ in range(count)]
    found = [0.0] * len(wanted)
    for place, i in enumerate(order):
        found[i] = round(flat[place] + place * gap, 1)
    return found
