"""Questions on the report page: the worst answers and the largest changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from satchel.evaluation.outcome import AtBudget, Evaluation, QuestionRow, paired
from satchel.evaluation.page.report_tables import text
from satchel.text.visible import counted

# A few screens of the worst questions; the rest of the list is folded.
_OPEN_QUESTIONS: Final = 15
# More questions make the page slow to open and nobody reads them; the JSON report has all.
_MAX_QUESTIONS: Final = 1000
# Per column (better, worse): both columns stay short enough to compare.
_MAX_CHANGED_QUESTIONS: Final = 8
# Per question: a question that expects hundreds of files must not push the next one off the screen.
_MAX_MISSING_ITEMS: Final = 12
# Smaller differences of coverage (0 to 1) are rounding errors of float64.
_EPSILON: Final = 1e-9


def worst(evaluation: Evaluation) -> str:
    """HTML list of all questions with incomplete contexts, worst first; only the first are unfolded."""
    rows = [row for row in evaluation.rows if any(at.cover < 1 or at.error for at in row.at)]
    if not rows:
        return "<h2>Questions answered worst</h2><p>Every context contained all expected results at every budget.</p>"
    rows.sort(key=lambda row: (sum(at.cover for at in row.at) / len(row.at), row.ranking.ndcg if row.ranking else 0.0))
    cases = [_case(row, map(_chip, row.at), _lacks(row)) for row in rows[:_MAX_QUESTIONS]]
    parts = [
        "<h2>Questions answered worst</h2>",
        f"<p>{counted(len(rows), 'question')} of {len(evaluation.rows):,} lacked an expected result at one budget or"
        " more; those with the lowest coverage over all budgets come first.</p>",
        f'<ul class="cases">{"".join(cases[:_OPEN_QUESTIONS])}</ul>',
    ]
    if len(cases) > _OPEN_QUESTIONS:
        rest = "".join(cases[_OPEN_QUESTIONS:])
        parts.append(
            f'<details><summary>{len(cases) - _OPEN_QUESTIONS:,} more</summary><ul class="cases">{rest}</ul></details>'
        )
    if len(rows) > _MAX_QUESTIONS:
        parts.append(f'<p class="faint">{len(rows) - _MAX_QUESTIONS:,} more are in the JSON report only.</p>')
    return "\n".join(parts)


def changed(before: Evaluation, after: Evaluation) -> str:
    """HTML of the questions with the largest changes, in both directions."""
    changes = [(_change(old, new), old, new) for old, new in paired(before, after)]
    changes.sort(key=lambda change: (-abs(change[0]), change[2].id))
    better = _column("Better", [(old, new) for change, old, new in changes if change > _EPSILON])
    worse = _column("Worse", [(old, new) for change, old, new in changes if change < -_EPSILON])
    return f'<h3>Questions that changed most</h3><div class="two">{better}{worse}</div>'


def _column(name: str, pairs: Sequence[tuple[QuestionRow, QuestionRow]]) -> str:
    cases = "".join(_case(new, _moves(old, new), _turns(old, new)) for old, new in pairs[:_MAX_CHANGED_QUESTIONS])
    more = (
        f'<p class="faint">{len(pairs) - _MAX_CHANGED_QUESTIONS:,} more</p>'
        if len(pairs) > _MAX_CHANGED_QUESTIONS
        else ""
    )
    return f'<div><h3>{name}: {counted(len(pairs), "question")}</h3><ul class="cases">{cases}</ul>{more}</div>'


def _case(row: QuestionRow, chips: Iterator[str], notes: Iterator[str]) -> str:
    labels = [text(label, 60) for label in (row.id if row.id != row.query else "", row.group) if label]
    faint = f'<p class="faint">{" · ".join(labels)}</p>' if labels else ""
    return (
        f'<li class="case"><p class="query">{text(row.query)}</p>{faint}'
        f'<div class="chips">{"".join(chips)}</div><ul>{"".join(f"<li>{note}</li>" for note in notes)}</ul></li>'
    )


def _chip(at: AtBudget) -> str:
    kind = " worse" if at.error or at.cover < _EPSILON else ""
    over = f", {at.tokens - at.budget:,} over budget" if at.over else ""
    share = "error" if at.error else f"{at.cover:.0%}".replace("%", " %")
    return f'<span class="chip{kind}">{at.budget:,} tokens: <b>{share}</b>{over}</span>'


def _lacks(row: QuestionRow) -> Iterator[str]:
    """Missing items with the budgets concerned, then errors with the budgets concerned."""
    missing: dict[str, list[int]] = {}
    errors: dict[str, list[int]] = {}
    for at in row.at:
        for item in () if at.error else at.missing:
            missing.setdefault(item, []).append(at.budget)
        if at.error:
            errors.setdefault(at.error, []).append(at.budget)
    together: dict[tuple[int, ...], list[str]] = {}
    for item, budgets in list(missing.items())[:_MAX_MISSING_ITEMS]:
        together.setdefault(tuple(budgets), []).append(f"<code>{text(item, 200)}</code>")
    for where, items in together.items():
        yield f"missing or cut {_where(where, row)}: {', '.join(items)}"
    if len(missing) > _MAX_MISSING_ITEMS:
        yield f"and {counted(len(missing) - _MAX_MISSING_ITEMS, 'more missing thing')}"
    for error, budgets in errors.items():
        yield f'<span class="error">error {_where(budgets, row)}: {text(error)}</span>'


def _where(budgets: Sequence[int], row: QuestionRow) -> str:
    if len(budgets) == len(row.at):
        return "at every budget"
    *others, last = (f"{budget:,}" for budget in budgets)
    return f"at {', '.join(others)} and {last}" if others else f"at {last}"


def _both(old: QuestionRow, new: QuestionRow) -> list[tuple[AtBudget, AtBudget]]:
    cells = {at.budget: at for at in old.at}
    return [(cells[at.budget], at) for at in new.at if at.budget in cells]


def _change(old: QuestionRow, new: QuestionRow) -> float:
    both = _both(old, new)
    return sum(b.cover - a.cover for a, b in both) / len(both) if both else 0.0


def _moves(old: QuestionRow, new: QuestionRow) -> Iterator[str]:
    for a, b in _both(old, new):
        apart = b.cover - a.cover
        kind = " better" if apart > _EPSILON else " worse" if apart < -_EPSILON else ""
        shares = f"{a.cover * 100:.0f} → <b>{b.cover * 100:.0f} %</b>"
        yield f'<span class="chip{kind}">{b.budget:,} tokens: {shares}</span>'


def _turns(old: QuestionRow, new: QuestionRow) -> Iterator[str]:
    """Items gained and lost, at the largest budget with a difference."""
    for a, b in reversed(_both(old, new)):
        for error, when in ((a.error, "before"), (b.error, "now")):
            if error and a.error != b.error:
                yield f'<span class="error">error {when}: {text(error)}</span>'
        if a.error or b.error or a.missing == b.missing:
            continue
        gained = [item for item in a.missing if item not in b.missing]
        lost = [item for item in b.missing if item not in a.missing]
        for word, items in (("there now", gained), ("no longer whole", lost)):
            for item in items[:3]:
                yield f"{word} at {b.budget:,}: <code>{text(item, 120)}</code>"
        return
