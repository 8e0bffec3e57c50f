"""`satchel search`, `index`, `status`, `expand`, `clear` and `doctor`: what there is to do with a workspace."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.asking import question_from
from satchel.cli.exits import Exit
from satchel.cli.output import write_output
from satchel.cli.shared import PATH, filter_flags, open_client, say, workspace_flags, workspace_settings
from satchel.text.counted import counted

if TYPE_CHECKING:
    from satchel.service.local_client import LocalSatchel


_MOST_NAMED = 20


@click.command("search", short_help="List the pieces that answer a question best.")
@click.argument("question")
@PATH
@click.option("-k", "--top-k", type=click.IntRange(1), help="How many.  [default: 10]")
@click.option("--min-relevance", type=click.FloatRange(0, 1), help="Leave out pieces below this.")
@click.option("--content/--no-content", default=False, help="Print the pieces' text as well.")
@click.option("--quick", is_flag=True, help="Answer from the index as it is; do not look for changes.")
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@filter_flags
@workspace_flags
@click.option("--json", "as_json", is_flag=True, help="Print the hits as JSON.")
def search_command(question: str, path: str, **flags: Any) -> None:
    """List the pieces below PATH that answer QUESTION best, with how likely each is."""
    from satchel.models.document import page_words
    from satchel.service.remote_results import search_to_dict
    from satchel.text.visible import make_visible, make_visible_line

    asked = question_from(question, flags)
    with open_client(path, flags, user=flags["user"]) as client:
        found = client.search(asked)
    hits = found.hits
    if flags["as_json"]:
        write_output(json.dumps(search_to_dict(found), indent=2), None)
    else:
        for hit in hits:
            name = f"  {hit.title or hit.content[:60]}" if hit.title or not hit.path else ""
            if hit.page:
                name = f"  {page_words(hit.path, hit.page)}  {hit.title.partition('/')[2]}".rstrip()
            click.echo(f"{hit.relevance:.2f}  {make_visible_line(f'{hit.id}{name}').text}")
            if flags["content"]:
                click.echo(make_visible(hit.content).text + "\n")
    if not flags["quiet"]:
        for note in found.notes:
            say(note)
    if not hits:
        if not flags["quiet"]:
            say("nothing found")
        sys.exit(Exit.NOTHING_FOUND)


@click.command("index", short_help="Index a folder, or bring its index up to date.")
@PATH
@click.option("--watch", is_flag=True, help="Stay, and index again whenever something changes.")
@click.option("--list-skipped", is_flag=True, help="List what was passed over, and why.")
@click.option("--page-images", is_flag=True, help="Make pictures and thumbnails of the pages of documents, too.")
@click.option("--on", "ingest_on", metavar="WHERE", help="Who reads: local, ray or ray://HOST:PORT.  [default: local]")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@workspace_flags
def index_command(path: str, **flags: Any) -> None:
    """Index the folder at PATH: only what has changed is read. Ctrl-C leaves an index that goes on from there."""
    with open_client(path, flags, "ingest_on") as client:
        _index_once(client, flags)
        if flags["page_images"]:
            made = client.make_page_pictures()
            if not flags["quiet"]:
                say(f"made pictures of {made:,} pages")
        if flags["watch"]:
            _watch(client, flags)


def _index_once(client: LocalSatchel, flags: dict[str, Any]) -> None:
    from satchel.service.auto_index import usual_reasons
    from satchel.text.visible import make_visible_line

    report = client.run_index()
    if flags["as_json"]:
        write_output(json.dumps({name: getattr(report, name) for name in report.__slots__}, indent=2), None)
        return
    if flags["list_skipped"]:
        for path, reason in report.passed_paths:
            click.echo(f"{reason}\t{make_visible_line(path).text}")
    if not flags["quiet"]:
        usual = usual_reasons()
        for reason, count in sorted(report.passed_over.items()):
            if reason in usual:
                say(f"passed over {count:,}: {reason}")
        unread = [f"{path} {reason}" for path, reason in sorted(report.passed_paths) if reason not in usual]
        for line in [*unread[:_MOST_NAMED], *report.notes[:_MOST_NAMED]]:
            say(line)
        more = max(0, len(unread) - _MOST_NAMED) + max(0, len(report.notes) - _MOST_NAMED)
        if more:
            say(f"and {more:,} more (--list-skipped, --json)")


def _watch(client: LocalSatchel, flags: dict[str, Any]) -> None:
    from watchfiles import watch

    from satchel.service.auto_index import FOREVER, describe_report

    if not flags["quiet"]:
        say(f"watching {client.root} (Ctrl-C ends it)")
    silent = replace(client, watch=None, report=None)
    for _ in watch(client.root, debounce=300, raise_interrupt=True):
        report = silent.run_index(busy_wait_s=FOREVER)
        if report.changed and not flags["quiet"]:
            say(describe_report(report)[0])


@click.command("status", short_help="Say what an index holds and whether it is up to date.")
@PATH
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@workspace_flags
def status_command(path: str, **flags: Any) -> None:
    """Say what the index of PATH holds, where it is, and what has changed since."""
    from satchel.service.maintenance import index_overview
    from satchel.text.visible import make_visible_line

    found = index_overview(path, workspace_settings(flags))
    facts = found.facts
    if flags["as_json"]:
        write_output(json.dumps(found.to_dict(), indent=2), None)
    elif facts is None:
        click.echo(make_visible_line(f"{found.root} is not indexed (its index would be {found.place})").text)
    if facts is None:
        sys.exit(Exit.NOTHING_FOUND)
    if flags["as_json"]:
        return
    root, place = (make_visible_line(str(text)).text for text in (found.root, found.place))
    click.echo(f"workspace   {root}\nindex       {place} ({facts.bytes_on_disk / 1e6:.1f} MB)")
    counts = ((facts.files - len(found.unread), "file"), (facts.blocks, "block"), (facts.pieces, "piece"))
    click.echo(f"holds       {', '.join(counted(number, thing) for number, thing in counts)}")
    click.echo(f"embedder    {facts.embedder or '(none yet)'}\ngeneration  {facts.generation}")
    changed = f"{counted(found.changed, 'file')} to look at, {found.missing:,} gone"
    state = changed if found.to_look_at else "up to date"
    click.echo(f"state       {state}; {found.passed_over:,} passed over (`satchel index --list-skipped`)")
    for path_in_root, note in list(found.partly_read.items())[:_MOST_NAMED]:
        click.echo(f"note        {make_visible_line(f'{path_in_root}: {note}').text}")


@click.command("expand", short_help="Print the exact text behind an id.")
@click.argument("piece_id", metavar="ID")
@PATH
@click.option("-C", "--lines", type=click.IntRange(0), default=0, help="This many more lines on either side.")
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with its place.")
@workspace_flags
def expand_command(piece_id: str, path: str, **flags: Any) -> None:
    """Print the text behind ID: a path, a path with lines (a.py:3-9) or a block (a.py#Class.method)."""
    # An unknown id is looked for again in a fresh index; that is nothing to talk about.
    with open_client(path, {**flags, "quiet": True}, user=flags["user"]) as client:
        found = client.expand(piece_id, lines=flags["lines"])
    if flags["as_json"]:
        from satchel.service.remote_results import expansion_to_dict

        write_output(json.dumps(expansion_to_dict(found), indent=2), None)
    else:
        from satchel.text.visible import make_visible

        write_output(make_visible(found.text).text, None)
    if found.stale and not flags["quiet"]:
        say("the file is gone or says something else now; this is the text as it was indexed")


@click.command("clear", short_help="Remove an index.")
@PATH
@click.option("--all", "every", is_flag=True, help="Remove the indexes of all workspaces.")
@click.option("--force", is_flag=True, help="Also if it holds blocks, grants or activity that no file holds.")
@workspace_flags
def clear_command(path: str, **flags: Any) -> None:
    """Remove the index of PATH. Your files are not touched; indexing makes it again."""
    from satchel.service.maintenance import remove_index

    removed, place = remove_index(path, workspace_settings(flags), every=flags["every"], force=flags["force"])
    if not flags["quiet"]:
        for removed_place in removed:
            say(f"removed {removed_place}")
        if not removed:
            say(f"there is no index at {place}")
    if not removed:
        sys.exit(Exit.NOTHING_FOUND)
