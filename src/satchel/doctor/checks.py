"""The checks of `satchel doctor`, one after the other. None changes anything, and none can stop the others."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, State, note, ok, problem
from satchel.errors import SatchelError

if TYPE_CHECKING:
    from satchel.service.settings import Settings

__all__ = ["Checkup", "Finding", "State"]

# Long enough for a slow disk, short enough to wait for.
_CHECK_SECONDS: Final = 30.0
_WATCHING_SECONDS: Final = 10.0
_BUSY: Final = "run `satchel doctor` again when the machine is less busy"


class Checkup:
    """Runs every check on a workspace."""

    def __init__(self, path: str, changed_settings: Mapping[str, Any]) -> None:
        self._path = path
        self._changed_settings = changed_settings
        self.is_stuck = False
        """True if a check ran out of time and its thread still runs."""

    def findings(self) -> Iterator[Finding]:
        """The findings of each check as soon as it is done."""
        from satchel.doctor import agents, installation, models, workspace

        yield from self.run("python", installation.check_python)
        yield from self.run("satchel", installation.check_program)
        yield from self.run("packages", installation.check_packages)
        yield from self.run("extras", installation.check_extras)
        yield from self.run("grammars", installation.check_grammars)
        yield from self.run("documents", models.check_document_readers)
        yield from self.run("terminal", workspace.check_terminal)
        yield from self.run("leftovers", workspace.check_leftovers)
        yield from self._workspace_findings()
        yield from self.run("agents", lambda: agents.check_agents(self._path))

    def _workspace_findings(self) -> Iterator[Finding]:
        from satchel.doctor import models, workspace
        from satchel.service.factory.opening import is_database

        in_database = is_database(self._path)
        if not in_database:
            findings = self.run("folder", lambda: workspace.check_folder(self._path))
            yield from findings
            if any(finding.state is State.PROBLEM for finding in findings):
                return
        findings = self.run("settings", lambda: workspace.check_settings(self._path))
        yield from findings
        if any(finding.state is State.PROBLEM and finding.subject == "settings" for finding in findings):
            yield note("index", "not looked at: the settings have to be right first")
            return
        settings = self._settings()
        if isinstance(settings, Finding):
            yield settings
            return
        yield from self.run("token counting", lambda: models.check_counting(settings))
        yield from self.run("scans", lambda: models.check_scans(settings))
        yield from self.run("embedder", lambda: models.check_embedder(settings), models.LATE_EMBEDDER)
        yield from self.run("language model", lambda: models.check_language_model(settings), models.LATE_LANGUAGE_MODEL)
        yield from self._index_findings(settings)
        if not in_database:
            yield from self.run("git", lambda: workspace.check_git(self._path))
            watching = workspace.LATE_WATCHING
            yield from self.run(
                "file watching", lambda: workspace.check_watching(self._path), watching, _WATCHING_SECONDS
            )

    def _index_findings(self, settings: Settings) -> Iterator[Finding]:
        from satchel.doctor import index
        from satchel.service.factory.opening import DatabasePlace, database_place, is_database, place_of, workspace

        try:
            root = None if is_database(self._path) else workspace(self._path)
            place = database_place(self._path) if root is None else place_of(root, settings)
        except SatchelError as error:
            yield problem("index", str(error), "correct the address: postgresql://user@host/database?workspace=name")
            return
        if isinstance(place, DatabasePlace):
            yield from self.run("database", lambda: index.check_database(place, root, settings), index.LATE_DATABASE)
            return
        assert root is not None
        assert place.folder is not None
        folder: Path = place.folder
        target = self._command_target()
        yield from self.run("index folder", lambda: index.check_folder(folder))
        yield from self.run("index", lambda: index.check_health(target, folder, settings), index.LATE)
        yield from self.run("index age", lambda: index.check_age(root, folder, settings), index.LATE)

    def _command_target(self) -> str:
        """The folder and the flags that lead a command to the same index."""
        index_dir = self._changed_settings.get("index_dir")
        return shlex.quote(self._path) + (f" --index-dir {shlex.quote(index_dir)}" if index_dir else "")

    def _settings(self) -> Any:
        from satchel.service.factory.opening import settings_at

        try:
            return settings_at(self._path, self._changed_settings)
        except SatchelError as error:
            return problem("settings", str(error), "correct the flag")

    def run(
        self,
        subject: str,
        check: Callable[[], Iterable[Finding]],
        late: str = _BUSY,
        seconds: float = _CHECK_SECONDS,
    ) -> list[Finding]:
        """What a check finds within its time; an error in it, or `late` when the time is over, is a problem."""
        findings: list[Finding] = []
        done = threading.Event()

        def work() -> None:
            try:
                findings.extend(check())
            except SatchelError as error:
                findings.append(problem(subject, str(error), "do what it says, and run `satchel doctor` again"))
            except BaseException as error:  # a broken installation fails in ways that nobody foresees
                findings.append(problem(subject, f"{type(error).__name__}: {error}", pip_install()))
            done.set()

        threading.Thread(target=work, daemon=True, name=f"doctor {subject}").start()
        if done.wait(seconds):
            return findings or [ok(subject, "nothing to say")]
        self.is_stuck = True
        return [problem(subject, f"no answer within {seconds:.0f} seconds", late)]
