"""A connection to PostgreSQL that runs the statements which both stores share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from satchel.storage.sql.rows import Database

_MOST_VALUES: Final = 20_000
"""So many values go into one statement; PostgreSQL takes three times as many."""
_HELD: Final = 50_000


class PostgresRows(psycopg.Cursor[Any]):
    """What a statement gave."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection)
        self.format = psycopg.pq.Format.BINARY

    @property
    def get(self) -> Any:
        """The one value of the one row, or None."""
        row = self.fetchone()
        return None if row is None else row[0]


class PostgresDatabase(Database):
    """Runs statements in the connection's transaction.

    Rows that are only put are held back until something else is said, and then sent many at once: a round trip for each
    would take longer than everything else.
    """

    like = "ILIKE"

    def __init__(self, connection: psycopg.Connection[Any], workspace: int) -> None:
        self.connection = connection
        self.workspace = workspace
        self._last: PostgresRows | None = None
        self._held: dict[str, list[list[Any]]] = {}
        self._held_values = 0

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> PostgresRows:
        """Run one statement."""
        kept = [_kept(value) for value in values]
        rows = PostgresRows(self.connection)
        if _can_wait(statement):
            self._hold(statement, kept)
            return rows
        self.flush()
        rows.execute(with_psycopg_marks(statement).encode(), kept)
        self._last = rows
        return rows

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run it once for each row of values, all of them in one exchange."""
        values = [[_kept(value) for value in row] for row in rows]
        if not values:
            return
        if _can_wait(statement):
            for row in values:
                self._hold(statement, row)
            return
        self.flush()
        with self.connection.cursor() as cursor:
            cursor.executemany(with_psycopg_marks(statement).encode(), values)

    def changes(self) -> int:
        """How many rows the last statement changed."""
        self.flush()
        return 0 if self._last is None else self._last.rowcount

    def _hold(self, statement: str, values: list[Any]) -> None:
        self._held.setdefault(statement, []).append(values)
        self._held_values += len(values)
        if self._held_values > _HELD:
            self.flush()

    def flush(self) -> None:
        """Send what was held back."""
        held, self._held, self._held_values = self._held, {}, 0
        for statement, rows in held.items():
            head, _, rest = with_psycopg_marks(statement).partition(" VALUES ")
            marks, ending, tail = rest.partition(")")
            at_once = max(1, _MOST_VALUES // max(1, len(rows[0])))
            for i in range(0, len(rows), at_once):
                some = rows[i : i + at_once]
                many = f"{head} VALUES {','.join([marks + ending] * len(some))}{tail}"
                self.connection.execute(many.encode(), [value for row in some for value in row], prepare=False)


def with_psycopg_marks(statement: str) -> str:
    """A statement with psycopg's marks for values; no statement of ours has either sign for anything else."""
    return statement.replace("?", "%s")


def _can_wait(statement: str) -> bool:
    """Whether a statement only puts a row, and nothing comes back."""
    return statement.startswith("INSERT INTO ") and "RETURNING" not in statement and "DO UPDATE" not in statement


def _kept(value: Any) -> Any:
    """A value as PostgreSQL can hold it: its texts have no place for NUL, nor for what is not UTF-8."""
    return storable(value) if isinstance(value, str) else value


def storable(text: str) -> str:
    """A text as PostgreSQL can hold it."""
    text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
