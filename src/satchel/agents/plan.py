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
    """What is to become of a file: its bytes before and after. None stands for no file."""

    target: Target
    action: Action
    problem: str = ""
    before: bytes | None = None
    after: bytes | None = None

    @property
    def writes(self) -> bool:
        """Whether the file becomes another."""
        return self.action in (Action.INSTALLED, Action.REPLACED, Action.REMOVED)


def target_for(agent: Agent, scope: Scope, machine: Machine, project: Path, name: str) -> Target | None:
    """The settings of an agent in a scope, if it has any there."""
    files = agent.files(scope, machine, project, name)
    if not files:
        return None
    there = next((file for file in files if file.exists()), None)
    file = there or next((file for file in files if file.parent.exists()), files[0])
    root = project if scope is Scope.PROJECT else _root(file, machine)
    return Target(agent=agent, scope=scope, file=file, root=root, name=name)


def holds_entry(target: Target) -> bool:
    """Whether the settings hold an entry of that name."""
    return _found(target, _text(read_settings(target.file))) is not None


def plan_install(target: Target, entry: Entry) -> Change:
    """What installing changes in a file."""
    change = Change(target=target, action=Action.UNCHANGED)
    syntax = target.agent.syntax
    try:
        before = read_settings(target.file)
        text = _text(before)
        path = (*list_in(text, syntax, target.agent.lists), target.name)
        found = entry_in(text, syntax, path)
        if found == entry:
            return change
        after = with_entry(text, syntax, path, entry).encode()
    except CannotEdit as error:
        return replace(change, action=Action.FAILED, problem=str(error))
    action = Action.INSTALLED if found is None else Action.REPLACED
    return replace(change, action=action, before=before, after=after)


def plan_uninstall(target: Target) -> Change:
    """What uninstalling changes in a file."""
    change = Change(target=target, action=Action.ABSENT)
    before = None
    try:
        before = read_settings(target.file)
        text = _text(before)
        path = _found(target, text)
        if text is None or path is None:
            return change
        after = without_entry(text, target.agent.syntax, path)
    except CannotEdit as error:
        if before is not None and target.name.encode() not in before:
            return change
        return replace(change, action=Action.FAILED, problem=str(error))
    return replace(change, action=Action.REMOVED, before=before, after=None if after is None else after.encode())


def carry_out(changes: Sequence[Change]) -> list[Change]:
    """Write the files. What cannot be written is told, and the others are written nevertheless."""
    done, written = list[Change](), dict[Path, Change]()
    for change in changes:
        earlier = written.get(change.target.file)
        if not change.writes:
            done.append(change)
        elif earlier is not None:
            # Two agents read the same file and want the same.
            done.append(replace(change, action=earlier.action, problem=earlier.problem))
        else:
            written[change.target.file] = _carried_out(change)
            done.append(written[change.target.file])
    return done


def _carried_out(change: Change) -> Change:
    try:
        write_settings(change.target.file, change.before, change.after)
    except CannotEdit as error:
        return replace(change, action=Action.FAILED, problem=str(error))
    if change.after is None:
        remove_empty_folders(change.target.file, change.target.root)
    return change


def _found(target: Target, text: str | None) -> tuple[str, ...] | None:
    """Where in a file the entry is."""
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
    """The folder that stays, of those that may hold an agent's folder."""
    stays = [machine.folder(name) for name in ("home", "config", "support")]
    return max((one for one in stays if one in file.parents), key=lambda one: len(one.parts), default=file.parent)
