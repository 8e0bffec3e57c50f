"""What the commands on a workspace have in common: their flags, and opening its client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from satchel.models.options import ContextFormat

if TYPE_CHECKING:
    from satchel.service.local_client import LocalSatchel

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


def workspace_settings(flags: dict[str, Any], *more: str) -> dict[str, Any]:
    """The settings that the flags change."""
    return {name: flags[name] for name in ("index_dir", "store", "embedder", *more) if flags.get(name)}


@contextmanager
def open_client(
    path: str, flags: dict[str, Any], *settings: str, user: str | None = None, encoding: Any = None
) -> Iterator[LocalSatchel]:
    """The client of a workspace, closed at the end; index runs show their progress and say what they did on stderr.

    `settings` names the flags that change settings, beside those that every command has. `encoding` is a tokenizer
    that is loaded already.
    """
    from satchel.cli.progress import ProgressBar
    from satchel.models.request import User
    from satchel.service.auto_index import IndexState
    from satchel.service.identity import OWNER, Caller
    from satchel.service.local_client import open_local

    quiet, bar = flags["quiet"], ProgressBar(quiet=flags["quiet"])

    def watch(state: IndexState) -> None:
        if state.running:
            bar.show(state.doing, state.done, state.of)
        else:
            bar.stop()

    def report(sentence: str, is_problem: bool) -> None:
        bar.stop()
        if is_problem or not quiet:
            say(sentence)

    caller = Caller(user=User(id=user), is_owner=True) if user else OWNER
    changed = workspace_settings(flags, *settings)
    with bar, open_local(path, caller=caller, busy_wait_s=0.0, encoding=encoding, **changed) as client:
        yield replace(client, watch=watch, report=report, quick=flags.get("quick", False))


def say(text: str) -> None:
    """Print a line on stderr, with nothing in it that a terminal would obey."""
    from satchel.text.visible import make_visible_line

    click.echo(f"satchel: {make_visible_line(text).text}", err=True)
