"""The tables of the report: figures, differences, groups, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from satchel.evaluation.charts.drawing import escaped
from satchel.evaluation.estimates import Interval, interval
from satchel.evaluation.judging import DEPTH, RECALLED_AT
from satchel.evaluation.outcome import Comparison, Evaluation
from satchel.text.visible import counted

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
        return f'<bdi dir="auto">{escaped(told)}</bdi>'
    return f'<bdi dir="auto">{escaped(told[:most])}…</bdi> <span class="faint">({len(told):,} characters)</span>'


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


_MOST_GROUPS: Final = 60
_MARKS: Final = {"better": "▲", "worse": "▼"}
_ABOUT: Final = {
    "dataset": "Dataset",
    "sha256": "SHA-256 of the dataset",
    "workspace": "Workspace",
    "files": "Files in the index",
    "pieces": "Pieces in the index",
    "embedder": "Embedder",
    "version": "Version of Satchel",
    "settings": "Settings",
    "at": "Measured at",
    "load": "Load of the machine",
    "unknown_paths": "Expected, but not in the index",
}


def figures_table(evaluation: Evaluation, figures: Mapping[str, Interval]) -> str:
    """Every mean with its interval."""
    kinds = ("cover", "complete", "precision")
    by_budget = [
        [f"{budget:,} tokens", *(_cell(f"{kind}@{budget}", figures) for kind in kinds)] for budget in evaluation.budgets
    ]
    ranking = [f"ndcg@{DEPTH}", *(f"recall@{k}" for k in RECALLED_AT), "mrr"]
    of_hits = [[name_of(name), _cell(name, figures)] for name in ranking if name in figures]
    parts = ["<h2>All figures</h2>"]
    if by_budget:
        caption = (
            "Coverage: the share of what was expected that is really in the text. Complete: all of it is."
            " Precision: the share of the pieces shown that was expected."
        )
        parts.append(table(caption, ["Budget", "Coverage", "Complete", "Precision"], by_budget))
    if of_hits:
        parts.append("<h3>Order of the hits</h3>")
        parts.append(table("How high the expected hits stand in the search.", ["Figure", "Mean"], of_hits, narrow=True))
    return "\n".join(parts)


def differences_table(comparison: Comparison, before: str, after: str) -> str:
    """By how much each figure changed, and whether that is more than chance."""
    rows = [
        [
            name_of(name),
            _verdict(one.verdict),
            f"<b>{change_of(name, one.difference)}</b>",
            f"{change_of(name, one.low)} to {change_of(name, one.high)}" if one.questions > 1 else "–",
            value_of(name, one.before),
            value_of(name, one.after),
            f"{one.better:,} / {one.worse:,}",
        ]
        for name, one in comparison.differences.items()
    ]
    head = ["Figure", "Verdict", "Change", "95 % interval", text(before, 60), text(after, 60), "Better / worse"]
    caption = "Changes of percentages are in points. Better / worse counts the questions that went up and down."
    return "\n".join(
        [
            "<h2>Compared</h2>",
            f"<p>{text(after, 120)} against {text(before, 120)}, on {counted(comparison.questions, 'question')} that"
            " both were asked. A difference is called better or worse when its paired 95 % bootstrap interval leaves"
            f" out zero. Of {len(rows)} figures, one in twenty may do so by chance.</p>",
            f'<p class="faint">Left out: {comparison.left_out}.</p>' if comparison.left_out else "",
            table(caption, head, rows),
        ]
    )


def groups_table(evaluation: Evaluation) -> str:
    """The figures of each group of questions; nothing where the dataset has none."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(evaluation.rows):
        groups.setdefault(row.group, []).append(i)
    if set(groups) <= {""}:
        return ""
    values = evaluation.values()
    names = [*(f"cover@{budget}" for budget in evaluation.budgets), f"ndcg@{DEPTH}", "recall@5"]
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    rows = [
        [text(group, 80) if group else "(no group)", f"{len(places):,}", *(_of(places, name, values) for name in names)]
        for group, places in ordered[:_MOST_GROUPS]
    ]
    more = len(ordered) - _MOST_GROUPS
    return "\n".join(
        [
            "<h2>By group</h2>",
            table(
                "Means with 95 % intervals; the largest groups first.",
                ["Group", "Questions", *map(name_of, names)],
                rows,
            ),
            f'<p class="faint">{counted(more, "more group")} in the JSON report.</p>' if more > 0 else "",
        ]
    )


def about_list(evaluation: Evaluation, title: str) -> str:
    """What was measured, with what, and when."""
    told = {"configuration": evaluation.name, "budgets": [f"{budget:,}" for budget in evaluation.budgets]}
    items = [
        f"<dt>{text(_ABOUT.get(name, name.replace('_', ' ').capitalize()), 80)}</dt><dd>{text(_flat(value), 2000)}</dd>"
        for name, value in {**told, **evaluation.about}.items()
        if value not in (None, "", [], {}, ())
    ]
    return f"<h3>{title}</h3><dl>{''.join(items)}</dl>"


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_flat(one)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(map(_flat, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cell(name: str, figures: Mapping[str, Interval]) -> str:
    one = figures.get(name)
    if one is None:
        return "–"
    bounds = bounds_of(name, one)
    return f"{value_of(name, one.mean)} <small>{bounds}</small>" if bounds else value_of(name, one.mean)


def _of(places: Sequence[int], name: str, values: Mapping[str, Sequence[float | None]]) -> str:
    found = interval([value for i in places if (value := values[name][i]) is not None])
    # There are many columns: what is smaller stands below.
    return _cell(name, {name: found} if found else {}).replace(" <small>", "<br/><small>")


def _verdict(verdict: str) -> str:
    kind = f" {verdict}" if verdict in _MARKS else ""
    return f'<span class="verdict{kind}">{_MARKS.get(verdict, "·")} {verdict}</span>'
