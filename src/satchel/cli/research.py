"""`satchel research` and `satchel page`: a context of numbered pages for a question, and pictures of pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import OUTPUT, QUICK, USER, WorkspaceFlags, open_client, with_question, with_workspace
from satchel.cli.output import leave_if_empty, leave_if_insufficient, print_context, summarize
from satchel.service.question import Surface

if TYPE_CHECKING:
    from satchel.service.question import ResearchQuestion


@click.command("research", short_help="Print the pages of documents and notes that answer a question, numbered.")
@with_question(Surface.RESEARCH)
@QUICK
@click.option("--json", "as_json", is_flag=True, help="Print the text, sources and ledger as JSON.")
@OUTPUT
@with_workspace()
def research_command(
    *, question: ResearchQuestion, workspace: WorkspaceFlags, quick: bool, as_json: bool, output: Path | None
) -> None:
    """Print the pages of documents and imported notes in PATH that answer QUESTION.

    Each page stands under [Document N: file, Page P].
    """
    with open_client(workspace, quick=quick) as client:
        context, model = client.research(question), question.model or client.settings.model
    print_context(context, output, as_json=as_json)
    if not workspace.quiet:
        summarize(context, model, if_none="no results")
    leave_if_empty(context)
    leave_if_insufficient(context, question.min_sufficiency)


@click.command("page", short_help="Make a picture of a page of a document.")
@click.argument("document")
@click.argument("page", type=click.IntRange(1))
@click.option("--thumbnail", is_flag=True, help="Make a thumbnail.")
@USER
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the picture (JPEG) to this file."
)
@with_workspace()
def page_command(
    *, document: str, page: int, workspace: WorkspaceFlags, thumbnail: bool, user: str | None, output: Path | None
) -> None:
    """Make a picture of a PAGE (from 1) of a DOCUMENT below PATH, and print where it is."""
    with open_client(workspace, user=user) as client:
        picture = client.page_picture(document, page, thumbnail=thumbnail)
        if picture is None:
            click.echo("satchel: only PDFs and pictures have page pictures", err=True)
            sys.exit(Exit.ERROR)
        if output is None:
            click.echo(str(picture))
        else:
            output.write_bytes(picture.read_bytes())
