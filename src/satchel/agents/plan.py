"""Plan and write the changes of install and uninstall: a single entry of a settings file, and nothing else.

The parser of the original reads every result again: the file is refused if anything but the entry differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from satchel.agents.catalog import Agent, Command, Entry, Machine, Scope, Syntax
from satchel.agents.guides import Guide, Part, guides_of, hook_value, is_shared
from satchel.agents.settings_file import CannotEdit, read_settings, remove_empty_folders, write_settings
from satchel.agents.text_edit import holds_block, is_ours, with_block, without_block

Keys = tuple[str, ...]
SESSION_NOTE: Final = "session-note"
"""The command that a session hook runs."""
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


def with_entry(text: str | None, syntax: Syntax, path: Keys, entry: Any) -> str:
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


def _check(original: dict[str, Any], after: str | None, syntax: Syntax, path: Keys, entry: Any) -> None:
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
    guide: Guide | None = None
    """What stands in the file; None for the entry of the server."""

    @property
    def part(self) -> Part:
        """The part of the installation."""
        return self.guide.part if self.guide else Part.SERVER


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
    root = _lasting_folder(file, scope, machine, project)
    return Target(agent=agent, scope=scope, file=file, root=root, name=name)


def guide_targets(server: Target, parts: tuple[Part, ...], machine: Machine, project: Path) -> Iterator[Target]:
    """The files in which the agent of a target reads the parts beside its list of servers."""
    for guide in guides_of(server.agent.key, parts):
        if file := guide.file(server.scope, machine, project, server.name):
            root = _lasting_folder(file, server.scope, machine, project)
            yield replace(server, file=file, root=root, guide=guide)


def _lasting_folder(file: Path, scope: Scope, machine: Machine, project: Path) -> Path:
    """Of the folders that hold agents' folders and are never removed, the innermost."""
    lasting = [project] if scope is Scope.PROJECT else [machine.folder(at) for at in ("home", "config", "support")]
    return next((folder for folder in file.parents if folder in lasting), file.parent)


def holds_entry(target: Target) -> bool:
    """True if the settings have an entry of the target's name, or the file has the part."""
    if target.guide:
        return _holds_guide(target, _text(read_settings(target.file)))
    return _entry_path(target, _text(read_settings(target.file))) is not None


def plan_install(target: Target, entry: Entry) -> Patch:
    """Planned change of a file for the entry of the server."""
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
    if target.guide:
        return _plan_guide(target, Result.ABSENT, None)
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


def plan_guide(target: Target, hook: Command) -> Patch:
    """Planned change of a file for a part beside the server; `hook` is what a session hook runs."""
    return _plan_guide(target, Result.UNCHANGED, hook)


def _plan_guide(target: Target, same: Result, hook: Command | None) -> Patch:
    change = Patch(target=target, action=same)
    try:
        before = read_settings(target.file)
        text = _text(before)
        after = _guided(target, text, hook)
    except CannotEdit as error:
        return replace(change, action=Result.FAILED, problem=str(error))
    if after == text:
        return change
    action = Result.REMOVED if hook is None else Result.REPLACED if _holds_guide(target, text) else Result.INSTALLED
    return replace(change, action=action, before=before, after=None if after is None else after.encode())


def _guided(target: Target, text: str | None, hook: Command | None) -> str | None:
    """The file with the part of the target, or without it if there is no `hook`."""
    guide = target.guide
    assert guide is not None
    if guide.keys:
        return _hooked(target, text, hook)
    if is_shared(target.file):
        if hook is None:
            return without_block(text, target.name) if text is not None else None
        return with_block(text, target.name, guide.text(target.name))
    if text is not None and not is_ours(text):
        if hook is None:
            return text
        raise CannotEdit("the file exists and was not written by `satchel install`; move it, or use another --name")
    return None if hook is None else guide.text(target.name)


def _hooked(target: Target, text: str | None, hook: Command | None) -> str | None:
    """The JSON file with the list of session hooks, or without it if it is ours."""
    assert target.guide is not None
    keys = target.guide.keys
    present = entry_in(text, Syntax.JSON, keys)
    if hook is None:
        is_own = SESSION_NOTE in repr(present) and isinstance(present, list) and len(present) == 1
        return without_entry(text, Syntax.JSON, keys) if text is not None and is_own else text
    value = hook_value(hook)
    if present == value:
        return text
    if present is not None and SESSION_NOTE not in repr(present):
        raise CannotEdit(f"{'.'.join(keys)} has hooks already; add one by hand that runs: satchel {SESSION_NOTE}")
    return with_entry(text, Syntax.JSON, keys, value)


def _holds_guide(target: Target, text: str | None) -> bool:
    """True if a file has the part of the target."""
    if text is None or target.guide is None:
        return False
    if target.guide.keys:
        return SESSION_NOTE in repr(entry_in(text, Syntax.JSON, target.guide.keys))
    return holds_block(text, target.name) if is_shared(target.file) else is_ours(text)


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
