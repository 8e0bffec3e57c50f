"""Report page of an evaluation: large figures, charts, tables and questions."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from satchel.evaluation.charts import Axis, Mark, Series, Size, histogram, line_chart, reliability_chart
from satchel.evaluation.charts.drawing import escaped
from satchel.evaluation.estimates import FEW_QUESTIONS
from satchel.evaluation.judging import DEPTH
from satchel.evaluation.outcome import Comparison, Evaluation, compare, latency
from satchel.evaluation.page import report_tables as tables
from satchel.evaluation.page.cases import changed, worst
from satchel.evaluation.page.report_tables import about_list, bounds_of, name_of, text, value_of
from satchel.text.visible import counted

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SMALL: Final = Size(width=460, height=350)
# One tile per budget, the largest budgets: more tiles would push the other figures below the fold.
_MAX_COVERAGE_TILES: Final = 4


class _Run:
    """An evaluation with figures, calibration and latency, and the caption label used for the earlier evaluation."""

    def __init__(self, name: str, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.figures, self.calibration = evaluation.figures(), evaluation.calibration()
        self.latency = latency(evaluation.latencies)
        self.label = "Before" if name == "before" else f"Before ({text(name, 60)})"


def report_page(evaluation: Evaluation, comparison: Comparison | None = None, other: Evaluation | None = None) -> str:
    """HTML file with the report of an evaluation, alone or compared with a second evaluation.

    `comparison` says which evaluation is the earlier; without a comparison, `other` is the earlier.
    """
    if other is not None and comparison is None:
        comparison = compare(other, evaluation)
    if comparison is not None and other is not None and comparison.after != evaluation.name:
        evaluation, other = other, evaluation
    names = (comparison.before, comparison.after) if comparison else ("", evaluation.name)
    if comparison and names[0] == names[1]:  # the two columns need different names
        names = ("before", "after")
    run, earlier = _Run(names[1], evaluation), _Run(names[0], other) if other else None
    pictures = "".join([_coverage(run, earlier), _latency(run, earlier), _reliability(run, earlier)])
    parts = [
        _head(evaluation, other, names),
        _lead(run),
        _tiles(run, earlier),
        f'<h2>At a glance</h2><div class="charts">{pictures}</div>',
        tables.differences_table(comparison, *names) if comparison else "",
        changed(other, evaluation) if other else "",
        tables.figures_table(evaluation, run.figures),
        tables.groups_table(evaluation),
        worst(evaluation),
        "<h2>What was measured</h2>",
        about_list(evaluation, text(names[1], 120)),
        about_list(other, text(names[0], 120)) if other else "",
        '<p class="faint">Intervals are 95 % bootstrap intervals over the questions: where the mean of another sample'
        " of the same size.</p>",
    ]
    return _page(evaluation.name, "\n".join(filter(None, parts)))


def _head(evaluation: Evaluation, other: Evaluation | None, names: tuple[str, str]) -> str:
    dataset, when = evaluation.about.get("dataset"), evaluation.about.get("at")
    facts = [
        counted(len(evaluation.rows), "question"),
        f"of {text(str(dataset), 120)}" if dataset else "",
        f"· {text(str(when), 40)}" if when else "",
    ]
    against = f" against {text(names[0], 120)}" if other else ""
    title = text(names[1] if other else evaluation.name, 120)
    return f'<h1>Evaluation: {title}{against}</h1><p class="faint">{" ".join(filter(None, facts))}</p>'


def _lead(run: _Run) -> str:
    """Summary sentence, with a warning if there are few questions."""
    evaluation, count = run.evaluation, len(run.evaluation.rows)
    if not evaluation.budgets:
        return '<p class="lead">No contexts were built.</p>'
    budget = max(evaluation.budgets)
    cover, complete = run.figures[f"cover@{budget}"], run.figures[f"complete@{budget}"]
    bounds = bounds_of("cover", cover)
    interval = f" (95 % interval {bounds})" if bounds else ""
    sentence = (
        f'<p class="lead">With {budget:,} tokens, contexts contain <b>{value_of("cover", cover.mean)}</b> of the'
        f" expected results{interval}, and all of them for {value_of('complete', complete.mean)} of"
        f" {counted(cover.questions, 'question')}.</p>"
    )
    if count >= FEW_QUESTIONS:
        return sentence
    few = (
        f"With only {count} questions, the intervals are too narrow." if count > 1 else "One question has no interval."
    )
    return f'{sentence}\n<p class="faint">{few} Ask {FEW_QUESTIONS} or more questions for a reliable result.</p>'


def _tiles(run: _Run, earlier: _Run | None) -> str:
    """Tiles of the main figures."""
    evaluation, errors = run.evaluation, run.evaluation.refused
    coverage = [_figure_tile(f"cover@{budget}", run, earlier) for budget in evaluation.budgets[-_MAX_COVERAGE_TILES:]]
    others = [_figure_tile(f"{kind}@{DEPTH}", run, earlier) for kind in ("ndcg", "recall")]
    if run.calibration:
        points = f"{run.calibration.error * 100:.1f} <small>points</small>"
        others.append(_tile("Calibration error", points, "on average (ECE)"))
    if run.latency:
        slow = f"median; p95 {_milliseconds(run.latency['p95'])}"
        others.append(_tile("Time of a build", _milliseconds(run.latency["p50"]), slow))
    over, contexts = evaluation.over, counted(evaluation.contexts, "context")
    others.append(_tile("Over budget", f"{over:,}", f"of {contexts}", bad=over > 0))
    if errors:
        note = f"of {evaluation.contexts:,}; counted as empty results"
        others.append(_tile("Errors", f"{errors:,}", note, bad=True))
    return "".join(f'<div class="tiles">{"".join(row)}</div>' for row in (coverage, others) if any(row))


def _figure_tile(name: str, run: _Run, earlier: _Run | None) -> str:
    if name not in run.figures:
        return ""
    mean = run.figures[name]
    bounds = bounds_of(name, mean)
    note = f"95 %: {bounds}" if bounds else "one question: no interval"
    if earlier and name in earlier.figures:
        note += f"<br/>before: {value_of(name, earlier.figures[name].mean)}"
    return _tile(name_of(name), value_of(name, mean.mean), note)


def _tile(name: str, value: str, note: str, *, bad: bool = False) -> str:
    kind = "tile bad" if bad else "tile"
    return (
        f'<div class="{kind}"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>'
    )


def _coverage(run: _Run, earlier: _Run | None) -> str:
    """Chart of coverage by budget."""
    runs = [run, earlier] if earlier else [run]
    series = []
    for each in runs:
        budgets = [budget for budget in sorted(each.evaluation.budgets) if f"cover@{budget}" in each.figures]
        means = [each.figures[f"cover@{budget}"] for budget in budgets]
        points = [(float(budget), mean.mean) for budget, mean in zip(budgets, means, strict=True)]
        bands = [(mean.low, mean.high) for mean in means]
        series.append(Series("before" if each is earlier else "after", points, bands=bands, dashed=each is earlier))
    ticks = sorted({float(budget) for each in runs for budget in each.evaluation.budgets})
    x = Axis("tokens allowed", logarithmic=True, ticks=ticks)
    y = Axis("of the expected results", percent=True, low=0, high=1)
    caption = "The share of the expected results that is in the context."
    caption += " Shaded: 95 % intervals." if len(run.evaluation.rows) > 1 else ""
    caption += " Before is dashed." if earlier else ""
    return _figure(line_chart("Coverage against budget", x, y, series, size=_SMALL), caption)


def _reliability(run: _Run, earlier: _Run | None) -> str:
    """Chart of the calibration of relevance."""
    calibration = run.calibration
    if calibration is None:
        return ""
    caption = (
        "Each point is a group of hits of about the same relevance; larger points have more hits, and the bars count"
        " them. On the dashed line, 8 of 10 hits with a stated relevance of 80 % are relevant. Below the line the"
        f" stated relevance is too high, above it too low. {calibration.hits:,} hits: Brier score"
        f" <b>{calibration.brier:.3f}</b> (0 is perfect; always stating 50 % gives 0.25), ECE"
        f" <b>{calibration.error:.3f}</b> (mean distance from the line)."
    )
    if earlier and earlier.calibration:
        caption += f" {earlier.label}: Brier {earlier.calibration.brier:.3f}, ECE {earlier.calibration.error:.3f}."
    return _figure(reliability_chart(calibration.bins, size=Size(width=460, height=430)), caption, "beside")


def _latency(run: _Run, earlier: _Run | None) -> str:
    """Chart of build times."""
    if run.latency is None:
        return ""
    marks = [Mark(name, run.latency[name]) for name in ("p50", "p95")]
    times = {name: _milliseconds(value) for name, value in run.latency.items()}
    caption = (
        f"p50 <b>{times['p50']}</b>, p95 <b>{times['p95']}</b>, longest {times['worst']}: the first build of each"
        " question; later builds take the hits from the cache."
    )
    if earlier and earlier.latency:
        p50, p95 = (_milliseconds(earlier.latency[name]) for name in ("p50", "p95"))
        caption += f" {earlier.label}: p50 {p50}, p95 {p95}."
    return _figure(histogram("Time of a build", "ms", run.evaluation.latencies, marks=marks, size=_SMALL), caption)


def _milliseconds(value: float) -> str:
    """Milliseconds with three significant digits."""
    return f"{value / 1000:.3g} s" if value >= 1000 else f"{value:.3g} ms"


def _figure(picture: str, caption: str, kind: str = "") -> str:
    return f'<figure class="{kind}">{picture}<figcaption>{caption}</figcaption></figure>'


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
