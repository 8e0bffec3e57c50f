"""What installing and uninstalling would change, and changing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from satchel.agents.catalog import Agent, Entry, Scope
from satchel.agents.edits import entry_in, list_in, with_entry, without_entry
from satchel.agents.files import read_settings, remove_empty_folders, write_settings
from satchel.agents.machine import Machine
from satchel.agents.refusal import CannotEdit


class Action(StrEnum):
    """What becomes of an agent's settings."""

    INSTALLED = "installed"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    ABSENT = "absent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An agent's settings in one scope, and the name of the entry."""

    agent: Agent
    scope: Scope
    file: Path
    root: Path
    """The folder up to which empty folders may be removed."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file's bytes before and after. None stands for no file."""

    target: Target
    action: Action
    problem: str = ""
    before: bytes | None = None
    after: bytes | None = None

    @property
    def writes(self) -> bool:
        """True if the file changes."""
        return self.action in (Action.INSTALLED, Action.REPLACED, Action.REMOVED)


def target_for(agent: Agent, scope: Scope, machine: Machine, project: Path, name: str) -> Target | None:
    """An agent's settings in a scope; None if it has none there."""
    files = agent.files(scope, machine, project, name)
    if not files:
        return None
    existing = next((file for file in files if file.exists()), None)
    file = existing or next((file for file in files if file.parent.exists()), files[0])
    root = project if scope is Scope.PROJECT else _root(file, machine)
    return Target(agent=agent, scope=scope, file=file, root=root, name=name)


def holds_entry(target: Target) -> bool:
    """True if the settings hold an entry of that name."""
    return _entry_path(target, _text(read_settings(target.file))) is not None


def plan_install(target: Target, entry: Entry) -> Change:
    """What installing changes in a file."""
    change = Change(target=target, action=Action.UNCHANGED)
    syntax = target.agent.syntax
    try:
        before = read_settings(target.file)
        text = _text(before)
        path = (*list_in(text, syntax, target.agent.lists), target.name)
        present = entry_in(text, syntax, path)
        if present == entry:
            return change
        after = with_entry(text, syntax, path, entry).encode()
    except CannotEdit as error:
        return replace(change, action=Action.FAILED, problem=str(error))
    action = Action.INSTALLED if present is None else Action.REPLACED
    return replace(change, action=action, before=before, after=after)


def plan_uninstall(target: Target) -> Change:
    """What uninstalling changes in a file."""
    change = Change(target=target, action=Action.ABSENT)
    before = None
    try:
        before = read_settings(target.file)
        text = _text(before)
        path = _entry_path(target, text)
        if text is None or path is None:
            return change
        after = without_entry(text, target.agent.syntax, path)
    except CannotEdit as error:
        if before is not None and target.name.encode() not in before:
            return change
        return replace(change, action=Action.FAILED, problem=str(error))
    return replace(change, action=Action.REMOVED, before=before, after=None if after is None else after.encode())


def carry_out(changes: Sequence[Change]) -> list[Change]:
    """Write the files. One that cannot be written becomes a failed change, and does not stop the others."""
    results, written = list[Change](), dict[Path, Change]()
    for change in changes:
        earlier = written.get(change.target.file)
        if not change.writes:
            results.append(change)
        elif earlier is not None:
            # Two agents read the same file and want the same.
            results.append(replace(change, action=earlier.action, problem=earlier.problem))
        else:
            written[change.target.file] = _write(change)
            results.append(written[change.target.file])
    return results


def _write(change: Change) -> Change:
    try:
        write_settings(change.target.file, change.before, change.after)
    except CannotEdit as error:
        return replace(change, action=Action.FAILED, problem=str(error))
    if change.after is None:
        remove_empty_folders(change.target.file, change.target.root)
    return change


def _entry_path(target: Target, text: str | None) -> tuple[str, ...] | None:
    """The keys that lead to the entry in a file; None if it is not there."""
    for keys in target.agent.lists:
        path = (*keys, target.name)
        if isinstance(entry_in(text, target.agent.syntax, path), dict):
            return path
    return None


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotEdit(f"byte {error.start}: it is not written in UTF-8") from None


def _root(file: Path, machine: Machine) -> Path:
    """The innermost of the folders that hold agents' folders and are never removed."""
    folders = [machine.folder(name) for name in ("home", "config", "support")]
    return max(
        (folder for folder in folders if folder in file.parents), key=lambda it: len(it.parts), default=file.parent
    )
