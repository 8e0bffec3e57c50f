"""A PostgreSQL connection for the SQL shared by both stores, and the mapping of server errors to Satchel's errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable, InvalidInput, InvalidOption, StoreUnavailable
from satchel.storage.sql.rows import Database, batches

Connection: TypeAlias = psycopg.Connection[Any]

_UNWRITABLE: Final = (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction, errors.DiskFull, errors.OutOfMemory)
_MAX_STATEMENT_VALUES: Final = 20_000
"""Bound values in a statement; PostgreSQL's protocol allows three times as many (65,535)."""
# Bounds memory; a larger buffer saves few round trips, as each statement has a limit too.
_MAX_BUFFERED_VALUES: Final = 50_000


@contextmanager
def map_postgres_errors(where: str) -> Iterator[None]:
    """Run statements, and raise the server's errors as Satchel's errors."""
    try:
        yield
    except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
        raise IndexBusy(where, "") from error
    except errors.QueryCanceled as error:
        raise StoreUnavailable(where, f"a statement took too long and was stopped ({first_line(error)})") from error
    except errors.ProgramLimitExceeded as error:
        problem = f"is longer than PostgreSQL can index, about 2,600 bytes ({first_line(error)})"
        raise InvalidInput("id", "…", problem) from error
    except _UNWRITABLE as error:
        raise IndexUnwritable(where, first_line(error)) from error
    except (errors.DataCorrupted, errors.IndexCorrupted, errors.UndefinedTable, errors.UndefinedColumn) as error:
        raise IndexDamaged(where, first_line(error)) from error
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        raise StoreUnavailable(where, f"{first_line(error)}; is it running, and is the address right?") from error
    except psycopg.DataError as error:
        raise InvalidInput("value", "…", f"cannot be stored in PostgreSQL ({first_line(error)})") from error
    except psycopg.Error as error:
        if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
            # The error is from the client, before any connection: the message may quote the URL with its password.
            raise InvalidOption("store", "postgresql://...", "is not a valid PostgreSQL URL") from None
        raise StoreUnavailable(where, f"{type(error).__name__}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's message: further lines may quote values."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def value(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
    """The first value of the first row of a statement's result, or None."""
    row = connection.execute(statement.encode(), values).fetchone()
    return None if row is None else row[0]


class PostgresRows(psycopg.Cursor[Any]):
    """The result rows of a statement."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.format = psycopg.pq.Format.BINARY

    @property
    def get(self) -> Any:
        """The first value of the first row, or None."""
        row = self.fetchone()
        return None if row is None else row[0]


@dataclass(slots=True)
class PostgresDatabase(Database):
    """Runs statements in the connection's transaction.

    Inserts are buffered until the next other statement and then sent in batches: a round trip for each row would take
    longer than everything else.
    """

    connection: Connection
    workspace: int
    like: str = "ILIKE"
    _last: PostgresRows | None = None
    _buffered: dict[str, list[list[Any]]] = field(default_factory=dict)
    _buffered_values: int = 0

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> PostgresRows:
        """Run a statement."""
        rows = PostgresRows(self.connection)
        if _is_bufferable(statement):
            self._buffer(statement, values)
            return rows
        self.flush()
        rows.execute(with_psycopg_marks(statement).encode(), [storable(value) for value in values])
        self._last = rows
        return rows

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each row of values, all in a single exchange."""
        if _is_bufferable(statement):
            for row in rows:
                self._buffer(statement, row)
        elif values := [[storable(value) for value in row] for row in rows]:
            self.flush()
            with self.connection.cursor() as cursor:
                cursor.executemany(with_psycopg_marks(statement).encode(), values)

    def run_in(self, statement: str, keys: Sequence[Any], *values: Any) -> Iterator[Any]:
        """The rows for all keys, bound as one array: the same statement, prepared once, for any number of keys."""
        if keys:
            yield from self.run(statement.replace("IN ({keys})", "= ANY(?)"), list(keys), *values)

    def run_each(self, statement: str, keys: Sequence[bytes], *values: Any) -> Iterator[Any]:
        """The rows for one key after the other, each bound at `{key}`, in a single statement."""
        if keys:
            each = statement.format(key="key.id")
            joined = f"SELECT each.* FROM unnest(?::bytea[]) AS key (id) CROSS JOIN LATERAL ({each}) AS each"
            # A join that depends on the key is a nested loop: the rows keep the order of the keys, and their own.
            yield from self.execute(joined, (list(dict.fromkeys(keys)), self.workspace, *values))

    def changes(self) -> int:
        """The number of rows changed by the last statement."""
        self.flush()
        return 0 if self._last is None else self._last.rowcount

    def _buffer(self, statement: str, values: Sequence[Any]) -> None:
        self._buffered.setdefault(statement, []).append([storable(value) for value in values])
        self._buffered_values += len(values)
        if self._buffered_values > _MAX_BUFFERED_VALUES:
            self.flush()

    def flush(self) -> None:
        """Send the buffered inserts."""
        waiting, self._buffered, self._buffered_values = self._buffered, {}, 0
        for statement, rows in waiting.items():
            head, _, rest = with_psycopg_marks(statement).partition(" VALUES ")
            marks, ending, tail = rest.partition(")")
            for batch in batches(rows, max(1, _MAX_STATEMENT_VALUES // max(1, len(rows[0])))):
                many = f"{head} VALUES {','.join([marks + ending] * len(batch))}{tail}"
                self.connection.execute(many.encode(), [value for row in batch for value in row], prepare=False)


def with_psycopg_marks(statement: str) -> str:
    """The statement with psycopg's placeholders; neither `?` nor `%s` has any other use in Satchel's SQL."""
    return statement.replace("?", "%s")


def _is_bufferable(statement: str) -> bool:
    """True if a statement only inserts a row and returns nothing."""
    return statement.startswith("INSERT INTO ") and "RETURNING" not in statement and "DO UPDATE" not in statement


def storable(value: Any) -> Any:
    """A value valid in PostgreSQL: NUL and characters outside UTF-8 in texts are replaced."""
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
