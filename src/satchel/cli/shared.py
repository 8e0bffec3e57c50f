"""What the commands on a workspace have in common: their flags, opening it, and bringing it up to date."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from satchel.models.options import ContextFormat
from satchel.text.counted import counted

if TYPE_CHECKING:
    from satchel.indexing.indexer import IndexReport, Step
    from satchel.service.engine import ContextEngine
    from satchel.service.settings import Settings

_SHOWN_NOTES = 10
F = TypeVar("F", bound=Callable[..., Any])

PATH = click.argument("path", type=click.Path(), default=".")


def workspace_flags(command: F) -> F:
    """Where the index is, and what makes its vectors."""
    for option in reversed(
        (  # decorators are applied from below
            click.option("--index-dir", help="Keep indexes below this folder instead of the OS's cache."),
            click.option(
                "--store", metavar="URL", help="Keep the index in a database: postgresql://host/db?workspace=name."
            ),
            click.option(
                "--embedder",
                help="What makes vectors: static (built in), sentence-transformers:MODEL, fastembed:MODEL or "
                "openai:MODEL.",
            ),
            click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors."),
        )
    ):
        command = option(command)
    return command


# fmt: off
def context_flags(command: F) -> F:
    """How much is shown, in which form, counted for whom."""
    for option in reversed((  # decorators are applied from below
        click.option("-b", "--token-budget", "--max-tokens", "token_budget", type=click.IntRange(1),
                     help="Hard limit, counted on the finished text.  [default: 4000]"),
        click.option("-f", "--format", "format", type=click.Choice([one.value for one in ContextFormat]),
                     help="How the context is written.  [default: markdown]"),
        click.option("-k", "--top-k", "most", type=click.IntRange(1), help="At most this many pieces."),
        click.option("--model", help="Model, encoding or tokenizer.json to count for.  [default: gpt-4o]"),
        click.option("--min-relevance", type=click.FloatRange(0, 1), help="Leave out pieces below this."),
        click.option("--quick", is_flag=True, help="Answer from the index as it is; do not look for changes."),
    )):
        command = option(command)
    return command
# fmt: on


def filter_flags(command: F) -> F:
    """What may be found."""
    for option in reversed(
        (  # decorators are applied from below
            click.option("--include", multiple=True, metavar="GLOB", help="Only files that match; may be repeated."),
            click.option("--exclude", multiple=True, metavar="GLOB", help="No files that match; may be repeated."),
            click.option("--lang", "languages", multiple=True, metavar="LANGUAGE", help="Only these languages."),
            click.option(
                "--block-type",
                "types",
                multiple=True,
                metavar="TYPE",
                help="Only blocks of these types (class, function, todo, …).",
            ),
            click.option("--since", metavar="DATE", help="Only files modified on this day (2026-11-01) or later."),
            click.option("--until", metavar="DATE", help="Only files modified before the end of this day."),
        )
    ):
        command = option(command)
    return command


def settings_for(path: str, flags: dict[str, Any], *, heed_project: bool = True) -> Settings:
    """The settings of a workspace, the flags having the last word."""
    from satchel.service.factory.opening import settings_at

    names = (
        "index_dir",
        "store",
        "embedder",
        "token_budget",
        "format",
        "model",
        "top_k",
        "min_relevance",
        "include",
        "exclude",
    )
    given = {name: flags[name] for name in (*names, "languages", "ingest_on") if name in flags}
    return settings_at(path, given, heed_project=heed_project)


@contextmanager
def opened(path: str, settings: Settings) -> Iterator[ContextEngine]:
    """The engine for a workspace, closed at the end."""
    from satchel.service.factory.opening import open_engine

    with open_engine(path, settings=settings) as engine:
        yield engine


def bring_up(engine: ContextEngine, *, quick: bool, quiet: bool) -> IndexReport | None:
    """Index what has changed; when asked to be quick, only say what is not looked at."""
    from satchel.errors import IndexBusy

    if not engine.is_here:
        return None
    facts = engine.status()
    if not quick:
        bring_sources_up(engine, quiet=quiet)
    if quick and facts.generation:
        if not quiet:
            click.echo("satchel: answering from the index as it is (--quick)", err=True)
        return None
    changes = engine.changes()
    if engine.is_up(changes):
        return None
    try:
        return run_index(engine, quiet=quiet, changes=changes)
    except IndexBusy:
        if not facts.generation:
            if not quiet:
                click.echo("satchel: another process is indexing; waiting for it", err=True)
            return when_free(engine.index)
        if not quiet:
            click.echo("satchel: another process is indexing; answering from what is there", err=True)
        return None


def bring_sources_up(engine: ContextEngine, *, quiet: bool) -> None:
    """Import again what has changed where it was imported from."""
    from satchel.errors import IndexBusy, InvalidInput
    from satchel.text.visible import make_visible_line

    for source in engine.workspace.changed_sources():
        try:
            report = engine.workspace.import_from(source)
        except (IndexBusy, InvalidInput) as error:
            click.echo(f"satchel: {source.path} has changed and was not imported again: {error}", err=True)
            continue
        if not quiet:
            gone = f", {report.removed:,} removed" if report.removed else ""
            told = f"{source.kind} has changed: {report.counts['block']:,} blocks read again{gone}"
            for line in (told, *report.notes[:_SHOWN_NOTES]):
                click.echo(f"satchel: {make_visible_line(line).text}", err=True)


def when_free(work: Callable[[], IndexReport]) -> IndexReport:
    """Do the work when no other process is indexing any more."""
    from satchel.errors import IndexBusy

    while True:
        try:
            return work()
        except IndexBusy:
            time.sleep(0.2)


def run_index(engine: ContextEngine, *, quiet: bool, changes: Any = None) -> IndexReport:
    """Index with a progress bar where somebody is watching."""
    if quiet or not sys.stderr.isatty():
        report = engine.index(changes=changes)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        )  # fmt: skip
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("looking", total=None)

            def watch(step: Step) -> None:
                bar.update(task, description=step.doing, completed=step.done, total=step.of or None)

            report = engine.index(watch, changes=changes)
    if not quiet:
        click.echo(f"satchel: {described(report)}", err=True)
        unread = report.passed_over["document"]
        if unread:
            from satchel.indexing.documents.policy import can_read_documents

            told = "1 document was" if unread == 1 else f"{unread:,} documents were"
            why = (
                "the setting `documents` is off"
                if can_read_documents()
                else "pip install '.[documents]' in Satchel's checkout"
            )
            click.echo(f"satchel: {told} not read: {why}", err=True)
    return report


def with_progress(doing: str, work: Callable[[Callable[[int, int], None]], int], *, quiet: bool) -> int:
    """Do what counts its steps, with a progress bar where somebody is watching."""
    if quiet or not sys.stderr.isatty():
        return work(lambda _done, _of: None)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        return work(lambda done, of: bar.update(task, completed=done, total=of))


def described(report: IndexReport) -> str:
    """What an index run did, in a line."""
    parts = [f"{report.read:,} of {counted(report.found, 'file')} read"]
    if report.duplicates:
        parts.append(f"{report.duplicates:,} the same as others")
    if report.dropped:
        parts.append(f"{report.dropped:,} gone")
    if report.passed_over:
        parts.append(f"{sum(report.passed_over.values()):,} passed over")
    if not report.found and not report.passed_over:
        parts.append("there are no files here")
    if not report.found and report.passed_over:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in sorted(report.passed_over.items()))
        parts.append(f"nothing to read here ({reasons})")
    return f"indexed in {report.seconds:.1f} s: {', '.join(parts)}"
