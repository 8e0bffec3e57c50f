"""`satchel research` and `satchel page`: numbered pages for a question, and pictures of pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from satchel.cli.exits import Exit
from satchel.cli.options import OUTPUT, QUICK, USER, Workspace, open_client, with_workspace
from satchel.cli.output import print_context
from satchel.cli.summary import leave_if_empty, summarize


@click.command("research", short_help="Print the pages of documents that answer a question, numbered.")
@click.argument("question")
@click.option(
    "-n", "--num-results", type=click.IntRange(1), default=10, show_default=True, help="Look for this many pages."
)
@click.option("--max-sources", type=click.IntRange(1), default=10, show_default=True, help="Show at most this many.")
@click.option(
    "-b",
    "--token-budget",
    "--max-tokens",
    "token_budget",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Hard limit in tokens, counted on the finished text.",
)
@click.option("--model", help="Model, encoding or tokenizer.json to count for.  [default: gpt-4o]")
@click.option(
    "--by",
    "mode",
    type=click.Choice(["hybrid", "text", "visual"]),
    default="hybrid",
    show_default=True,
    help="Find pages by their text, by what is to be seen on them, or by both.",
)
@USER
@QUICK
@click.option("--json", "as_json", is_flag=True, help="Print text, sources and ledger as JSON.")
@OUTPUT
@with_workspace()
def research_command(
    *,
    question: str,
    workspace: Workspace,
    num_results: int,
    max_sources: int,
    token_budget: int,
    model: str | None,
    mode: Literal["hybrid", "text", "visual"],
    user: str | None,
    quick: bool,
    as_json: bool,
    output: Path | None,
) -> None:
    """Print the pages of the documents below PATH that answer QUESTION, each under [Document N: file, Page P]."""
    from satchel.service.research import ResearchQuestion

    asked = ResearchQuestion(
        query=question,
        num_results=num_results,
        max_sources=max_sources,
        max_tokens=token_budget,
        model=model,
        include_text=mode != "visual",
        include_visual=mode != "text",
    )
    with open_client(workspace, user=user, quick=quick) as client:
        context = client.research(asked)
    print_context(context, output, as_json=as_json)
    if not workspace.quiet:
        summarize(context, model or "gpt-4o", if_none="no page was found")
    leave_if_empty(context)


@click.command("page", short_help="Make a picture of a page of a document.")
@click.argument("document")
@click.argument("page", type=click.IntRange(1))
@click.option("--thumbnail", is_flag=True, help="A small one.")
@USER
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the picture (JPEG) there.")
@with_workspace()
def page_command(
    *, document: str, page: int, workspace: Workspace, thumbnail: bool, user: str | None, output: Path | None
) -> None:
    """Make a picture of a PAGE (from 1) of a DOCUMENT below PATH, and print where it is."""
    with open_client(workspace, user=user) as client:
        picture = client.page_picture(document, page, thumbnail=thumbnail)
        if picture is None:
            click.echo("satchel: only PDFs and pictures have pages that can be shown", err=True)
            sys.exit(Exit.ERROR)
        if output is None:
            click.echo(str(picture))
        else:
            output.write_bytes(picture.read_bytes())
