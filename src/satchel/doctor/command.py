"""`satchel doctor`: what is wrong with an installation, its settings and an index, and what to do about it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from satchel.cli.exits import Exit
from satchel.cli.options import Workspace, with_workspace
from satchel.cli.output import write_output

if TYPE_CHECKING:
    from satchel.doctor.checks import Finding


@click.command("doctor", short_help="Check that everything Satchel needs is there and works.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@with_workspace()
def doctor_command(workspace: Workspace, as_json: bool) -> None:
    """Check the installation, the settings, the models and the index of PATH, and say what to do about what is wrong.

    Nothing is changed. Each thing looked at is ok, worth a note, or a problem; the exit code is 1 if one is a problem.
    """
    from satchel.doctor.checks import Checkup, State

    checkup, findings = Checkup(workspace.path, workspace.settings), []
    for finding in checkup.findings():
        findings.append(finding)
        if not as_json:
            _print(finding)
    problems = sum(finding.state is State.PROBLEM for finding in findings)
    if as_json:
        write_output(json.dumps([finding.to_dict() for finding in findings], indent=2), None)
    else:
        count = "1 problem" if problems == 1 else f"{problems or 'no'} problems"
        workspace.say(f"{count} found in {len(findings)} things looked at")
    code = Exit.ERROR if problems else Exit.OK
    if checkup.is_stuck:
        # What does not come to its end must not keep us, either.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _print(finding: Finding) -> None:
    from satchel.text.visible import make_visible_line

    click.echo(make_visible_line(f"{finding.state:7}  {finding.subject}: {finding.detail}").text)
    if finding.remedy:
        click.echo(f"         → {make_visible_line(finding.remedy).text}")
    sys.stdout.flush()
