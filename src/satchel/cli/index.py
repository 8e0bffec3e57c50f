"""`satchel index`, `satchel status` and `satchel clear`: create, inspect and remove an index."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import JSON, WorkspaceFlags, open_client, with_workspace
from satchel.cli.output import write_output
from satchel.text.visible import counted

if TYPE_CHECKING:
    from satchel.service.auto_index import IndexReport
    from satchel.service.local_client import LocalSatchel

_MAX_LISTED_FILES: Final = 20
"""More lines would push the summary off the screen; --json has all files."""


@click.command("index", short_help="Index a folder, or refresh its index.")
@click.option("--watch", "watches", is_flag=True, help="Keep running, and refresh the index when files change.")
@click.option("--list-skipped", is_flag=True, help="List the skipped files with the reasons.")
@click.option("--page-images", is_flag=True, help="Also make pictures and thumbnails of document pages.")
@click.option(
    "--on", "ingest_on", metavar="WHERE", help="Where files are read: local (default), ray or ray://HOST:PORT."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@with_workspace()
def index_command(
    *,
    workspace: WorkspaceFlags,
    watches: bool,
    list_skipped: bool,
    page_images: bool,
    ingest_on: str | None,
    as_json: bool,
) -> None:
    """Index the folder at PATH; only changed files are read. After Ctrl-C, the next run continues from there."""
    with open_client(workspace, ingest_on=ingest_on) as client:
        report = client.run_index()
        if as_json:
            write_output(json.dumps({name: getattr(report, name) for name in report.__slots__}, indent=2), None)
        else:
            _print_skipped(report, workspace, list_skipped)
        if page_images:
            workspace.say(f"made pictures of {client.make_page_pictures():,} pages")
        if watches:
            _watch(client, workspace)


def _print_skipped(report: IndexReport, workspace: WorkspaceFlags, list_skipped: bool) -> None:
    from satchel.service.auto_index import usual_reasons
    from satchel.text.visible import make_visible_line

    if list_skipped:
        for path, reason in report.skipped_paths:
            click.echo(f"{reason}\t{make_visible_line(path).text}")
    usual = usual_reasons()
    for reason, count in sorted(report.skipped.items()):
        if reason in usual:
            workspace.say(f"skipped {count:,}: {reason}")
    unread = [f"{path} {reason}" for path, reason in sorted(report.skipped_paths) if reason not in usual]
    for line in [*unread[:_MAX_LISTED_FILES], *report.notes[:_MAX_LISTED_FILES]]:
        workspace.say(line)
    more = max(0, len(unread) - _MAX_LISTED_FILES) + max(0, len(report.notes) - _MAX_LISTED_FILES)
    if more:
        workspace.say(f"and {more:,} more (--list-skipped, --json)")


def _watch(client: LocalSatchel, workspace: WorkspaceFlags) -> None:
    from watchfiles import watch

    from satchel.service.auto_index import FOREVER, describe_report

    workspace.say(f"watching {client.root} (Ctrl-C to stop)")
    silent = replace(client, watch=None, report=None)
    for _ in watch(client.root, debounce=300, raise_interrupt=True):
        report = silent.run_index(busy_wait_s=FOREVER)
        if report.changed:
            workspace.say(describe_report(report)[0])


@click.command("status", short_help="Show the content of an index and whether it is up to date.")
@JSON
@with_workspace()
def status_command(workspace: WorkspaceFlags, as_json: bool) -> None:
    """Show the content and location of the index of PATH, and what changed since the last refresh."""
    from satchel.service.maintenance import index_overview
    from satchel.text.visible import make_visible_line

    overview = index_overview(workspace.path, workspace.settings)
    facts = overview.facts
    if as_json:
        write_output(json.dumps(overview.to_dict(), indent=2), None)
    elif facts is None:
        click.echo(make_visible_line(f"{overview.root} is not indexed (the index would be at {overview.place})").text)
    if facts is None:
        sys.exit(Exit.NOTHING_FOUND)
    if as_json:
        return
    root, place = (make_visible_line(str(text)).text for text in (overview.root, overview.place))
    click.echo(f"workspace   {root}\nindex       {place} ({facts.bytes_on_disk / 1e6:.1f} MB)")
    counts = ((facts.files - len(overview.unread), "file"), (facts.blocks, "block"), (facts.pieces, "piece"))
    click.echo(f"content     {', '.join(counted(number, thing) for number, thing in counts)}")
    click.echo(f"embedder    {facts.embedder or '(none yet)'}\ngeneration  {facts.generation}")
    if overview.shared_bytes:
        click.echo(f"shared      {overview.shared_bytes / 1e6:.1f} MB of prepared files (`satchel clear --shared`)")
    changed = f"{counted(overview.changed, 'file')} new or changed, {overview.missing:,} deleted"
    state = changed if overview.to_look_at else "up to date"
    click.echo(f"state       {state}; {overview.skipped:,} skipped (`satchel index --list-skipped`)")
    for path, note in list(overview.partly_read.items())[:_MAX_LISTED_FILES]:
        click.echo(f"note        {make_visible_line(f'{path}: {note}').text}")


@click.command("clear", short_help="Remove an index.")
@click.option("--all", "every", is_flag=True, help="Remove the indexes of all workspaces, and what they share.")
@click.option("--force", is_flag=True, help="Also remove blocks, grants and activity stored only there.")
@click.option("--shared", is_flag=True, help="Remove the prepared files that your indexes share, and no index.")
@with_workspace()
def clear_command(workspace: WorkspaceFlags, every: bool, force: bool, shared: bool) -> None:
    """Remove the index of PATH. Your files are not touched; indexing makes it again."""
    from satchel.service.maintenance import remove_index, remove_prepared_files

    if shared:
        place = remove_prepared_files(workspace.path, workspace.settings)
        workspace.say(f"removed {place}" if place else "there are no shared prepared files")
        sys.exit(Exit.OK if place else Exit.NOTHING_FOUND)
    removed, place = remove_index(workspace.path, workspace.settings, every=every, force=force)
    for removed_place in removed:
        workspace.say(f"removed {removed_place}")
    if not removed:
        workspace.say(f"there is no index at {place}")
        sys.exit(Exit.NOTHING_FOUND)
