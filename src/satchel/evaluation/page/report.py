"""The page, put together."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from satchel.evaluation.charts.drawing import shown
from satchel.evaluation.comparing import Comparison, compare
from satchel.evaluation.page.cases import changed, worst
from satchel.evaluation.page.figures import Run, charts, lead, tiles
from satchel.evaluation.page.tables import about_list, differences_table, figures_table, groups_table
from satchel.evaluation.page.telling import text
from satchel.evaluation.rows import Evaluation
from satchel.text.visible import counted

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_page(evaluation: Evaluation, comparison: Comparison | None = None, other: Evaluation | None = None) -> str:
    """An evaluation, alone or held against another, as one HTML file.

    Which of the two is the earlier one is told by the comparison; without one, it is the other.
    """
    if other is not None and comparison is None:
        comparison = compare(other, evaluation)
    if comparison is not None and other is not None and comparison.after != evaluation.name:
        evaluation, other = other, evaluation
    names = _names(comparison, evaluation)
    run = Run(name=names[1], evaluation=evaluation, figures=evaluation.figures())
    earlier = Run(name=names[0], evaluation=other, figures=other.figures()) if other else None
    parts = [
        _head(evaluation, other, names),
        lead(run),
        tiles(run, earlier),
        charts(run, earlier),
        differences_table(comparison, *names) if comparison else "",
        changed(other, evaluation) if other else "",
        figures_table(evaluation, run.figures),
        groups_table(evaluation),
        worst(evaluation),
        "<h2>What was measured</h2>",
        about_list(evaluation, text(names[1], 120)),
        about_list(other, text(names[0], 120)) if other else "",
        '<p class="faint">Intervals are 95 % bootstrap intervals over the questions: where the mean of another sample'
        " of as many questions would be.</p>",
    ]
    return _page(evaluation.name, "\n".join(part for part in parts if part))


def _names(comparison: Comparison | None, evaluation: Evaluation) -> tuple[str, str]:
    """What the earlier and the later run are called, so that one can tell them apart."""
    if comparison is None:
        return "", evaluation.name
    if comparison.before == comparison.after:
        return "before", "after"
    return comparison.before, comparison.after


def _head(evaluation: Evaluation, other: Evaluation | None, names: tuple[str, str]) -> str:
    dataset, when = evaluation.about.get("dataset"), evaluation.about.get("at")
    told = [counted(len(evaluation.rows), "question")]
    if dataset:
        told.append(f"of {text(str(dataset), 120)}")
    if when:
        told.append(f"· {text(str(when), 40)}")
    against = f" against {text(names[0], 120)}" if other else ""
    title = text(names[1] if other else evaluation.name, 120)
    return f'<h1>Evaluation: {title}{against}</h1><p class="faint">{" ".join(told)}</p>'


def _page(name: str, body: str) -> str:
    style = files(__package__).joinpath("report.css").read_text("utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        '<meta name="color-scheme" content="light dark"/><meta name="referrer" content="no-referrer"/>'
        f"<title>{shown(name[:120])} · evaluation</title><style>{style}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )
