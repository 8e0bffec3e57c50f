"""Points and fitted lines as SVG: both axes logarithmic, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.scale import model

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 190, 48, 52
_COLOURS = ("#2f7fd6", "#d9652b", "#1f9d78", "#8d68d4", "#b8860b")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:12px;fill:#59636e}.title{font-size:15px;font-weight:600}"
    ".ground{fill:#fff}.grid{stroke:#d9dee3}.axis{stroke:#59636e}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9aa4af}.ground{fill:#0d1117}.grid{stroke:#2a313a}.axis{stroke:#9aa4af}}"
)


class Series(NamedTuple):
    """What was measured, and the line that was fitted to it."""

    name: str
    points: Sequence[tuple[float, float]]
    line: Callable[[float], float] | None = None


class _Axis(NamedTuple):
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        return [
            10.0**i for i in range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        ]


def chart(title: str, across: str, up: str, series: Sequence[Series]) -> str:
    """One picture; the lines end in their names."""
    points = [point for one in series for point in one.points if point[1] > 0]
    x = _axis([point[0] for point in points], _LEFT, WIDTH - _RIGHT)
    y = _axis([point[1] for point in points], HEIGHT - _BOTTOM, _TOP)
    told = "; ".join(f"{one.name}: " + ", ".join(f"{_short(a)} → {_short(b)}" for a, b in one.points) for one in series)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{title}</title><desc>{told}</desc><style>{_STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text class="title" x="{_LEFT}" y="26">{title}</text>',
        *_grid(x, y),
        f'<text class="small" x="{(_LEFT + WIDTH - _RIGHT) // 2}" y="{HEIGHT - 12}" text-anchor="middle">{across}</text>',
        f'<text class="small" transform="translate(16 {(HEIGHT - _BOTTOM + _TOP) // 2}) rotate(-90)" text-anchor="middle">{up}</text>',
    ]
    names: list[tuple[float, str, str]] = []
    for one, colour in zip(series, _COLOURS, strict=False):
        kept = [point for point in one.points if point[1] > 0]
        if one.line is not None:
            parts.append(_line(x, y, kept, one.line, colour))
        parts += [f'<circle cx="{x.at(a)}" cy="{y.at(b)}" r="4.5" fill="{colour}"/>' for a, b in kept]
        end = kept[-1][1] if one.line is None else one.line(x.high)
        names.append((y.at(min(max(end, y.low), y.high)), one.name, colour))
    parts += _names(names)
    return "\n".join([*parts, "</svg>", ""])


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    return _Axis(10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)) - 1e-9), start, end)


def _grid(x: _Axis, y: _Axis) -> list[str]:
    parts = []
    for value in x.ticks():
        at = x.at(value)
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        parts.append(
            f'<text class="small" x="{at}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{_short(value)}</text>'
        )
    for value in y.ticks():
        at = y.at(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="small" x="{_LEFT - 8}" y="{at + 4}" text-anchor="end">{_short(value)}</text>')
    parts.append(
        f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{HEIGHT - _BOTTOM}" y2="{HEIGHT - _BOTTOM}"/>'
    )
    return parts


def _line(
    x: _Axis, y: _Axis, points: Sequence[tuple[float, float]], line: Callable[[float], float], colour: str
) -> str:
    """Whole as far as there are points, dashed beyond."""
    first, last = min(a for a, _ in points), max(a for a, _ in points)
    parts = []
    for low, high, dash in ((first, last, ""), (last, x.high, ' stroke-dasharray="5 5"')):
        places = [low * (high / low) ** (i / 40) for i in range(41)]
        way = " ".join(f"{x.at(a)},{y.at(line(a))}" for a in places if y.low <= line(a) <= y.high)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2" opacity="0.75"{dash}/>')
    return "\n".join(parts)


def _names(names: list[tuple[float, str, str]]) -> list[str]:
    """Beside the last points, and never on top of each other."""
    parts, last = [], 0.0
    for at, name, colour in sorted(names):
        last = max(at, last + 18)
        parts.append(f'<circle cx="{WIDTH - _RIGHT + 12}" cy="{last}" r="4.5" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - _RIGHT + 22}" y="{last + 4}">{name}</text>')
    return parts


def _short(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def pictures(points: model.Points) -> dict[str, str]:
    """The pictures of docs/scale.md by their names."""
    found = model.Model(points)

    def of(*keys: str) -> list[Series]:
        return [Series(found.names[key], found.data[key], found.fits[key].__call__) for key in keys]

    charts: dict[str, Any] = {
        "scale-room.svg": (
            "Room of one workspace, with its indexes",
            "blocks",
            "bytes",
            of("truth", "words", "dense", "hnsw"),
        ),
        "scale-search.svg": (
            "CPU time of one search, by part",
            "pieces that may be seen",
            "ms",
            of("exact", "hnsw_near", "postings", "weigh"),
        ),
        "scale-build.svg": (
            "Filling by COPY (on the clock), and building HNSW (CPU)",
            "blocks",
            "seconds",
            of("build", "fill"),
        ),
        "scale-commit.svg": (
            "One block is committed",
            "blocks in the workspace",
            "ms of CPU, server and client",
            of("commit", "after"),
        ),
    }
    return {name: chart(*values) for name, values in charts.items()}
