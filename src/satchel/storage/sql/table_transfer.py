"""The rows of a store for another store to import, and as records for export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from satchel.models.access import DefaultAccess, Effect, Grant, Group
from satchel.models.block import Activity, Link, Policy, Record
from satchel.models.files import FileState
from satchel.models.outline import Mention, Outline, OutlineBlock, OutlinePiece
from satchel.ports.file_index import NewFile
from satchel.ports.transfer import MOVING, Member, RowKind, StoredFile, TransferRow
from satchel.storage.sql import tree
from satchel.storage.sql.file_reader import QUERIES, outline_page
from satchel.storage.sql.file_writer import SqlFileWriter, is_file_key, path_key, path_of
from satchel.storage.sql.rows import Database, access_of, decoded, default_access, encoded, id_bytes, marks

_BATCH_ROWS: Final = 2_000  # bounds memory; each batch is one query
_BATCH_TEXT_BYTES: Final = 8_000_000
"""The text of a batch in memory; a single larger file still makes a batch."""

_DERIVED: Final = frozenset(
    {"generation", "linked", "laid_out", "nearest", "pieces", "multi_user", "default_access", MOVING}
)
"""Facts not transferred: each store computes its own, and the default access (two facts) is set separately."""
_MARKS: Final = "mark "
CHANGED: Final = "changed for "
"""Facts with this beginning name an access list: the last generation in which its readers could see a change."""
_MICROS_PER_SECOND: Final = 10**6  # the version history is stored in seconds, activity in microseconds


class TransferTable(NamedTuple):
    """A table with rows of a single kind: columns, sort key and the value below the first key."""

    name: str
    columns: tuple[str, ...]
    read: Callable[..., TransferRow]
    written: Callable[[Any], tuple[Any, ...]]
    key: tuple[str, ...] = ("rowid",)
    start: tuple[Any, ...] = (0,)


def _grant(block: bytes, who: str, effect: str) -> Grant:
    is_path = is_file_key(block)
    place = path_of(block) if is_path else decoded(block)
    return Grant(block=place, principal=who, effect=Effect(effect), is_path=is_path)


def _grant_row(grant: Grant) -> tuple[Any, ...]:
    return path_key(grant.block) if grant.is_path else id_bytes(grant.block), grant.principal, grant.effect.value


def _link_row(link: Link) -> tuple[Any, ...]:
    return id_bytes(link.source), link.kind.value, None if link.target is None else id_bytes(link.target), link.name


def _activity_row(activity: Activity) -> tuple[Any, ...]:
    texts = (activity.actor, activity.action, activity.detail, activity.reference)
    return encoded(activity.block), tree.micros(activity.timestamp), *texts


def _commit(path: bytes, at: int, *texts: str) -> Activity:
    return tree.activity_from(path, at * _MICROS_PER_SECOND, *texts)


def _commit_row(activity: Activity) -> tuple[Any, ...]:
    block, at, *texts = _activity_row(activity)
    return block, at // _MICROS_PER_SECOND, *texts


_ACTIVITY_COLUMNS: Final = ("at", "actor", "action", "detail", "reference")
TABLES: Final = {
    RowKind.MEMBERS: TransferTable("member", ("team", "person"), Member, tuple, ("team", "person"), ("", "")),
    RowKind.GRANTS: TransferTable(
        "permit", ("block", "principal", "effect"), _grant, _grant_row, ("block", "principal"), (b"", "")
    ),
    RowKind.LINKS: TransferTable("bond", ("source", "kind", "target", "name"), tree.link_from, _link_row),
    RowKind.ACTIVITY: TransferTable("deed", ("block", *_ACTIVITY_COLUMNS), tree.activity_from, _activity_row),
    RowKind.COMMITS: TransferTable("activity", ("path", *_ACTIVITY_COLUMNS), _commit, _commit_row),
}


@dataclass(frozen=True, slots=True)
class SqlTransferReader:
    """Reads the rows of a store; each call opens the tables anew."""

    _reading: Callable[[], AbstractContextManager[Database]]

    def count(self) -> int:
        """The number of files and blocks."""
        with self._reading() as db:
            return db.count("file")

    def files(self, *, after: int = 0, limit: int) -> list[StoredFile]:
        """The next files and blocks by number."""
        with self._reading() as db:
            return _stored_files(db, _next_numbers(db, "id", after, limit))

    def files_by_path(self, *, after: str = "", limit: int) -> list[StoredFile]:
        """The next files and blocks by the bytes of their paths."""
        with self._reading() as db:
            return _stored_files(db, _next_numbers(db, "path", encoded(after), limit))

    def files_at(self, paths: Sequence[str]) -> dict[str, StoredFile]:
        """The stored files and blocks with the given paths."""
        with self._reading() as db:
            return {file.path: file for file in _stored_files(db, [number for number, _ in _numbers_at(db, paths)])}

    def paths(self, *, after: str = "", limit: int) -> list[str]:
        """The next paths in the order of their bytes."""
        statement = f"SELECT path FROM file WHERE workspace = ? AND path > ? ORDER BY path LIMIT {limit:d}"
        with self._reading() as db:
            return [decoded(row[0]) for row in db.run(statement, encoded(after))]

    def vectors(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors by the hashes of their texts."""
        statement = "SELECT hash, vector FROM vector WHERE workspace = ? AND hash IN ({keys})"
        with self._reading() as db:
            return dict(db.run_in(statement, sorted(set(hashes))))

    def rows(self, kind: RowKind) -> Iterator[TransferRow]:
        """All rows of a kind in the order of their table's key, read lazily: each batch is a read of its own.

        Rows that are written meanwhile may or may not be among them.
        """
        table = TABLES[kind]
        after = table.start
        key = ", ".join(table.key)
        statement = (
            f"SELECT {key}, {', '.join(table.columns)} FROM {table.name}"
            f" WHERE workspace = ? AND ({key}) > ({marks(table.key)}) ORDER BY {key} LIMIT {_BATCH_ROWS}"
        )
        while True:
            with self._reading() as db:
                rows = db.run(statement, *after).fetchall()
            for row in rows:
                yield table.read(*row[len(table.key) :])
            if len(rows) < _BATCH_ROWS:
                return
            after = rows[-1][: len(table.key)]

    def facts(self) -> dict[str, str]:
        """The facts with the same value in any store of the same content."""
        with self._reading() as db:
            rows = db.run("SELECT name, value FROM fact WHERE workspace = ?")
            facts = {str(name): str(value) for name, value in rows}
        own = (_MARKS, CHANGED)
        return {name: value for name, value in facts.items() if name not in _DERIVED and not name.startswith(own)}


