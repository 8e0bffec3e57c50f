"""The SQLite file: what was committed is in here, and everything else can be made from it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from satchel.adapters.embedded.access import access_number
from satchel.adapters.embedded.node import is_node
from satchel.adapters.embedded.schema import migrate
from satchel.errors import EmbedderMismatch, IndexBusy, IndexDamaged, IndexUnwritable
from satchel.model.access import ROOT, Access
from satchel.model.outline import embedded_text, text_hash
from satchel.ports.store import FileState, NewFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.adapters.embedded.block_writer import BlockWriter
    from satchel.model.block import Activity

_BUSY_MS: Final = 10_000
_MARKS_KEPT: Final = 1000


def path_bytes(path: str) -> bytes:
    """A path as it is kept: the bytes that the file system knows."""
    return path.encode("utf-8", "surrogateescape")


def path_text(kept: bytes) -> str:
    """A kept path as the rest of the program sees it."""
    return kept.decode("utf-8", "surrogateescape")


def _plain(text: str) -> str:
    """Without what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def translated(where: Path) -> Iterator[None]:
    """SQLite's complaints in our words."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
        raise IndexDamaged(str(where), str(error)) from error
    except (apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.PermissionsError) as error:
        raise IndexUnwritable(str(where), str(error)) from error
    except apsw.BusyError as error:
        raise IndexBusy(str(where), "") from error


def connect(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """An open SQLite file of our version."""
    with translated(path):
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(os.fspath(path), flags=flags)
        connection.set_busy_timeout(_BUSY_MS)
        if not read_only:
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
        connection.pragma("temp_store", "memory")
        migrate(connection, str(path))
        return connection


class TruthWriter:
    """One commit in the making."""

    def __init__(self, connection: apsw.Connection, generation: int) -> None:
        self._db = connection
        self._generation = generation
        self._blocks: BlockWriter | None = None
        self.changed = False

    @property
    def blocks(self) -> BlockWriter:
        """What can be done to the workspace's blocks."""
        if self._blocks is None:
            from satchel.adapters.embedded.block_writer import BlockWriter

            self._blocks = BlockWriter(self._db, self, self._generation)
        return self._blocks

    def put(self, file: NewFile) -> None:
        """Keep a file in place of what was kept under its path; whoever could read that can read this."""
        before = self._db.execute(
            "SELECT access, own_readers FROM file WHERE path = ?", (path_bytes(file.path),)
        ).fetchone()
        self.drop(file.path)
        data = file.text.encode("utf-8", "surrogateescape")
        own_readers = file.readers is not None or bool(before and before[1])
        if file.readers is not None:
            access = access_number(self._db, Access(frozenset(file.readers)))
        elif before:
            access = int(before[0])
        else:
            access = access_number(self._db, ROOT if is_node(path_bytes(file.path)) else self._granted(file.path))
        state, outline = file.state, file.outline
        self._db.execute(
            "INSERT INTO file (path, hash, size, modified_ns, read_ns, language, note, generation, access, granted,"
            " called, own_readers) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            (path_bytes(file.path), *state, outline.language, outline.note, self._generation, access, self._generation,
             _plain(outline.title), own_readers),
        )  # fmt: skip
        number = self._db.last_insert_rowid()
        self._db.execute("INSERT INTO content VALUES (?,?)", (number, data))
        self._db.executemany(
            "INSERT INTO block VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (
                (number, i, b.type, _plain(b.name), _plain(b.qualified), b.parent, b.first_line, b.last_line,
                 _plain(b.signature), _plain(b.doc), b.page)
                for i, b in enumerate(outline.blocks)
            ),
        )  # fmt: skip
        starts = _line_starts(data)
        self._db.executemany(
            "INSERT INTO piece (file, first_line, last_line, start, finish, block, defines, hash, page)"
            " VALUES (?,?,?,?,?,?,?,?,?)",
            (
                (number, p.first_line, p.last_line, starts[p.first_line - 1], _end(data, starts, p.last_line), p.block,
                 ",".join(map(str, p.defines)), text_hash(embedded_text(outline, p, file.text[p.start : p.end])),
                 p.page)
                for p in outline.pieces
            ),
        )  # fmt: skip
        self._db.executemany(
            "INSERT INTO page VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                (number, p.number, p.first_line, p.last_line, starts[p.first_line - 1],
                 max(starts[p.first_line - 1], _end(data, starts, p.last_line)), _plain(p.name),
                 _plain(p.section_path), _plain(p.parent_heading),
                 p.headings, p.tables, p.pictures, _plain(json.dumps(p.captions, ensure_ascii=False)), p.is_recognized)
                for p in outline.pages
            ),
        )  # fmt: skip
        self._db.executemany(
            "INSERT OR IGNORE INTO mention VALUES (?,?,?,?)",
            ((number, m.block, m.kind, _plain(m.name)) for m in outline.mentions),
        )
        self.changed = True

    def _granted(self, path: str) -> Access:
        from satchel.adapters.embedded.file_access import FileAccess

        return FileAccess(self._db).of(path_bytes(path))

    def touch(self, path: str, state: FileState) -> None:
        """The same content with another time."""
        self._db.execute(
            "UPDATE file SET hash = ?, size = ?, modified_ns = ?, read_ns = ? WHERE path = ?",
            (*state, path_bytes(path)),
        )

    def drop(self, path: str) -> None:
        """Forget a file."""
        row = self._db.execute("SELECT id FROM file WHERE path = ?", (path_bytes(path),)).fetchone()
        if row is None:
            return
        for table in ("block", "piece", "mention", "content", "page"):
            self._db.execute(f"DELETE FROM {table} WHERE file = ?", row)
        self._db.execute("DELETE FROM file WHERE id = ?", row)
        self._db.execute("INSERT INTO gone VALUES (?,?)", (row[0], self._generation))
        self.changed = True

    def lacking(self, text_hashes: Iterable[bytes]) -> set[bytes]:
        """Those of the hashed texts that have no vector yet."""
        wanted = set(text_hashes)
        known: set[bytes] = set()
        ordered = sorted(wanted)
        for i in range(0, len(ordered), 500):
            some = ordered[i : i + 500]
            marks = ",".join("?" * len(some))
            known |= {row[0] for row in self._db.execute(f"SELECT hash FROM vector WHERE hash IN ({marks})", some)}
        return wanted - known

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of texts, eight bits for each number."""
        import numpy as np

        quantized = np.clip(np.rint(vectors * 127), -127, 127).astype(np.int8)
        self._db.executemany(
            "INSERT OR REPLACE INTO vector VALUES (?,?)",
            ((key, row.tobytes()) for key, row in zip(text_hashes, quantized, strict=True)),
        )

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Keep what history says, in place of what was kept."""
        self._db.execute("DELETE FROM activity")
        self._db.executemany(
            "INSERT INTO activity VALUES (?,?,?,?,?,?)",
            (
                (
                    path_bytes(a.block),
                    int(a.timestamp.timestamp()),
                    _plain(a.actor),
                    a.action,
                    _plain(a.detail),
                    a.reference,
                )
                for a in activities
            ),
        )
        self._db.execute("INSERT OR REPLACE INTO fact VALUES ('history', ?)", (head,))

    def settle_embedder(self, name: str, dimensions: int) -> None:
        """Record who makes the vectors; refuse a second one."""
        held, length = fact(self._db, "embedder"), fact(self._db, "dimensions")
        if held is None:
            self._db.execute("INSERT INTO fact VALUES ('embedder', ?), ('dimensions', ?)", (name, dimensions))
        elif held != name:
            raise EmbedderMismatch(str(held), name)
        elif length != dimensions:
            raise EmbedderMismatch(f"{held} with {length} dimensions", f"{name} with {dimensions} dimensions")

    def seal(self) -> None:
        """End the commit: the next generation, and a mark by which what is derived from it knows it again."""
        if self._blocks is not None:
            self._blocks.settle()
        mark = secrets.token_hex(8)
        self._db.execute("UPDATE fact SET value = ? WHERE name = 'generation'", (self._generation,))
        self._db.execute("INSERT INTO fact VALUES (?, ?)", (f"mark {self._generation:012d}", mark))
        old = f"mark {max(0, self._generation - _MARKS_KEPT):012d}"
        self._db.execute("DELETE FROM fact WHERE name LIKE 'mark %' AND name < ?", (old,))

    def set_fact(self, name: str, value: str | int) -> None:
        """Keep a fact about the whole index."""
        self._db.execute("INSERT OR REPLACE INTO fact VALUES (?,?)", (name, value))


def fact(connection: apsw.Connection, name: str) -> Any:
    """A fact about the whole index, or None."""
    row = connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def mark_of(connection: apsw.Connection, generation: int) -> str:
    """The mark of a generation, by which one truth is told from another that counted as far."""
    return str(fact(connection, f"mark {generation:012d}") or "")


def moment(nanoseconds: int) -> datetime:
    """A file's time."""
    with suppress(OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return datetime.fromtimestamp(0, UTC)


def _line_starts(data: bytes) -> list[int]:
    starts = [0]
    position = data.find(b"\n")
    while position >= 0:
        starts.append(position + 1)
        position = data.find(b"\n", position + 1)
    starts.append(len(data))
    return starts


def _end(data: bytes, starts: list[int], last_line: int) -> int:
    end = starts[last_line]
    return end - 1 if end and data[end - 1 : end] == b"\n" else end
