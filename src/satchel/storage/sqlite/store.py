"""The embedded store: one folder per workspace, one writer, any number of readers in any number of processes."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable, InvalidInput, SatchelError
from satchel.models.search import Filters
from satchel.ports.file_index import Candidate, StoreQuery
from satchel.ports.store import StoreFacts
from satchel.storage.sql import statements as selecting
from satchel.storage.sql.file_writer import drop_unused_vectors, fact
from satchel.storage.sql.reader import RelationalReader
from satchel.storage.sql.reference_counts import weigh_links
from satchel.storage.sqlite.access_cache import AccessCache, filter_by_marks
from satchel.storage.sqlite.database_file import (
    FILE_NAME,
    Connections,
    SqliteDatabase,
    SqliteWriter,
    map_sqlite_errors,
    mark_of,
)
from satchel.storage.sqlite.segments import Derived, Manifest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.storage.sql.access import AccessFilter
    from satchel.storage.sql.rows import Database
    from satchel.storage.sql.scoring import View
    from satchel.storage.sqlite.segments import Segment

_VIEWS_KEPT: Final = 64
"""A view takes two bytes for each block, and people who may see the same share one."""

_LOOK_AGAIN_S: Final = 0.005


class EmbeddedStore(RelationalReader):
    """A store in a folder; made when it is not there."""

    many_writers: Final = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            # It holds copies of files that others may not be allowed to read.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise IndexUnwritable(str(folder), error.strerror or str(error)) from error
        self._connections = Connections(folder / FILE_NAME)
        self._derived = Derived(folder / "derived")
        self._lock = RLock()
        self._segments: list[Segment] = []
        self._gone: set[int] = set()
        self._derived_generation = -1
        self._stamp: tuple[int, int] | None = None
        self._writing = threading.local()
        self._access = AccessCache()
        self._views_of: tuple[Any, ...] = ()
        self._cached_views: dict[tuple[Any, ...], list[View]] = {}
        self._of_types: dict[tuple[str, ...], list[NDArray[np.bool_]]] = {}
        self._db.pragma("user_version")  # whatever is wrong with it is said at once

    @property
    def _db(self) -> SqliteDatabase:
        """This thread's connection: nobody sees what another thread has not committed."""
        return self._connections.mine()

    @contextmanager
    def _reading(self, filters: Filters | None = None) -> Iterator[Database]:  # noqa: ARG002  one file, one view
        with map_sqlite_errors(self._folder):
            yield self._db

    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:  # noqa: ARG002  it is our own
        return self._access.of(self._db, self.generation, filters.readers)

    def _condition(self, allowed: frozenset[int] | None) -> AccessFilter:
        return filter_by_marks(allowed)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._folder

    def search_version(self) -> tuple[object, ...]:
        """What changes whenever a search could answer differently."""
        return self.generation, self._derived.stamp()

    # -- writing

    @contextmanager
    def lock(self, *, wait: float = 0) -> Iterator[None]:
        """Be the one writer, for as long as several commits take; wait so many seconds for another to end."""
        if getattr(self._writing, "now", False):
            yield
            return
        path = self._folder / "write.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise IndexUnwritable(str(path), error.strerror or str(error)) from error
        try:
            try:
                _locked(handle, wait)
            except BlockingIOError:
                owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                raise IndexBusy(str(self._folder), f" ({owner})" if owner else "") from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()}".encode(), 0)
            self._writing.now = True
            try:
                yield
            finally:
                self._writing.now = False
                os.ftruncate(handle, 0)
                # Closing is not enough: a child that another thread is just starting has the handle until it execs.
                fcntl.flock(handle, fcntl.LOCK_UN)
        finally:
            os.close(handle)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Whatever this thread reads meanwhile is of one moment."""
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
        """One commit: all of it becomes visible, or nothing."""
        with self.lock(), map_sqlite_errors(self._folder), self._db:
            following = self.generation + 1
            writer = SqliteWriter(self._db, following)
            yield writer
            if writer.changed:
                writer.seal()

    def catch_up(self) -> bool:
        """Bring the segments up to the truth; whether there was anything to do."""
        with self.lock(), map_sqlite_errors(self._folder):
            try:
                with self._db:
                    weigh_links(self._db, self.generation)
                    done = self._derived.catch_up(self._db, self.generation, self._dimensions())
            except OSError as error:
                raise IndexUnwritable(str(self._folder), error.strerror or str(error)) from error
            self._db.execute("DELETE FROM gone WHERE generation <= ?", (self._derived.manifest().generation,))
            return done

    def tidy(self) -> None:
        """Drop vectors that no piece uses any more, and give back the room."""
        with self.lock(), map_sqlite_errors(self._folder):
            with self._db:
                drop_unused_vectors(self._db)
            self._db.pragma("wal_checkpoint(truncate)")

    def _dimensions(self) -> int:
        return int(fact(self._db, "dimensions") or 1)

    # -- reading

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The pieces with the most evidence, of what the readers may see, in a stable order."""
        from satchel.storage.sql.scoring import gather, with_use
        from satchel.storage.sqlite.segments import SegmentSource

        with map_sqlite_errors(self._folder), self._lock, self._sense_in_arrays():
            views = self._views(filters)
            segments = list(self._segments)
        _refuse_another_length(query, segments)
        with map_sqlite_errors(self._folder):
            defining = selecting.defining(self._db, query.names, self._access_filter(self._db, filters))
        with self._sense_in_arrays():
            sources = [SegmentSource(segment, view) for segment, view in zip(segments, views, strict=True)]
            found = gather(sources, query, top_k, defining)
        # How much a file is used is counted over everybody's files.
        column = "central" if filters.readers is None else "0.0"
        with map_sqlite_errors(self._folder):
            central = selecting.of_files(self._db, column, {candidate.file for candidate in found})
        return with_use([one for one in found if one.file in central], central)

    @contextmanager
    def _sense_in_arrays(self) -> Iterator[None]:
        """What is damaged in the segments is told as such, and the next index run makes them anew."""
        try:
            yield
        except (SatchelError, UnicodeError):
            raise  # somebody asked for what cannot be
        except (IndexError, ValueError) as error:
            self._derived.forget()
            raise IndexDamaged(str(self._folder), f"its search arrays make no sense: {error}") from error

    def _views(self, filters: Filters) -> list[View]:
        """The segments with what may be seen of each, kept until something changes or is granted."""
        generation = self._refresh()
        rights = self._access.of(self._db, generation, filters.readers)
        now = (generation, self._stamp)
        if self._views_of != now:
            self._views_of = now
            self._cached_views.clear()
            self._of_types.clear()
        key = (rights, replace(filters, readers=None))
        views = self._cached_views.get(key)
        if views is None:
            views = self._made_views(filters, generation, rights)
            # The time of a file may change without anything else changing.
            if filters.modified_after is None and filters.modified_before is None:
                if len(self._cached_views) >= _VIEWS_KEPT:
                    self._cached_views.pop(next(iter(self._cached_views)))
                self._cached_views[key] = views
        return views

    def _made_views(self, filters: Filters, generation: int, rights: frozenset[int] | None) -> list[View]:
        import numpy as np

        from satchel.storage.sql.scoring import View, among

        allowed = selecting.allowed_files(self._db, filters)
        if filters.types and filters.types not in self._of_types:
            ids = selecting.pieces_of_types(self._db, filters.types)
            self._of_types[filters.types] = [among(segment.piece_ids, ids) for segment in self._segments]
        views = []
        for i, segment in enumerate(self._segments):
            visible = np.ones(len(segment.files), bool) if allowed is None else among(segment.files, allowed)
            if rights is not None:
                visible &= self._access.visible(self._db, generation, segment.files, rights)
            if self._gone:
                visible &= ~among(segment.files, self._gone)
            views.append(View(segment, visible, self._of_types[filters.types][i] if filters.types else None))
        return views

    def _refresh(self) -> int:
        """See what the last writer left; its generation."""
        generation = self.generation
        stamp = self._derived.stamp()
        if stamp != self._stamp or self._derived_generation < 0:
            manifest, self._segments = self._derived.open()
            if manifest.mark != mark_of(self._db, manifest.generation):
                manifest, self._segments = Manifest(), []
            self._gone = set(manifest.gone)
            self._derived_generation = manifest.generation
            self._stamp = stamp
        if self._derived_generation < generation:
            rows = self._db.execute("SELECT file FROM gone WHERE generation > ?", (self._derived_generation,))
            self._gone |= {row[0] for row in rows}
        return generation

    def facts(self) -> StoreFacts:
        """What is in it."""
        with map_sqlite_errors(self._folder):
            behind = self.generation - self._derived.reflected(self._db)
            return self._counted(self._db, bytes_on_disk=_bytes_below(self._folder), behind=behind)

    def check(self) -> str:
        """What is wrong with the files, or nothing."""
        with map_sqlite_errors(self._folder):
            found = str(self._db.pragma("quick_check"))
        if found != "ok":
            return found
        manifest, segments = self._derived.manifest(), self._derived.open()[1]
        if len(segments) != len(manifest.segments):
            return "the search index is damaged; the next index run makes it anew"
        return ""

    def close(self) -> None:
        """Let go of files; who still asks is told that it was closed."""
        self._connections.close()


def _refuse_another_length(query: StoreQuery, segments: list[Segment]) -> None:
    """A vector of another length than those that are kept is the caller's mistake, and no damage."""
    lengths = {segment.vectors.shape[1] for segment in segments}
    if query.vector is not None and lengths and {len(query.vector)} != lengths:
        raise InvalidInput("vector", len(query.vector), f"must have {max(lengths)} numbers, as those that are kept")


def _locked(handle: int, wait: float) -> None:
    """Take the lock; whoever has it may take a while."""
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_AGAIN_S)


def _bytes_below(folder: Path) -> int:
    """How much room a folder takes; what a writer removes meanwhile takes none."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total
