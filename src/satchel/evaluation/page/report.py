"""The page, put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from satchel.evaluation.charts import Axis, Mark, Series, Size, histogram, line_chart, reliability_chart
from satchel.evaluation.charts.drawing import escaped
from satchel.evaluation.estimates import Interval
from satchel.evaluation.judging import DEPTH
from satchel.evaluation.outcome import Comparison, Evaluation, compare, latency
from satchel.evaluation.page.cases import changed, worst
from satchel.evaluation.page.tables import (
    about_list,
    bounds_of,
    differences_table,
    figures_table,
    groups_table,
    milliseconds,
    name_of,
    text,
    value_of,
)
from satchel.text.visible import counted

_SMALL: Final = Size(width=460, height=350)
_MOST_TILES: Final = 4
_FEW: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An evaluation with what it is called on the page, and its figures."""

    name: str
    evaluation: Evaluation
    figures: Mapping[str, Interval]


def lead(run: Run) -> str:
    """The report in one sentence, and a warning where there are few questions."""
    evaluation, figures = run.evaluation, run.figures
    if not evaluation.budgets:
        return '<p class="lead">No contexts were built.</p>'
    budget = max(evaluation.budgets)
    cover, complete = figures[f"cover@{budget}"], figures[f"complete@{budget}"]
    bounds = bounds_of("cover", cover)
    told = f" (95 % interval {bounds})" if bounds else ""
    parts = [
        f'<p class="lead">With {budget:,} tokens, contexts hold <b>{value_of("cover", cover.mean)}</b> of what was'
        f" expected{told}, and all of it for {value_of('complete', complete.mean)} of"
        f" {counted(cover.questions, 'question')}.</p>"
    ]
    if len(evaluation.rows) < _FEW:
        asked = len(evaluation.rows)
        few = (
            f"With only {asked} questions, the intervals are too narrow."
            if asked > 1
            else "One question has no interval."
        )
        parts.append(f'<p class="faint">{few} Ask {_FEW} and more to learn something about others.</p>')
    return "\n".join(parts)


def tiles(run: Run, earlier: Run | None) -> str:
    """The figures that one looks at first."""
    evaluation, figures, before = run.evaluation, run.figures, earlier.figures if earlier else {}
    shown = [f"cover@{budget}" for budget in evaluation.budgets[-_MOST_TILES:]]
    first = [_figure_tile(name, figures, before) for name in shown]
    second = [_figure_tile(f"ndcg@{DEPTH}", figures, before), _figure_tile(f"recall@{DEPTH}", figures, before)]
    took, calibration = latency(evaluation.latencies), evaluation.calibration()
    if calibration:
        second.append(
            _tile("Relevance is off by", f"{calibration.error * 100:.1f} <small>points</small>", "on average (ECE)")
        )
    if took:
        slow = f"median; p95 {milliseconds(took['p95'])}"
        second.append(_tile("Time of a build", milliseconds(took["p50"]), slow))
    texts = sum(len(row.at) for row in evaluation.rows)
    errors = sum(bool(at.error) for row in evaluation.rows for at in row.at)
    second.append(
        _tile("Over budget", f"{evaluation.over:,}", f"of {counted(texts, 'context')}", bad=evaluation.over > 0)
    )
    if errors:
        second.append(_tile("Errors", f"{errors:,}", f"of {texts:,}; counted as nothing found", bad=True))
    return "".join(f'<div class="tiles">{"".join(row)}</div>' for row in (first, second) if any(row))


def charts(run: Run, earlier: Run | None) -> str:
    """Coverage against budget, whether relevance can be believed, and how long builds take."""
    found = "".join([_coverage(run, earlier), _latency(run, earlier), _reliability(run, earlier)])
    return f'<h2>At a glance</h2><div class="charts">{found}</div>'


def _figure_tile(name: str, figures: Mapping[str, Interval], before: Mapping[str, Interval]) -> str:
    if name not in figures:
        return ""
    one = figures[name]
    bounds = bounds_of(name, one)
    notes = [f"95 %: {bounds}" if bounds else "one question: no interval"]
    if name in before:
        notes.append(f"before: {value_of(name, before[name].mean)}")
    return _tile(name_of(name), value_of(name, one.mean), "<br/>".join(notes))


def _tile(name: str, value: str, note: str, *, bad: bool = False) -> str:
    kind = "tile bad" if bad else "tile"
    return (
        f'<div class="{kind}"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>'
    )


def _coverage(run: Run, earlier: Run | None) -> str:
    runs = [run, earlier] if earlier else [run]
    series = []
    for one in runs:
        budgets = [budget for budget in sorted(one.evaluation.budgets) if f"cover@{budget}" in one.figures]
        means = [one.figures[f"cover@{budget}"] for budget in budgets]
        points = [(float(budget), mean.mean) for budget, mean in zip(budgets, means, strict=True)]
        bands = [(mean.low, mean.high) for mean in means]
        series.append(Series("before" if one is earlier else "after", points, bands=bands, dashed=one is earlier))
    ticks = sorted({float(budget) for one in runs for budget in one.evaluation.budgets})
    picture = line_chart(
        "Coverage against budget",
        Axis("tokens allowed", logarithmic=True, ticks=ticks),
        Axis("of what was expected", percent=True, low=0, high=1),
        series,
        size=_SMALL,
    )
    told = "The share of what was expected that is in the context."
    if len(run.evaluation.rows) > 1:
        told += " Shaded: 95 % intervals."
    if earlier:
        told += " Before is dashed."
    return _figure(picture, told)


def _reliability(run: Run, earlier: Run | None) -> str:
    found = run.evaluation.calibration()
    if found is None:
        return ""
    told = (
        "Each point holds hits of about the same relevance; larger ones hold more, and the bars count them. On the"
        " dashed line, hits said to be 80 % relevant are right in 8 of 10 cases. Below it too much is said, above it"
        " too little."
        f" Of {found.hits:,} hits: Brier score <b>{found.brier:.3f}</b> (0 is perfect; always saying 50 % gives 0.25),"
        f" ECE <b>{found.error:.3f}</b> (mean distance from the line)."
    )
    before = earlier.evaluation.calibration() if earlier else None
    if earlier and before:
        told += f" {_before(earlier)}: Brier {before.brier:.3f}, ECE {before.error:.3f}."
    return _figure(reliability_chart(found.bins, size=Size(width=460, height=430)), told, "beside")


def _latency(run: Run, earlier: Run | None) -> str:
    took = latency(run.evaluation.latencies)
    if took is None:
        return ""
    marks = [Mark(name, took[name]) for name in ("p50", "p95")]
    told = (
        f"p50 <b>{milliseconds(took['p50'])}</b>, p95 <b>{milliseconds(took['p95'])}</b>,"
        f" longest {milliseconds(took['worst'])}: the first build of each question, since later ones find its hits in"
        " the cache."
    )
    before = latency(earlier.evaluation.latencies) if earlier else None
    if earlier and before:
        told += f" {_before(earlier)}: p50 {milliseconds(before['p50'])}, p95 {milliseconds(before['p95'])}."
    return _figure(histogram("Time of a build", "ms", run.evaluation.latencies, marks=marks, size=_SMALL), told)


def _before(earlier: Run) -> str:
    return "Before" if earlier.name == "before" else f"Before ({text(earlier.name, 60)})"


def _figure(picture: str, caption: str, kind: str = "") -> str:
    return f'<figure class="{kind}">{picture}<figcaption>{caption}</figcaption></figure>'


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
        f"<title>{escaped(name[:120])} · evaluation</title><style>{style}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )
