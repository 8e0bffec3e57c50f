"""Starts a new index as a copy of the index of another folder with the same tree: a worktree, a clone, a copy.

The copy takes files only. An index with anything of users (blocks, grants, members, activity, files with readers of
their own) is never copied. Every file counts as unread after the copy: the next run compares all contents.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import apsw

from satchel.errors import SatchelError
from satchel.indexing.prepared_files import reader_version
from satchel.indexing.tree_sketch import likeness, sketch_of
from satchel.models.files import READER, SKETCH
from satchel.ports.transfer import MOVING
from satchel.storage.sql.rows import FIRST_PATH, IN_FILES, decoded
from satchel.storage.sqlite.database_file import (
    FILE_NAME,
    VERSION,
    SqliteWriter,
    checksum_layer,
    connect,
    verify_checksums,
)
from satchel.storage.sqlite.segments import MANIFEST, DamagedArrays, Manifest
from satchel.storage.sqlite.store import EmbeddedStore

_MIN_LIKENESS: Final = 0.5  # below, replacing the files that differ costs more than reading all files
_MAX_CANDIDATES: Final = 200  # the latest indexes; looking at one takes half a millisecond
_BUSY_TIMEOUT_MS: Final = 500  # a busy index is no good seed

PART_NAME: Final = "seed.part"
"""Name of the unfinished copy in the folder of the new index."""

_OF_USERS: Final = ("node", "bond", "deed", "permit", "member")
"""Tables with rows of the workspace's users."""


@dataclass(frozen=True, slots=True)
class Seeding:
    """The new index of a folder, and the place of other indexes of this user."""

    store: EmbeddedStore
    folder: Path
    root: Path
    present: Callable[[], Collection[str]]
    """Gives the paths of the files in the new folder: the copy holds no others, not even until the first run ends."""
    embedder: str
    dimensions: int

    def run(self) -> bool:
        """Copy the index of the most similar folder; False if none is similar enough or free to be copied."""
        try:
            with self.store.lock():
                return not self.store.generation and any(map(self._copy, self._candidates()))
        except (SatchelError, apsw.Error, OSError):
            return False  # the folder is then read in the usual way

    def _candidates(self) -> list[Path]:
        """The indexes of similar folders that may be copied, most similar first."""
        sketch = sketch_of(self.root)
        truths = [path for path in self.folder.parent.glob(f"*/{FILE_NAME}") if path.parent != self.folder]
        latest = sorted(truths, key=_modified, reverse=True)[:_MAX_CANDIDATES]
        known = ((likeness(sketch, self._sketch(truth.parent)), truth.parent) for truth in latest)
        similar = sorted((alike, str(folder)) for alike, folder in known if alike >= _MIN_LIKENESS)
        return [Path(folder) for _, folder in reversed(similar)]

    def _sketch(self, folder: Path) -> tuple[str, ...]:
        """The sketch of the folder behind an index; empty if the index may not be copied."""
        try:
            with closing(_connected(folder)) as db:
                sketch = db.execute("SELECT value FROM fact WHERE name = ?", (SKETCH,)).get
                return tuple(json.loads(sketch)) if verify_checksums(db, folder) and self._is_wanted(db) else ()
        except (SatchelError, apsw.Error, OSError, KeyError, ValueError, TypeError):
            return ()

    def _is_wanted(self, db: apsw.Connection) -> bool:
        """True if the index is of this version, was read in the same way, and has nothing of users."""
        facts: dict[str, Any] = dict(db.execute("SELECT name, value FROM fact"))
        same = {"embedder": self.embedder, "dimensions": str(self.dimensions), READER: reader_version()}
        if db.pragma("user_version") != VERSION or any(facts.get(name) != value for name, value in same.items()):
            return False
        if MOVING in facts or int(facts.get("multi_user") or 0):
            return False
        users_rows = " UNION ALL ".join(f"SELECT 1 FROM {table}" for table in _OF_USERS)
        restricted = "SELECT 1 FROM file WHERE access <> 1 OR own_readers <> 0"
        return db.execute(f"{users_rows} UNION ALL {restricted} LIMIT 1").fetchone() is None

    def _copy(self, other: Path) -> bool:
        """Copy an index: its database with every file marked as unread, and links to its immutable segments."""
        part = self.folder / PART_NAME
        try:
            # The lock keeps the writer of the other index from replacing the segments.
            with _locked(other), closing(_connected(other)) as db:
                if not self._is_wanted(db):
                    return False  # something of users has come since the index was chosen
                _copy_database(db, part)
                _drop_all_but(part, self.present())
                # Killed after this line, the index is whole, and the next run makes the segments.
                self.store.replace_contents(part)
                _link_segments(other / "derived", self.folder / "derived")
            return True
        except (apsw.Error, OSError, DamagedArrays):
            return bool(self.store.generation)
        finally:
            _remove(part)


def _link_segments(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    manifest = (source / MANIFEST).read_bytes()
    for name in Manifest.decode(manifest).segments:
        _link(source / name, target / name)
    (target / MANIFEST).write_bytes(manifest)


def _remove(part: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{part}{ending}").unlink(missing_ok=True)


def _copy_database(db: apsw.Connection, part: Path) -> None:
    """Copy a database to a file, and mark the files as unread: an equal size and time is no proof of equal content."""
    _remove(part)  # of a killed process
    os.close(os.open(part, os.O_CREAT | os.O_RDWR, 0o600))
    with closing(apsw.Connection(os.fspath(part), vfs=checksum_layer())) as copy:
        copy.pragma("synchronous", "off")  # a copy that is lost is made again
        _backup(db, copy)
        copy.pragma("journal_mode", "off")
        with copy:
            copy.execute("UPDATE file SET read_ns = 0")
            copy.execute("DELETE FROM fact WHERE name IN ('sources', 'skipped') OR name LIKE 'imported %'")


def _drop_all_but(part: Path, present: Collection[str]) -> None:
    """Drop the files of the other folder that are not in this one, before anybody can ask the copy."""
    with closing(connect(part)) as copy:
        rows = copy.run(f"SELECT path FROM file WHERE workspace = ? AND {IN_FILES}", FIRST_PATH)
        stored = [decoded(path) for (path,) in rows]
        writer = SqliteWriter(copy, int(copy.fact("generation") or 0) + 1)
        with copy:
            for path in set(stored).difference(present):
                writer.drop(path)
            if writer.changed:
                writer.seal()
        copy.pragma("wal_checkpoint(truncate)")


def _backup(source: apsw.Connection, target: apsw.Connection) -> None:
    with target.backup("main", source, "main") as backup:
        backup.step()


def _connected(folder: Path) -> apsw.Connection:
    """A read-only connection to an index; creates no file."""
    place = f"file:{quote(os.fspath(folder / FILE_NAME))}?mode=ro"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(place, flags=flags, vfs=checksum_layer())
    connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
    return connection


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the write lock of another index; raises BlockingIOError if its writer is at work."""
    import fcntl

    handle = os.open(folder / "write.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
        fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _link(source: Path, target: Path) -> None:
    """A hard link, which takes no space; a copy where the file system has no links."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
