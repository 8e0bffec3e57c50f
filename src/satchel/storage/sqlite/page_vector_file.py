"""Page vectors in a SQLite file beside the index; all content can be derived again from the documents."""

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
from satchel.storage.sqlite.database_file import checksum_layer, checksummed, damage_told_by, map_sqlite_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLES: Final = Path(__file__).with_name("page_vectors.sql").read_text()


class EmbeddedPageVectors:
    """The page vectors of a single model; vectors of other models stay untouched."""

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
            except (apsw.Error, IndexDamaged) as error:
                if not (isinstance(error, IndexDamaged | apsw.SQLError) or damage_told_by(error)):
                    raise
                # The content can be derived again: start with a new file.
                self._forget()
                self._opened = self._open()
        return self._opened

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), vfs=checksum_layer())
        try:
            connection.set_busy_timeout(10_000)
            with checksummed(connection, self._path):
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
    def _replacing_damaged_file(self) -> Iterator[None]:
        """Delete a damaged file and raise IndexDamaged; the next access creates a new file."""
        with self._lock, map_sqlite_errors(self._path):
            try:
                yield
            except apsw.Error as error:
                if not (damage := damage_told_by(error)):
                    raise
                self._forget()
                raise IndexDamaged(
                    str(self._path), f"{damage}; the next question rebuilds the file", "ask again"
                ) from error

    def documents(self) -> set[str]:
        """The ids of the documents with vectors for all pages."""
        with self._replacing_damaged_file():
            pages = "SELECT count(*) FROM page WHERE page.model = document.model AND page.doc_id = document.doc_id"
            whole = f"SELECT doc_id FROM document WHERE model = ? AND pages = ({pages})"
            return {str(row[0]) for row in self._db.execute(whole, (self._model,))}

    def put(self, doc_id: str, pages: Mapping[int, NDArray[np.float32]]) -> None:
        """Store the vectors of all pages of a document in a single commit."""
        with self._replacing_damaged_file(), self._db:
            self._remove([doc_id])
            filled = {page: vectors for page, vectors in pages.items() if len(vectors)}
            self._db.execute("INSERT INTO document VALUES (?,?,?)", (self._model, doc_id, len(filled)))
            rows = ((self._model, doc_id, page, pooled(v).tobytes(), pack_vectors(v)) for page, v in filled.items())
            self._db.executemany("INSERT INTO page VALUES (?,?,?,?,?)", rows)

    def drop(self, doc_ids: Collection[str]) -> None:
        """Remove the vectors of documents."""
        with self._replacing_damaged_file(), self._db:
            self._remove(doc_ids)

    def _remove(self, doc_ids: Collection[str]) -> None:
        gone = [(self._model, doc_id) for doc_id in doc_ids]
        self._db.executemany("DELETE FROM document WHERE model = ? AND doc_id = ?", gone)
        self._db.executemany("DELETE FROM page WHERE model = ? AND doc_id = ?", gone)

    def pooled(self, doc_ids: Collection[str]) -> tuple[list[PageKey], NDArray[np.float32]]:
        """The pages of these documents, and a pooled vector for each page."""
        with self._replacing_damaged_file():
            by_document = self._by_document()
        chosen = [by_document[doc_id] for doc_id in sorted(doc_ids) if doc_id in by_document]
        if not chosen:
            return [], np.zeros((0, self._dimensions), np.float32)
        return [key for keys, _ in chosen for key in keys], np.concatenate([rows for _, rows in chosen])

    def _by_document(self) -> dict[str, tuple[list[PageKey], NDArray[np.float32]]]:
        """The pooled vectors by document, cached until a write by this or another process."""
        # `data_version` counts changes by other connections, `total_changes` our own.
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
        """All vectors of each page; an empty array for a missing page."""
        nothing = np.zeros((0, self._dimensions), np.float32)
        statement = "SELECT vectors FROM page WHERE model = ? AND doc_id = ? AND page = ?"
        with self._replacing_damaged_file():
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
        """Close the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None
