"""Tables as they are kept, given out to another store and taken over from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from satchel.models.block import is_done
from satchel.ports.transfer import MOVING, RowKind, StoredFile, TransferRow
from satchel.storage.sql.column_codecs import path_bytes, path_text
from satchel.storage.sql.database import count, insert
from satchel.storage.sql.node import NODE_COLUMNS, due_of, id_bytes, metadata_text, micros
from satchel.storage.sql.transfer_files import kept_files, next_numbers
from satchel.storage.sql.transfer_rows import TABLES

if TYPE_CHECKING:
    from satchel.models.block import Block
    from satchel.storage.sql.database import Database
    from satchel.storage.sql.writer import RelationalWriter

_AT_ONCE: Final = 500
_ROWS_AT_ONCE: Final = 2_000

_DERIVED: Final = frozenset({"generation", "linked", "nearest", "pieces", "multi_user", "default_access", MOVING})
"""Facts that a store works out for itself; the policy is kept in two of them, and is set as such."""
_MARKS: Final = "mark "


class Keeping:
    """Gives out what the tables keep."""

    def __init__(self, reading: Callable[[], AbstractContextManager[Database]]) -> None:
        self._reading = reading

    def count(self) -> int:
        """How many files and blocks there are."""
        with self._reading() as db:
            return count(db, "file")

    def files(self, *, after: int = 0, limit: int) -> list[StoredFile]:
        """The next in the order of their numbers."""
        with self._reading() as db:
            return kept_files(db, next_numbers(db, "id", after, limit))

    def files_by_path(self, *, after: str = "", limit: int) -> list[StoredFile]:
        """The next in the order of their paths' bytes."""
        with self._reading() as db:
            return kept_files(db, next_numbers(db, "path", path_bytes(after), limit))

    def files_at(self, paths: Sequence[str]) -> dict[str, StoredFile]:
        """Those that are kept under these paths."""
        found: dict[str, StoredFile] = {}
        with self._reading() as db:
            for some in _parts([path_bytes(path) for path in paths]):
                marks = ",".join("?" * len(some))
                known = f"SELECT id FROM file WHERE workspace = ? AND path IN ({marks})"
                rows = db.execute(known, (db.workspace, *some)).fetchall()
                found |= {one.path: one for one in kept_files(db, [row[0] for row in rows])}
        return found

    def paths(self, *, after: str = "", limit: int) -> list[str]:
        """The next paths in the order of their bytes."""
        with self._reading() as db:
            rows = db.execute(
                f"SELECT path FROM file WHERE workspace = ? AND path > ? ORDER BY path LIMIT {limit:d}",
                (db.workspace, path_bytes(after)),
            )
            return [path_text(row[0]) for row in rows]

    def vectors(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors by the hashes of their texts."""
        found: dict[bytes, bytes] = {}
        with self._reading() as db:
            for some in _parts(sorted(set(hashes))):
                marks = ",".join("?" * len(some))
                wanted = f"SELECT hash, vector FROM vector WHERE workspace = ? AND hash IN ({marks})"
                found.update(db.execute(wanted, (db.workspace, *some)))
        return found

    def rows(self, kind: RowKind) -> Iterator[TransferRow]:
        """All of a kind, in the order in which they were put, or of their names."""
        table = TABLES[kind]
        after = table.start
        key, marks = ", ".join(table.key), ", ".join("?" * len(table.key))
        statement = (
            f"SELECT {key}, {', '.join(table.columns)} FROM {table.name} WHERE workspace = ? AND ({key}) > ({marks})"
            f" ORDER BY {key} LIMIT {_ROWS_AT_ONCE}"
        )
        while True:
            with self._reading() as db:
                found: list[Any] = db.execute(statement, (db.workspace, *after)).fetchall()
            for row in found:
                yield table.read(*row[len(table.key) :])
            if len(found) < _ROWS_AT_ONCE:
                return
            after = found[-1][: len(table.key)]

    def facts(self) -> dict[str, str]:
        """The facts that are as true of the same things elsewhere."""
        with self._reading() as db:
            rows = db.execute("SELECT name, value FROM fact WHERE workspace = ?", (db.workspace,))
            kept = {str(name): str(value) for name, value in rows}
        return {name: value for name, value in kept.items() if name not in _DERIVED and not name.startswith(_MARKS)}


class KeepingWriter:
    """Takes over what other tables keep, within one commit."""

    def __init__(self, db: Database, writer: RelationalWriter) -> None:
        self._db = db
        self._writer = writer

    def put(self, files: Sequence[StoredFile], vectors: Mapping[bytes, bytes]) -> None:
        """Keep files and blocks, with vectors, in place of what was kept under their paths."""
        self.drop(one.path for one in files)
        self._writer.put_packed(sorted(vectors.items()))
        numbered = []
        for one in files:
            access = self._writer.access_number(one.access)
            number = self._writer.insert(one.file, access, has_own_readers=one.has_own_readers)
            numbered.append((number, one))
        self._writer.fill([(number, one.file, one.hashes) for number, one in numbered])
        self._put_nodes(numbered)
        self._writer.changed = True

    def amend(self, kept: StoredFile) -> None:
        """The same text, read the same way: with another time, other readers, or another place in the tree."""
        here = self._db.workspace
        found = "SELECT id, access FROM file WHERE workspace = ? AND path = ?"
        number, held = self._db.execute(found, (here, path_bytes(kept.path))).fetchone()
        self._db.execute(
            "UPDATE file SET hash = ?, size = ?, modified_ns = ?, read_ns = ?, own_readers = ?"
            " WHERE workspace = ? AND id = ?",
            (*kept.file.state, int(kept.has_own_readers), here, number),
        )
        access = self._writer.access_number(kept.access)
        if access != held:
            self._writer.regrant([(number, access)])
        self._db.execute("DELETE FROM node WHERE workspace = ? AND file = ?", (here, number))
        self._put_nodes([(number, kept)])
        self._writer.changed = True

    def drop(self, paths: Iterable[str]) -> None:
        """Forget files and blocks; what is kept beside them stays."""
        for some in _parts([path_bytes(path) for path in paths]):
            marks = ",".join("?" * len(some))
            known = f"SELECT id, path FROM file WHERE workspace = ? AND path IN ({marks})"
            held: list[Any] = self._db.execute(known, (self._db.workspace, *some)).fetchall()
            for number, path in held:
                self._db.execute("DELETE FROM node WHERE workspace = ? AND file = ?", (self._db.workspace, number))
                self._writer.drop(path_text(path))

    def put_rows(self, kind: RowKind, rows: Iterable[TransferRow]) -> None:
        """Keep these after those that are kept already."""
        table = TABLES[kind]
        waiting = iter(rows)
        while some := list(islice(waiting, _ROWS_AT_ONCE)):
            insert(self._db, table.name, ", ".join(table.columns), [table.written(one) for one in some])
        self._writer.changed = True

    def clear_rows(self, kind: RowKind) -> None:
        """Forget all of a kind."""
        self._db.execute(f"DELETE FROM {TABLES[kind].name} WHERE workspace = ?", (self._db.workspace,))
        self._writer.changed = True

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Keep facts; None takes one away."""
        for name, value in facts.items():
            if value is None:
                self._db.execute("DELETE FROM fact WHERE workspace = ? AND name = ?", (self._db.workspace, name))
            else:
                self._writer.set_fact(name, value)
        self._writer.changed = True

    def _put_nodes(self, numbered: Sequence[tuple[int, StoredFile]]) -> None:
        insert(
            self._db,
            "node",
            f"file, id, {NODE_COLUMNS}",
            [(number, *_node_row(one.block, one.origin)) for number, one in numbered if one.block is not None],
        )


def _node_row(block: Block, origin: str) -> tuple[Any, ...]:
    return (
        id_bytes(block.id), str(block.type), block.title, None if block.parent is None else id_bytes(block.parent),
        float(block.position), block.summary, path_bytes(block.source_path), block.start_line, block.end_line,
        None if block.last_modified is None else micros(block.last_modified), metadata_text(block.metadata),
        due_of(block.metadata), int(is_done(block.metadata)), int(block.inherits), origin,
    )  # fmt: skip


def _parts(things: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for i in range(0, len(things), _AT_ONCE):
        yield things[i : i + _AT_ONCE]
