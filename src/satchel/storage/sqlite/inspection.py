"""Inspects an index without changing anything: creates no file, migrates nothing, blocks nobody.

Opening a store would create missing files and migrate old files; a diagnosis must do neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from satchel.errors import IndexDamaged
from satchel.models.search import Filters
from satchel.ports.transfer import MOVING
from satchel.storage.sql.reader import RelationalReader
from satchel.storage.sql.rows import Database
from satchel.storage.sqlite.database_file import (
    FILE_NAME,
    VERSION,
    SqliteDatabase,
    connect_to_read,
    damage_told_by,
    map_sqlite_errors,
    quick_check,
)
from satchel.storage.sqlite.segments import DamagedArrays, Derived, refuse_lost_database

_BUSY_TIMEOUT_MS: Final = 2_000  # shorter than for work: an inspection should answer even beside a busy writer


class IndexInspection(NamedTuple):
    """The state of an index."""

    version: int = 0
    ours: int = VERSION
    damage: str = ""
    """The damage to the database, or ""."""
    segments: str = ""
    """The problem with the search arrays, or ""."""
    embedder: str = ""
    moving: str = ""
    files: int = 0
    pieces: int = 0
    behind: int = 0


def look_at(folder: Path, *, thoroughly: bool = True) -> IndexInspection:
    """The state of the index in a folder; `thoroughly` checks every page of the database."""
    try:
        refuse_lost_database(folder)
        with _connected(folder) as connection:
            version = int(connection.pragma("user_version"))
            damage = quick_check(connection) if thoroughly and version <= VERSION else ""
            if damage or version != VERSION:
                return IndexInspection(version=version, damage=damage)
            return _inspected(folder, connection, version)
    except IndexDamaged as error:
        return IndexInspection(version=VERSION, damage=error.problem)
    except apsw.Error as error:
        return IndexInspection(version=VERSION, damage=damage_told_by(error) or str(error))


def _inspected(folder: Path, connection: SqliteDatabase, version: int) -> IndexInspection:
    generation = int(connection.fact("generation") or 0)
    files, pieces = connection.count("file") - connection.count("node"), connection.count("piece")
    behind, wrong = 0, ""
    try:
        behind = generation - Derived(folder / "derived").open_for(connection).manifest.generation
    except DamagedArrays as error:
        wrong = str(error)
    return IndexInspection(
        version=version,
        segments=wrong,
        embedder=str(connection.fact("embedder") or ""),
        moving=str(connection.fact(MOVING) or ""),
        files=files,
        pieces=pieces,
        behind=max(0, behind),
    )


@contextmanager
def _connected(folder: Path) -> Iterator[SqliteDatabase]:
    connection = connect_to_read(folder / FILE_NAME)
    try:
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        yield connection
    finally:
        connection.close()


@dataclass(frozen=True)
class _InspectionReader(RelationalReader):
    """The read side of a store over a read-only connection."""

    _folder: Path
    _connection: SqliteDatabase

    @contextmanager
    def _reading(self, filters: Filters | None = None) -> Iterator[Database]:  # noqa: ARG002  for the owner
        with map_sqlite_errors(self._folder):
            yield self._connection

    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:  # noqa: ARG002  for the owner
        return None


@contextmanager
def reading(folder: Path) -> Iterator[Any]:
    """The index in a folder as a read-only store with the owner's access."""
    with _connected(folder) as connection:
        yield _InspectionReader(folder, connection)
