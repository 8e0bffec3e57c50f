"""A connection of PostgreSQL as the code that stores share wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from satchel.adapters.postgres.dialect import translated

if TYPE_CHECKING:
    import psycopg


class PostgresRows:
    """What a statement gave."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor) if self._cursor.description else iter(())

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """All rows."""
        return self._cursor.fetchall()

    @property
    def get(self) -> Any:
        """The one value of the one row, or None."""
        row = self._cursor.fetchone()
        return None if row is None else row[0]


class PostgresDatabase:
    """Runs statements in the connection's transaction, each bound to the workspace."""

    def __init__(self, connection: psycopg.Connection[Any], workspace: int) -> None:
        self.connection = connection
        self.workspace = workspace
        self._changes = 0

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> PostgresRows:
        """Run one statement."""
        cursor = self.connection.cursor(binary=True)
        cursor.execute(translated(statement, self.workspace).encode(), [_kept(value) for value in values])
        self._changes = cursor.rowcount
        return PostgresRows(cursor)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run it once for each row of values, all of them in one exchange."""
        values = [[_kept(value) for value in row] for row in rows]
        if values:
            with self.connection.cursor() as cursor:
                cursor.executemany(translated(statement, self.workspace).encode(), values)

    def changes(self) -> int:
        """How many rows the last statement changed."""
        return self._changes


def _kept(value: Any) -> Any:
    """A value as PostgreSQL can hold it: its texts have no place for NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
