"""The section of docs/benchmarks.md on what contexts show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.shown.notes import BUDGETS as NOTES_BUDGETS
from benchmarks.shown.notes import WAYS

HEADING: Final = "## What is shown"

INTRODUCTION: Final = """\
Coverage counts lines of the right files; this part counts whether a reader can use what is there. Measured by `make bench PARTS=shown` ({minutes} minutes on {cores} shared cores,
load {load} when it began, {date}, {mode}), on indexes made from nothing, with default options. In brackets is the 95 % interval of a bootstrap over the questions.
Nothing here is held out: the ranker's weights were fitted on these questions, and what is shown was developed with them and with such symbols."""

DEFINITIONS: Final = """\
A **symbol** is the name of a definition that no other definition of its repository has, outside of tests, examples and documentation; each repository gives some by a seeded
sample, a quarter of them methods, and the name alone is the question. A **piece** begins inside a body if its first line is inside a definition, is not the first line of a
definition in it, and neither an elision line nor `lines 5-8 of 20` in the heading stands before it. A **cut** shows part of a definition or section (part of a file that has none); it is marked
by elision lines, a receipt, or that heading. A **fragment** is a piece of one line with fewer than 12 tokens. An answer in **notes** is whole if all its lines are in the text, without
their markup; the question at the end of a context does not count."""

AT_BUDGETS: Final = """\
By budget: coverage (as in the scoreboard), the mean tokens spent, and the shares of these that are from expected files, and of the budget that are frame (headings,
fences, receipts) and elision lines. Packing stops when nothing left is worth its tokens, so that larger budgets are not filled."""


MISSED: Final = """\
**Missed, and why.** Of the answers that are missed in imported notes most are ranked too low: the question says in other words what the note says (*ticked off* for *completed*), which neither words nor our vectors relate. At 1,000 tokens
several answers are longer than what is left beside the best other section. Headings with paths, symbols and lines take more of a budget of 1,000 tokens than the 9 % that were wanted: a heading has some thirty tokens, half of them the path.
The rows for notes and contracts rest on few questions, as their intervals say."""


class Row:
    """A row of the table of targets."""

    def __init__(self, what: str, measured: str, target: str = "", *, met: bool | None = None) -> None:
        verdict = "" if met is None else "yes" if met else "NO"
        self.line = f"| {what} | {measured} | {target} | {verdict} |"


def section(results: Mapping[str, Any]) -> str:
    """The section, with its heading."""
    parts = [HEADING, INTRODUCTION.format(**results["run"])]
    rows = [*_symbol_rows(results), *_piece_rows(results), *_share_rows(results)]
    rows += [*_notes_rows(results), *_peer_rows(results)]
    parts.append("\n".join(["| what | measured | target | met |", "|---|--:|--:|---|", *(row.line for row in rows)]))
    parts += [MISSED, DEFINITIONS, AT_BUDGETS, *_budget_tables(results)]
    if missing := results["missing"]:
        parts.append("Not measured: " + "; ".join(f"{name}: {reason}" for name, reason in missing.items()) + ".")
    return "\n\n".join(parts) + "\n"


def _symbol_rows(results: Mapping[str, Any]) -> Iterator[Row]:
    figures = results.get("symbols")
    if not figures:
        return
    count = f"{figures['symbols']:,} symbols"
    yield _at_least(f"{count}: line of the definition shown at 1,000 tokens", figures["line@1000"], 0.98)
    yield _at_least("… at 2,000 tokens", figures["line@2000"], 0.99)
    small = f"… definitions up to 800 tokens ({figures['small']:,}) shown whole at 2,000"
    yield _at_least(small, figures["whole@2000"], 0.9)


