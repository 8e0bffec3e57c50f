"""`satchel build` and `satchel explain`: the context for a question, or the reason for every piece in the context."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.flags import OUTPUT, QUICK, WorkspaceFlags, open_asked, with_question, with_roots
from satchel.cli.output import (
    explain,
    leave_if_empty,
    leave_if_insufficient,
    nothing_found,
    print_context,
    say,
    summarize,
    write_json,
)
from satchel.service.question import Surface, options_of

if TYPE_CHECKING:
    from satchel.models.context import Context
    from satchel.service.question import Question


@click.command("build", short_help="Print a context for a question about a folder.")
@with_question(Surface.BUILD)
@QUICK
@with_roots
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON: text, sources, ledger.")
@click.option("--explain", "explains", is_flag=True, help="Print on stderr why each piece was included or left out.")
@OUTPUT
@click.pass_obj
def build_command(
    encoding: object,
    /,
    *,
    question: Question,
    workspace: WorkspaceFlags,
    quick: bool,
    as_json: bool,
    explains: bool,
    output: Path | None,
) -> None:
    """Print a context that answers QUESTION from the files below PATH, within the token budget.

    The folder is indexed first; later only what has changed is. With --focus, --user, --type, --hint or --history,
    and wherever there are blocks beside the files (`satchel workspace`), the context is a workspace's: what is focused,
    found, connected, recent and said, each within its share.
    """
    context, model = _built(question, workspace, quick, encoding)
    print_context(context, output, as_json=as_json)
    if explains:
        explain(context.ledger)
    if not workspace.quiet:
        summarize(context, model, is_explained=explains, if_none=nothing_found(_filters(question)))
    leave_if_empty(context)
    leave_if_insufficient(context, question.min_sufficiency)


@click.command("explain", short_help="Show why each piece is in a question's context or was left out.")
@with_question(Surface.BUILD)
@QUICK
@with_roots
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON.")
@click.pass_obj
def explain_command(
    encoding: object, /, *, question: Question, workspace: WorkspaceFlags, quick: bool, as_json: bool
) -> None:
    """Print the ledger of what `satchel build` would give: each piece considered, its signals and its fate."""
    context, _ = _built(question, workspace, quick, encoding)
    if as_json:
        write_json(context.ledger.to_dicts())
    else:
        explain(context.ledger, signals=True)
    if not len(context.ledger) and not workspace.quiet:
        say(nothing_found(_filters(question)))
    leave_if_empty(context)
    leave_if_insufficient(context, question.min_sufficiency)


def _built(question: Question, workspace: WorkspaceFlags, quick: bool, encoding: Any) -> tuple[Context, str]:
    """Build the context; returns the context, and the model used for counting tokens."""
    with open_asked(workspace, quick=quick, encoding=encoding) as client:
        return client.build(question), question.model or client.settings.model


def _filters(question: Question) -> str:
    """The filters of a question as command-line flags: `--include src/** --lang python`."""
    parts = []
    for option in options_of(Surface.BUILD):
        value = getattr(question, option.name) if option.is_filter else ()
        values = (value,) if isinstance(value, str) else value or ()
        parts += [f"{option.flags[-1]} {text}" for text in values]
    return " ".join(parts)
