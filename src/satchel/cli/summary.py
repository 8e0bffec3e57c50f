"""What the command line says on stderr about a build."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

from satchel.cli.exits import Exit
from satchel.cli.options import say
from satchel.models.context import ContextKind, Fate
from satchel.models.options import OverflowPolicy
from satchel.text.visible import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.models.context import Context, Ledger


_UNITS: Final = {ContextKind.CHUNKS: "hit", ContextKind.WORKSPACE: "block", ContextKind.RESEARCH: "page"}
_COLUMNS: Final = ("number", "fate", "reason", "score", "tokens", "hit")
_WIDE_CHARS: Final = 200
_ROOM_FOR_SIGNALS_CHARS: Final = 150
_ROOM_TO_TRIM_TOKENS: Final = 150
"""Below such a budget a trimmed hit would hardly say anything."""


def summarize(
    context: Context,
    counted_by: str,
    *,
    is_explained: bool = False,
    overflow: OverflowPolicy = OverflowPolicy.TRUNCATE,
    if_none: str = "nothing was found",
) -> None:
    """Say what came out, what did not, and what to do about it; `if_none` where there was nothing to choose from."""
    if not len(context.ledger):
        say(if_none)
    else:
        say(_included(context, counted_by))
        hint = "" if is_explained else " (--explain shows each)"
        for fate, words in ((Fate.DROPPED, "left out"), (Fate.MERGED, "written as part of another")):
            reasons = Counter(entry.reason.value for entry in context.ledger.with_fate(fate))
            if reasons:
                say(f"{words}: {', '.join(f'{count} {reason}' for reason, count in sorted(reasons.items()))}{hint}")
        if context.nothing_fits:
            say(_way_out(context, overflow))
    for note in context.notes:
        say(note)


def nothing_found(filters: str) -> str:
    """That nothing was found, and which filters were on."""
    return f"nothing was found (filters: {filters})" if filters else "nothing was found"


def leave_if_empty(context: Context) -> None:
    """End with the exit code for a context that has nothing in it."""
    if context.is_empty:
        sys.exit(Exit.OVER_BUDGET if context.nothing_fits else Exit.NOTHING_FOUND)


def _included(context: Context, counted_by: str) -> str:
    included = len(context.ledger.with_fate(Fate.KEPT, Fate.TRIMMED))
    sections = Counter(source.section for source in context.sources if source.section)
    where = f" ({', '.join(f'{count} {name}' for name, count in sections.items())})" if sections else ""
    paths = {source.path for source in context.sources if source.path}
    files = f", {counted(len(paths), 'file')}" if paths else ""
    return (
        f"{included} of {counted(len(context.ledger), _UNITS[context.kind])}{where}{files}, "
        f"{context.tokens:,} of {context.budget:,} tokens ({counted_by})"
    )


def _way_out(context: Context, overflow: OverflowPolicy) -> str:
    """What would get at least one hit in."""
    waiting = [entry for entry in context.ledger if entry.tokens]
    least = min(entry.tokens for entry in waiting)
    if least <= context.budget and overflow is OverflowPolicy.STOP:
        best = max(waiting, key=lambda entry: entry.score).tokens
        return f"the best hit takes {best:,} tokens and nothing is taken after it; use --overflow skip or truncate"
    can_trim = context.budget >= _ROOM_TO_TRIM_TOKENS and overflow is not OverflowPolicy.TRUNCATE
    trim = ", or use --overflow truncate" if can_trim else ""
    return f"no hit fits; the smallest takes {least:,} tokens: raise --token-budget{trim}"


def explain(ledger: Ledger, *, signals: bool = False) -> None:
    """A table of what became of every hit, on stderr; with its signals it is what was asked for, and goes to stdout."""
    from rich.console import Console
    from rich.table import Table

    # Beside a terminal nobody sees where a line ends, and a wrapped table is hard to search.
    stream = sys.stdout if signals else sys.stderr
    console = Console(stderr=not signals, markup=False, highlight=False, width=None if stream.isatty() else _WIDE_CHARS)
    beneath = signals and console.width < _ROOM_FOR_SIGNALS_CHARS
    table = Table(box=None, header_style="bold")
    for name in (*_COLUMNS, *(["what spoke for it"] if signals and not beneath else [])):
        table.add_column(name, justify="right" if name in ("number", "score", "tokens") else "left", overflow="fold")
    for entry in ledger:
        into = f" → {entry.into}" if entry.into else ""
        score = f"{entry.score:.3f}"
        spoke = _strongest(entry.signals) if signals else ""
        hit = f"{entry.id}{into}" + (f"\n  {spoke}" if beneath and spoke else "")
        row = [str(entry.number or ""), entry.fate, entry.reason, score, str(entry.tokens), hit]
        table.add_row(*row, *([spoke] if signals and not beneath else []))
    console.print(table)


def _strongest(signals: Mapping[str, float], most: int = 5) -> str:
    """The signals that mattered most, with their sign."""
    ordered = sorted(signals.items(), key=lambda entry: -abs(entry[1]))
    return " ".join(f"{name}{value:+.2f}" for name, value in ordered[:most] if name != "piece")
