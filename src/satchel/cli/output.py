"""Output of commands: data to stdout or atomically into a file; messages to stderr."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.cli.exits import Exit
from satchel.models.context import ContextKind, Fate
from satchel.models.options import OverflowPolicy
from satchel.text.visible import counted, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from satchel.models.context import Context, Ledger, Sufficiency


def print_context(
    context: Context, output: Path | None, *, as_json: bool = False, provider_content: object = None
) -> None:
    """Write a context as text, as JSON, or as a provider's message content; write nothing for an empty context."""
    if as_json:
        write_json(context.to_dict(), output)
    elif provider_content is not None and context.text:
        write_json(provider_content, output)
    elif context.text:
        write_context(context.text, output)


def write_context(text: str, output: Path | None) -> None:
    """Write the text for a model; to programs and files without a final line end, a possible extra token."""
    _write(f"{text}\n" if output is None and sys.stdout.isatty() else text, output)


def write_output(text: str, output: Path | None) -> None:
    """Write the text and a final line end."""
    _write(f"{text}\n", output)


def write_json(value: object, output: Path | None = None) -> None:
    """Write a value as JSON."""
    write_output(json.dumps(value, ensure_ascii=False, indent=2), output)


def _write(text: str, output: Path | None) -> None:
    data = text.encode()
    if output is None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            exit_by_sigpipe()
        return
    try:
        # Write through a symbolic link to its target.
        target = output.resolve()
        if target.exists() and not target.is_file():
            # Write into a pipe or a device instead of replacing it.
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(output)) from None


