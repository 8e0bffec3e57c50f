"""What runs our statements, in SQLite and in PostgreSQL alike.

Every table has a column `workspace`, and every statement binds it as a value beside each table that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from functools import lru_cache
from typing import Any, Protocol, TypeVar

_Value = TypeVar("_Value")


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


def batches(values: Sequence[_Value], size: int = 500) -> Iterator[Sequence[_Value]]:
    """The values, so many at a time that each batch fits into one statement."""
    for i in range(0, len(values), size):
        yield values[i : i + size]


def count(db: Database, table: str) -> int:
    """The number of rows that a workspace has in a table."""
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE workspace = ?", (db.workspace,)).get)
