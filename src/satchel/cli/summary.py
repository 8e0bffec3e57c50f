"""What the command line says on stderr about a build."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.models.ledger import Fate
from satchel.models.options import OverflowPolicy
from satchel.text.counted import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.models.ledger import Ledger
    from satchel.models.payload import ContextPayload
    from satchel.models.result import ContextBuildResult


_COLUMNS: Final = ("number", "fate", "reason", "score", "tokens", "hit")
_WIDE_CHARS: Final = 200
_ROOM_FOR_SIGNALS_CHARS: Final = 150


def summarize(result: ContextBuildResult, given: int, flags: dict[str, Any]) -> None:
    """A line on what came out, one on what did not, and what to do about it."""
    if not given:
        if flags.get("searched"):
            tell_nothing_found(flags["filters"])
        else:
            _say("no hits were given")
        for note in result.notes:
            _say(note)
        return
    how = flags["model"] if flags["count"] == "exact" else f"estimated by {flags['count']}"
    _say(
        f"{result.chunks_included} of {counted(given, 'hit')}, {counted(result.file_count, 'file')}, "
        f"{result.estimated_tokens:,} of {flags['token_budget']:,} tokens ({how})"
    )
    hint = "" if flags["explain"] else " (--explain shows each)"
    for fate, words in ((Fate.DROPPED, "left out"), (Fate.MERGED, "written as part of another")):
        reasons = Counter(entry.reason.value for entry in result.ledger.with_fate(fate))
        if reasons:
            _say(f"{words}: {', '.join(f'{count} {reason}' for reason, count in sorted(reasons.items()))}{hint}")
    if result.is_empty and result.chunks_truncated:
        _say(_way_out(result, flags))
    for note in result.notes:
        _say(note)


def tell_nothing_found(filters: str) -> None:
    """That nothing was found, and among what."""
    _say(f"nothing was found among what {filters} lets through" if filters else "nothing was found")


def summarize_payload(payload: ContextPayload) -> None:
    """A line on what came out, one on what did not, and what the caller should know."""
    meta = payload.metadata
    counts = ", ".join(f"{len(section.items)} {section.type.value}" for section in payload.sections if section.items)
    _say(
        f"{meta.blocks_included} of {counted(meta.blocks_considered, 'block')} ({counts or 'none'}), "
        f"{meta.total_tokens:,} tokens"
    )
    reasons = Counter(entry.reason.value for entry in payload.ledger.with_fate(Fate.DROPPED))
    if reasons:
        _say(f"left out: {', '.join(f'{count} {reason}' for reason, count in sorted(reasons.items()))}")
    for note in payload.notes:
        _say(note)


def _way_out(result: ContextBuildResult, flags: dict[str, Any]) -> str:
    """What would get at least one hit in."""
    waiting = [entry for entry in result.ledger if entry.tokens]
    least = min(entry.tokens for entry in waiting)
    if least <= flags["token_budget"] and flags["overflow"] == OverflowPolicy.STOP:
        best = max(waiting, key=lambda entry: entry.score).tokens
        return f"the best hit takes {best:,} tokens and nothing is taken after it; use --overflow skip or truncate"
    trim = ", or use --overflow truncate" if flags["token_budget"] >= 150 and flags["overflow"] != "truncate" else ""
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


def _say(text: str) -> None:
    from satchel.text.visible import make_visible_line

    click.echo(f"satchel: {make_visible_line(text).text}", err=True)
