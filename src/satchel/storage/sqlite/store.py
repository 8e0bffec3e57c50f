"""The embedded store: a folder for each workspace, a single writer, any number of readers and processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable, InvalidInput
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
    BUSY_TIMEOUT_MS,
    FILE_NAME,
    SqliteDatabase,
    SqliteWriter,
    ThreadConnections,
    checksum_layer,
    last_changes,
    map_sqlite_errors,
    quick_check,
)
from satchel.storage.sqlite.segments import (
    LAID_OUT,
    DamagedArrays,
    Derived,
    Opened,
    SegmentSource,
    file_version,
    refuse_lost_database,
)

_MAX_CACHED_READERS: Final = 512  # an entry is small; with more readers, the oldest is computed again
_MAX_CACHED_VIEWS: Final = 64
"""A view takes two bytes for each block, and readers with the same access share a view."""

_LOCK_NAME: Final = "write.lock"
"""Names the process that writes; empty after a writer that was not killed."""
_MAX_REFRESHES: Final = 3  # each further one needs another writer to end its run within milliseconds
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
        self._changed: tuple[int, dict[str, int]] = (-1, {})

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

    def last_change(self, db: SqliteDatabase, generation: int, allowed: frozenset[int]) -> int:
        """The last generation in which readers of the lists could see a change."""
        with self._lock:
            if self._changed[0] != generation:
                self._changed = (generation, last_changes(db))
            changed = self._changed[1]
        # An index of an earlier version has no notes on its commits.
        return max(changed.get("all", generation), *(changed.get(str(number), 0) for number in allowed), 0)

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
        refuse_lost_database(folder)
        self._connections = ThreadConnections(folder / FILE_NAME)
        self._derived = Derived(folder / "derived")
        self._lock = threading.RLock()
        self._opened: Opened | None = None
        self._gone: set[int] = set()
        self._writing = threading.local()
        self._access = _AccessCache()
        self._views_of: tuple[Any, ...] = ()
        self._cached_views: dict[tuple[Any, ...], list[SegmentSource]] = {}
        self._of_types: dict[tuple[str, ...], list[NDArray[np.bool_]]] = {}
        try:
            with map_sqlite_errors(folder):
                self._derived.refuse_older(self._db)  # the first connection makes the file
            self._database_version = file_version(folder / FILE_NAME)
            self._check_after_kill()
        except BaseException:
            self.close()
            raise

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

    def generation_for(self, filters: Filters) -> int:
        """The number of the last commit with an effect that these readers can see."""
        with map_sqlite_errors(self._folder):
            generation = self.generation
            lists = self._access.of(self._db, generation, filters.readers)
            if lists is None or filters.readers is None:
                return generation
            return self._access.last_change(self._db, generation, lists)

    def search_version(self, filters: Filters) -> tuple[object, ...]:
        """A value that changes whenever search results for these readers could change."""
        with map_sqlite_errors(self._folder), self._lock:
            generation = self._refresh()
            if self._arrays.manifest.generation < generation:
                return generation, self._arrays.stamp  # new files are not found yet
        return self.generation_for(filters), self.holds_blocks()

    # -- writing

    @contextmanager
    def lock(self, *, wait: float = 0) -> Iterator[None]:
        """Hold exclusive write access over several commits; wait up to `wait` seconds for another writer."""
        if getattr(self._writing, "now", False):
            yield
            return
        with map_sqlite_errors(self._folder), self._lock:
            self._reopen_changed_database()
        path = self._folder / _LOCK_NAME
        if self._connections.is_read_only:
            raise IndexUnwritable(str(self._folder), "it is read-only", is_read_only=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise IndexUnwritable(str(path), error.strerror or str(error)) from error
        try:
            if not _take_lock(handle, wait):
                owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                raise IndexBusy(str(self._folder), f" ({owner})" if owner else "")
            if os.fstat(handle).st_size:  # the last writer was killed
                self._refuse_damaged_database()
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()}".encode(), 0)
            self._writing.now = True
            try:
                yield
            finally:
                self._writing.now = False
                os.ftruncate(handle, 0)
                import fcntl

                # Closing is not enough: a child process just forked by another thread holds the handle until exec.
                fcntl.flock(handle, fcntl.LOCK_UN)
        finally:
            os.close(handle)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A context in which all reads of the calling thread see the same state."""
        with map_sqlite_errors(self._folder):
            with self._lock:
                self._reopen_changed_database()
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
            generation = self.generation
            if not partly:
                with self._db:
                    weigh_links(self._db, generation)
            # What the segments are made from is on disk before they are: also after a power failure, or with a damaged
            # log, the database is never older than they.
            self._checkpoint()
            try:
                dimensions = int(self._db.fact("dimensions") or 1)
                done = self._derived.catch_up(self._db, generation, dimensions)
            except OSError as error:
                raise IndexUnwritable(str(self._folder), error.strerror or str(error)) from error
            if int(self._db.fact(LAID_OUT) or 0) != generation:
                with self._db:
                    SqliteWriter(self._db, generation).set_fact(LAID_OUT, generation)
                    self._db.execute("DELETE FROM gone WHERE generation <= ?", (generation,))
            return done

    def replace_contents(self, other: Path) -> None:
        """Replace everything in the database by the content of another file, in a single commit."""
        with (
            self.lock(),
            map_sqlite_errors(self._folder),
            closing(apsw.Connection(os.fspath(other), vfs=checksum_layer())) as source,
            self._db.backup("main", source, "main") as backup,
        ):
            backup.step()

    def _checkpoint(self) -> None:
        """Write the log to the database file, and empty the log unless a reader uses it."""
        if not self._db.in_transaction:
            self._db.set_busy_timeout(0)
            try:
                self._db.pragma("wal_checkpoint(truncate)")
            finally:
                self._db.set_busy_timeout(BUSY_TIMEOUT_MS)

    def tidy(self) -> None:
        """Delete vectors without a piece, and shrink the write-ahead log."""
        with self.lock(), map_sqlite_errors(self._folder):
            with self._db:
                drop_unused_vectors(self._db)
            self._db.pragma("wal_checkpoint(truncate)")

    # -- reading

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The readable pieces with the most evidence, in a stable order."""
        with map_sqlite_errors(self._folder), self._lock:
            views = self._views(filters)
        lengths = {view.segment.vectors.shape[1] for view in views}
        if query.vector is not None and lengths and {len(query.vector)} != lengths:
            # The caller's mistake, not a damaged index.
            raise InvalidInput("vector", len(query.vector), f"must have {max(lengths)} numbers, as the stored vectors")
        with self._readable(filters) as rows:
            definitions = defining(rows, query.names)
            candidates = gather(views, query, top_k, definitions, partial(of_files, rows, "path"))
            # Centrality is counted over all files, hidden files included: only the owner may see it.
            column = "central" if filters.readers is None else "0.0"
            central = of_files(rows, column, {candidate.file for candidate in candidates})
        return with_use([candidate for candidate in candidates if candidate.file in central], central)

    def word_counts(self, terms: Sequence[str], filters: Filters) -> WordCounts:
        """Count the readable pieces with each term; words of other pieces count as unknown."""
        with map_sqlite_errors(self._folder), self._lock:
            views = self._views(filters)
        return count_words(views, terms)

    def _views(self, filters: Filters) -> list[SegmentSource]:
        """The segments with the reader's view of each, cached until a commit, a refresh or a grant."""
        generation = self._refresh()
        lists = self._access.of(self._db, generation, filters.readers)
        now = (generation, self._arrays.stamp)
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
            self._of_types[filters.types] = [among(segment.piece_ids, ids) for segment in self._arrays.segments]
        views = []
        for i, segment in enumerate(self._arrays.segments):
            visible = np.ones(len(segment.files), bool) if allowed is None else among(segment.files, allowed)
            if lists is not None:
                visible &= self._access.visible(self._db, generation, segment.files, lists)
            if self._gone:
                visible &= ~among(segment.files, self._gone)
            view = View(segment, visible, self._of_types[filters.types][i] if filters.types else None)
            views.append(SegmentSource(segment, view))
        return views

    @property
    def _arrays(self) -> Opened:
        return self._opened or Opened()

    def _refresh(self) -> int:
        """Reload segments and deletions after another process's commit; return the current generation.

        Damaged segments are built again from the database.
        """
        self._reopen_changed_database()
        for _ in range(_MAX_REFRESHES):
            generation = self.generation
            if self._opened is None or self._derived.stamp(self._opened.segments) != self._opened.stamp:
                self._opened = self._open_or_rebuild()
                self._gone = set(self._opened.manifest.gone)
            since = self._opened.manifest.generation
            rows = self._db.execute("SELECT file FROM gone WHERE generation > ?", (since,))
            self._gone |= {row[0] for row in rows}
            # A writer that has just replaced the segments has deleted the rows of `gone` before them.
            if int(self._db.fact(LAID_OUT) or 0) <= since:
                return generation
            self._opened = None
        raise IndexBusy(str(self._folder), "")

    def _reopen_changed_database(self) -> None:
        """Open another database in place of the file, and a read-only one that somebody else has written.

        A removed index may have been made anew: what is written to the removed file would be lost. A read-only file is
        unchangeable to SQLite.
        """
        version, known = file_version(self._folder / FILE_NAME), self._database_version
        is_same_file = version is not None and known is not None and version.inode == known.inode
        is_unchanged = is_same_file and (version == known or not self._connections.is_read_only)
        if is_unchanged or self._db.in_transaction:
            return
        refuse_lost_database(self._folder)
        self._connections.close()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connections = ThreadConnections(self._folder / FILE_NAME)
        self._forget_contents()
        self._database_version = file_version(self._folder / FILE_NAME)

    def _forget_contents(self) -> None:
        """Drop what was cached of the database, and open the database again."""
        self._opened, self._access, self._views_of = None, _AccessCache(), ()
        self._cached_views.clear()
        self._of_types.clear()
        self._derived.refuse_older(self._db)

    def _open_or_rebuild(self) -> Opened:
        try:
            return self._derived.open_for(self._db)
        except DamagedArrays as damage:
            try:
                self.catch_up()
                return self._derived.open_for(self._db)
            except (IndexBusy, IndexUnwritable, DamagedArrays) as error:
                problem = f"the search arrays are damaged: {damage}, and they cannot be rebuilt now: {error}"
                raise IndexDamaged(str(self._folder), problem, "run `satchel index` when it can be written") from error

    def facts(self) -> StoreFacts:
        """The size and state of the store."""
        with map_sqlite_errors(self._folder):
            generation = self.generation
            try:
                behind = generation - self._derived.open_for(self._db).manifest.generation
            except DamagedArrays:
                behind = generation
            return self._counted(self._db, bytes_on_disk=_bytes_below(self._folder), behind=behind)

    def check(self) -> str:
        """A description of the damage to the files, or ""."""
        try:
            self._refuse_damaged_database()
            with map_sqlite_errors(self._folder):
                self._derived.open_for(self._db)
        except IndexDamaged as error:
            return error.problem
        except DamagedArrays as error:
            return f"the search arrays are damaged ({error}); the next index run rebuilds them"
        return ""

    def _refuse_damaged_database(self) -> None:
        """Raise IndexDamaged if a page of the database is damaged; reads the whole file."""
        with map_sqlite_errors(self._folder):
            damage = quick_check(self._db)
        if damage:
            raise IndexDamaged(str(self._folder), damage)

    def _check_after_kill(self) -> None:
        """Check the database if the last writer was killed: its lock is free, but names the writer."""
        with suppress(OSError, IndexBusy, IndexUnwritable):
            if (self._folder / _LOCK_NAME).stat().st_size:
                with self.lock():
                    pass

    def close(self) -> None:
        """Close all files; later calls raise StoreUnavailable."""
        self._connections.close()


def _take_lock(handle: int, wait: float) -> bool:
    """Acquire the lock within `wait` seconds; True on success."""
    import fcntl

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
