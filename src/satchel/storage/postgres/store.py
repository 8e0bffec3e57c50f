"""The store in PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

import psycopg

from satchel.errors import IndexBusy
from satchel.models.access import DefaultAccess
from satchel.models.search import Filters
from satchel.ports.file_index import Candidate, StoreQuery
from satchel.ports.store import StoreFacts
from satchel.storage.postgres.address import Address, address_of
from satchel.storage.postgres.connections import BEGIN_READING, WRITER, Connections, Entered, Visit, enter, reading_as
from satchel.storage.postgres.database import Connection, map_postgres_errors, value
from satchel.storage.postgres.derived import NEAREST, PostgresWriter, index_some, lacks_index, lay_together
from satchel.storage.postgres.search import EXACT_MOST, Search, Seen, StaleView, Views, view_key
from satchel.storage.sql.access import access_lists, readable_lists
from satchel.storage.sql.file_writer import drop_unused_vectors, fact
from satchel.storage.sql.reader import RelationalReader
from satchel.storage.sql.reference_counts import weigh_links
from satchel.storage.sql.rows import count
from satchel.storage.sql.scoring import with_use

if TYPE_CHECKING:
    from satchel.storage.postgres.database import PostgresDatabase
    from satchel.storage.sql.rows import Database

_WRITERS_LOCK: Final = 0x5A7C
_PATIENCE_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.02
_REMEMBERED: Final = 512
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class PostgresStore(RelationalReader):
    """One workspace in a database; made when it is not there. `patience` is how long a commit waits for another's."""

    many_writers: Final = True

    def __init__(self, where: str | Address, *, patience: float = _PATIENCE_S, nearest_from: int = EXACT_MOST) -> None:
        self._connections = Connections(where if isinstance(where, Address) else address_of(where))
        self._patience = patience
        self._nearest_from = nearest_from
        self._views = Views()
        self._last: dict[Filters, Entered] = {}
        self._access: dict[tuple[int, frozenset[str] | None], frozenset[int] | None] = {}
        self._lock = threading.Lock()
        self._writing = threading.local()

    @property
    def where(self) -> str:
        """Where it is, without the password."""
        return self._connections.shown

    # -- reading

    def _visiting(self, filters: Filters | None) -> AbstractContextManager[Visit]:
        if filters is None and self._connections.can_write:
            return self._connections.transaction(WRITER)
        # A login that may only read sees of the whole what anybody may.
        return self._connections.transaction(reading_as(frozenset() if filters is None else filters.readers))

    @contextmanager
    def _reading(self, filters: Filters | None = None) -> Iterator[Database]:
        with self._visiting(filters) as visit:
            yield visit.database

    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:
        """What the lists say that the database shows us: the second lock's word is not taken for the first's."""
        visit = self._connections.visit
        assert visit is not None
        key = (visit.entered.generation, filters.readers)
        with suppress(KeyError):
            if not visit.is_writing:
                return self._access[key]
        lists = readable_lists(filters.readers, DefaultAccess(visit.entered.default_access), access_lists(db))
        if not visit.is_writing:
            self._remember(self._access, key, lists)
        return lists

    def _remember(self, memory: dict[_Key, _Value], key: _Key, value: _Value) -> None:
        with self._lock:
            if len(memory) >= _REMEMBERED:
                memory.clear()
            memory[key] = value

    def search_version(self) -> tuple[object, ...]:
        """What changes whenever a search could answer differently."""
        return (self.generation,)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Whatever this thread reads meanwhile is of one moment."""
        with self._connections.transaction(None):
            yield

    # -- searching

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The pieces with the most evidence, of what the readers may see, in a stable order."""
        before = self._last.get(filters)
        seen = None if before is None else self._views.known(view_key(before.generation, before.lists, filters))
        if self._connections.visit is None and before is not None and seen is not None:
            with suppress(StaleView):
                return with_use(self._search_at_once(before, seen, query, filters, top_k), seen.central)
        with self._visiting(filters) as visit:
            db = visit.database
            seen = self._views.of(visit, filters, self._allowed(db, filters))
            search = Search(db.connection, db.workspace, seen, query)
            with db.connection.pipeline():
                answers = search.ask()
            candidates = search.weigh(answers, top_k)
            if not visit.is_writing:
                self._remember(self._last, filters, visit.entered)
        return with_use(candidates, seen.central)

    def _search_at_once(
        self, before: Entered, seen: Seen, query: StoreQuery, filters: Filters, top_k: int
    ) -> list[Candidate]:
        """Begin, enter and ask in one exchange; whether what was known still holds is seen when it comes back."""
        here = self._connections.workspace
        with self._connections.checked_out() as connection, map_postgres_errors(self.where):
            search = Search(connection, here, seen, query)
            try:
                with connection.pipeline():
                    connection.execute(BEGIN_READING)
                    entered = enter(connection, reading_as(filters.readers), here)
                    answers = search.ask()
                    if search.is_exact:
                        connection.execute("ROLLBACK")
                if Entered.read(entered) != before:
                    raise StaleView
                return search.weigh(answers, top_k)
            except psycopg.OperationalError as error:
                if connection.broken:
                    # Nothing was changed: it is asked again on another connection.
                    raise StaleView from error
                raise
            finally:
                if not connection.broken and connection.info.transaction_status:
                    connection.execute("ROLLBACK")

    # -- writing

    @contextmanager
    def lock(self, *, wait: float = 0) -> Iterator[None]:
        """Be the one writer, for as long as several commits take; wait so many seconds for another to end."""
        if getattr(self._writing, "now", False):
            yield
            return
        with self._connections.kept() as connection, map_postgres_errors(self.where):
            until = time.monotonic() + wait
            try:
                while not value(connection, "SELECT pg_try_advisory_lock(%s, %s)", self._lock_key):
                    if time.monotonic() >= until:
                        raise IndexBusy(self.where, "")
                    time.sleep(_LOOK_AGAIN_S)
                self._writing.now = True
                yield
            finally:
                self._writing.now = False
                self._unlock(connection)

    @property
    def _lock_key(self) -> tuple[int, int]:
        return _WRITERS_LOCK, self._connections.workspace % 2**31

    def _unlock(self, connection: Connection) -> None:
        """Give the lock back, also if nobody knows whether it was taken."""
        try:
            if not connection.broken:
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", self._lock_key)
        except BaseException:
            connection.close()  # the lock goes with it
            raise

    @contextmanager
    def write(self) -> Iterator[PostgresWriter]:
        """One commit: all of it becomes visible, or nothing. Others' commits are waited for."""
        with self._connections.transaction(WRITER, writing=True) as visit:
            db = visit.database
            if not getattr(self._writing, "now", False):
                self._queue(db)
            writer = PostgresWriter(db, int(fact(db, "generation") or 0) + 1)
            yield writer
            if writer.changed:
                writer.seal()

    def _queue(self, db: PostgresDatabase) -> None:
        """Wait for whoever writes now; commits of one workspace come one after the other."""
        milliseconds = max(1, int(self._patience * 1000))
        db.connection.execute("SELECT set_config('lock_timeout', %s, true)", (str(milliseconds),))
        db.connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", self._lock_key)
        db.connection.execute("SELECT set_config('lock_timeout', '0', true)")

    def catch_up(self) -> bool:
        """Lay small segments together, weigh links, index vectors; whether there was anything to do."""
        with self.write() as writer:
            db = writer.database
            dimensions = int(fact(db, "dimensions") or 1)
            done = lay_together(db, dimensions)
            done = weigh_links(db, int(fact(db, "generation") or 0)) or done
            writer.changed = done
            wants_index = lacks_index(db, dimensions, self._nearest_from)
        return (wants_index and self._index_vectors(dimensions)) or done

    def _index_vectors(self, dimensions: int) -> bool:
        """Take all vectors into the index, a few in each commit, so that nobody waits long."""
        while True:
            with self.write() as writer:
                if not index_some(writer.database, dimensions):
                    writer.set_fact(NEAREST, dimensions)
                    writer.changed = True
                    return True

    def tidy(self) -> None:
        """Drop vectors that no piece uses any more."""
        with self.write(), self._reading() as db:
            drop_unused_vectors(db)

    def clear(self) -> None:
        """Remove everything that is in the workspace; its generations go on, so that nobody takes old for new."""
        with self.write() as writer:
            writer.clear()

    # -- figures

    def facts(self) -> StoreFacts:
        """What is in it; the room is that of all workspaces in the database."""
        with self._reading() as db:
            size = db.execute(
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c"
                " WHERE c.relnamespace = 'satchel'::regnamespace AND c.relkind = 'r'"
            ).get
            return self._counted(db, bytes_on_disk=int(size))

    def check(self) -> str:
        """What is wrong with what is derived, or nothing."""
        with self._reading() as db:
            pieces, dense, files, dead = (count(db, table) for table in ("piece", "dense", "file", "dead"))
            here = (db.workspace,)
            fresh = int(db.execute("SELECT count(*) FROM file WHERE workspace = ? AND segment = 0", here).get)
            laid = int(db.execute("SELECT coalesce(sum(files), 0) FROM chunk WHERE workspace = ?", here).get)
        if pieces != dense or fresh or laid - dead != files:
            return (
                f"of {files:,} files {laid - dead:,} are laid out and of {pieces:,} pieces {dense:,} can be found by"
                " meaning; run `satchel index`, and if it stays so, `satchel clear` and index again"
            )
        return ""

    def close(self) -> None:
        """Let go of every connection."""
        self._connections.close()
