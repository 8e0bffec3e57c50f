"""`satchel search` and `satchel expand`: the best pieces for a question, and the exact text behind an id."""

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
