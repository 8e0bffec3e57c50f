"""What runs our statements, in SQLite and in PostgreSQL alike.

Every table has a column `workspace`, and every statement binds it as a value beside each table that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

_Value = TypeVar("_Value")

_, *_NAMED = Path(__file__).with_name("queries.sql").read_text().split("-- name: ")
QUERIES: Final = {name: statement.strip() for name, _, statement in (query.partition("\n") for query in _NAMED)}
"""The long statements by name; `format` puts our own conditions and marks into them."""


class Rows(Protocol):
    """What a statement gives."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    @property
    def get(self) -> Any:
        """The one value of the one row, or None."""


class Database(Protocol):
    """Runs statements with `?` where values go."""

    @property
    def workspace(self) -> int:
        """The number of the workspace, which statements bind."""

    @property
    def like(self) -> str:
        """The operator that compares with a pattern and ignores case."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run it once for each row of values."""

    def changes(self) -> int:
        """How many rows the last statement changed."""


def marks(values: Sized) -> str:
    """A mark for each of the values, as `?,?,?`."""
    return ",".join("?" * len(values))


def insert(db: Database, table: str, columns: str, rows: Iterable[Sequence[Any]], on_conflict: str = "") -> None:
    """Insert rows of a workspace, whose values are in the order of the columns."""
    db.executemany(_insertion(db.workspace, table, columns, on_conflict), rows)


@lru_cache
def _insertion(workspace: int, table: str, columns: str, on_conflict: str) -> str:
    places = ",".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} (workspace, {columns}) VALUES ({workspace},{places}){on_conflict}"


def conditions(*wanted: tuple[str, Any]) -> tuple[list[str], list[Any]]:
    """The conditions whose value is not None, and these values."""
    chosen = [(condition, value) for condition, value in wanted if value is not None]
    return [condition for condition, _ in chosen], [value for _, value in chosen]


def batches(values: Sequence[_Value], size: int = 500) -> Iterator[Sequence[_Value]]:
    """The values, so many at a time that each batch fits into one statement."""
    for i in range(0, len(values), size):
        yield values[i : i + size]


def rows_by_file(db: Database, statement: str) -> dict[int, list[Sequence[Any]]]:
    """The rows of each file; the first column is the file's number, and the only mark the workspace's."""
    found: dict[int, list[Sequence[Any]]] = {}
    for file, *row in db.execute(statement, (db.workspace,)):
        found.setdefault(file, []).append(row)
    return found


def count(db: Database, table: str) -> int:
    """The number of rows that a workspace has in a table."""
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE workspace = ?", (db.workspace,)).get)
