"""`satchel migrate` and `satchel postgres`: move indexes, and set up databases for indexes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from satchel.cli.flags import QUIET
from satchel.cli.output import ProgressBar, say, write_output

if TYPE_CHECKING:
    from satchel.service.factory.migration import MoveReport


@click.command("migrate", short_help="Move an index to another folder or database.")
@click.argument("source")
@click.argument("target")
@click.option("--verify-only", is_flag=True, help="Move nothing; check whether TARGET has the same content as SOURCE.")
@click.option("--index-dir", help="Store indexes in this folder instead of the OS's cache folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@QUIET
def migrate_command(
    *, source: str, target: str, verify_only: bool, index_dir: str | None, as_json: bool, quiet: bool
) -> None:
    """Carry everything that the index SOURCE holds to TARGET, and check that all of it is there.

    Each is a folder that is indexed, `embedded:FOLDER` for the folder of an index itself, or a
    `postgresql://…?workspace=name`. SOURCE is only read. Ctrl-C leaves a TARGET from which the same command goes on.
    """
    from satchel.service.factory.migration import migrate

    try:
        with ProgressBar(quiet=quiet) as bar:
            report = migrate(source, target, index_dir=index_dir, verify_only=verify_only, watch=bar.show)
    except KeyboardInterrupt:
        if not verify_only:
            say("the rows moved so far are stored; run the same command again to continue")
        raise
    if as_json:
        fields = asdict(report)
        kinds = fields.pop("content")
        write_output(json.dumps({**fields, "content": kinds}, indent=2), None)
    if not quiet:
        say(_summary(report, verify_only))


def _summary(report: MoveReport, verify_only: bool) -> str:
    counts = {kind: tallied.count for kind, tallied in report.content.items()}
    blocks = f"{counts['workspace_blocks']:,} blocks of the workspace"
    what = f"{counts['files']:,} files, {blocks}, {counts['pieces']:,} pieces"
    questions = f"; {report.questions} questions get the same answers" if report.questions else ""
    if verify_only:
        return f"{report.target} has the same content as {report.source}: {what}{questions}"
    there = f" ({report.already_present:,} rows were already there)" if report.already_present else ""
    return f"moved to {report.target} in {report.seconds:.1f} s{there}, verified: {what}{questions}"


@click.group("postgres", short_help="Set up a PostgreSQL database for workspaces.")
def postgres_command() -> None:
    """Set up a PostgreSQL database for workspaces, and list its workspaces."""


@postgres_command.command("setup", short_help="Set up or upgrade a database for this version of Satchel.")
@click.argument("url")
@click.option("--login", "logins", multiple=True, metavar="NAME", help="Give this login access; may be repeated.")
@click.option("--reading-only", is_flag=True, help="Give the logins read access only.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def setup_command(url: str, logins: tuple[str, ...], reading_only: bool, as_json: bool) -> None:
    """Set up or upgrade the database at URL for this version of Satchel; run by an administrator of the database.

    The command may be repeated, and may run while the database is in use: it holds locks only briefly.
    """
    from satchel.service.factory.opening import administration, database_place

    done = administration().set_up(database_place(url).address, logins, reading_only=reading_only)
    if as_json:
        write_output(json.dumps(done._asdict(), indent=2), None)
        return
    was = "was set up" if not done.before else "was up to date" if done.before == done.now else "was upgraded"
    say(f"the database {was} (version {done.now})")
    for login in logins:
        say(f"{login} may {'ask' if reading_only else 'ask and write'}")


@postgres_command.command("workspaces")
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def workspaces_command(url: str, as_json: bool) -> None:
    """List the workspaces in the database at URL."""
    from satchel.service.factory.opening import administration, database_place
    from satchel.text.visible import make_visible_line

    workspaces = administration().workspaces(database_place(url).address)
    if as_json:
        write_output(json.dumps([workspace._asdict() for workspace in workspaces], indent=2), None)
        return
    for workspace in workspaces:
        name, files = make_visible_line(workspace.name).text, f"{workspace.files:,} files and blocks"
        click.echo(f"{name}  {files}, {workspace.pieces:,} pieces, generation {workspace.generation}")
    if not workspaces:
        say("the database has no workspaces")
