"""The section of docs/benchmarks.md on questions that nothing here answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.sufficiency.collections import ISSUES, REPOSITORIES, TITLES

HEADING: Final = "## What is not there"

_INTRODUCTION: Final = """\
Each context says how likely it is that it answers ([sufficiency](sufficiency.md)). Measured by `make bench PARTS=sufficiency` ({minutes} minutes on {cores} shared cores, load {load} when it began, {date}, {mode}):
questions put to the collection that answers them, and to others of the same set. Every question is judged by weights that saw neither its own project nor the one that it was put to. An AUC of 0.97 means that of a question
put to the right collection and one put to a wrong one, the first has the higher probability in 97 of 100 cases. A context *answers* if it shows at least half of the answer at 4,000 tokens."""

_BESIDE: Final = """\
*Best relevance* is what there was before: the relevance of the first hit. semble's own score is not in this table: its environment is that of the scoreboard, and this part needs none."""

_LANGUAGES: Final = """\
Of the questions about repositories, those put to a repository in the same programming language are the hard ones: AUC {same:.3f}, against {other:.3f} in another language. Each question is put to three wrong
collections, one of the same language where there is one."""

_TARGETS: Final = {REPOSITORIES: 0.97, ISSUES: 0.82}


def section(results: Mapping[str, Any]) -> str:
    """The section, with its heading."""
    rows = [_row(TITLES[name], figures, _TARGETS.get(name)) for name, figures in results["sets"].items()]
    rows.append(_row("**all, on one scale**", results["all"], None))
    table = [
        "| questions | right / wrong | AUC, right or wrong collection | best relevance | target | AUC, answers or not | calibration error | met |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
        *rows,
    ]
    refused = results["all"]["refused"]
    thresholds = [
        "| below | contexts that answer | questions put to a wrong collection |",
        "|--:|--:|--:|",
        *(f"| {least} | {100 * kept:.1f} % | {100 * wrong:.0f} % |" for least, (kept, wrong) in refused.items()),
    ]
    parts = [HEADING, _INTRODUCTION.format(**results["run"]), "\n".join(table), _BESIDE, "\n".join(thresholds)]
    if results["by_language"]["same"] is not None:
        parts.insert(3, _LANGUAGES.format(**results["by_language"]))
    if results["missing"]:
        parts.append("Not measured: " + "; ".join(results["missing"]) + ".")
    return "\n\n".join(parts) + "\n"


def _row(title: str, figures: Mapping[str, Any], target: float | None) -> str:
    auc, best = figures["auc_wrong"], figures["auc_best_relevance"]
    met = "" if target is None else "yes" if auc is not None and auc >= target else "NO"
    wanted = "" if target is None else f"{target:.2f}"
    return (
        f"| {title} | {figures['right']} / {figures['wrong']} | {_figure(auc)} | {_figure(best)} | {wanted} | "
        f"{_figure(figures['auc_answered'])} | {_figure(figures['calibration_error'])} | {met} |"
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
