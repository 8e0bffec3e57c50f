"""`satchel research` and `satchel page`: numbered pages for a question, and pictures of pages."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.asking import user_from
from satchel.cli.exits import Exit
from satchel.cli.output import write_context, write_output
from satchel.cli.shared import PATH, bring_up, settings_for, with_progress, workspace_flags

if TYPE_CHECKING:
    from satchel.research import ResearchContext
    from satchel.research.library import WorkspaceLibrary


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
    from satchel.errors import IndexProblem
    from satchel.research import ContextBuilder

    settings = settings_for(path, {name: value for name, value in flags.items() if name != "token_budget"})
    with _library(path, flags) as library:
        bring_up(library.engine, quick=flags["quick"], quiet=flags["quiet"])
        if flags["mode"] != "text":
            with suppress(IndexProblem):  # where nothing can be written, the search says so
                with_progress("looking at pages", library.look_at_pages, quiet=flags["quiet"])
        builder = ContextBuilder(library, library, flags["max_sources"], flags["token_budget"], model=settings.model)
        context = asyncio.run(
            builder.build_context(
                question,
                flags["num_results"],
                include_text=flags["mode"] != "visual",
                include_visual=flags["mode"] != "text",
            )
        )
    _print(context, flags)
# fmt: on


def _print(context: ResearchContext, flags: dict[str, Any]) -> None:
    if flags["as_json"]:
        write_output(json.dumps(context.to_dict(), ensure_ascii=False, indent=2), flags["output"])
    elif context.sources:
        write_context(context.formatted_text, flags["output"])
    if not flags["quiet"]:
        from satchel.text.visible import make_visible_line

        for note in context.notes:
            click.echo(f"satchel: {make_visible_line(note).text}", err=True)
        pages = "1 page" if len(context.sources) == 1 else f"{len(context.sources)} pages"
        left = "; lower-scored pages did not fit" if context.truncated else ""
        used = f"{context.total_tokens:,} of {flags['token_budget']:,} tokens"
        if context.sources:
            click.echo(f"satchel: {pages}, {used}{left}", err=True)
        elif not context.truncated:
            click.echo("satchel: no page was found", err=True)
    if not context.sources:
        sys.exit(Exit.OVER_BUDGET if context.truncated else Exit.NOTHING_FOUND)


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
    from satchel.errors import InvalidOption, UnknownPage

    with _library(path, flags) as library:
        bring_up(library.engine, quick=False, quiet=flags["quiet"])
        # By its content: a copy of another document is that document.
        state = library.engine.store.files().get(os.path.normpath(document))
        doc_id = state.content_hash.hex() if state else document
        if library.get_document_markdown(doc_id) is None:
            raise InvalidOption("document", document, "there is no such document; name it as it lies below PATH")
        if library.get_page_metadata(doc_id, page) is None:
            raise UnknownPage(document, page)
        picture = library.page_image(doc_id, page, thumbnail=flags["thumbnail"])
        if picture is None:
            click.echo("satchel: only PDFs and pictures have pages that can be shown", err=True)
            sys.exit(Exit.ERROR)
        if flags["output"] is None:
            click.echo(str(picture))
        else:
            flags["output"].write_bytes(picture.read_bytes())
# fmt: on


def _library(path: str, flags: dict[str, Any]) -> WorkspaceLibrary:
    from satchel.service.build import asking_user
    from satchel.service.factory.opening import open_library

    library = open_library(path, settings=settings_for(path, {**flags, "token_budget": None}))
    return library.seen_by(asking_user(library.engine, user_from(flags)))
