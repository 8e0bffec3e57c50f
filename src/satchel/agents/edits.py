"""Changes one entry of a settings file, and is sure of it.

Every result is read again with the parser that read the original: if they differ in anything but the entry, the file
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from satchel.agents import json_edit, toml_edit, yaml_edit
from satchel.agents.catalog import Entry, Syntax
from satchel.agents.refusal import CannotEdit

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Editor:
    read: Callable[[str], Any]
    new: Callable[[Path, Any], str]
    put: Callable[[str, Path, Any], str]
    drop: Callable[[str, Path], str | None]


_EDITORS: Final = {
    syntax: _Editor(read=module.read, new=module.new, put=module.put, drop=module.drop)
    for syntax, module in ((Syntax.JSON, json_edit), (Syntax.TOML, toml_edit), (Syntax.YAML, yaml_edit))
}
_MARK: Final = "\ufeff"


def entry_in(text: str | None, syntax: Syntax, path: Path) -> Any:
    """What stands at a path in a file; None if there is nothing, or no file."""
    return None if text is None else _at(_read(text, syntax), path)


def list_in(text: str | None, syntax: Syntax, lists: Sequence[Path]) -> Path:
    """Under which keys a file lists servers, of those it may."""
    *rarer, usual = lists
    document = {} if text is None else _read(text, syntax)
    for keys in rarer:
        found = _at(document, keys)
        if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()):
            return keys
    return usual


def with_entry(text: str | None, syntax: Syntax, path: Path, entry: Entry) -> str:
    """The file with the entry."""
    editor = _EDITORS[syntax]
    if text is None:
        after = editor.new(path, entry)
    else:
        _read(text, syntax)
        bare, mark = _bare(text)
        after = mark + editor.put(bare, path, entry)
    _check(text, after, syntax, path, entry)
    return after


def without_entry(text: str, syntax: Syntax, path: Path) -> str | None:
    """The file without the entry; None if nothing else was in a file that was made for it."""
    _read(text, syntax)
    bare, mark = _bare(text)
    left = _EDITORS[syntax].drop(bare, path)
    after = None if left is None else mark + left
    _check(text, after, syntax, path, None)
    return after


def _check(before: str | None, after: str | None, syntax: Syntax, path: Path, entry: Entry | None) -> None:
    refused = CannotEdit(f"{'.'.join(path)} is written in a way in which it cannot be changed alone: edit it by hand")
    original = {} if before is None else _read(before, syntax)
    try:
        result = {} if after is None else _read(after, syntax)
        # Order counts in what is printed, and what is not a number equals itself.
        same = repr(_without(original, path)) == repr(_without(result, path))
    except (CannotEdit, RecursionError):
        raise refused from None
    if not same or _at(result, path) != entry:
        raise refused


def _without(document: Any, path: Path) -> Any:
    """The document without what is at a path, and without what holds nothing else."""
    if not path or not isinstance(document, dict) or path[0] not in document:
        return document
    inner = _without(document[path[0]], path[1:])
    rest = {key: one for key, one in document.items() if key != path[0]}
    return rest if len(path) == 1 or inner in ({}, None) else {**document, path[0]: inner}


def _read(text: str, syntax: Syntax) -> dict[str, Any]:
    document = _EDITORS[syntax].read(_bare(text)[0])
    if not isinstance(document, dict):
        raise CannotEdit("it does not hold settings by name")
    return document


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _bare(text: str) -> tuple[str, str]:
    """The text without its byte order mark, and the mark."""
    return (text[1:], _MARK) if text.startswith(_MARK) else (text, "")
