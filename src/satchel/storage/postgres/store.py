"""The store in PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import psycopg

from satchel.errors import IndexBusy
from satchel.models.access import DefaultAccess
from satchel.models.search import Filters
from satchel.ports.file_index import Candidate, StoreQuery, WordCounts
from satchel.ports.store import StoreFacts
from satchel.storage.postgres.address import Address, address_of
from satchel.storage.postgres.connections import BEGIN_READING, WRITER, Connections, Entered, Visit, reading_as
from satchel.storage.postgres.database import map_postgres_errors
from satchel.storage.postgres.derived import NEAREST, PostgresWriter, index_some, lacks_index, lay_together
from satchel.storage.postgres.locks import advisory_lock
from satchel.storage.postgres.search import EXACT_MOST, Search, StaleView, Views, VisibleWorkspace, view_key
from satchel.storage.sql.file_reader import NOBODY
from satchel.storage.sql.file_writer import drop_unused_vectors, weigh_links
from satchel.storage.sql.reader import RelationalReader
from satchel.storage.sql.rows import UNRESTRICTED, AccessFilter, access_lists, default_access, readable_lists
from satchel.storage.sql.scoring import with_use

if TYPE_CHECKING:
    from satchel.storage.postgres.database import PostgresDatabase
    from satchel.storage.sql.rows import Database

# Arbitrary, but never to be changed: old and new versions must take the same advisory lock.
_WRITER_LOCK_KEY: Final = 0x5A7C
# Held by each commit, also under the writer's lock: commits stay in a row if the connection with that lock is lost.
_COMMIT_LOCK_KEY: Final = 0x5A7D
# Commits queue (decision 0037); after a minute the caller should learn that the store is busy.
_COMMIT_WAIT_S: Final = 60.0
_LOCK_POLL_S: Final = 0.02  # a caller hardly notices the delay, and the server hardly notices the queries
_MAX_CACHE_ENTRIES: Final = 512  # an entry for each set of readers or filters; a full cache is emptied
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@lru_cache(maxsize=_MAX_CACHE_ENTRIES)
def _filter_by_array(access: frozenset[int] | None) -> AccessFilter:
    """SQL condition that limits rows to the given access lists (None: no limit), the same text for every reader.

    A connection then prepares each statement once for all its readers.
    """
    return UNRESTRICTED if access is None else AccessFilter("file.access = ANY(?)", (sorted(access),))


class PostgresStore(RelationalReader):
    """A workspace in a database, created if missing; a commit waits up to `patience` seconds for other commits."""

    many_writers: Final = True

    def __init__(
        self, where: str | Address, *, patience: float = _COMMIT_WAIT_S, nearest_from: int = EXACT_MOST
    ) -> None:
        self._connections = Connections(where if isinstance(where, Address) else address_of(where))
        self._patience = patience
        self._nearest_from = nearest_from
        self._views = Views()
        self._last: dict[Filters, Entered] = {}
        self._access: dict[tuple[int, frozenset[str] | None], frozenset[int] | None] = {}
        self._facts: dict[tuple[int, str], Any] = {}
        self._lock = threading.Lock()
        self._writing = threading.local()

    @property
    def where(self) -> str:
        """The address of the store without the password."""
        return self._connections.shown

    # -- reading

    def _visiting(self, filters: Filters | None) -> AbstractContextManager[Visit]:
        if filters is None and self._connections.can_write:
            return self._connections.transaction(WRITER)
        # Without filters, a read-only login gets only the rows readable by everybody.
        return self._connections.transaction(reading_as(frozenset() if filters is None else filters.readers))

    @contextmanager
    def _reading(self, filters: Filters | None = None) -> Iterator[Database]:
        with self._visiting(filters) as visit:
            yield visit.database

    _condition = staticmethod(_filter_by_array)

    def _known_blocks(self) -> dict[bytes, bool]:
        visit = self._connections.visit
        return {} if visit is None or visit.is_writing else visit.known_blocks

    @contextmanager
    def _visiting_as_anybody(self) -> Iterator[Visit]:
        """A transaction with the identity that it has: for what is the same for every reader."""
        visit = self._connections.visit
        if visit is not None and visit.identity is not None:
            yield visit
        else:
            with self._visiting(NOBODY) as visit:
                yield visit

    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:
        """The readable access lists, computed here as a second check beside the database's row-level security."""
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
            if len(memory) >= _MAX_CACHE_ENTRIES:
                memory.clear()
            memory[key] = value

    @property
    def generation(self) -> int:
        """The number of the last commit; the database tells it to everybody who enters."""
        with self._visiting_as_anybody() as visit:
            return int(visit.database.fact("generation") or 0) if visit.is_writing else visit.entered.generation

    def default_access(self) -> DefaultAccess:
        """Who may read files and blocks without a grant."""
        with self._visiting_as_anybody() as visit:
            if visit.is_writing:
                return default_access(visit.database)
            return DefaultAccess(visit.entered.default_access)

    def embedder(self) -> str:
        """The name of the embedder behind the stored vectors, or "" while there are none."""
        return self._until_next_commit("embedder", super().embedder)

    def holds_blocks(self) -> bool:
        """True if the store has blocks beside the blocks of indexed files."""
        return self._until_next_commit("holds blocks", super().holds_blocks)

    def _until_next_commit(self, name: str, ask: Callable[[], _Value]) -> _Value:
        """A fact about the workspace, asked once in each generation."""
        with self._visiting_as_anybody() as visit:
            key = (visit.entered.generation, name)
            if visit.is_writing:
                return ask()
            with suppress(KeyError):
                return cast("_Value", self._facts[key])
            # What is missing may be set by a commit that changes nothing else, and then has the same generation.
            if answer := ask():
                self._remember(self._facts, key, answer)
            return answer

    def search_version(self, filters: Filters) -> tuple[object, ...]:
        """A value that changes whenever search results for these readers could change."""
        return (self.generation_for(filters),)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A context in which all reads of the calling thread see the same state."""
        with self._connections.transaction(None):
            yield

    # -- searching

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The readable pieces with the most evidence, in a stable order."""
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

    def word_counts(self, terms: Sequence[str], filters: Filters) -> WordCounts:
        """Count the readable pieces with each term; words of other pieces count as unknown."""
        with self._visiting(filters) as visit:
            db = visit.database
            seen = self._views.of(visit, filters, self._allowed(db, filters))
            return Search(db.connection, db.workspace, seen, StoreQuery()).count_words(terms)

    def _search_at_once(
        self, before: Entered, seen: VisibleWorkspace, query: StoreQuery, filters: Filters, top_k: int
    ) -> list[Candidate]:
        """Begin, enter and search in a single exchange with a cached view; raises StaleView if the view is outdated."""
        entrance = self._connections.reading
        with self._connections.checked_out() as connection, map_postgres_errors(self.where):

            @contextmanager
            def reading_again() -> Iterator[None]:
                if connection.info.transaction_status:
                    yield
                    return
                connection.execute(BEGIN_READING)
                entrance.enter(connection, reading_as(filters.readers))
                yield
                connection.execute("ROLLBACK")  # after an error, the caller's

            search = Search(connection, entrance.workspace, seen, query, reading_again)
            try:
                with connection.pipeline():
                    connection.execute(BEGIN_READING)
                    entered = entrance.enter(connection, reading_as(filters.readers))
                    answers = search.ask()
                    if search.is_exact:
                        connection.execute("ROLLBACK")
                if Entered.read(entered) != before:
                    raise StaleView
                return search.weigh(answers, top_k)
            except psycopg.OperationalError as error:
                if connection.broken:
                    # Nothing was changed: the search is repeated on another connection.
                    raise StaleView from error
                raise
            finally:
                if not connection.broken and connection.info.transaction_status:
                    connection.execute("ROLLBACK")

    # -- writing

    @contextmanager
    def lock(self, *, wait: float = 0) -> Iterator[None]:
        """Hold exclusive write access over several commits; wait up to `wait` seconds for another writer."""
        if getattr(self._writing, "now", False):
            yield
            return
        place = self._connections.address.database
        with (
            map_postgres_errors(self.where),
            advisory_lock(place, self._key(_WRITER_LOCK_KEY), wait_s=wait, poll_s=_LOCK_POLL_S) as is_ours,
        ):
            if not is_ours:
                raise IndexBusy(self.where, "")
            self._writing.now = True
            try:
                yield
            finally:
                self._writing.now = False

    def _key(self, lock: int) -> tuple[int, int]:
        return lock, self._connections.workspace % 2**31

    @contextmanager
    def write(self) -> Iterator[PostgresWriter]:
        """An atomic commit; waits for the commits of other writers."""
        with self._connections.transaction(WRITER, writing=True) as visit:
            db = visit.database
            self._queue(db)
            writer = PostgresWriter(db, int(db.fact("generation") or 0) + 1)
            yield writer
            if writer.changed:
                writer.seal()

    def _queue(self, db: PostgresDatabase) -> None:
        """Wait for the current writer: commits of a workspace are serialized."""
        milliseconds = max(1, int(self._patience * 1000))
        db.connection.execute("SELECT set_config('lock_timeout', %s, true)", (str(milliseconds),))
        if not getattr(self._writing, "now", False):
            db.connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", self._key(_WRITER_LOCK_KEY))
        db.connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", self._key(_COMMIT_LOCK_KEY))
        db.connection.execute("SELECT set_config('lock_timeout', '0', true)")

    def catch_up(self, *, partly: bool = False) -> bool:
        """Merge small segments, weigh links and index vectors; True if there was anything to do."""
        if partly:
            return False  # a file's search data is in its own commit
        with self.write() as writer:
            db = writer.database
            dimensions = int(db.fact("dimensions") or 1)
            done = lay_together(db, dimensions)
            done = weigh_links(db, int(db.fact("generation") or 0)) or done
            writer.changed = done
            wants_index = lacks_index(db, dimensions, self._nearest_from)
        return (wants_index and self._index_vectors(dimensions)) or done

    def _index_vectors(self, dimensions: int) -> bool:
        """Add all vectors to the vector index, in small commits to keep other writers' waits short."""
        while True:
            with self.write() as writer:
                if not index_some(writer.database, dimensions):
                    writer.set_fact(NEAREST, dimensions)
                    writer.changed = True
                    return True

    def tidy(self) -> None:
        """Delete vectors without a piece."""
        with self.write(), self._reading() as db:
            drop_unused_vectors(db)

    def clear(self) -> None:
        """Remove all data of the workspace; the generation keeps growing, to invalidate readers' caches."""
        with self.write() as writer:
            writer.clear()

    # -- counts and checks

    def facts(self) -> StoreFacts:
        """Counts of the store; `bytes_on_disk` is the size of all workspaces in the database."""
        with self._reading() as db:
            size = db.execute(
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c"
                " WHERE c.relnamespace = 'satchel'::regnamespace AND c.relkind = 'r'"
            ).get
            return self._counted(db, bytes_on_disk=int(size))

    def check(self) -> str:
        """A description of the problem with the search data, or ""."""
        with self._reading() as db:
            pieces, dense, files, dead = (db.count(table) for table in ("piece", "dense", "file", "dead"))
            here = (db.workspace,)
            fresh = int(db.execute("SELECT count(*) FROM file WHERE workspace = ? AND segment = 0", here).get)
            laid = int(db.execute("SELECT coalesce(sum(files), 0) FROM chunk WHERE workspace = ?", here).get)
        if pieces != dense or fresh or laid - dead != files:
            return (
                f"of {files:,} files {laid - dead:,} have search data, and of {pieces:,} pieces {dense:,} have "
                "vectors; run `satchel index`; if this does not help, `satchel clear` and index again"
            )
        return ""

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()
