"""Database access for the stores: statements, the encoding of values in columns, and access filters for rows.

Each distinct access list is a row, and each file and block stores the number of its list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from satchel.errors import InvalidInput
from satchel.models.access import DEFAULT, ROOT, Access, DefaultAccess

_Value = TypeVar("_Value")
_MAX_ID_CHARS: Final = 2000  # ids are indexed, and PostgreSQL indexes up to about 2,600 bytes
_MAX_CACHED_FILTERS: Final = 64  # a condition lists all its access lists, and may be long
_ROOT_KEY: Final = "*"

NODE_PATH: Final = b"\0"
"""The prefix of a workspace block's path in `file`: NUL, impossible in file names."""

IN_FILES: Final = "file.path >= ?"
"""SQL condition for rows of `file` that are files, not workspace blocks; bound to FIRST_PATH."""

FIRST_PATH: Final = b"\x01"
"""Sorts after the path of every workspace block, and before the path of every file."""


# -- statements


class Rows(Protocol):
    """The result rows of a statement."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    @property
    def get(self) -> Any:
        """The first value of the first row, or None."""


class Database(Protocol):
    """Runs statements with `?` as placeholder."""

    workspace: int
    """The number of the workspace, bound in every statement."""
    like: str
    """The operator for case-insensitive patterns."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement for each row of values."""

    def changes(self) -> int:
        """The number of rows changed by the last statement."""

    def run(self, statement: str, *values: Any) -> Rows:
        """Run a statement with the workspace as the first bound value."""
        return self.execute(statement, (self.workspace, *values))

    def run_in(self, statement: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        """The rows for all keys, bound at `{keys}`: after the workspace and before the remaining values."""
        for batch in batches(keys):
            yield from self.run(statement.format(keys=marks(batch)), *batch, *values)

    def run_each(self, statement: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        """The rows for one key after the other, each bound at `{key}`: so that a limit concerns each key."""
        for key in dict.fromkeys(keys):
            yield from self.run(statement.format(key="?"), key, *values)

    def insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]], on_conflict: str = "") -> None:
        """Insert rows of the workspace, with values in the order of the columns."""
        self.executemany(_insertion(self.workspace, table, columns, on_conflict), rows)

    def rows_by_file(self, statement: str) -> dict[int, list[Sequence[Any]]]:
        """The rows by file number; the first column is the file number, the only placeholder the workspace."""
        by_file: dict[int, list[Sequence[Any]]] = {}
        for file, *row in self.run(statement):
            by_file.setdefault(file, []).append(row)
        return by_file

    def count(self, table: str) -> int:
        """The number of the workspace's rows in a table."""
        return int(self.run(f"SELECT count(*) FROM {table} WHERE workspace = ?").get)

    def fact(self, name: str) -> Any:
        """A fact about the whole index, or None."""
        return self.run("SELECT value FROM fact WHERE workspace = ? AND name = ?", name).get


def marks(values: Sized) -> str:
    """A placeholder for each value, as in `?,?,?`."""
    return ",".join("?" * len(values))


def numbers_text(numbers: Iterable[int]) -> str:
    """The distinct numbers in ascending order, separated by commas for SQL."""
    return ",".join(map(str, sorted(set(numbers))))


@lru_cache
def _insertion(workspace: int, table: str, columns: str, on_conflict: str) -> str:
    places = ",".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} (workspace, {columns}) VALUES ({workspace},{places}){on_conflict}"


def conditions(*conditions: tuple[str, Any]) -> tuple[str, list[Any]]:
    """SQL of the conditions with a value, each after an AND, and the values; `{}` becomes a tuple's placeholders."""
    text = ""
    bound: list[Any] = []
    for condition, value in conditions:
        if value is not None and value != ():
            values = value if isinstance(value, tuple) else (value,)
            text += f" AND {condition.format(marks(values))}"
            bound += values
    return text, bound


def batches(values: Sequence[_Value], size: int = 500) -> Iterator[Sequence[_Value]]:
    """The values in batches small enough for a statement's limit on bound values."""
    for i in range(0, len(values), size):
        yield values[i : i + size]


# -- values


def encoded(text: str) -> bytes:
    """A text or path in stored form: the bytes of the file system (UTF-8 with surrogateescape)."""
    return text.encode("utf-8", "surrogateescape")


def decoded(stored: bytes) -> str:
    """The text, path or id from the stored bytes."""
    return stored.decode("utf-8", "surrogateescape")


