"""`satchel migrate`: carries everything that one index holds to another place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.output import write_output
from satchel.cli.shared import say

if TYPE_CHECKING:
    from satchel.service.factory.migration import MoveReport


@click.command("migrate", short_help="Move an index to another place: a folder, or a database.")
@click.argument("source")
@click.argument("target")
@click.option("--verify-only", is_flag=True, help="Move nothing; say whether TARGET holds what SOURCE holds.")
@click.option("--index-dir", help="Indexes of folders are below this folder instead of the OS's cache.")
@click.option("--json", "as_json", is_flag=True, help="Print what was moved as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")
def migrate_command(source: str, target: str, **flags: Any) -> None:
    """Carry everything that the index SOURCE holds to TARGET, and check that all of it is there.

    Each is a folder that is indexed, `embedded:FOLDER` for the folder of an index itself, or a
    `postgresql://…?workspace=name`. SOURCE is only read. Ctrl-C leaves a TARGET from which the same command goes on.
    """
    from satchel.cli.progress import ProgressBar
    from satchel.service.factory.migration import migrate

    verify_only = flags["verify_only"]
    try:
        with ProgressBar(quiet=flags["quiet"]) as bar:
            report = migrate(source, target, index_dir=flags["index_dir"], verify_only=verify_only, watch=bar.show)
    except KeyboardInterrupt:
        if not verify_only:
            say("what was moved is kept; the same command goes on from there")
        raise
    if flags["as_json"]:
        write_output(json.dumps(_as_json(report), indent=2), None)
    if not flags["quiet"]:
        say(_summary(report, verify_only))


def _as_json(report: MoveReport) -> dict[str, Any]:
    fields = {name: getattr(report, name) for name in report.__slots__ if name != "held"}
    kinds = {kind: {"count": held.count, "digest": held.digest} for kind, held in report.held.items()}
    return {**fields, "held": kinds}


def _summary(report: MoveReport, verify_only: bool) -> str:
    held = {kind: one.count for kind, one in report.held.items()}
    what = f"{held['files']:,} files, {held['workspace_blocks']:,} blocks of the workspace, {held['pieces']:,} pieces"
    asked = f"; {report.questions} questions are answered alike" if report.questions else ""
    if verify_only:
        return f"{report.target} holds what {report.source} holds: {what}{asked}"
    there = f" ({report.passed:,} were there already)" if report.passed else ""
    return f"moved to {report.target} in {report.seconds:.1f} s{there}, and found to be the same: {what}{asked}"
