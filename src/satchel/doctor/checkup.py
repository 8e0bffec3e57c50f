"""`satchel doctor`: problems of an installation, the settings and an index, with remedies.

No check changes anything, and a failing check does not stop the remaining checks.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import WorkspaceFlags, with_workspace
from satchel.cli.output import write_output
from satchel.doctor.finding import Finding, State, note, ok, problem
from satchel.errors import SatchelError

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.service.settings import Settings

# Long enough for a slow disk, short enough to wait for.
_CHECK_SECONDS: Final = 30.0
# Shorter than other checks: the check walks all folders, and a slow walk is itself the finding.
_WATCHING_SECONDS: Final = 10.0
_BUSY: Final = "run `satchel doctor` again when the machine is less busy"


@click.command("doctor", short_help="Check the installation, the settings, the models and the index.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@with_workspace()
def doctor_command(workspace: WorkspaceFlags, as_json: bool) -> None:
    """Check the installation, the settings, the models and the index of PATH, with a remedy for each problem.

    The command changes nothing. Each finding is ok, a note or a problem; the exit code is 1 if there is a problem.
    """
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
        workspace.say(f"{count} in {len(findings)} findings")
    code = Exit.ERROR if problems else Exit.OK
    if checkup.is_stuck:
        # A thread that never ends must not keep the process alive.
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


@dataclass(slots=True)
class Checkup:
    """Runs every check on a workspace."""

    path: str
    changed_settings: Mapping[str, Any]
    is_stuck: bool = field(default=False, init=False)
    """True if a check timed out and the thread of the check still runs."""

    def findings(self) -> Iterator[Finding]:
        """Findings, yielded after each check."""
        from satchel.doctor import installation_checks, model_checks, workspace_checks

        yield from self.run("python", installation_checks.check_python)
        yield from self.run("satchel", installation_checks.check_program)
        yield from self.run("packages", installation_checks.check_packages)
        yield from self.run("extras", installation_checks.check_extras)
        yield from self.run("grammars", installation_checks.check_grammars)
        yield from self.run("documents", model_checks.check_document_readers)
        yield from self.run("terminal", workspace_checks.check_terminal)
        yield from self.run("leftovers", workspace_checks.check_leftovers)
        yield from self._workspace_findings()
        yield from self.run("agents", installation_checks.check_agents, self.path)

    def _workspace_findings(self) -> Iterator[Finding]:
        from satchel.doctor import workspace_checks
        from satchel.service.factory.opening import is_database, settings_at, workspace

        in_database = is_database(self.path)
        if not in_database:
            findings = self.run("folder", workspace_checks.check_folder, self.path)
            yield from findings
            if any(finding.state is State.PROBLEM for finding in findings):
                return
        findings = self.run("settings", workspace_checks.check_settings, self.path)
        yield from findings
        if any(finding.state is State.PROBLEM and finding.subject == "settings" for finding in findings):
            yield note("index", "not checked: correct the settings first")
            return
        try:
            root = None if in_database else workspace(self.path)
            settings = settings_at(self.path, self.changed_settings)
        except SatchelError as error:
            yield problem("settings", str(error), "correct the flag")
            return
        yield from self._findings_with(settings, root)

    def _findings_with(self, settings: Settings, root: Path | None) -> Iterator[Finding]:
        """Findings on the configured models, the index, git and file watching."""
        from satchel.doctor import model_checks as models
        from satchel.doctor import workspace_checks as checks

        yield from self.run("token counting", models.check_counting, settings)
        yield from self.run("scans", models.check_scans, settings)
        yield from self.run("embedder", models.check_embedder, settings, late=models.LATE_EMBEDDER)
        yield from self.run("language model", models.check_language_model, settings, late=models.LATE_LANGUAGE_MODEL)
        yield from self._index_findings(settings, root)
        if root is not None:
            late, seconds = checks.LATE_WATCHING, _WATCHING_SECONDS
            yield from self.run("git", checks.check_git, root)
            yield from self.run("file watching", checks.check_watching, root, late=late, seconds=seconds)

    def _index_findings(self, settings: Settings, root: Path | None) -> Iterator[Finding]:
        from satchel.doctor import workspace_checks as checks
        from satchel.service.factory.opening import DatabasePlace, database_place, place_of

        try:
            place = database_place(self.path) if root is None else place_of(root, settings)
        except SatchelError as error:
            yield problem("index", str(error), "correct the address: postgresql://user@host/database?workspace=name")
            return
        if isinstance(place, DatabasePlace):
            late = checks.LATE_DATABASE
            yield from self.run("database", checks.check_database, place, root, settings, late=late)
            return
        assert root is not None
        late, folder, index_dir = checks.LATE_INDEX, place.folder, self.changed_settings.get("index_dir")
        # The folder and the flags that lead a command to the same index.
        target = shlex.quote(self.path) + (f" --index-dir {shlex.quote(index_dir)}" if index_dir else "")
        yield from self.run("index folder", checks.check_index_folder, folder)
        yield from self.run("index", checks.check_health, target, folder, settings, late=late)
        yield from self.run("index age", checks.check_age, root, folder, settings, late=late)

    def run(
        self,
        subject: str,
        check: Callable[..., Iterable[Finding]],
        *arguments: Any,
        late: str = _BUSY,
        seconds: float = _CHECK_SECONDS,
    ) -> list[Finding]:
        """Findings of a check; an error or a time-out (remedy `late`) becomes a problem."""
        findings: list[Finding] = []
        done = threading.Event()

        def work() -> None:
            try:
                findings.extend(check(*arguments))
            except SatchelError as error:
                findings.append(problem(subject, str(error), "follow the message, and run `satchel doctor` again"))
            except BaseException as error:  # a broken installation fails in ways that nobody foresees
                from satchel.cli.packages import pip_install

                findings.append(problem(subject, f"{type(error).__name__}: {error}", pip_install()))
            done.set()

        threading.Thread(target=work, daemon=True, name=f"doctor {subject}").start()
        if done.wait(seconds):
            return findings or [ok(subject, "no findings")]
        self.is_stuck = True
        return [problem(subject, f"the check did not finish within {seconds:.0f} seconds", late)]
