"""The embedded store: a folder for each workspace, a single writer, any number of readers and processes."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable, InvalidInput, SatchelError
from satchel.models.access import Access, DefaultAccess
from satchel.models.search import Filters
from satchel.ports.file_index import Candidate, StoreQuery, WordCounts
from satchel.ports.store import StoreFacts
from satchel.storage.sql.file_reader import allowed_files, defining, of_files, pieces_of_types
from satchel.storage.sql.file_writer import drop_unused_vectors, weigh_links
from satchel.storage.sql.reader import RelationalReader
from satchel.storage.sql.rows import UNRESTRICTED, AccessFilter, Database, access_lists, default_access, readable_lists
from satchel.storage.sql.scoring import View, among, count_words, gather, with_use
from satchel.storage.sqlite.database_file import (
    FILE_NAME,
    SqliteDatabase,
    SqliteWriter,
    ThreadConnections,
    map_sqlite_errors,
)
from satchel.storage.sqlite.segments import Derived, Segment, SegmentSource

_MAX_CACHED_READERS: Final = 512  # an entry is small; with more readers, the oldest is computed again
_MAX_CACHED_VIEWS: Final = 64
"""A view takes two bytes for each block, and readers with the same access share a view."""

_LOCK_POLL_S: Final = 0.005  # a caller does not notice the delay; polling faster only takes processor time


@lru_cache(maxsize=_MAX_CACHED_READERS)
def _filter_by_marks(access: frozenset[int] | None) -> AccessFilter:
    """SQL condition that limits rows to the given access lists (None: no limit), by a byte for each list.

    The statement is the same for every reader and is prepared once, and the cost of a row does not depend on the number
    of access lists.
    """
    if access is None:
        return UNRESTRICTED
    marks = bytearray(max(access, default=0) + 1)
    for number in access:
        marks[number] = 1
    return AccessFilter("substr(?, file.access + 1, 1) = x'01'", (bytes(marks),))


class _AccessCache:
    """Caches the readable access lists of each reader until a grant changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: tuple[int, DefaultAccess, dict[int, Access]] = (-1, DefaultAccess.OWNER, {})
        self._known: dict[frozenset[str] | None, frozenset[int] | None] = {}
        self._granted: tuple[int, NDArray[np.int32]] | None = None

    def of(self, db: SqliteDatabase, generation: int, readers: frozenset[str] | None) -> frozenset[int] | None:
        """The numbers of the access lists readable under these names; None means all."""
        with self._lock:
            if self._lists[0] != generation:
                self._lists = (generation, default_access(db), access_lists(db))
                self._known.clear()
            if readers not in self._known:
                if len(self._known) >= _MAX_CACHED_READERS:
                    self._known.pop(next(iter(self._known)))
                self._known[readers] = readable_lists(readers, *self._lists[1:])
            return self._known[readers]

    def visible(
        self, db: SqliteDatabase, generation: int, files: NDArray[np.int64], allowed: frozenset[int]
    ) -> NDArray[np.bool_]:
        """A mask of the files with an allowed access list."""
        with self._lock:
            numbers = self._numbers(db, generation)
        size = int(numbers.max(initial=0)) + 1
        opens = np.zeros(size, bool)
        opens[[number for number in allowed if number < size]] = True
        opens[0] = False
        inside = files < len(numbers)
        return np.asarray(opens[np.where(inside, numbers[np.where(inside, files, 0)], 0)])

    def _numbers(self, db: SqliteDatabase, generation: int) -> NDArray[np.int32]:
        """The access list of each file, by file number (0: no such file), as of the generation."""
        since, numbers = self._granted or (-1, np.zeros(1, np.int32))
        if since >= generation:
            return numbers
        rows = db.run("SELECT id, access FROM file WHERE workspace = ? AND granted > ?", since).fetchall()
        if rows:
            changed = np.array(rows, np.int64)
            grown = np.zeros(max(len(numbers), int(changed[:, 0].max()) + 1), np.int32)
            grown[: len(numbers)] = numbers
            grown[changed[:, 0]] = changed[:, 1]
            numbers = grown
        self._granted = (generation, numbers)
        return numbers


