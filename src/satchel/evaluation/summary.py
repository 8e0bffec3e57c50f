"""What `satchel eval` prints for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from satchel.evaluation.intervals import LEAST_QUESTIONS
from satchel.evaluation.saving import latency
from satchel.text.visible import counted, make_visible_line

if TYPE_CHECKING:
    from satchel.evaluation.comparing import Comparison
    from satchel.evaluation.intervals import Interval
    from satchel.evaluation.rows import Evaluation, Row

_WORST: Final = 5
_WIDTH: Final = 78
_FEW: Final = 20


_RANK_FIGURES: Final = {
    "ndcg@10": "NDCG@10",
    "recall@1": "recall@1",
    "recall@5": "recall@5",
    "recall@10": "recall@10",
    "mrr": "first right hit (MRR)",
}
"""The figures of a ranking, as the summary names them."""


def summary(evaluation: Evaluation, comparison: Comparison | None = None, other: Evaluation | None = None) -> str:
    """The figures, what was compared, and the questions that fared worst."""
    lines = [*_figures(evaluation)]
    if other is not None:
        lines += ["", *_figures(other)]
    if comparison is not None:
        lines += ["", *_differences(comparison)]
    lines += _worst(other or evaluation)
    return "\n".join(lines)


def _figures(evaluation: Evaluation) -> Iterator[str]:
    asked = len(evaluation.rows)
    yield f"{_line(evaluation.name)}: {counted(asked, 'question')}"
    figures = evaluation.figures()
    yield ""
    yield f"  {'tokens':>8}  {'cover':>18}  {'complete':>18}  {'precision':>18}"
    for budget in evaluation.budgets:
        cells = [_cell(figures.get(f"{name}@{budget}")) for name in ("cover", "complete", "precision")]
        yield f"  {budget:>8,}  " + "  ".join(f"{cell:>18}" for cell in cells)
    yield ""
    for name, words in _RANK_FIGURES.items():
        if name in figures:
            yield f"  {words:<24}{_cell(figures[name])}"
    calibration = evaluation.calibration()
    if calibration is not None:
        told = (
            f"off by {calibration.error:.3f} (ECE), Brier {calibration.brier:.3f}, {counted(calibration.hits, 'hit')}"
        )
        yield f"  {'relevance':<24}{told}"
    took = latency(evaluation.latencies)
    if took:
        told = ", ".join(f"{name} {took[name]:.0f} ms" for name in ("p50", "p95", "worst"))
        yield f"  {'time of a build':<24}{told}"
    if asked < _FEW:
        yield f"  {'':<24}with so few questions, intervals are too narrow"
    texts = sum(len(row.at) for row in evaluation.rows)
    yield f"  {'over budget':<24}{evaluation.over:,} of {texts:,}"
    unknown = evaluation.about.get("unknown_paths")
    if isinstance(unknown, list | tuple) and unknown:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        yield f"  {'not in the index':<24}{_line(str(unknown[0]))}{more}: expected, and can only be missed"
    failed = sum(bool(at.error) for row in evaluation.rows for at in row.at)
    if failed:
        yield f"  {'refused':<24}{failed:,} of {texts:,} (counted as nothing found; --json has the reasons)"


def _cell(one: Interval | None) -> str:
    return "–" if one is None else f"{one.mean:.3f} ({one.low:.2f}–{one.high:.2f})"


def _differences(comparison: Comparison) -> Iterator[str]:
    names = f"{_line(comparison.after)} against {_line(comparison.before)}"
    yield f"{names}, on {counted(comparison.questions, 'question')} that both answered"
    if comparison.left_out:
        yield f"  (left out: {comparison.left_out})"
    if comparison.questions < LEAST_QUESTIONS:
        yield f"  (no verdicts: fewer than {LEAST_QUESTIONS} questions can change by chance)"
    yield ""
    yield f"  {'':<16}{'before':>8}{'after':>8}{'change':>9}   95 % interval"
    for name, one in comparison.differences.items():
        sign = {"better": "better", "worse": "WORSE"}.get(one.verdict, "")
        apart = f"{one.low:+.3f} to {one.high:+.3f}"
        yield f"  {name:<16}{one.before:>8.3f}{one.after:>8.3f}{one.difference:>+9.3f}   {apart:<18} {sign}".rstrip()


def _worst(evaluation: Evaluation) -> list[str]:
    rows = sorted((row for row in evaluation.rows if _lacks(row)), key=lambda row: (row.at[-1].cover, row.id))
    if not rows:
        return []
    lines = ["", f"missing most at {evaluation.budgets[-1]:,} tokens:"]
    for row in rows[:_WORST]:
        lines.append(_cut(f"  {_line(row.query)}"))
        at = row.at[-1]
        lines.append(_cut(f"      {_line(at.error or 'lacks ' + ', '.join(at.missing))}"))
    if len(rows) > _WORST:
        lines.append(f"  … and {len(rows) - _WORST:,} more (--html or --json has them all)")
    return lines


def _lacks(row: Row) -> bool:
    return bool(row.at) and row.at[-1].cover < 1


def _line(text: str) -> str:
    return make_visible_line(text).text


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
