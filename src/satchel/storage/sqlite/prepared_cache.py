"""The cache of prepared files and vectors in a SQLite file, one for all indexes of a user of the machine.

Everything in the file can be made again. Each row is stored with its digest: a damaged row counts as missing, and a
damaged file is made anew.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import apsw

from satchel.indexing.child_process import Garbled, decode, encode
from satchel.ports.workers import Prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_BYTES: Final = 2_000_000_000
"""About a hundred repositories of 5,000 files: more than a developer works on, and little beside their checkouts."""

_FILE_NAME: Final = "prepared-1.sqlite"
"""The number grows with the tables: programs of different versions then do not destroy each other's rows."""

_TABLES: Final = Path(__file__).with_name("prepared_cache.sql")
_BUSY_TIMEOUT_MS: Final = 2_000  # waits for another process's addition; after that the work goes on without the cache
_LEVEL: Final = 1  # zlib's fastest: halves the outlines, and higher levels gain 5 % in five times the time
_DIGEST_BYTES: Final = 8
_KEYS_IN_STATEMENT: Final = 500  # SQLite plans longer lists anew and slower
_DAY_SECONDS: Final = 86_400  # the precision of `used`: a row is marked as used at most once a day
_EVICTED_SHARE: Final = 0.25
"""Of the rows, least recently used first: frees enough that the next addition need not evict again."""

_Result = TypeVar("_Result")


