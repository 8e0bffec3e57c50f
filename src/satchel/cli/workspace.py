"""`satchel workspace …`: import and export of notes, rows and messages, access to them, and activity."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import OUTPUT, WorkspaceFlags, open_client, with_workspace
from satchel.cli.output import ProgressBar, write_output

if TYPE_CHECKING:
    from satchel.service.importing import ImportReport
    from satchel.service.local_client import LocalSatchel

_MAX_NOTES = 10  # more would push the counts off the screen; --json shows all

_IN_WORKSPACE = with_workspace(
    click.option("-w", "--workspace", "path", type=click.Path(), default=".", help="The workspace's folder.")
)


@click.group("workspace", short_help="Import and export blocks, and set who may read them.")
def workspace_group() -> None:
    """Blocks that are not read from files: a vault, a Notion export, conversations, or records of your own."""


@workspace_group.command("import", short_help="Import a vault, a Notion export, conversations or records.")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--kind", metavar="IMPORTER", help="Kind of the source, if it cannot be detected: vault, notion, …")
@click.option("--prefix", default="", help="Prefix for the ids of its blocks, if two sources use the same ids.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@_IN_WORKSPACE
def import_command(*, source: Path, kind: str | None, prefix: str, workspace: WorkspaceFlags, as_json: bool) -> None:
    """Take over what SOURCE holds, in one commit; doing it again brings the workspace up to date.

    A vault is a folder of Markdown notes (Obsidian). A Notion export is the folder or .zip of "Markdown & CSV".
    Conversations are a ChatGPT or Claude export, or JSON lines with roles. `jsonl` is what `export` writes.
    Installed packages add kinds of their own.
    """
    from satchel.service.importing import import_source

    with open_client(workspace) as client, ProgressBar(quiet=workspace.quiet) as bar:
        report = import_source(
            client.workspace, source, kind=kind, prefix=prefix, watch=lambda count: bar.show("importing records", count)
        )
    _print(report, workspace, as_json)
    if not report.counts:
        sys.exit(Exit.NOTHING_FOUND)


@workspace_group.command("forget", short_help="Remove a source and the blocks imported from it.")
@click.argument("source", required=False)
@_IN_WORKSPACE
def forget_command(source: str | None, workspace: WorkspaceFlags) -> None:
    """Remove SOURCE (as listed without it) and its blocks; the files there are not touched."""
    with open_client(workspace) as client:
        if source is None:
            for name in client.workspace.sources():
                click.echo(name)
            return
        removed = client.workspace.forget(source)
    workspace.say(f"removed {_counted(removed, 'block')}")


@workspace_group.command("export", short_help="Print every block, link, grant and activity as JSON lines.")
@OUTPUT
@_IN_WORKSPACE
def export_command(workspace: WorkspaceFlags, output: Path | None) -> None:
    """Print the whole workspace as JSON lines that `import` takes. It is the owner's command: it heeds no grants."""
    from satchel.service.importing import export_lines

    with open_client(workspace) as client:
        text = "\n".join(export_lines(client.workspace))
    write_output(text, output)


@workspace_group.command("grant", short_help="Let a user or group read a block and all blocks below it.")
@click.argument("block")
@click.argument("principal")
@click.option("--deny", is_flag=True, help="Deny access instead, even if a block above is granted.")
@_IN_WORKSPACE
def grant_command(block: str, principal: str, deny: bool, workspace: WorkspaceFlags) -> None:
    """Let PRINCIPAL (ann, user:ann, group:staff, or '*' for everyone) read BLOCK and all blocks below it.

    After the first grant the workspace has several users: blocks and files without a grant are denied.
    """
    from satchel.models.access import DefaultAccess, Effect

    with open_client(workspace) as client:
        before = client.engine.store.default_access()
        with client.workspace.edit() as edit:
            edit.grant(block, principal, Effect.DENY if deny else Effect.ALLOW)
    workspace.say(f"{'denied' if deny else 'granted'} {block} to {principal}")
    if before is DefaultAccess.OWNER:
        workspace.say("the workspace has several users now: blocks and files without a grant are denied, to you too")
        workspace.say("ask with --user; `satchel workspace default allow` gives every user access to these")
    if deny and "#~" in block:
        workspace.say(
            "this id is derived from the block's text: when the text changes, the denial is lost. Deny the page instead"
        )


@workspace_group.command("revoke", short_help="Remove a grant or a denial.")
@click.argument("block")
@click.argument("principal")
@_IN_WORKSPACE
def revoke_command(block: str, principal: str, workspace: WorkspaceFlags) -> None:
    """Remove the grant or denial of PRINCIPAL at BLOCK itself; the change applies to the next request."""
    with open_client(workspace) as client, client.workspace.edit() as edit:
        edit.revoke(block, principal)
    workspace.say(f"revoked {principal} at {block}")


