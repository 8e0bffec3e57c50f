"""`satchel search`, `find` and `expand`: pieces for a question, symbols and exact text, and the text behind an id."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import JSON, QUICK, USER, WorkspaceFlags, open_asked, with_question, with_roots
from satchel.cli.output import write_output
from satchel.service.question import Surface

if TYPE_CHECKING:
    from satchel.service.question import Question

BUDGET_HELP = "Hard limit in tokens for the printed matches."


@click.command("search", short_help="List the pieces that answer a question best.")
@with_question(Surface.SEARCH)
@click.option("--content/--no-content", "shows_content", default=False, help="Also print the text of the pieces.")
@QUICK
@with_roots
@JSON
def search_command(
    *, question: Question, workspace: WorkspaceFlags, shows_content: bool, quick: bool, as_json: bool
) -> None:
    """List the pieces below PATH that answer QUESTION best, with how likely each is."""
    from satchel.models.files import page_words
    from satchel.service.client import search_to_dict
    from satchel.text.visible import make_visible, make_visible_line

    with open_asked(workspace, quick=quick) as client:
        result = client.search(question)
    if as_json:
        write_output(json.dumps(search_to_dict(result), indent=2), None)
    for hit in () if as_json else result.hits:
        name = f"  {hit.title or hit.content[:60]}" if hit.title or not hit.path else ""
        if hit.page:
            name = f"  {page_words(hit.path, hit.page)}  {hit.title.partition('/')[2]}".rstrip()
        click.echo(f"{hit.relevance:.2f}  {make_visible_line(f'{hit.id}{name}').text}")
        if shows_content:
            click.echo(make_visible(hit.content).text + "\n")
    for note in result.notes:
        workspace.say(note)
    if not result.hits:
        workspace.say("nothing found")
        sys.exit(Exit.NOTHING_FOUND)


@click.command("find", short_help="Find a symbol, an exact text, or an outline.")
@click.argument("what", metavar="WHAT")
@click.option(
    "--kind",
    "-K",
    type=click.Choice(["definition", "references", "implementations", "outline", "text", "pattern"]),
    default="definition",
    show_default=True,
    help="What to find of WHAT: of a symbol, a path (outline), a string (text) or an RE2 expression (pattern).",
)
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="Maximum matches.")
@click.option("-b", "--token-budget", type=click.IntRange(50), default=4_000, show_default=True, help=BUDGET_HELP)
@click.option("--include", multiple=True, metavar="GLOB", help="Only paths that match this glob; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No paths that match this glob; may be repeated.")
@USER
@QUICK
@JSON
@with_roots
def find_command(
    *,
    what: str,
    kind: str,
    workspace: WorkspaceFlags,
    limit: int,
    token_budget: int,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    user: str | None,
    quick: bool,
    as_json: bool,
) -> None:
    """Find WHAT below PATH: a symbol (Class.method), a string, an expression, or the outline of a file or folder.

    References that only the name speaks for are marked `by name`. Exit code 3 when nothing is found.
    """
    from satchel.service.token_counts import counter_for
    from satchel.text.visible import make_visible

    with open_asked(workspace, quick=quick, user=user) as client:
        found = client.find(what, kind, limit=limit, include=include, exclude=exclude)
        model = client.settings.model
    if as_json:
        write_output(json.dumps(found.to_dict(), indent=2), None)
    elif found.matches:
        write_output(make_visible(found.to_text(counter_for(model).count, token_budget)).text, None)
    for note in found.notes:
        workspace.say(note)
    if not found.matches:
        workspace.say("nothing found")
        sys.exit(Exit.NOTHING_FOUND)


@click.command("expand", short_help="Print the exact text of an id.")
@click.argument("piece_id", metavar="ID")
@click.option("-C", "--lines", type=click.IntRange(0), default=0, help="Number of extra lines before and after.")
@USER
@JSON
@with_roots
def expand_command(*, piece_id: str, workspace: WorkspaceFlags, lines: int, user: str | None, as_json: bool) -> None:
    """Print the text behind ID: a path, a path with lines (a.py:3-9) or a block (a.py#Class.method)."""
    from satchel.text.visible import make_visible

    # An unknown id causes a silent refresh of the index and a second try.
    with open_asked(replace(workspace, quiet=True), user=user) as client:
        expansion = client.expand(piece_id, lines=lines)
    if as_json:
        write_output(json.dumps(asdict(expansion), indent=2), None)
    else:
        write_output(make_visible(expansion.text).text, None)
    if expansion.stale:
        workspace.say("the file was deleted or changed since it was indexed; this is the indexed text")
