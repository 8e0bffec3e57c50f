"""Figures and texts as the report tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from satchel.evaluation.charts.drawing import shown
from satchel.evaluation.intervals import Interval

_LONGEST: Final = 400
_NAMES: Final = {
    "cover": "Coverage",
    "complete": "Complete answers",
    "precision": "Precision",
    "ndcg": "NDCG",
    "recall": "Recall",
    "mrr": "First right hit (MRR)",
}
_BY_BUDGET: Final = ("cover", "complete", "precision")
_NOT_SHARES: Final = ("ndcg", "mrr")


def text(told: str, most: int = _LONGEST) -> str:
    """Text of a dataset, a file or an error: harmless, isolated from what is around it, and not endless."""
    if len(told) <= most:
        return f'<bdi dir="auto">{shown(told)}</bdi>'
    return f'<bdi dir="auto">{shown(told[:most])}…</bdi> <span class="faint">({len(told):,} characters)</span>'


def name_of(figure: str) -> str:
    """A figure's name for people."""
    kind, _, at = figure.partition("@")
    name = _NAMES.get(kind, kind)
    if kind in _BY_BUDGET:
        return f"{name} at {int(at):,} tokens"
    return f"{name}@{at}" if at else name


def value_of(figure: str, value: float) -> str:
    """A figure's value: a share as percent, the rest as it is."""
    return f"{value:.3f}" if figure.partition("@")[0] in _NOT_SHARES else f"{value * 100:.1f} %"


def change_of(figure: str, value: float) -> str:
    """By how much a figure changed, with its sign."""
    told = f"{value:+.3f}" if figure.partition("@")[0] in _NOT_SHARES else f"{value * 100:+.1f}"
    return told if float(told) else told[1:]


def bounds_of(figure: str, one: Interval) -> str:
    """Between what a mean is; nothing where one question cannot say."""
    if one.questions < 2:
        return ""
    if figure.partition("@")[0] in _NOT_SHARES:
        return f"{one.low:.3f}–{one.high:.3f}"
    return f"{one.low * 100:.1f}–{one.high * 100:.1f} %"


def milliseconds(value: float) -> str:
    """A time in three digits."""
    return f"{value / 1000:.3g} s" if value >= 1000 else f"{value:.3g} ms"


def joined(words: Sequence[str]) -> str:
    """Words as a sentence lists them."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def table(told: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, narrow: bool = False) -> str:
    """A table of cells that are already escaped, below what is told about it."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    kind = "scroll narrow" if narrow else "scroll"
    return (
        f'<p class="faint">{told}</p><div class="{kind}" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
