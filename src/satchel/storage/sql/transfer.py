"""The rows of a store as another store takes them over, and as records to export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.models.access import DefaultAccess, Effect, Grant, Group
from satchel.models.block import Activity, Link, Policy, Record
from satchel.ports.transfer import MOVING, Member, RowKind, StoredFile, TransferRow
from satchel.storage.sql.access import default_access, is_file_key, path_key, path_of
from satchel.storage.sql.rows import (
    COLUMNS,
    FROM_TEXTS,
    NODE_COLUMNS,
    activity_from,
    batches,
    block_from,
    count,
    id_bytes,
    id_text,
    insert,
    link_from,
    marks,
    micros,
    node_row,
    path_bytes,
    path_text,
)
from satchel.storage.sql.stored_files import next_numbers, stored_files

if TYPE_CHECKING:
    from satchel.models.block import Block
    from satchel.storage.sql.file_writer import FileWriter
    from satchel.storage.sql.rows import Database

_ROWS_AT_ONCE: Final = 2_000

_DERIVED: Final = frozenset({"generation", "linked", "nearest", "pieces", "multi_user", "default_access", MOVING})
"""Facts that a store computes for itself; the default access is in two of them, and is set as such."""
_MARKS: Final = "mark "
_MICROS: Final = 10**6


class Table(NamedTuple):
    """A table whose rows are things of one kind: its columns, what orders it and where that begins."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    start: tuple[Any, ...]
    read: Callable[..., TransferRow]
    written: Callable[[Any], tuple[Any, ...]]


def _grant(block: bytes, who: str, effect: str) -> Grant:
    is_path = is_file_key(block)
    name = path_of(block) if is_path else id_text(block)
    return Grant(block=name, principal=who, effect=Effect(effect), is_path=is_path)


def _grant_row(grant: Grant) -> tuple[Any, ...]:
    return path_key(grant.block) if grant.is_path else id_bytes(grant.block), grant.principal, grant.effect.value


def _link_row(link: Link) -> tuple[Any, ...]:
    return id_bytes(link.source), link.kind.value, None if link.target is None else id_bytes(link.target), link.name


def _activity_row(activity: Activity) -> tuple[Any, ...]:
    who_and_what = (activity.actor, activity.action, activity.detail, activity.reference)
    return path_bytes(activity.block), micros(activity.timestamp), *who_and_what


def _commit(path: bytes, at: int, *more: str) -> Activity:
    return activity_from(path, at * _MICROS, *more)


def _commit_row(commit: Activity) -> tuple[Any, ...]:
    block, at, *more = _activity_row(commit)
    return block, at // _MICROS, *more


_ACTIVITY_COLUMNS: Final = ("at", "actor", "action", "detail", "reference")
TABLES: Final = {
    RowKind.MEMBERS: Table("member", ("team", "person"), ("team", "person"), ("", ""), Member, tuple),
    RowKind.GRANTS: Table(
        "permit", ("block", "principal", "effect"), ("block", "principal"), (b"", ""), _grant, _grant_row
    ),
    RowKind.LINKS: Table("bond", ("source", "kind", "target", "name"), ("rowid",), (0,), link_from, _link_row),
    RowKind.ACTIVITY: Table("deed", ("block", *_ACTIVITY_COLUMNS), ("rowid",), (0,), activity_from, _activity_row),
    RowKind.COMMITS: Table("activity", ("path", *_ACTIVITY_COLUMNS), ("rowid",), (0,), _commit, _commit_row),
}


@dataclass(frozen=True, slots=True)
class SqlTransferReader:
    """Reads stored rows for another store to take over."""

    _reading: Callable[[], AbstractContextManager[Database]]

    def count(self) -> int:
        """How many files and blocks there are."""
        with self._reading() as db:
            return count(db, "file")

    def files(self, *, after: int = 0, limit: int) -> list[StoredFile]:
        """The next in the order of their numbers."""
        with self._reading() as db:
            return stored_files(db, next_numbers(db, "id", after, limit))

    def files_by_path(self, *, after: str = "", limit: int) -> list[StoredFile]:
        """The next in the order of their paths' bytes."""
        with self._reading() as db:
            return stored_files(db, next_numbers(db, "path", path_bytes(after), limit))

    def files_at(self, paths: Sequence[str]) -> dict[str, StoredFile]:
        """Those that are kept under these paths."""
        files: dict[str, StoredFile] = {}
        with self._reading() as db:
            for batch in batches([path_bytes(path) for path in paths]):
                known = f"SELECT id FROM file WHERE workspace = ? AND path IN ({marks(batch)})"
                numbers = [row[0] for row in db.execute(known, (db.workspace, *batch))]
                files |= {file.path: file for file in stored_files(db, numbers)}
        return files

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
        vectors: dict[bytes, bytes] = {}
        with self._reading() as db:
            for batch in batches(sorted(set(hashes))):
                known = f"SELECT hash, vector FROM vector WHERE workspace = ? AND hash IN ({marks(batch)})"
                vectors.update(db.execute(known, (db.workspace, *batch)))
        return vectors

    def rows(self, kind: RowKind) -> Iterator[TransferRow]:
        """All of a kind, in the order in which they were put, or of their names."""
        table = TABLES[kind]
        after = table.start
        key = ", ".join(table.key)
        statement = (
            f"SELECT {key}, {', '.join(table.columns)} FROM {table.name}"
            f" WHERE workspace = ? AND ({key}) > ({marks(table.key)}) ORDER BY {key} LIMIT {_ROWS_AT_ONCE}"
        )
        while True:
            with self._reading() as db:
                rows: list[Any] = db.execute(statement, (db.workspace, *after)).fetchall()
            for row in rows:
                yield table.read(*row[len(table.key) :])
            if len(rows) < _ROWS_AT_ONCE:
                return
            after = rows[-1][: len(table.key)]

    def facts(self) -> dict[str, str]:
        """The facts that are as true of the same things elsewhere."""
        with self._reading() as db:
            rows = db.execute("SELECT name, value FROM fact WHERE workspace = ?", (db.workspace,))
            return {name: str(value) for name, value in rows if name not in _DERIVED and not name.startswith(_MARKS)}


