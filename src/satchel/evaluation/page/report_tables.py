"""Formatted figures and texts, and the tables of the page: figures, differences, groups and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from satchel.evaluation.charts.drawing import escaped
from satchel.evaluation.estimates import Interval, interval
from satchel.evaluation.judging import BUDGET_FIGURES, DEPTH, RANK_FIGURES
from satchel.evaluation.outcome import Comparison, Evaluation
from satchel.text.visible import counted

# A few lines on the page: longer questions and errors are cut, else one text could fill the report.
_MAX_TEXT_CHARACTERS: Final = 400
# Rows, the largest groups first: a dataset with a group per question would repeat the list of questions.
_MAX_GROUPS: Final = 60
_MARKS: Final = {"better": "▲", "worse": "▼"}
_NAMES: Final = {
    "cover": "Coverage",
    "complete": "Complete answers",
    "token_share": "Tokens from expected files",
    "ndcg": "NDCG",
    "mrr": "First relevant hit (MRR)",
}
_NOT_SHARES: Final = ("ndcg", "mrr")
_ABOUT: Final = {
    "sha256": "SHA-256 of the dataset",
    "files": "Files in the index",
    "pieces": "Pieces in the index",
    "version": "Version of Satchel",
    "at": "Measured at",
    "load": "Load of the machine",
    "unknown_paths": "Expected, but not in the index",
}


def text(content: str, max_length: int = _MAX_TEXT_CHARACTERS) -> str:
    """Untrusted text (dataset, file or error) as HTML: escaped, isolated from surrounding text, limited in length."""
    if len(content) <= max_length:
        return f'<bdi dir="auto">{escaped(content)}</bdi>'
    cut = escaped(content[:max_length])
    return f'<bdi dir="auto">{cut}…</bdi> <span class="faint">({len(content):,} characters)</span>'


def name_of(figure: str) -> str:
    """Display name of a figure."""
    kind, _, at = figure.partition("@")
    name = _NAMES.get(kind, kind.capitalize())
    if kind in BUDGET_FIGURES:
        return f"{name} at {int(at):,} tokens"
    return f"{name}@{at}" if at else name


def _is_share(figure: str) -> bool:
    return figure.partition("@")[0] not in _NOT_SHARES


def value_of(figure: str, value: float) -> str:
    """Formatted value of a figure: shares as percent, all else unchanged."""
    return f"{value * 100:.1f} %" if _is_share(figure) else f"{value:.3f}"


def change_of(figure: str, value: float) -> str:
    """Change of a figure with a sign."""
    change = f"{value * 100:+.1f}" if _is_share(figure) else f"{value:+.3f}"
    return change if float(change) else change[1:]


def bounds_of(figure: str, mean: Interval) -> str:
    """Bounds of a mean; '' with a single question."""
    if mean.questions < 2:
        return ""
    if _is_share(figure):
        return f"{mean.low * 100:.1f}–{mean.high * 100:.1f} %"
    return f"{mean.low:.3f}–{mean.high:.3f}"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, narrow: bool = False) -> str:
    """HTML table with a caption; the cells must already be escaped."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    kind = "scroll narrow" if narrow else "scroll"
    return (
        f'<p class="faint">{caption}</p><div class="{kind}" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def figures_table(evaluation: Evaluation, figures: Mapping[str, Interval]) -> str:
    """Table of all means with intervals."""
    by_budget = [
        [f"{budget:,} tokens", *(_cell(f"{kind}@{budget}", figures.get(f"{kind}@{budget}")) for kind in BUDGET_FIGURES)]
        for budget in evaluation.budgets
    ]
    of_hits = [[name_of(name), _cell(name, figures[name])] for name in RANK_FIGURES if name in figures]
    parts = ["<h2>All figures</h2>"]
    if by_budget:
        caption = (
            "Coverage: the share of the expected results that is in the text. Complete: all of them are."
            " Precision: the share of the pieces in the text that was expected. From expected files: the share of the"
            " text's tokens."
        )
        head = ["Budget", "Coverage", "Complete", "Precision", "From expected files"]
        parts.append(table(caption, head, by_budget))
    if of_hits:
        parts.append("<h3>Order of the hits</h3>")
        parts.append(table("Ranks of the expected hits in the search.", ["Figure", "Mean"], of_hits, narrow=True))
    return "\n".join(parts)


def differences_table(comparison: Comparison, before: str, after: str) -> str:
    """Table of the change of each figure, and of the significance."""
    rows = [
        [
            name_of(name),
            _verdict(change.verdict),
            f"<b>{change_of(name, change.difference)}</b>",
            f"{change_of(name, change.low)} to {change_of(name, change.high)}" if change.questions > 1 else "–",
            value_of(name, change.before),
            value_of(name, change.after),
            f"{change.better:,} / {change.worse:,}",
        ]
        for name, change in comparison.differences.items()
    ]
    head = ["Figure", "Verdict", "Change", "95 % interval", text(before, 60), text(after, 60), "Better / worse"]
    caption = "Changes of percentages are in points. Better / worse counts the questions that went up and down."
    left_out = f'<p class="faint">Left out: {comparison.left_out}.</p>' if comparison.left_out else ""
    return (
        f"<h2>Compared</h2>\n<p>{text(after, 120)} against {text(before, 120)}, on"
        f" {counted(comparison.questions, 'question')} that both were asked. A difference is called better or worse"
        " when its paired 95 % bootstrap interval leaves out zero."
        f" Of {len(rows)} figures, one in twenty may do so by chance.</p>\n{left_out}\n{table(caption, head, rows)}"
    )


def groups_table(evaluation: Evaluation) -> str:
    """Table of figures by group of questions; '' for a dataset without groups."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(evaluation.rows):
        groups.setdefault(row.group, []).append(i)
    if set(groups) <= {""}:
        return ""
    values = evaluation.values()
    names = [*(f"cover@{budget}" for budget in evaluation.budgets), f"ndcg@{DEPTH}", "recall@5"]
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    rows = [
        [
            text(group, 80) if group else "(no group)",
            f"{len(places):,}",
            *(_group_cell(name, [values[name][i] for i in places]) for name in names),
        ]
        for group, places in ordered[:_MAX_GROUPS]
    ]
    more = len(ordered) - _MAX_GROUPS
    note = f'<p class="faint">{counted(more, "more group")} in the JSON report.</p>' if more > 0 else ""
    caption = "Means with 95 % intervals; the largest groups first."
    return f"<h2>By group</h2>\n{table(caption, ['Group', 'Questions', *map(name_of, names)], rows)}\n{note}"


def about_list(evaluation: Evaluation, title: str) -> str:
    """HTML list of the dataset, the workspace, versions and time of the evaluation."""
    budgets = [f"{budget:,}" for budget in evaluation.budgets]
    facts = {"configuration": evaluation.name, "budgets": budgets, **evaluation.about}
    items = [
        f"<dt>{text(_ABOUT.get(name, name.replace('_', ' ').capitalize()), 80)}</dt><dd>{text(_flat(value), 2000)}</dd>"
        for name, value in facts.items()
        if value not in (None, "", [], {}, ())
    ]
    return f"<h3>{title}</h3><dl>{''.join(items)}</dl>"


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_flat(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(map(_flat, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cell(name: str, mean: Interval | None, space: str = " ") -> str:
    if mean is None:
        return "–"
    bounds = bounds_of(name, mean)
    return value_of(name, mean.mean) + (f"{space}<small>{bounds}</small>" if bounds else "")


def _group_cell(name: str, values: Sequence[float | None]) -> str:
    # There are many columns: what is smaller stands below.
    return _cell(name, interval([value for value in values if value is not None]), "<br/>")


def _verdict(verdict: str) -> str:
    kind = f" {verdict}" if verdict in _MARKS else ""
    return f'<span class="verdict{kind}">{_MARKS.get(verdict, "·")} {verdict}</span>'