class EmbeddedStore(RelationalReader):
    """A store in a folder, created if missing."""

    many_writers: Final = False
    _condition = staticmethod(_filter_by_marks)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            # The folder has copies of files that other users of the machine may not be allowed to read.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise IndexUnwritable(str(folder), error.strerror or str(error)) from error
        self._connections = ThreadConnections(folder / FILE_NAME)
        self._derived = Derived(folder / "derived")
        self._lock = threading.RLock()
        self._segments: list[Segment] = []
        self._gone: set[int] = set()
        self._derived_generation = -1
        self._stamp: tuple[int, int] | None = None
        self._writing = threading.local()
        self._access = _AccessCache()
        self._views_of: tuple[Any, ...] = ()
        self._cached_views: dict[tuple[Any, ...], list[SegmentSource]] = {}
        self._of_types: dict[tuple[str, ...], list[NDArray[np.bool_]]] = {}
        self._db.pragma("user_version")  # report a damaged file at once

    @property
    def _db(self) -> SqliteDatabase:
        """The calling thread's connection; uncommitted changes are invisible to other threads."""
        return self._connections.mine()

    @contextmanager
    def _reading(self, filters: Filters | None = None) -> Iterator[Database]:  # noqa: ARG002  no row-level security
        with map_sqlite_errors(self._folder):
            yield self._db

    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:  # noqa: ARG002  uses self._db
        return self._access.of(self._db, self.generation, filters.readers)

    def search_version(self) -> tuple[object, ...]:
        """A value that changes whenever search results could change."""
        return self.generation, self._derived.stamp()

    # -- writing

    @contextmanager
    def lock(self, *, wait: float = 0) -> Iterator[None]:
        """Hold exclusive write access over several commits; wait up to `wait` seconds for another writer."""
        if getattr(self._writing, "now", False):
            yield
            return
        path = self._folder / "write.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise IndexUnwritable(str(path), error.strerror or str(error)) from error
        try:
            if not _take_lock(handle, wait):
                owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                raise IndexBusy(str(self._folder), f" ({owner})" if owner else "")
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()}".encode(), 0)
            self._writing.now = True
            try:
                yield
            finally:
                self._writing.now = False
                os.ftruncate(handle, 0)
                # Closing is not enough: a child process just forked by another thread holds the handle until exec.
                fcntl.flock(handle, fcntl.LOCK_UN)
        finally:
            os.close(handle)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A context in which all reads of the calling thread see the same state."""
        with map_sqlite_errors(self._folder):
            db = self._db
            if db.in_transaction:
                yield
                return
            db.execute("BEGIN")
            try:
                yield
            finally:
                db.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[SqliteWriter]:
        """An atomic commit: either all changes become visible or none."""
        with self.lock(), map_sqlite_errors(self._folder), self._db:
            writer = SqliteWriter(self._db, self.generation + 1)
            yield writer
            if writer.changed:
                writer.seal()

    def catch_up(self, *, partly: bool = False) -> bool:
        """Refresh the segments from the database; True if there was anything to do."""
        with self.lock(), map_sqlite_errors(self._folder):
            try:
                with self._db:
                    if not partly:
                        weigh_links(self._db, self.generation)
                    dimensions = int(self._db.fact("dimensions") or 1)
                    done = self._derived.catch_up(self._db, self.generation, dimensions)
            except OSError as error:
                raise IndexUnwritable(str(self._folder), error.strerror or str(error)) from error
            self._db.execute("DELETE FROM gone WHERE generation <= ?", (self._derived.manifest().generation,))
            return done

    def tidy(self) -> None:
        """Delete vectors without a piece, and shrink the write-ahead log."""
        with self.lock(), map_sqlite_errors(self._folder):
            with self._db:
                drop_unused_vectors(self._db)
            self._db.pragma("wal_checkpoint(truncate)")

    # -- reading

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The readable pieces with the most evidence, in a stable order."""
        with map_sqlite_errors(self._folder), self._lock, self._report_damaged_segments():
            views = self._views(filters)
        lengths = {view.segment.vectors.shape[1] for view in views}
        if query.vector is not None and lengths and {len(query.vector)} != lengths:
            # The caller's mistake, not a damaged index.
            raise InvalidInput("vector", len(query.vector), f"must have {max(lengths)} numbers, as the stored vectors")
        with self._readable(filters) as rows:
            definitions = defining(rows, query.names)
            with self._report_damaged_segments():
                candidates = gather(views, query, top_k, definitions, partial(of_files, rows, "path"))
            # Centrality is counted over all files, hidden files included: only the owner may see it.
            column = "central" if filters.readers is None else "0.0"
            central = of_files(rows, column, {candidate.file for candidate in candidates})
        return with_use([candidate for candidate in candidates if candidate.file in central], central)

    def word_counts(self, terms: Sequence[str], filters: Filters) -> WordCounts:
        """Count the readable pieces with each term; words of other pieces count as unknown."""
        with map_sqlite_errors(self._folder), self._lock, self._report_damaged_segments():
            views = self._views(filters)
        with self._report_damaged_segments():
            return count_words(views, terms)

    @contextmanager
    def _report_damaged_segments(self) -> Iterator[None]:
        """Report damaged segments as IndexDamaged, and let the next index run rebuild all segments."""
        try:
            yield
        except (SatchelError, UnicodeError):
            raise  # invalid input of the caller
        except (IndexError, ValueError) as error:
            self._derived.forget()
            raise IndexDamaged(str(self._folder), f"the search arrays are invalid: {error}") from error

    def _views(self, filters: Filters) -> list[SegmentSource]:
        """The segments with the reader's view of each, cached until a commit, a refresh or a grant."""
        generation = self._refresh()
        lists = self._access.of(self._db, generation, filters.readers)
        now = (generation, self._stamp)
        if self._views_of != now:
            self._views_of = now
            self._cached_views.clear()
            self._of_types.clear()
        key = (lists, replace(filters, readers=None))
        views = self._cached_views.get(key)
        if views is None:
            views = self._make_views(filters, generation, lists)
            # A file's modification time may change without a new generation.
            if filters.modified_after is None and filters.modified_before is None:
                if len(self._cached_views) >= _MAX_CACHED_VIEWS:
                    self._cached_views.pop(next(iter(self._cached_views)))
                self._cached_views[key] = views
        return views

    def _make_views(self, filters: Filters, generation: int, lists: frozenset[int] | None) -> list[SegmentSource]:
        allowed = allowed_files(self._db, filters)
        if filters.types and filters.types not in self._of_types:
            ids = pieces_of_types(self._db, filters.types)
            self._of_types[filters.types] = [among(segment.piece_ids, ids) for segment in self._segments]
        views = []
        for i, segment in enumerate(self._segments):
            visible = np.ones(len(segment.files), bool) if allowed is None else among(segment.files, allowed)
            if lists is not None:
                visible &= self._access.visible(self._db, generation, segment.files, lists)
            if self._gone:
                visible &= ~among(segment.files, self._gone)
            view = View(segment, visible, self._of_types[filters.types][i] if filters.types else None)
            views.append(SegmentSource(segment, view))
        return views

    def _refresh(self) -> int:
        """Reload segments and deletions after another process's commit; return the current generation."""
        generation = self.generation
        stamp = self._derived.stamp()
        if stamp != self._stamp or self._derived_generation < 0:
            manifest, self._segments = self._derived.open_for(self._db)
            self._gone = set(manifest.gone)
            self._derived_generation = manifest.generation
            self._stamp = stamp
        if self._derived_generation < generation:
            rows = self._db.execute("SELECT file FROM gone WHERE generation > ?", (self._derived_generation,))
            self._gone |= {row[0] for row in rows}
        return generation

    def facts(self) -> StoreFacts:
        """The size and state of the store."""
        with map_sqlite_errors(self._folder):
            behind = self.generation - self._derived.open_for(self._db)[0].generation
            return self._counted(self._db, bytes_on_disk=_bytes_below(self._folder), behind=behind)

    def check(self) -> str:
        """A description of the damage to the files, or ""."""
        with map_sqlite_errors(self._folder):
            damage = str(self._db.pragma("quick_check"))
        if damage != "ok":
            return damage
        is_whole = len(self._derived.open()[1]) == len(self._derived.manifest().segments)
        return "" if is_whole else "the search arrays are damaged; the next index run rebuilds them"

    def close(self) -> None:
        """Close all files; later calls raise StoreUnavailable."""
        self._connections.close()


def _take_lock(handle: int, wait: float) -> bool:
    """Acquire the lock within `wait` seconds; True on success."""
    until = time.monotonic() + wait
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(_LOCK_POLL_S)


def _bytes_below(folder: Path) -> int:
    """The size of all files in a folder in bytes; files deleted meanwhile count as zero."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total