@dataclass(frozen=True, slots=True)
class SqlTransferWriter:
    """Stores the rows of another store, within one commit."""

    _db: Database
    _writer: FileWriter

    def __post_init__(self) -> None:
        self._writer.changed = True

    def put(self, files: Sequence[StoredFile], vectors: Mapping[bytes, bytes]) -> None:
        """Store files and blocks, with vectors, in place of what was stored under their paths."""
        self.drop(stored.path for stored in files)
        self._writer.put_packed(sorted(vectors.items()))
        numbered = []
        for stored in files:
            access = self._writer.access_number(stored.access)
            number = self._writer.insert(stored.file, access, has_own_readers=stored.has_own_readers)
            numbered.append((number, stored))
        self._writer.fill([(number, stored.file, stored.hashes) for number, stored in numbered])
        self._put_nodes(numbered)

    def amend(self, stored: StoredFile) -> None:
        """Change the time, the readers or the place in the tree of a file or block with unchanged content."""
        here = self._db.workspace
        known = "SELECT id, access FROM file WHERE workspace = ? AND path = ?"
        number, old_access = self._db.execute(known, (here, path_bytes(stored.path))).fetchone()
        self._db.execute(
            "UPDATE file SET hash = ?, size = ?, modified_ns = ?, read_ns = ?, own_readers = ?"
            " WHERE workspace = ? AND id = ?",
            (*stored.file.state, int(stored.has_own_readers), here, number),
        )
        access = self._writer.access_number(stored.access)
        if access != old_access:
            self._writer.regrant([(number, access)])
        self._db.execute("DELETE FROM node WHERE workspace = ? AND file = ?", (here, number))
        self._put_nodes([(number, stored)])

    def drop(self, paths: Iterable[str]) -> None:
        """Remove files and blocks; the rows beside them stay."""
        for batch in batches([path_bytes(path) for path in paths]):
            known = f"SELECT id, path FROM file WHERE workspace = ? AND path IN ({marks(batch)})"
            for number, path in self._db.execute(known, (self._db.workspace, *batch)).fetchall():
                self._db.execute("DELETE FROM node WHERE workspace = ? AND file = ?", (self._db.workspace, number))
                self._writer.drop(path_text(path))

    def put_rows(self, kind: RowKind, rows: Iterable[TransferRow]) -> None:
        """Add rows after those that are stored already."""
        table = TABLES[kind]
        waiting = iter(rows)
        while batch := list(islice(waiting, _ROWS_AT_ONCE)):
            insert(self._db, table.name, ", ".join(table.columns), map(table.written, batch))

    def clear_rows(self, kind: RowKind) -> None:
        """Remove all rows of a kind."""
        self._db.execute(f"DELETE FROM {TABLES[kind].name} WHERE workspace = ?", (self._db.workspace,))

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Store facts; None removes one."""
        for name, value in facts.items():
            if value is None:
                self._db.execute("DELETE FROM fact WHERE workspace = ? AND name = ?", (self._db.workspace, name))
            else:
                self._writer.set_fact(name, value)

    def _put_nodes(self, numbered: Sequence[tuple[int, StoredFile]]) -> None:
        rows = [(number, *_node_row(stored.block, stored.origin)) for number, stored in numbered if stored.block]
        insert(self._db, "node", f"file, id, {NODE_COLUMNS}", rows)


def _node_row(block: Block, origin: str) -> tuple[Any, ...]:
    parent = None if block.parent is None else id_bytes(block.parent)
    return id_bytes(block.id), *node_row(block, parent=parent, inherits=block.inherits, origin=origin)


def records(db: Database) -> Iterator[Record]:
    """Everything in a workspace beside its files: blocks before what refers to them, in the same order each time."""
    default = default_access(db)
    if default is not DefaultAccess.OWNER:
        yield Policy(default=default)
    members = _rows(db, RowKind.MEMBERS, "team, person")
    for team, rows in groupby(members, key=lambda member: member.group):
        yield Group(name=team, members=tuple(member.user for member in rows))
    nodes = f"SELECT content.text, {COLUMNS}{FROM_TEXTS} WHERE node.workspace = ? ORDER BY node.file"
    for text, *row in db.execute(nodes, (db.workspace,)):
        yield block_from(row, text.decode("utf-8", "surrogateescape"))
    yield from _rows(db, RowKind.LINKS, "source, kind, target, name")
    yield from _rows(db, RowKind.GRANTS, "block, principal")
    yield from _rows(db, RowKind.ACTIVITY, "at, rowid")


def _rows(db: Database, kind: RowKind, order: str) -> Iterator[Any]:
    table = TABLES[kind]
    statement = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE workspace = ? ORDER BY {order}"
    return (table.read(*row) for row in db.execute(statement, (db.workspace,)))
