"""Plan and write the changes of install and uninstall: a single entry of a settings file, and nothing else.

The parser of the original reads every result again: the file is refused if anything but the entry differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from satchel.agents.catalog import Agent, Entry, Machine, Scope, Syntax
from satchel.agents.settings_file import CannotEdit, read_settings, remove_empty_folders, write_settings

Keys = tuple[str, ...]
_BYTE_ORDER_MARK: Final = "\ufeff"


def entry_in(text: str | None, syntax: Syntax, path: Keys) -> Any:
    """The value at a path in a file; None without a value or a file."""
    return None if text is None else _at(_read(text, syntax), path)


def list_in(text: str | None, syntax: Syntax, lists: Sequence[Keys]) -> Keys:
    """Keys of the list of servers: the existing list of the file, else the last of `lists`."""
    *rarer, usual = lists
    document = {} if text is None else _read(text, syntax)
    for keys in rarer:
        servers = _at(document, keys)
        if isinstance(servers, dict) and all(isinstance(entry, dict) for entry in servers.values()):
            return keys
    return usual


def with_entry(text: str | None, syntax: Syntax, path: Keys, entry: Entry) -> str:
    """The file with the entry."""
    original = {} if text is None else _read(text, syntax)
    if text is None:
        after: str = _editor(syntax).new(path, entry)
    else:
        bare, mark = _split_mark(text)
        after = mark + _editor(syntax).put(bare, path, entry)
    _check(original, after, syntax, path, entry)
    return after


def without_entry(text: str, syntax: Syntax, path: Keys) -> str | None:
    """The file without the entry; None if the file was created for the entry and has no further content."""
    original = _read(text, syntax)
    bare, mark = _split_mark(text)
    left = _editor(syntax).drop(bare, path)
    after = None if left is None else mark + left
    _check(original, after, syntax, path, None)
    return after


def _editor(syntax: Syntax) -> ModuleType:
    """The module with `read`, `new`, `put` and `drop` for a syntax, imported when needed: PyYAML takes long to load."""
    return import_module(f"satchel.agents.{syntax}_edit")


def _check(original: dict[str, Any], after: str | None, syntax: Syntax, path: Keys, entry: Entry | None) -> None:
    refused = CannotEdit(f"{'.'.join(path)} cannot be changed without changing other entries; edit it by hand")
    try:
        result = {} if after is None else _read(after, syntax)
        # Order counts in what is printed, and what is not a number equals itself.
        same = repr(_without(original, path)) == repr(_without(result, path))
    except (CannotEdit, RecursionError):
        raise refused from None
    if not same or _at(result, path) != entry:
        raise refused


def _without(document: Any, path: Keys) -> Any:
    """The document without the value at a path, and without parents left empty."""
    if not path or not isinstance(document, dict) or path[0] not in document:
        return document
    inner = _without(document[path[0]], path[1:])
    rest = {key: value for key, value in document.items() if key != path[0]}
    return rest if len(path) == 1 or inner in ({}, None) else {**document, path[0]: inner}


def _read(text: str, syntax: Syntax) -> dict[str, Any]:
    document = _editor(syntax).read(_split_mark(text)[0])
    if not isinstance(document, dict):
        raise CannotEdit("the file is not a table of settings")
    return document


def _at(document: Any, path: Keys) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _split_mark(text: str) -> tuple[str, str]:
    """The text without the byte order mark, and the mark."""
    bare = text.removeprefix(_BYTE_ORDER_MARK)
    return bare, text[: len(text) - len(bare)]


class Result(StrEnum):
    """Outcome of a change to an agent's settings."""

    INSTALLED = "installed"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    ABSENT = "absent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An agent's settings in a scope, and the name of the entry."""

    agent: Agent
    scope: Scope
    file: Path
    root: Path
    """Empty folders are removed up to this folder."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Bytes of a file before and after. None means no file."""

    target: Target
    action: Result
    problem: str = ""
    before: bytes | None = None
    after: bytes | None = None

    @property
    def writes(self) -> bool:
        """True if the file changes."""
        return self.action in (Result.INSTALLED, Result.REPLACED, Result.REMOVED)


def target_for(agent: Agent, scope: Scope, machine: Machine, project: Path, name: str) -> Target | None:
    """An agent's settings in a scope; None if the agent does not support the scope."""
    files = agent.files(scope, machine, project, name)
    if not files:
        return None
    existing = next((file for file in files if file.exists()), None)
    file = existing or next((file for file in files if file.parent.exists()), files[0])
    # Of the folders that hold agents' folders and are never removed, the innermost.
    lasting = [project] if scope is Scope.PROJECT else [machine.folder(at) for at in ("home", "config", "support")]
    root = next((folder for folder in file.parents if folder in lasting), file.parent)
    return Target(agent=agent, scope=scope, file=file, root=root, name=name)


def holds_entry(target: Target) -> bool:
    """True if the settings have an entry of the target's name."""
    return _entry_path(target, _text(read_settings(target.file))) is not None


def plan_install(target: Target, entry: Entry) -> Patch:
    """Planned change of a file for install."""
    change = Patch(target=target, action=Result.UNCHANGED)
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
        return replace(change, action=Result.FAILED, problem=str(error))
    action = Result.INSTALLED if present is None else Result.REPLACED
    return replace(change, action=action, before=before, after=after)


def plan_uninstall(target: Target) -> Patch:
    """Planned change of a file for uninstall."""
    change = Patch(target=target, action=Result.ABSENT)
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
        return replace(change, action=Result.FAILED, problem=str(error))
    return replace(change, action=Result.REMOVED, before=before, after=None if after is None else after.encode())


def carry_out(changes: Sequence[Patch]) -> list[Patch]:
    """Write the files. A write error becomes a failed change; the remaining files are still written."""
    results, written = list[Patch](), dict[Path, Patch]()
    for change in changes:
        result, file = change, change.target.file
        if change.writes:
            # Two agents may read the same file; they want the same.
            written[file] = written.get(file) or _write(change)
            result = replace(change, action=written[file].action, problem=written[file].problem)
        results.append(result)
    return results


def _write(change: Patch) -> Patch:
    try:
        write_settings(change.target.file, change.before, change.after)
    except CannotEdit as error:
        return replace(change, action=Result.FAILED, problem=str(error))
    if change.after is None:
        remove_empty_folders(change.target.file, change.target.root)
    return change


def _entry_path(target: Target, text: str | None) -> Keys | None:
    """Path of keys to the entry in a file; None without an entry."""
    paths = ((*keys, target.name) for keys in target.agent.lists)
    return next((path for path in paths if isinstance(entry_in(text, target.agent.syntax, path), dict)), None)


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotEdit(f"byte {error.start}: not valid UTF-8") from None
