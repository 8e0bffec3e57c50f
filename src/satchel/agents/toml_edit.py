"""Puts a table at the end of a TOML file, and takes it out again, leaving every other byte as it is.

In a file that was there, an empty line stands before the table; a file that ends without a line end still does.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any, Final

from satchel.agents.refusal import CannotEdit, line_end_of

Path = tuple[str, ...]

_STRING: Final = r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
_TOKEN: Final = re.compile(rf"(?P<gap>[ \t\r]+|#[^\n]*)|(?P<word>{_STRING}|[^\s\"'#\[\]{{}}]+)|.", re.DOTALL)
_KEY: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    start: int
    end: int
    table: Path | None
    """The table that a header opens."""


def read(text: str) -> Any:
    """The document."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(str(error)) from None


def new(path: Path, value: Any) -> str:
    """A text that holds nothing but the table."""
    return _table(path, value, "\n") + "\n"


def put(text: str, path: Path, value: Any) -> str:
    """The text with the table, in the place of one that is there or at the end."""
    line_end = line_end_of(text)
    table = _table(path, value, line_end)
    found = _span(text, path)
    if found:
        return text[: found[0]] + table + text[found[1] :]
    if text and not text.endswith("\n"):
        return text + line_end + line_end + table
    return text + line_end + table + line_end


def drop(text: str, path: Path) -> str | None:
    """The text without the table; nothing if the text was made for it."""
    found = _span(text, path)
    if found is None:
        raise CannotEdit(f"{'.'.join(path)} is not a table with a header of its own: take it out by hand")
    line_end = line_end_of(text)
    before, after = text[: found[0]], text[found[1] :]
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


def _table(path: Path, value: dict[str, Any], line_end: str) -> str:
    # JSON's strings and lists of strings are TOML as well.
    lines = [f"{key} = {json.dumps(one, ensure_ascii=False)}" for key, one in value.items()]
    return line_end.join([f"[{'.'.join(path)}]", *lines])


def _span(text: str, path: Path) -> tuple[int, int] | None:
    """From the header of a table to the end of what stands in it and in the tables below it."""
    start, end = None, 0
    for statement in _statements(text):
        if start is None:
            if statement.table == path:
                start, end = statement.start, statement.end
        elif statement.table is None or statement.table[: len(path)] == path:
            end = statement.end
        else:
            break
    return None if start is None else (start, end)


def _statements(text: str) -> list[_Statement]:
    """Headers, and keys with their values. The text is known to parse."""
    found, at, start, end, depth = list[_Statement](), 0, -1, 0, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        at = token.end()
        if token["gap"]:
            continue
        if token[0] == "\n" and depth == 0:
            if start >= 0:
                found.append(_statement(text, start, end))
            start = -1
        elif token[0] != "\n":
            start, end = (token.start() if start < 0 else start), token.end()
            if not token["word"]:
                depth += (token[0] in "[{") - (token[0] in "]}")
    if start >= 0:
        found.append(_statement(text, start, end))
    return found


def _statement(text: str, start: int, end: int) -> _Statement:
    body = text[start:end]
    if not body.startswith("["):
        return _Statement(start=start, end=end, table=None)
    keys = tuple(_unquoted(key) for key in _KEY.findall(body))
    # A list of tables is another thing than a table of that name.
    return _Statement(start=start, end=end, table=("", *keys) if body.startswith("[[") else keys)


def _unquoted(key: str) -> str:
    text: str = tomllib.loads(f"key = {key}")["key"] if key[0] in "\"'" else key
    return text