class SqlitePreparedCache:
    """Prepared files and vectors in a folder; vectors are kept apart by `embedder` and not kept under the name ""."""

    def __init__(self, folder: Path, embedder: str = "", *, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self._embedder = embedder.encode()
        self._max_bytes = max_bytes
        self._opened: apsw.Connection | None = None
        self.problem = ""
        """Why the cache cannot be used, or ""."""

    def prepared(self, key: bytes) -> Prepared | None:
        """A prepared file, or None."""
        rows = self._found("prepared", [key])
        if key not in rows:
            return None
        with suppress(zlib.error, Garbled):
            return decode(zlib.decompress(rows[key]), Prepared)
        return None

    def vectors(self, text_hashes: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """The known vectors among those of the given texts, rounded as stores round them."""
        if not self._embedder:
            return {}
        import numpy as np

        keys = {self._vector_key(text_hash): text_hash for text_hash in text_hashes}
        rows = self._found("vector", list(keys))
        return {
            keys[key]: np.frombuffer(data, np.int8).astype(np.float32) / np.float32(127) for key, data in rows.items()
        }

    def add(self, prepared: Mapping[bytes, Prepared], vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Add prepared files by key, and vectors by the hashes of their texts."""
        files = [(key, zlib.compress(encode(file), _LEVEL)) for key, file in prepared.items()]
        self._tried(lambda db: self._store(db, files, list(self._packed(vectors))), None)

    def _packed(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> Iterator[tuple[bytes, bytes]]:
        if not self._embedder or not vectors:
            return
        import numpy as np

        quantized = np.clip(np.rint(np.stack(list(vectors.values())) * 127), -127, 127).astype(np.int8)
        for text_hash, row in zip(vectors, quantized, strict=True):
            yield self._vector_key(text_hash), row.tobytes()

    def _vector_key(self, text_hash: bytes) -> bytes:
        return blake2b(text_hash, digest_size=16, key=blake2b(self._embedder).digest()).digest()

    def size(self) -> int:
        """The bytes on disk."""
        return sum(path.stat().st_size for path in self._files() if path.exists())

    def clear(self) -> bool:
        """Remove the files; True if there were any. Processes that use the files go on with what they hold."""
        self.close()
        found = [path for path in self._files() if path.exists()]
        for path in found:
            path.unlink(missing_ok=True)
        with suppress(OSError):
            (self.folder / ".gitignore").unlink(missing_ok=True)
            self.folder.rmdir()
        return bool(found)

    def close(self) -> None:
        """Release the file; a later call opens the file again."""
        if self._opened is not None:
            with suppress(apsw.Error):
                self._opened.close()
            self._opened = None

    def _files(self) -> list[Path]:
        return [self.folder / f"{_FILE_NAME}{ending}" for ending in ("", "-wal", "-shm")]

    # -- steps

    def _tried(self, work: Callable[[apsw.Connection], _Result], otherwise: _Result) -> _Result:
        """The result of the work on the file; `otherwise` if the file cannot be used, now and in later calls."""
        if self.problem:
            return otherwise
        try:
            return work(self._connection())
        except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError, apsw.MismatchError):
            self.clear()  # damaged: made anew by the next call
        except apsw.BusyError:
            pass  # another process adds; what is missing now is made again
        except (apsw.Error, OSError) as error:
            self.close()
            self.problem = f"files prepared earlier cannot be reused: {self.folder}: {error}"
        return otherwise

    def _connection(self) -> apsw.Connection:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> apsw.Connection:
        # The rows contain texts that other users of the machine may not be allowed to read.
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / _FILE_NAME
        if not path.exists():
            # An index folder may lie in the folder that is indexed.
            (self.folder / ".gitignore").write_text("*\n")
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = apsw.Connection(os.fspath(path))
        try:
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            connection.pragma("auto_vacuum", 2)  # incremental; only before the first table
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
            connection.execute(_TABLES.read_text())
        except BaseException:
            connection.close()
            raise
        return connection

    def _found(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The undamaged rows with the keys; none if the file cannot be used."""
        nothing: dict[bytes, bytes] = {}
        return self._tried(lambda db: self._used(db, table, keys), nothing)

    @staticmethod
    def _used(db: apsw.Connection, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The undamaged rows with the keys; marks them as used today."""
        today = int(time.time()) // _DAY_SECONDS
        rows: dict[bytes, bytes] = {}
        old: list[tuple[int, bytes]] = []
        for first in range(0, len(keys), _KEYS_IN_STATEMENT):
            part = keys[first : first + _KEYS_IN_STATEMENT]
            marks = ",".join("?" * len(part))
            for key, used, data in db.execute(f"SELECT key, used, data FROM {table} WHERE key IN ({marks})", part):
                if isinstance(data, bytes) and data[:_DIGEST_BYTES] == _digest(key, data[_DIGEST_BYTES:]):
                    rows[key] = data[_DIGEST_BYTES:]
                    old += [(today, key)] if used != today else []
        if old:
            with db:
                db.executemany(f"UPDATE {table} SET used = ? WHERE key = ?", old)
        return rows

    def _store(
        self,
        db: apsw.Connection,
        files: Sequence[tuple[bytes, bytes]],
        vectors: Sequence[tuple[bytes, bytes]],
    ) -> None:
        today = int(time.time()) // _DAY_SECONDS
        with _immediate(db):
            for table, rows in (("prepared", files), ("vector", vectors)):
                values: Any = ((key, today, _digest(key, data) + data) for key, data in rows)
                db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?,?,?)", values)
        if db.pragma("page_count") * db.pragma("page_size") > self._max_bytes:
            self._evict(db)

    def _evict(self, db: apsw.Connection) -> None:
        with _immediate(db):
            for table in ("prepared", "vector"):
                some = int(db.execute(f"SELECT count(*) FROM {table}").get * _EVICTED_SHARE) + 1
                oldest = f"SELECT key FROM {table} ORDER BY used, key LIMIT {some}"
                db.execute(f"DELETE FROM {table} WHERE key IN ({oldest})")
        db.execute("PRAGMA incremental_vacuum").fetchall()
        db.pragma("wal_checkpoint(truncate)")


def _digest(key: bytes, data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES, key=key).digest()


@contextmanager
def _immediate(db: apsw.Connection) -> Iterator[None]:
    """A transaction that waits for other writers at its beginning."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