@dataclass(frozen=True, slots=True)
class SqlTransferWriter:
    """Imports rows of another store within the commit of a writer."""

    _db: Database
    _writer: SqlFileWriter

    def put(self, files: Sequence[StoredFile], vectors: Mapping[bytes, bytes]) -> None:
        """Store files and blocks with their vectors, and replace any with the same paths."""
        self.drop(file.path for file in files)
        self._writer.put_packed(sorted(vectors.items()))
        numbered = []
        for stored in files:
            access = self._writer.access_number(stored.access)
            number = self._writer.insert(stored.file, access, has_own_readers=stored.has_own_readers)
            numbered.append((number, stored))
        self._writer.fill([(number, stored.file, stored.hashes) for number, stored in numbered])
        self._put_nodes(numbered)
        self._writer.changed = self._writer.concerns_all = True

    def amend(self, stored: StoredFile) -> None:
        """Change the time, readers or tree position of a file or block with unchanged content."""
        known = "SELECT id, access FROM file WHERE workspace = ? AND path = ?"
        number, old = self._db.run(known, encoded(stored.path)).fetchone()
        self._db.execute(
            "UPDATE file SET hash = ?, size = ?, modified_ns = ?, read_ns = ?, own_readers = ?"
            " WHERE workspace = ? AND id = ?",
            (*stored.file.state, int(stored.has_own_readers), self._db.workspace, number),
        )
        access = self._writer.access_number(stored.access)
        if access != old:
            self._writer.regrant([(number, access)])
        self._db.run("DELETE FROM node WHERE workspace = ? AND file = ?", number)
        self._put_nodes([(number, stored)])
        self._writer.changed = self._writer.concerns_all = True

    def drop(self, paths: Iterable[str]) -> None:
        """Remove files and blocks; the rows beside them stay."""
        for number, path in _numbers_at(self._db, paths):
            self._db.run("DELETE FROM node WHERE workspace = ? AND file = ?", number)
            self._writer.drop(decoded(path))

    def put_rows(self, kind: RowKind, rows: Iterable[TransferRow]) -> None:
        """Append rows to the stored rows of a kind."""
        table = TABLES[kind]
        waiting = iter(rows)
        while batch := list(islice(waiting, _BATCH_ROWS)):
            self._db.insert(table.name, ", ".join(table.columns), [table.written(row) for row in batch])
        self._writer.changed = self._writer.concerns_all = True

    def clear_rows(self, kind: RowKind) -> None:
        """Remove all rows of a kind."""
        self._db.run(f"DELETE FROM {TABLES[kind].name} WHERE workspace = ?")
        self._writer.changed = self._writer.concerns_all = True

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Store facts; the value None removes a fact."""
        for name, value in facts.items():
            if value is None:
                self._db.run("DELETE FROM fact WHERE workspace = ? AND name = ?", name)
            else:
                self._writer.set_fact(name, value)
        self._writer.changed = self._writer.concerns_all = True

    def _put_nodes(self, numbered: Sequence[tuple[int, StoredFile]]) -> None:
        nodes = [(number, stored.block, stored.origin) for number, stored in numbered if stored.block is not None]
        rows = [(n, id_bytes(b.id), *tree.node_row(b, inherits=b.inherits, origin=origin)) for n, b, origin in nodes]
        self._db.insert("node", f"file, id, {tree.NODE_COLUMNS}", rows)


def records(db: Database) -> Iterator[Record]:
    """Everything in a workspace except files, in a stable order: blocks come before references to them."""
    default = default_access(db)
    if default is not DefaultAccess.OWNER:
        yield Policy(default=default)
    members = _rows(db, RowKind.MEMBERS, "team, person")
    for team, rows in groupby(members, key=lambda member: member.group):
        yield Group(name=team, members=tuple(member.user for member in rows))
    yield from map(tree.block_with_text, db.run(f"{tree.SELECT_BLOCKS} ORDER BY node.file"))
    yield from _rows(db, RowKind.LINKS, "source, kind, target, name")
    yield from _rows(db, RowKind.GRANTS, "block, principal")
    yield from _rows(db, RowKind.ACTIVITY, "at, rowid")


def _rows(db: Database, kind: RowKind, order: str) -> Iterator[Any]:
    table = TABLES[kind]
    statement = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE workspace = ? ORDER BY {order}"
    return (table.read(*row) for row in db.run(statement))


# -- files with all their rows


def _numbers_at(db: Database, paths: Iterable[str]) -> list[tuple[int, bytes]]:
    """The numbers and paths of the stored files among the given paths."""
    statement = "SELECT id, path FROM file WHERE workspace = ? AND path IN ({keys})"
    return list(db.run_in(statement, [encoded(path) for path in paths]))


def _next_numbers(db: Database, column: str, after: object, limit: int) -> list[int]:
    """The numbers of the next files, limited by the total size of their texts."""
    statement = (
        "SELECT file.id, length(content.text) FROM file"
        " LEFT JOIN content ON content.workspace = file.workspace AND content.file = file.id"
        f" WHERE file.workspace = ? AND file.{column} > ? ORDER BY file.{column} LIMIT {limit:d}"
    )
    chosen: list[int] = []
    room = _BATCH_TEXT_BYTES
    for number, size in db.run(statement, after).fetchall():
        room -= size or 0
        if chosen and room < 0:
            break
        chosen.append(number)
    return chosen


def _stored_files(db: Database, numbers: Sequence[int]) -> list[StoredFile]:
    """Files by number, in the given order."""
    if not numbers:
        return []
    listed = ",".join(map(str, numbers))
    rows = {number: row for number, *row in db.run(QUERIES["stored_files"].format(files=listed))}
    which = f"WHERE node.workspace = ? AND node.file IN ({listed})"
    own = db.run(f"SELECT node.file, node.origin, {tree.COLUMNS}{tree.FROM_NODES} {which}")
    nodes = {number: (tree.block_from(row), origin) for number, origin, *row in own}
    blocks, pieces, pages, mentions = (
        db.rows_by_file(QUERIES[f"stored_{part}"].format(files=listed))
        for part in ("blocks", "pieces", "pages", "mentions")
    )
    access_list = cache(partial(access_of, db))
    stored = []
    for number in filter(rows.__contains__, numbers):
        path, *state, language, note, called, access, has_own_readers, data = rows[number]
        data = data or b""
        outline = Outline(
            language=language,
            blocks=tuple(OutlineBlock(*row) for row in blocks.get(number, ())),
            pieces=_pieces(pieces.get(number, ()), data),
            mentions=tuple(Mention(*row) for row in mentions.get(number, ())),
            note=note,
            pages=tuple(map(outline_page, pages.get(number, ()))),
            title=called,
        )
        readers = tuple(sorted(access_list(access).allow)) if has_own_readers else None
        block, origin = nodes.get(number, (None, ""))
        stored.append(
            StoredFile(
                number=number,
                file=NewFile(decoded(path), FileState(*state), decoded(data), outline, readers),
                hashes=tuple(row[6] for row in pieces.get(number, ())),
                access=access_list(access),
                has_own_readers=bool(has_own_readers),
                block=block,
                origin=origin,
            )
        )
    return stored


def _pieces(rows: Iterable[Sequence[Any]], data: bytes) -> tuple[OutlinePiece, ...]:
    place = _Characters(data)
    pieces = []
    for first, last, start, finish, block, defines, _, page in rows:
        defined = tuple(int(number) for number in defines.split(",") if number)
        pieces.append(OutlinePiece._make((first, last, place.of(start), place.of(finish), block, defined, page)))
    return tuple(pieces)


class _Characters:
    """Converts byte offsets to character offsets; for ascending offsets each byte is decoded once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._is_plain = data.isascii()
        self._byte = self._character = 0

    def of(self, byte: int) -> int:
        if self._is_plain:
            return byte
        if byte < self._byte:
            self._byte = self._character = 0
        self._character += len(decoded(self._data[self._byte : byte]))
        self._byte = byte
        return self._character
