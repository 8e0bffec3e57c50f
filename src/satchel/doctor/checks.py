"""What `satchel doctor` looks at. Nothing is changed, and no look can take the others down with it."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from satchel.doctor.finding import Finding, State, note, ok, problem
from satchel.errors import SatchelError

__all__ = ["Checkup", "Finding", "State"]

_SECONDS: Final = 30.0
Looking = Callable[[], Iterable[Finding]]


class Look(NamedTuple):
    """Something to look at, for so long, and what to do if that was not long enough."""

    subject: str
    looking: Looking
    late: str = "run `satchel doctor` again when the machine is less busy"
    seconds: float = _SECONDS


class Checkup:
    """Looks at everything, one after the other."""

    def __init__(self, path: str, changed_settings: Mapping[str, Any]) -> None:
        self._path = path
        self._changed_settings = changed_settings
        self.is_stuck = False
        """Whether a look was left behind that has not come to its end."""

    def findings(self) -> Iterator[Finding]:
        """What is found, as soon as it is."""
        for look in self._looks():
            yield from self._looked(look)

    def _looks(self) -> Iterator[Look]:
        from satchel.doctor import agents, documents, extras, installation, machine

        yield Look("python", installation.python)
        yield Look("satchel", installation.program)
        yield Look("packages", installation.packages)
        yield Look("extras", extras.extras)
        yield Look("grammars", installation.grammars)
        yield Look("documents", documents.readers)
        yield Look("terminal", machine.terminal)
        yield Look("leftovers", machine.leftovers)
        yield from self._looks_at_the_workspace()
        yield Look("agents", lambda: agents.agents(self._path))

    def _looks_at_the_workspace(self) -> Iterator[Look]:
        from satchel.doctor import documents, machine, models, settings
        from satchel.service.factory.locations import is_database

        in_database = is_database(self._path)
        if not in_database:
            there = self._looked(Look("folder", lambda: machine.folder(self._path)))
            yield Look("folder", lambda: there)
            if any(one.state is State.PROBLEM for one in there):
                return
        told = self._looked(Look("settings", lambda: settings.settings(self._path)))
        yield Look("settings", lambda: told)
        if any(one.state is State.PROBLEM and one.subject == "settings" for one in told):
            yield Look("index", lambda: [note("index", "not looked at: the settings have to be right first")])
            return
        chosen = self._settings()
        if isinstance(chosen, Finding):
            yield Look("settings", lambda: [chosen])
            return
        yield Look("token counting", lambda: models.counting(chosen))
        yield Look("scans", lambda: documents.scans(chosen))
        yield Look("embedder", lambda: models.embedder(chosen), models.LATE_EMBEDDER)
        yield Look("language model", lambda: models.language_model(chosen), models.LATE_LANGUAGE_MODEL)
        yield from self._looks_at_the_index(chosen)
        if not in_database:
            yield Look("git", lambda: machine.git(self._path))
            yield Look("file watching", lambda: machine.watching(self._path), machine.LATE_WATCHING, 10.0)

    def _looks_at_the_index(self, chosen: Any) -> Iterator[Look]:
        from satchel.doctor import database, index
        from satchel.service.factory.locations import DatabasePlace, database_place, is_database, place_of
        from satchel.service.factory.opening import workspace

        try:
            root = None if is_database(self._path) else workspace(self._path)
            place = database_place(self._path) if root is None else place_of(root, chosen)
        except SatchelError as error:
            wrong = problem("index", str(error), "correct the address: postgresql://user@host/database?workspace=name")
            yield Look("index", lambda: [wrong])
            return
        if isinstance(place, DatabasePlace):
            yield Look("database", lambda: database.database(place, root, chosen), database.LATE)
            return
        assert root is not None
        folder = place.folder
        assert folder is not None
        yield Look("index folder", lambda: index.folder(folder))
        yield Look("index", lambda: index.health(self._named(), folder, chosen), index.LATE)
        yield Look("index age", lambda: index.age(root, folder, chosen), index.LATE)

    def _named(self) -> str:
        """The folder and the flags that lead a command to the same index."""
        given = self._changed_settings.get("index_dir")
        return shlex.quote(self._path) + (f" --index-dir {shlex.quote(given)}" if given else "")

    def _settings(self) -> Any:
        from satchel.service.factory.opening import settings_at

        try:
            return settings_at(self._path, self._changed_settings)
        except SatchelError as error:
            return problem("settings", str(error), "correct the flag")

    def _looked(self, look: Look) -> list[Finding]:
        """What a look finds, within its time, whatever becomes of it."""
        found: list[Finding] = []
        done = threading.Event()

        def work() -> None:
            try:
                found.extend(look.looking())
            except SatchelError as error:
                found.append(problem(look.subject, str(error), "do what it says, and run `satchel doctor` again"))
            except BaseException as error:  # a broken installation fails in ways that nobody foresees
                said = f"{type(error).__name__}: {error}"
                found.append(problem(look.subject, said, _reinstall()))
            done.set()

        threading.Thread(target=work, daemon=True, name=f"doctor {look.subject}").start()
        if done.wait(look.seconds):
            return found or [ok(look.subject, "nothing to say")]
        self.is_stuck = True
        return [problem(look.subject, f"no answer within {look.seconds:.0f} seconds", look.late)]


def _reinstall() -> str:
    from satchel.cli.packages import pip_install

    return pip_install()