def _piece_rows(results: Mapping[str, Any]) -> Iterator[Row]:
    sets = results["sets"]
    for name in (name for name, figures in sets.items() if figures["kind"] == "code"):
        pieces, share = sets[name]["pieces"], sets[name]["inside_body"]
        met = share[0] <= 0.03
        yield Row(f"{name}: pieces ({pieces:,}) that begin inside a body", _percent(share), "≤ 3 %", met=met)
    for name, figures in sets.items():
        unmarked, fragments = figures["unmarked"], figures["with_fragments"]
        cut = f"{unmarked:,} of {figures['pieces']:,}"
        yield Row(f"{name}: pieces cut without a mark", cut, "0", met=not unmarked)
        small = f"{fragments:,} of {figures['contexts']:,}"
        yield Row(f"{name}: contexts with a fragment", small, "0", met=not fragments)


def _share_rows(results: Mapping[str, Any]) -> Iterator[Row]:
    for name, figures in results["sets"].items():
        if figures["kind"] == "code":
            for budget, target in ((2000, 0.45), (4000, 0.40)):
                what = f"{name}: tokens from expected files at {budget:,}"
                yield _at_least(what, figures["at"][str(budget)]["expected"], target)


def _notes_rows(results: Mapping[str, Any]) -> Iterator[Row]:
    figures = results.get("notes")
    if not figures:
        return
    for budget, target in zip(NOTES_BUDGETS, (0.90, 0.97), strict=True):
        what = f"notes ({figures['questions']} questions): answer whole at {budget:,}, imported"
        yield _at_least(what, figures[f"imported@{budget}"], target)
        others = ", ".join(f"{way} {_share(figures[f'{way}@{budget}'])}" for way in WAYS[1:])
        apart = figures[f"imported-files@{budget}"]
        what = f"… imported less as plain files ({others})"
        yield Row(what, _points(apart), "≥ 0", met=apart[0] >= 0)
    if figures["errors"]:
        yield Row("notes: contexts that could not be built", str(figures["errors"]), "0", met=False)
    if figures["late"]:
        what = "notes: contexts without a collector that was late (measure again on a quieter machine)"
        yield Row(what, str(figures["late"]), "0", met=False)


def _peer_rows(results: Mapping[str, Any]) -> Iterator[Row]:
    figures = results.get("contracts")
    if figures:
        scores = f"{figures['ours']:.3f} and {figures['theirs']:.3f}"
        what = f"contracts ({figures['questions']} questions): {figures['figure']} less {figures['peer']}'s ({scores})"
        yield Row(what, _points(figures["ahead"]), "≥ +0.05", met=figures["ahead"][0] >= 0.05)


def _budget_tables(results: Mapping[str, Any]) -> Iterator[str]:
    head = "| set | budget | coverage | tokens spent | from expected files | frame | elision lines |"
    rows = [head, "|---|--:|--:|--:|--:|--:|--:|"]
    for name, figures in results["sets"].items():
        title = f"{name} ({figures['questions']:,})"
        for budget, at in figures["at"].items():
            shares = " | ".join(_percent(at[column]) for column in ("frame", "elisions"))
            expected = _share(at["expected"])
            rows.append(
                f"| {title} | {int(budget):,} | {_share(at['cover'])} | {at['tokens'][0]:,.0f} | {expected} | {shares} |"
            )
            title = ""
    if len(rows) > 2:
        yield "\n".join(rows)


def _at_least(what: str, figure: Sequence[float], target: float) -> Row:
    is_share_of_tokens = target < 0.5
    measured = _share(figure) if is_share_of_tokens else _percent(figure)
    return Row(
        what,
        measured,
        f"≥ {target:.2f}" if is_share_of_tokens else f"≥ {target:.0%}".replace("%", " %"),
        met=figure[0] >= target,
    )


def _percent(figure: Sequence[float]) -> str:
    share, low, high = (100 * value for value in figure)
    return f"{share:.1f} % ({low:.1f}–{high:.1f})"


def _share(figure: Sequence[float]) -> str:
    share, low, high = figure
    return f"{share:.3f} ({low:.2f}–{high:.2f})"


def _points(figure: Sequence[float]) -> str:
    apart, low, high = figure
    return f"{apart:+.3f} ({low:+.3f} to {high:+.3f})"
