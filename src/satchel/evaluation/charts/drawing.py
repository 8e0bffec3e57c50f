"""The paper that charts are drawn on: title, grid, colours for light and dark, and text that harms nobody."""

from __future__ import annotations

import html
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from satchel.evaluation.charts.axes import Scale
from satchel.text.visible import make_visible_line

COLOURS: Final = 6
"""c0 to c5 in chart.css: their contrast with the ground is 3 and more, and they can be told apart also as the three
kinds of colour blindness see them (CIELAB distance of 25 and more)."""

_LETTER: Final = 0.62
_WIDE_LETTER: Final = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a picture is."""

    width: int = 760
    height: int = 420


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The part of a picture inside the axes."""

    left: float
    right: float
    top: float
    bottom: float


@cache
def _style() -> str:
    """The rules of chart.css on one line, as every picture holds them."""
    return files(__package__).joinpath("chart.css").read_text("utf-8").replace("\n", "")


def shown(text: str) -> str:
    """Any text, as it may stand in a picture or a page: nothing in it hides or commands."""
    return html.escape(make_visible_line(text).text)


def width_of(text: str, size: float = 13) -> float:
    """About how wide a text is; rather more than less."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (_LETTER * (len(text) - wide) + _WIDE_LETTER * wide)


def fitting(text: str, room: float, size: float = 13) -> str:
    """A text, cut where it is wider than its room."""
    text = make_visible_line(text).text
    if width_of(text, size) <= room:
        return text
    while text and width_of(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text.rstrip()}…"


def picture(title: str, told: str, size: Size, parts: list[str]) -> str:
    """A whole picture; `told` says its numbers to those who cannot see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {size.width} {size.height}"'
            f' width="{size.width}" height="{size.height}" role="img">',
            f"<title>{shown(title)}</title><desc>{shown(told)}</desc><style>{_style()}</style>",
            f'<rect class="ground" width="{size.width}" height="{size.height}" rx="6"/>',
            f'<text class="title" x="16" y="26">{html.escape(fitting(title, size.width - 32, 15))}</text>',
            *parts,
            "</svg>",
            "",
        ]
    )


def grid(box: Box, x: Scale, y: Scale, *, upright: bool = True) -> list[str]:
    """The lines and numbers of both axes, and what they are about; bars need no upright lines."""
    parts = []
    for value in x.ticks:
        at = x.at(value)
        if upright:
            parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{box.top}" y2="{box.bottom}"/>')
        parts.append(_small(at, box.bottom + 18, "middle", x.axis.tell(value)))
    for value in y.ticks:
        at = y.at(value)
        parts.append(f'<line class="grid" x1="{box.left}" x2="{box.right}" y1="{at}" y2="{at}"/>')
        parts.append(_small(box.left - 8, round(at + 4, 1), "end", y.axis.tell(value)))
    parts.append(f'<line class="axis" x1="{box.left}" x2="{box.right}" y1="{box.bottom}" y2="{box.bottom}"/>')
    across, up = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    name = html.escape(fitting(y.axis.title, box.bottom - box.top, 12))
    parts.append(_small(round(across, 1), box.bottom + 40, "middle", fitting(x.axis.title, box.right - box.left, 12)))
    parts.append(f'<text class="small" transform="translate(17 {up:g}) rotate(-90)" text-anchor="middle">{name}</text>')
    return parts


def nothing(box: Box) -> list[str]:
    """What stands where there is nothing to draw."""
    return [_small((box.left + box.right) / 2, (box.top + box.bottom) / 2, "middle", "nothing was measured")]


def _small(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="small" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(text)}</text>'
