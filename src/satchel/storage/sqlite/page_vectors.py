"""Vectors of pages in a SQLite file beside the truth: whatever is in it can be made again from the documents."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

from satchel.errors import IndexDamaged, InvalidInput
from satchel.ports.page_vectors import PageKey
from satchel.retrieval.late_interaction import pack_vectors, pooled, unpack_vectors
from satchel.storage.sqlite.database_file import map_sqlite_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLES: Final = Path(__file__).with_name("page_vectors.sql").read_text()


class EmbeddedPageVectors:
    """The vectors that one model made; other models' are left alone."""

    def __init__(self, path: Path, model: str, dimensions: int) -> None:
        self._path = path
        self._model = model
        self._dimensions = dimensions
        self._lock = threading.RLock()
        self._opened: apsw.Connection | None = None
        self._pooled: tuple[int, dict[str, tuple[list[PageKey], NDArray[np.float32]]]] = (-1, {})

    @property
    def _db(self) -> apsw.Connection:
        if self._opened is None:
            try:
                self._opened = self._open()
            except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError):
                # It can be made again, and it is.
                self._forget()
                self._opened = self._open()
        return self._opened

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path))
        try:
            connection.set_busy_timeout(10_000)
            connection.pragma("journal_mode", "wal")
            connection.execute(_TABLES).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _forget(self) -> None:
        self.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{self._path}{ending}").unlink(missing_ok=True)

    @contextmanager
    def _mended(self) -> Iterator[None]:
        """Whatever turns out to be damaged is thrown away, and made again when it is asked for next."""
        with self._lock, map_sqlite_errors(self._path):
            try:
                yield
            except (apsw.NotADBError, apsw.CorruptError) as error:
                self._forget()
                raise IndexDamaged(str(self._path), f"{error}; it is made anew") from error

    def documents(self) -> set[str]:
        """The documents whose pages are all in it."""
        with self._mended():
            pages = "SELECT count(*) FROM page WHERE page.model = document.model AND page.doc_id = document.doc_id"
            whole = f"SELECT doc_id FROM document WHERE model = ? AND pages = ({pages})"
            return {str(row[0]) for row in self._db.execute(whole, (self._model,))}

    def put(self, doc_id: str, pages: Mapping[int, NDArray[np.float32]]) -> None:
        """Keep all pages of a document, in one commit."""
        with self._mended(), self._db:
            self._remove([doc_id])
            filled = {page: vectors for page, vectors in pages.items() if len(vectors)}
            self._db.execute("INSERT INTO document VALUES (?,?,?)", (self._model, doc_id, len(filled)))
            rows = ((self._model, doc_id, page, pooled(v).tobytes(), pack_vectors(v)) for page, v in filled.items())
            self._db.executemany("INSERT INTO page VALUES (?,?,?,?,?)", rows)

    def drop(self, doc_ids: Collection[str]) -> None:
        """Forget documents."""
        with self._mended(), self._db:
            self._remove(doc_ids)

    def _remove(self, doc_ids: Collection[str]) -> None:
        gone = [(self._model, doc_id) for doc_id in doc_ids]
        self._db.executemany("DELETE FROM document WHERE model = ? AND doc_id = ?", gone)
        self._db.executemany("DELETE FROM page WHERE model = ? AND doc_id = ?", gone)

    def pooled(self, doc_ids: Collection[str]) -> tuple[list[PageKey], NDArray[np.float32]]:
        """The pages of these documents, and one vector for each."""
        with self._mended():
            by_document = self._by_document()
        chosen = [by_document[doc_id] for doc_id in sorted(doc_ids) if doc_id in by_document]
        if not chosen:
            return [], np.zeros((0, self._dimensions), np.float32)
        return [key for keys, _ in chosen for key in keys], np.concatenate([rows for _, rows in chosen])

    def _by_document(self) -> dict[str, tuple[list[PageKey], NDArray[np.float32]]]:
        """The pooled vectors, in memory until another process or we have written."""
        # Changes of others show in the one, our own in the other.
        version = int(self._db.pragma("data_version")) * 2**32 + self._db.total_changes()
        if self._pooled[0] != version:
            statement = "SELECT doc_id, page, pooled FROM page WHERE model = ? ORDER BY doc_id, page"
            rows: list[Any] = self._db.execute(statement, (self._model,)).fetchall()
            pages: dict[str, tuple[list[PageKey], list[NDArray[np.float32]]]] = {}
            broken = {doc_id for doc_id, _, data in rows if len(data) != 4 * self._dimensions}
            if broken:
                self.drop(broken)
            for doc_id, page, data in rows:
                if doc_id in broken:
                    continue
                keys, vectors = pages.setdefault(doc_id, ([], []))
                keys.append(PageKey(doc_id, page))
                vectors.append(np.frombuffer(data, np.float32))
            self._pooled = (version, {doc_id: (keys, np.stack(vectors)) for doc_id, (keys, vectors) in pages.items()})
        return self._pooled[1]

    def fetch(self, keys: Sequence[PageKey]) -> list[NDArray[np.float32]]:
        """All vectors of pages; none for one that has gone meanwhile."""
        nothing = np.zeros((0, self._dimensions), np.float32)
        statement = "SELECT vectors FROM page WHERE model = ? AND doc_id = ? AND page = ?"
        with self._mended():
            rows: list[Any] = [self._db.execute(statement, (self._model, *key)).fetchone() for key in keys]
        vectors = []
        for key, row in zip(keys, rows, strict=True):
            try:
                vectors.append(nothing if row is None else unpack_vectors(row[0]))
            except InvalidInput:
                self.drop({key.doc_id})
                vectors.append(nothing)
        return vectors

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None
