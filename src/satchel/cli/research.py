"""`satchel research` and `satchel page`: numbered pages for a question, and pictures of pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.exits import Exit
from satchel.cli.output import print_context
from satchel.cli.shared import PATH, open_client, workspace_flags
from satchel.cli.summary import leave_if_empty, summarize

if TYPE_CHECKING:
    pass


# fmt: off
@click.command("research", short_help="Print the pages of documents that answer a question, numbered.")
@click.argument("question")
@PATH
@click.option("-n", "--num-results", type=click.IntRange(1), default=10, show_default=True,
              help="Look for this many pages.")
@click.option("--max-sources", type=click.IntRange(1), default=10, show_default=True, help="Show at most this many.")
@click.option("-b", "--token-budget", "--max-tokens", "token_budget", type=click.IntRange(1), default=10_000,
              show_default=True, help="Hard limit, counted on the finished text.")
@click.option("--model", help="Model, encoding or tokenizer.json to count for.  [default: gpt-4o]")
@click.option("--by", "mode", type=click.Choice(["hybrid", "text", "visual"]), default="hybrid", show_default=True,
              help="Find pages by their text, by what is to be seen on them, or by both.")
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@click.option("--quick", is_flag=True, help="Answer from the index as it is; do not look for changes.")
@click.option("--json", "as_json", is_flag=True, help="Print text, sources and ledger as JSON.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there instead of stdout.")
@workspace_flags
def research_command(question: str, path: str, **flags: Any) -> None:
    """Print the pages of the documents below PATH that answer QUESTION, each under [Document N: file, Page P]."""
    from satchel.service.research import ResearchQuestion

    asked = ResearchQuestion(
        query=question,
        num_results=flags["num_results"],
        max_sources=flags["max_sources"],
        max_tokens=flags["token_budget"],
        model=flags["model"],
        include_text=flags["mode"] != "visual",
        include_visual=flags["mode"] != "text",
    )
    with open_client(path, flags, user=flags["user"]) as client:
        context = client.research(asked)
    print_context(context, flags["output"], as_json=flags["as_json"])
    if not flags["quiet"]:
        summarize(context, flags["model"] or "exact", if_none="no page was found")
    leave_if_empty(context)
# fmt: on


# fmt: off
@click.command("page", short_help="Make a picture of a page of a document.")
@click.argument("document")
@click.argument("page", type=click.IntRange(1))
@PATH
@click.option("--thumbnail", is_flag=True, help="A small one.")
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the picture (JPEG) there.")
@workspace_flags
def page_command(document: str, page: int, path: str, **flags: Any) -> None:
    """Make a picture of a PAGE (from 1) of a DOCUMENT below PATH, and print where it is."""
    with open_client(path, flags, user=flags["user"]) as client:
        picture = client.page_picture(document, page, thumbnail=flags["thumbnail"])
        if picture is None:
            click.echo("satchel: only PDFs and pictures have pages that can be shown", err=True)
            sys.exit(Exit.ERROR)
        if flags["output"] is None:
            click.echo(str(picture))
        else:
            flags["output"].write_bytes(picture.read_bytes())
# fmt: on
