"""What runs our statements: a connection of SQLite as it is, or one of PostgreSQL in its clothes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """What a statement gives."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows."""
        ...

    @property
    def get(self) -> Any:
        """The one value of the one row, or None."""
        ...


class Database(Protocol):
    """Runs statements with `?` where values go."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run it once for each row of values."""
        ...

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...
