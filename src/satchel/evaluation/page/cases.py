"""Single questions on the report: those that were answered worst, and those that changed most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from satchel.evaluation.outcome import AtBudget, Evaluation, Row, paired
from satchel.evaluation.page.tables import joined, text
from satchel.text.visible import counted

_OPEN: Final = 15
_MOST: Final = 1000
_CHANGED: Final = 8
_ITEMS: Final = 12
_EPSILON: Final = 1e-9


def worst(evaluation: Evaluation) -> str:
    """Every question whose context lacked something, the worst first; the first ones open."""
    rows = sorted((row for row in evaluation.rows if _lacking(row)), key=_goodness)
    if not rows:
        return "<h2>Questions answered worst</h2><p>Every context held all that was expected, at every budget.</p>"
    cases = [_case(row, _chips(row.at), _lacks(row)) for row in rows[:_MOST]]
    parts = [
        "<h2>Questions answered worst</h2>",
        f"<p>{counted(len(rows), 'question')} of {len(evaluation.rows):,} lacked something at one budget or more;"
        " those with the lowest coverage over all budgets come first.</p>",
        f'<ul class="cases">{"".join(cases[:_OPEN])}</ul>',
    ]
    if len(cases) > _OPEN:
        rest = "".join(cases[_OPEN:])
        parts.append(f'<details><summary>{len(cases) - _OPEN:,} more</summary><ul class="cases">{rest}</ul></details>')
    if len(rows) > _MOST:
        parts.append(f'<p class="faint">{len(rows) - _MOST:,} more are in the JSON report only.</p>')
    return "\n".join(parts)


def changed(before: Evaluation, after: Evaluation) -> str:
    """The questions that fare most differently, in both directions."""
    known = [(_change(old, new), old, new) for old, new in paired(before, after)]
    up = sorted((one for one in known if one[0] > _EPSILON), key=lambda one: (-one[0], one[2].id))
    down = sorted((one for one in known if one[0] < -_EPSILON), key=lambda one: (one[0], one[2].id))
    columns = [_column("Better", up), _column("Worse", down)]
    return f'<h3>Questions that changed most</h3><div class="two">{"".join(columns)}</div>'


def _column(name: str, found: Sequence[tuple[float, Row, Row]]) -> str:
    cases = "".join(_case(new, _moves(old, new), _turned(old, new)) for _, old, new in found[:_CHANGED])
    more = f'<p class="faint">{len(found) - _CHANGED:,} more</p>' if len(found) > _CHANGED else ""
    return f'<div><h3>{name}: {counted(len(found), "question")}</h3><ul class="cases">{cases}</ul>{more}</div>'


def _case(row: Row, chips: Iterator[str], notes: Iterator[str]) -> str:
    named = [text(one, 60) for one in (row.id if row.id != row.query else "", row.group) if one]
    faint = f'<p class="faint">{" · ".join(named)}</p>' if named else ""
    return (
        f'<li class="case"><p class="query">{text(row.query)}</p>{faint}'
        f'<div class="chips">{"".join(chips)}</div><ul>{"".join(f"<li>{note}</li>" for note in notes)}</ul></li>'
    )


def _lacking(row: Row) -> bool:
    return any(at.cover < 1 or at.error for at in row.at)


def _goodness(row: Row) -> tuple[float, float]:
    return sum(at.cover for at in row.at) / len(row.at), row.ranking.ndcg if row.ranking else 0.0


def _chips(cells: Sequence[AtBudget]) -> Iterator[str]:
    for at in cells:
        kind = " worse" if at.error or at.cover < _EPSILON else ""
        over = f", {at.tokens - at.budget:,} over budget" if at.over else ""
        told = "error" if at.error else f"{at.cover:.0%}".replace("%", " %")
        yield f'<span class="chip{kind}">{at.budget:,} tokens: <b>{told}</b>{over}</span>'


def _lacks(row: Row) -> Iterator[str]:
    """What is missing with the budgets it is missing at, then the errors with theirs."""
    missing: dict[str, list[int]] = {}
    errors: dict[str, list[int]] = {}
    for at in row.at:
        if at.error:
            errors.setdefault(at.error, []).append(at.budget)
            continue
        for one in at.missing:
            missing.setdefault(one, []).append(at.budget)
    together: dict[tuple[int, ...], list[str]] = {}
    for one, budgets in list(missing.items())[:_ITEMS]:
        together.setdefault(tuple(budgets), []).append(f"<code>{text(one, 200)}</code>")
    for where, items in together.items():
        yield f"missing or cut {_where(where, row)}: {', '.join(items)}"
    if len(missing) > _ITEMS:
        yield f"and {counted(len(missing) - _ITEMS, 'more missing thing')}"
    for error, budgets in errors.items():
        yield f'<span class="error">error {_where(budgets, row)}: {text(error)}</span>'


def _where(budgets: Sequence[int], row: Row) -> str:
    return "at every budget" if len(budgets) == len(row.at) else f"at {joined([f'{budget:,}' for budget in budgets])}"


def _both(old: Row, new: Row) -> list[tuple[AtBudget, AtBudget]]:
    cells = {at.budget: at for at in old.at}
    return [(cells[at.budget], at) for at in new.at if at.budget in cells]


def _change(old: Row, new: Row) -> float:
    both = _both(old, new)
    return sum(b.cover - a.cover for a, b in both) / len(both) if both else 0.0


def _moves(old: Row, new: Row) -> Iterator[str]:
    for a, b in _both(old, new):
        apart = b.cover - a.cover
        kind = " better" if apart > _EPSILON else " worse" if apart < -_EPSILON else ""
        told = f"{a.cover * 100:.0f} → <b>{b.cover * 100:.0f} %</b>"
        yield f'<span class="chip{kind}">{b.budget:,} tokens: {told}</span>'


def _turned(old: Row, new: Row) -> Iterator[str]:
    """What is there now, or no longer, at the largest budget where that differs."""
    for a, b in reversed(_both(old, new)):
        for error, when in ((a.error, "before"), (b.error, "now")):
            if error and a.error != b.error:
                yield f'<span class="error">error {when}: {text(error)}</span>'
        if a.error or b.error or a.missing == b.missing:
            continue
        found = [one for one in a.missing if one not in b.missing]
        lost = [one for one in b.missing if one not in a.missing]
        for word, items in (("there now", found), ("no longer whole", lost)):
            for one in items[:3]:
                yield f"{word} at {b.budget:,}: <code>{text(one, 120)}</code>"
        return
