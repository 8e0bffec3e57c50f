"""Changes one entry of a settings file, and nothing else.

Every result is read again with the parser that read the original: if they differ in anything but the entry, the file
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from satchel.agents.catalog import Entry, Syntax
from satchel.agents.refusal import CannotEdit

Path = tuple[str, ...]
_BYTE_ORDER_MARK: Final = "\ufeff"


def entry_in(text: str | None, syntax: Syntax, path: Path) -> Any:
    """The value at a path in a file; None if there is none, or no file."""
    return None if text is None else _at(_read(text, syntax), path)


def list_in(text: str | None, syntax: Syntax, lists: Sequence[Path]) -> Path:
    """The keys under which a file lists servers: those it has, else the last of `lists`."""
    *rarer, usual = lists
    document = {} if text is None else _read(text, syntax)
    for keys in rarer:
        servers = _at(document, keys)
        if isinstance(servers, dict) and all(isinstance(entry, dict) for entry in servers.values()):
            return keys
    return usual


def with_entry(text: str | None, syntax: Syntax, path: Path, entry: Entry) -> str:
    """The file with the entry."""
    if text is None:
        after: str = _editor(syntax).new(path, entry)
    else:
        _read(text, syntax)
        bare, mark = _split_mark(text)
        after = mark + _editor(syntax).put(bare, path, entry)
    _check(text, after, syntax, path, entry)
    return after


def without_entry(text: str, syntax: Syntax, path: Path) -> str | None:
    """The file without the entry; None if nothing else was in a file that was made for it."""
    _read(text, syntax)
    bare, mark = _split_mark(text)
    left = _editor(syntax).drop(bare, path)
    after = None if left is None else mark + left
    _check(text, after, syntax, path, None)
    return after


def _editor(syntax: Syntax) -> ModuleType:
    """The module with `read`, `new`, `put` and `drop` for a syntax, imported when needed: PyYAML takes long to load."""
    return import_module(f"satchel.agents.{syntax}_edit")


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
    rest = {key: value for key, value in document.items() if key != path[0]}
    return rest if len(path) == 1 or inner in ({}, None) else {**document, path[0]: inner}


def _read(text: str, syntax: Syntax) -> dict[str, Any]:
    document = _editor(syntax).read(_split_mark(text)[0])
    if not isinstance(document, dict):
        raise CannotEdit("it does not hold settings by name")
    return document


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _split_mark(text: str) -> tuple[str, str]:
    """The text without its byte order mark, and the mark."""
    bare = text.removeprefix(_BYTE_ORDER_MARK)
    return bare, text[: len(text) - len(bare)]
