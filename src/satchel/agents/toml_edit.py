"""Add a table at the end of a TOML file and remove the table, without changing any byte elsewhere.

In an existing file, an empty line precedes the table; a file without a final line end stays without. tomllib finds the
borders of statements: the text before a border parses on its own.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final

from satchel.agents.settings_file import CannotEdit, appended, line_end_of

Keys = tuple[str, ...]

_HEADER: Final = re.compile(r"^[ \t]*(\[[^\r\n]*)", re.MULTILINE)


def read(text: str) -> Any:
    """The parsed document."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CannotEdit(str(error)) from None


def new(path: Keys, value: Any) -> str:
    """A text with only the table."""
    return _table(path, value, "\n") + "\n"


def put(text: str, path: Keys, value: Any) -> str:
    """The text with the table: replaces an existing table, else appends the table."""
    table, span = _table(path, value, line_end_of(text)), _span(text, path)
    return text[: span[0]] + table + text[span[1] :] if span else appended(text, table)


def drop(text: str, path: Keys) -> str | None:
    """The text without the table; None if the text was created for the table."""
    span = _span(text, path)
    if span is None:
        raise CannotEdit(f"{'.'.join(path)} has no table header of its own; remove it by hand")
    line_end = line_end_of(text)
    before, after = text[: span[0]], text[span[1] :]
    if not before and after == line_end:
        return None
    if not after:
        return before.removesuffix(line_end).removesuffix(line_end)
    if after.startswith(line_end):
        after = after.removeprefix(line_end)
        shorter = before.removesuffix(line_end)
        if not shorter or shorter.endswith("\n"):
            before = shorter
    return before + after


def _table(path: Keys, value: dict[str, Any], line_end: str) -> str:
    # JSON's strings and lists of strings are TOML as well.
    lines = [f"{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in value.items()]
    return line_end.join([f"[{'.'.join(path)}]", *lines])


def _span(text: str, path: Keys) -> tuple[int, int] | None:
    """Start and end of a table in the text, including subtables."""
    headers = [(line.start(1), _header_keys(line[1])) for line in _HEADER.finditer(text)]
    start = next((at for at, keys in headers if keys == path and _parses(text[:at])), None)
    if start is None:
        return None
    others = (at for at, keys in headers if at > start and keys and keys[: len(path)] != path)
    body = text[start : next((at for at in others if _parses(text[start:at])), len(text))]
    return start, start + len(_without_gap(body))


def _header_keys(line: str) -> Keys:
    """Keys of a table header, plus an empty key for an array of tables; () for any line without a header."""
    try:
        inner: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys = list[str]()
    while isinstance(inner, dict) and inner:
        ((key, inner),) = inner.items()
        keys.append(key)
    return (*keys, *([""] if isinstance(inner, list) else []))


def _without_gap(body: str) -> str:
    """Statements without trailing space and comments."""
    body = body.rstrip()
    for at in range(body.rfind("\n") + 1, len(body)):
        if body[at] == "#" and _parses(body[:at]):
            return _without_gap(body[:at])
    return body


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
