"""What was said against what was right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from satchel.evaluation.calibration import Bin
from satchel.evaluation.charts.axes import Axis, placed, short
from satchel.evaluation.charts.drawing import Box, Size, grid, nothing, picture, shown

_LEFT, _RIGHT, _TOP, _BOTTOM, _STRIP, _BETWEEN = 74, 24, 48, 52, 54, 22
_SMALL_MARK, _LARGE_MARK = 3.5, 9.0


def reliability_chart(
    bins: Sequence[Bin], *, title: str = "Relevance said, and how often it was right", size: Size | None = None
) -> str:
    """The share of right hits by the relevance that was said, over the counts of hits; good is near the diagonal."""
    size = size or Size()
    strip = Box(left=_LEFT, right=size.width - _RIGHT, top=size.height - _BOTTOM - _STRIP, bottom=size.height - _BOTTOM)
    box = Box(left=_LEFT, right=strip.right, top=_TOP, bottom=strip.top - _BETWEEN)
    x = placed(Axis("relevance that was said", low=0, high=1, percent=True), (), box.left, box.right)
    y = placed(Axis("share that was right", low=0, high=1, percent=True), (), box.bottom, box.top)
    most = max((one.hits for one in bins), default=1)
    parts = [
        *grid(strip, x, placed(Axis("", ticks=()), (), 0, 1), upright=False),
        *_without_numbers(box, grid(box, x, y)),
        f'<line class="axis" x1="{box.left}" y1="{box.bottom}" x2="{box.right}" y2="{box.top}"'
        ' stroke-dasharray="4 4"/>',
    ]
    told = []
    for one in bins:
        at, said = x.at(one.said), _tell(one)
        told.append(said)
        left, right = x.at(one.low), x.at(one.high)
        tall = round((_STRIP - 14) * one.hits / most, 1)
        wide = _SMALL_MARK + (_LARGE_MARK - _SMALL_MARK) * math.sqrt(one.hits / most)
        parts += [
            f'<line class="c1" x1="{at:g}" x2="{at:g}" y1="{y.at(one.said):g}" y2="{y.at(one.right):g}"'
            ' stroke="currentColor" stroke-width="2" opacity="0.7"/>',
            f'<circle class="c0 halo" cx="{at:g}" cy="{y.at(one.right):g}" r="{wide:.1f}" fill="currentColor">'
            f"<title>{shown(said)}</title></circle>",
            f'<rect class="c5" x="{left + 1:g}" y="{strip.bottom - tall:g}" width="{right - left - 2:g}"'
            f' height="{tall:g}" fill="currentColor" opacity="0.5"><title>{shown(said)}</title></rect>',
            f'<text class="small" x="{(left + right) / 2:g}" y="{strip.bottom - tall - 3:g}" text-anchor="middle">'
            f"{short(one.hits)}</text>",
        ]
    parts.append(f'<text class="small" x="{box.left - 8}" y="{strip.bottom - 4}" text-anchor="end">hits</text>')
    return picture(title, "; ".join(told), size, parts if bins else [*parts, *nothing(box)])


def _tell(one: Bin) -> str:
    return f"said {one.said * 100:.3g} %, right {one.right * 100:.3g} % of {one.hits:,} hits"


def _without_numbers(box: Box, parts: Sequence[str]) -> list[str]:
    """A grid whose axis below is told by the strip of counts under it."""
    return [part for part in parts if f'y="{box.bottom + 18:g}"' not in part and f'y="{box.bottom + 40:g}"' not in part]