def plain(text: str) -> str:
    """The text with characters outside UTF-8 replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def is_node(path: bytes) -> bool:
    """True if the path is of a workspace block, not of a file."""
    return path.startswith(NODE_PATH)


def id_bytes(block_id: str) -> bytes:
    """A block id in stored form; raises InvalidInput for an invalid id."""
    if not isinstance(block_id, str) or not 0 < len(block_id) <= _MAX_ID_CHARS:
        raise InvalidInput("id", block_id, f"must be text of 1 to {_MAX_ID_CHARS} characters")
    try:
        return encoded(block_id)
    except UnicodeEncodeError:
        raise InvalidInput("id", block_id, "contains characters that UTF-8 cannot encode") from None


def known_id(block_id: str) -> bytes | None:
    """A block id in stored form, or None for an invalid id."""
    with suppress(InvalidInput):
        return id_bytes(block_id)
    return None


class Lines:
    """The start and end of each line of a text, in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        import numpy as np  # most questions write nothing

        feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        self._starts = np.concatenate(([0], feeds + 1, [len(data)]))

    def start(self, line: int) -> int:
        """The byte offset of a line's start; the first line is 1."""
        return int(self._starts[line - 1])

    def end(self, line: int) -> int:
        """The byte offset of a line's end, without the line feed."""
        end = int(self._starts[line])
        return end - 1 if end and self._data[end - 1 : end] == b"\n" else end


# -- access


class AccessFilter(NamedTuple):
    """SQL condition on `file` with bound values; both come after all other placeholders of a statement."""

    condition: str
    values: tuple[Any, ...] = ()


UNRESTRICTED: Final = AccessFilter("true")


@lru_cache(maxsize=_MAX_CACHED_FILTERS)
def filter_by_lists(access: frozenset[int] | None) -> AccessFilter:
    """SQL condition that limits rows to the given access lists (None: no limit)."""
    if access is None:
        return UNRESTRICTED
    return AccessFilter(f"file.access IN ({numbers_text(access) or 'NULL'})")


class ReadableRows(NamedTuple):
    """The tables with a reader's access: the readable access lists, or None for all."""

    db: Database
    allowed: frozenset[int] | None
    filter: AccessFilter
    known: dict[bytes, bool]
    """The blocks that these rows are known to show, and not to show."""

    def shows(self, access: int) -> bool:
        """True if rows with this access list are readable."""
        return self.allowed is None or access in self.allowed

    def run(self, statement: str, *values: Any, **parts: object) -> Rows:
        """Run a statement with `{readable}` as the access condition; `parts` fill the remaining `{…}` by name."""
        text = statement.format(readable=self.filter.condition, **parts)
        return self.db.run(text, *values, *self.filter.values)


def access_number(db: Database, access: Access) -> int:
    """The number of an access list; equal lists share a row."""
    key = _access_key(access)
    row = db.run("SELECT id FROM access WHERE workspace = ? AND readers = ?", key).fetchone()
    if row is None:
        row = db.run("INSERT INTO access (workspace, readers) VALUES (?,?) RETURNING id", key).fetchone()
    return int(row[0])


def access_of(db: Database, number: int) -> Access:
    """The access list with the given number."""
    return _access(str(db.run("SELECT readers FROM access WHERE workspace = ? AND id = ?", number).get))


def access_lists(db: Database) -> dict[int, Access]:
    """All access lists by their numbers."""
    rows = db.run("SELECT id, readers FROM access WHERE workspace = ?")
    return {number: _access(readers) for number, readers in rows}


def _access_key(access: Access) -> str:
    if access == ROOT:
        return _ROOT_KEY
    if not access.deny:
        return json.dumps(sorted(access.allow))
    return json.dumps({"allow": sorted(access.allow), "deny": sorted(access.deny)})


def _access(key: str) -> Access:
    if key == _ROOT_KEY:
        return ROOT
    stored = json.loads(key)
    if isinstance(stored, list):
        return Access(frozenset(stored))
    return Access(frozenset(stored["allow"]), frozenset(stored["deny"]))


def default_access(db: Database) -> DefaultAccess:
    """Who may read files and blocks without a grant."""
    statement = "SELECT name, value FROM fact WHERE workspace = ? AND name IN ('multi_user', 'default_access')"
    facts = dict(db.run(statement))
    if not int(facts.get("multi_user") or 0):
        return DefaultAccess.OWNER
    return DefaultAccess(facts.get("default_access") or DefaultAccess.DENY)


def readable_lists(
    readers: frozenset[str] | None, default: DefaultAccess, lists: Mapping[int, Access]
) -> frozenset[int] | None:
    """The numbers of the access lists with access for any of these readers; None means all."""
    if readers is None and default is DefaultAccess.OWNER:
        return None
    asking = readers or frozenset()
    if default is DefaultAccess.OWNER or (default is DefaultAccess.ALLOW and asking):
        asking |= {DEFAULT}
    return frozenset(number for number, access in lists.items() if access.lets_in(asking))