def exit_by_sigpipe() -> None:
    """End silently by SIGPIPE when the reader of a pipe is gone (`| head`), like any Unix program."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


def _replace(target: Path, data: bytes) -> None:
    """Replace a file atomically through a temporary file: interruptions leave the old or the new file, never a part."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, _mode_for(target))
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _mode_for(target: Path) -> int:
    """Permissions of the existing file, or the default permissions of a new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class ProgressBar:
    """A progress bar on stderr, drawn from the first `show` until `stop`; disabled if stderr is no terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._is_off = quiet or not sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def show(self, doing: str, done: int, of: int = 0) -> None:
        """Show the progress: `done` of `of` (0: unknown)."""
        if self._is_off:
            return
        if self._bar is None:
            from rich import progress
            from rich.console import Console

            counts = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
            columns = (progress.SpinnerColumn(), progress.TextColumn("{task.description}"), *counts)
            self._bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(doing, total=None)
        self._bar.update(self._task, description=doing, completed=done, total=of or None)

    def stop(self) -> None:
        """Remove the bar; the next `show` draws a new bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


_UNITS: Final = {ContextKind.CHUNKS: "hit", ContextKind.WORKSPACE: "block", ContextKind.RESEARCH: "page"}
_COLUMNS: Final = ("number", "fate", "reason", "score", "tokens", "hit")
_FILE_WIDTH_CHARS: Final = 200  # of a table in a file or pipe; a narrower table would wrap ids, hard to search
_MIN_SIGNALS_WIDTH_CHARS: Final = 150  # a narrower terminal would fold the column of signals; they go beneath the hit
_MIN_TRIM_BUDGET_TOKENS: Final = 150
"""With a smaller budget a trimmed hit would hardly say anything, so trimming is not suggested."""


def summarize(
    context: Context,
    counted_by: str,
    *,
    is_explained: bool = False,
    overflow: OverflowPolicy = OverflowPolicy.TRUNCATE,
    if_none: str = "no results",
) -> None:
    """Print counts of included and omitted pieces, and advice, on stderr; `if_none` if there were no candidates."""
    if not len(context.ledger):
        say(if_none)
    else:
        say(_included(context, counted_by))
        hint = "" if is_explained else " (--explain shows each)"
        for fate, words in ((Fate.DROPPED, "left out"), (Fate.MERGED, "merged into another piece")):
            reasons = Counter(entry.reason.value for entry in context.ledger.with_fate(fate))
            if reasons:
                say(f"{words}: {', '.join(f'{count} {reason}' for reason, count in sorted(reasons.items()))}{hint}")
        if context.nothing_fits:
            say(_way_out(context, overflow))
    if context.sufficiency and context.sufficiency.reasons:
        say(describe_doubt(context.sufficiency))
    for note in context.notes:
        say(note)


def describe_doubt(sufficiency: Sufficiency) -> str:
    """A line that says that the context probably does not answer, and why."""
    reasons = "; ".join(sufficiency.reasons)
    return f"this probably does not answer the question ({sufficiency.probability:.0%}): {reasons}"


def leave_if_insufficient(context: Context, min_sufficiency: float | None) -> None:
    """Exit with code 3 if the caller asks for a sufficiency that the context does not have."""
    if context.sufficiency and context.sufficiency.probability < (min_sufficiency or 0.0):
        sys.exit(Exit.NOTHING_FOUND)


def nothing_found(filters: str) -> str:
    """Message for an empty result, with the active filters."""
    return f"no results (filters: {filters})" if filters else "no results"


def leave_if_empty(context: Context) -> None:
    """Exit with code 3 or 4 if the context is empty."""
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
        f"{context.tokens:,} of {context.budget:,} tokens ({counted_by}{', estimated' if context.is_estimated else ''})"
    )


def _way_out(context: Context, overflow: OverflowPolicy) -> str:
    """Advice on options for fitting at least the smallest or best hit."""
    waiting = [entry for entry in context.ledger if entry.tokens]
    least = min(entry.tokens for entry in waiting)
    if least <= context.budget and overflow is OverflowPolicy.STOP:
        best = max(waiting, key=lambda entry: entry.score).tokens
        return f"the best hit has {best:,} tokens, and --overflow stop ends there; use --overflow skip or truncate"
    can_trim = context.budget >= _MIN_TRIM_BUDGET_TOKENS and overflow is not OverflowPolicy.TRUNCATE
    trim = ", or use --overflow truncate" if can_trim else ""
    return f"no hit fits the budget; the smallest has {least:,} tokens: raise --token-budget{trim}"


def explain(ledger: Ledger, *, signals: bool = False) -> None:
    """Print the fate of every hit as a table on stderr; with `signals`, with the reasons for each hit on stdout."""
    from rich.console import Console
    from rich.table import Table

    # A file or a pipe has no width, and a wrapped table is hard to search.
    stream = sys.stdout if signals else sys.stderr
    console = Console(
        stderr=not signals, markup=False, highlight=False, width=None if stream.isatty() else _FILE_WIDTH_CHARS
    )
    beneath = signals and console.width < _MIN_SIGNALS_WIDTH_CHARS
    table = Table(box=None, header_style="bold")
    for name in (*_COLUMNS, *(["why"] if signals and not beneath else [])):
        table.add_column(name, justify="right" if name in ("number", "score", "tokens") else "left", overflow="fold")
    for entry in ledger:
        into = f" → {entry.into}" if entry.into else ""
        score = f"{entry.score:.3f}"
        spoke = _strongest(entry.signals, entry.id) if signals else ""
        hit = f"{entry.id}{into}" + (f"\n  {spoke}" if beneath and spoke else "")
        row = [str(entry.number or ""), entry.fate, entry.reason, score, str(entry.tokens), hit]
        table.add_row(*row, *([spoke] if signals and not beneath else []))
    console.print(table)


def _strongest(signals: Mapping[str, float], place: str, most: int = 4) -> str:
    """The reasons with the largest contributions, with sign."""
    from satchel.service.answering import reasons_in_words

    reasons = reasons_in_words(signals, place)[:most]
    return "; ".join(f"{make_visible_line(reason).text} {value:+.2f}" for reason, value in reasons)


def say(text: str) -> None:
    """Print a line on stderr, with terminal control characters made visible."""
    click.echo(f"satchel: {make_visible_line(text).text}", err=True)