@workspace_group.command("inherit", short_help="Set whether a block inherits the access list of its parent.")
@click.argument("block")
@click.argument("choice", type=click.Choice(["yes", "no"]))
@_IN_WORKSPACE
def inherit_command(block: str, choice: str, workspace: WorkspaceFlags) -> None:
    """With `no`, only grants at BLOCK itself and below it apply."""
    with open_client(workspace) as client, client.workspace.edit() as edit:
        edit.set_inherits(block, choice == "yes")
    workspace.say(f"{block} {'inherits access' if choice == 'yes' else 'does not inherit'} now")


@workspace_group.command("default", short_help="Set who may read blocks and files without a grant.")
@click.argument("access", type=click.Choice(["owner", "deny", "allow"]))
@_IN_WORKSPACE
def default_command(access: str, workspace: WorkspaceFlags) -> None:
    """`owner`: only the owner reads. `deny`: nobody without a grant. `allow`: every named user."""
    with open_client(workspace) as client, client.workspace.edit() as edit:
        edit.set_default(access)
    workspace.say(f"default access: {access}")


@workspace_group.command("group", short_help="Set the members of a group.")
@click.argument("name")
@click.argument("members", nargs=-1)
@_IN_WORKSPACE
def group_command(name: str, members: tuple[str, ...], workspace: WorkspaceFlags) -> None:
    """Set the members of the group NAME; without MEMBERS the group is removed."""
    with open_client(workspace) as client, client.workspace.edit() as edit:
        edit.put_group(name, members)
    workspace.say(f"{name}: {', '.join(members) or 'no members'}")


@workspace_group.command("activity", short_help="Record or list user activity.")
@click.option("--user", help="User who acted; for a list, only activity of this user.")
@click.option("--action", type=click.Choice(["edit", "view"]), help="Record this action of --user on --block.")
@click.option("--block", help="Block that was edited or viewed.")
@click.option("--at", help="Time of the action, e.g. 2026-11-16T09:00.  [default: now]")
@click.option("-k", "--top-k", type=click.IntRange(1), default=20, show_default=True, help="Maximum number of entries.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@_IN_WORKSPACE
def activity_command(
    *,
    workspace: WorkspaceFlags,
    user: str | None,
    action: str | None,
    block: str | None,
    at: str | None,
    top_k: int,
    as_json: bool,
) -> None:
    """With --action, record that --user edited or viewed --block. Without it, list the latest activity."""
    from satchel.errors import InvalidOption
    from satchel.models.request import as_moment

    with open_client(workspace) as client:
        if not action:
            _list_activity(client, user, top_k, as_json)
            return
        if not user or not block:
            raise InvalidOption("action", action, "needs --user and --block: the user who acted, and the block")
        moment = datetime.now(UTC) if at is None else as_moment(InvalidOption, "at", at)
        client.workspace.record(user, action, block, moment)
    workspace.say(f"{user}: {action} {block}")


def _list_activity(client: LocalSatchel, user: str | None, top_k: int, as_json: bool) -> None:
    from satchel.models.block import Activity
    from satchel.text.visible import make_visible_line

    activities = [record for record in client.workspace.records() if isinstance(record, Activity)]
    if user:
        activities = [activity for activity in activities if activity.actor == user]
    activities = sorted(activities, key=lambda activity: activity.timestamp, reverse=True)[:top_k]
    if as_json:
        rows = [
            {
                "block": activity.block,
                "actor": activity.actor,
                "action": activity.action,
                "timestamp": activity.timestamp.isoformat(),
            }
            for activity in activities
        ]
        write_output(json.dumps(rows, indent=2), None)
        return
    for activity in activities:
        when = activity.timestamp.isoformat(timespec="minutes")
        click.echo(make_visible_line(f"{when}  {activity.actor}  {activity.action}  {activity.block}").text)


def _print(report: ImportReport, workspace: WorkspaceFlags, as_json: bool) -> None:
    if as_json:
        fields = {"counts": dict(report.counts), "removed": report.removed, "notes": report.notes}
        write_output(json.dumps(fields, indent=2), None)
        return
    counts = ", ".join(_counted(count, name) for name, count in report.counts.items() if count)
    removed = f"; {report.removed:,} removed" if report.removed else ""
    workspace.say(f"imported from {report.kind}: {counts or 'nothing'}{removed}")
    for note in report.notes[:_MAX_NOTES]:
        workspace.say(note)
    if len(report.notes) > _MAX_NOTES:
        workspace.say(f"… and {len(report.notes) - _MAX_NOTES:,} more notes (--json shows all)")


def _counted(count: int, name: str) -> str:
    many = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{count:,} {name if count == 1 else many}"
