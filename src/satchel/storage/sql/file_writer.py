"""One commit in the making: files, their blocks, pieces, pages and mentions, vectors and facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import EmbedderMismatch
from satchel.models.access import ROOT, Access
from satchel.models.files import FileState
from satchel.models.outline import embedded_text, text_hash
from satchel.ports.file_index import NewFile
from satchel.storage.sql.access import access_number
from satchel.storage.sql.rows import Lines, batches, insert, is_node, marks, path_bytes, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.models.block import Activity
    from satchel.models.outline import OutlineBlock, OutlinePage, OutlinePiece
    from satchel.storage.sql.rows import Database

FILE_COLUMNS: Final = (
    "path, hash, size, modified_ns, read_ns, language, note, generation, access, granted, called, own_readers"
)
_BLOCK_COLUMNS: Final = "file, place, type, name, qualified, parent, first_line, last_line, signature, doc, page"
_PIECE_COLUMNS: Final = "file, first_line, last_line, start, finish, block, defines, hash, page"
_PAGE_COLUMNS: Final = (
    "file, number, first_line, last_line, start, finish, name, section_path, parent_heading, headings, tables,"
    " pictures, captions, is_recognized"
)
_MOST_NAME_CHARS: Final = 600
"""A longer name cannot be looked up everywhere: what is found by name has to fit into an index."""


class FileWriter:
    """Writes files with their blocks, pieces, pages, vectors and facts; part of one commit."""

    def __init__(self, database: Database, generation: int) -> None:
        self._db = database
        self._generation = generation
        self.changed = False
        self._numbers: dict[Access, int] = {}

    def put(self, file: NewFile) -> None:
        """Keep a file in place of what was kept under its path; whoever could read that can read this."""
        self.keep(file)

    def keep(self, file: NewFile, *, is_new: bool = False) -> int:
        """The same; its number. Of what is new, nothing that was kept before is looked for."""
        path = path_bytes(file.path)
        before = None
        if not is_new:
            known = "SELECT access, own_readers FROM file WHERE workspace = ? AND path = ?"
            before = self._db.execute(known, (self._db.workspace, path)).fetchone()
        if before is not None:
            self.drop(file.path)
        own_readers = file.readers is not None or bool(before and before[1])
        if file.readers is not None:
            access = self.access_number(Access(frozenset(file.readers)))
        elif before:
            access = int(before[0])
        else:
            access = self.access_number(ROOT if is_node(path) else self._granted(path))
        number = self.insert(file, access, has_own_readers=own_readers)
        self.fill([(number, file, piece_hashes(file))])
        return number

    def insert(self, file: NewFile, access: int, *, has_own_readers: bool) -> int:
        """Keep a file that is not there, yet without what is in it, for those whom an access list lets in."""
        state, outline = file.state, file.outline
        self.changed = True
        row = (path_bytes(file.path), *state, outline.language, outline.note, self._generation, access)
        return self._insert_file((*row, self._generation, plain(outline.title), int(has_own_readers)))

    def _insert_file(self, values: tuple[Any, ...]) -> int:
        """Put the row of a file; its number."""
        statement = f"INSERT INTO file (workspace, {FILE_COLUMNS}) VALUES (?,{marks(values)}) RETURNING id"
        return int(self._db.execute(statement, (self._db.workspace, *values)).get)

    def fill(self, files: Sequence[tuple[int, NewFile, Sequence[bytes]]]) -> None:
        """Keep what is in files, by their numbers, with the hashes under which their pieces' vectors are kept."""
        texts = [(number, file.text.encode("utf-8", "surrogateescape")) for number, file, _ in files]
        read = [
            (number, file.outline, Lines(data), hashes)
            for (number, file, hashes), (_, data) in zip(files, texts, strict=True)
        ]
        insert(self._db, "content", "file, text", texts)
        blocks = (_block_row(number, i, b) for number, outline, *_ in read for i, b in enumerate(outline.blocks))
        pieces = (
            _piece_row(number, piece, lines, key)
            for number, outline, lines, hashes in read
            for piece, key in zip(outline.pieces, hashes, strict=True)
        )
        pages = (_page_row(number, page, lines) for number, outline, lines, _ in read for page in outline.pages)
        mentions = (
            (number, m.block, m.kind, plain(m.name)[:_MOST_NAME_CHARS])
            for number, outline, *_ in read
            for m in outline.mentions
        )
        insert(self._db, "block", _BLOCK_COLUMNS, blocks)
        insert(self._db, "piece", _PIECE_COLUMNS, pieces)
        insert(self._db, "page", _PAGE_COLUMNS, pages)
        insert(self._db, "mention", "file, block, kind, name", mentions, " ON CONFLICT DO NOTHING")

    def _granted(self, path: bytes) -> Access:
        from satchel.storage.sql.access import FileAccess

        return FileAccess(self._db).of(path)

    def access_number(self, access: Access) -> int:
        """The number of an access list."""
        number = self._numbers.get(access)
        if number is None:
            number = self._numbers[access] = access_number(self._db, access)
        return number

    def regrant(self, changed: Sequence[tuple[int, int]]) -> None:
        """Other access lists for files and blocks."""
        self._db.executemany(
            "UPDATE file SET access = ?, granted = ? WHERE workspace = ? AND id = ?",
            ((access, self._generation, self._db.workspace, file) for file, access in changed),
        )

    def touch(self, path: str, state: FileState) -> None:
        """The same content with another time."""
        self._db.execute(
            "UPDATE file SET hash = ?, size = ?, modified_ns = ?, read_ns = ? WHERE workspace = ? AND path = ?",
            (*state, self._db.workspace, path_bytes(path)),
        )

    def drop(self, path: str) -> None:
        """Forget a file."""
        here = self._db.workspace
        known = "SELECT id FROM file WHERE workspace = ? AND path = ?"
        row = self._db.execute(known, (here, path_bytes(path))).fetchone()
        if row is None:
            return
        self._dropping(row[0])
        for table in ("block", "piece", "mention", "content", "page"):
            self._db.execute(f"DELETE FROM {table} WHERE workspace = ? AND file = ?", (here, row[0]))
        self._db.execute("DELETE FROM file WHERE workspace = ? AND id = ?", (here, row[0]))
        self.changed = True

    def _dropping(self, file: int) -> None:
        """A file is about to go: what is derived from it has to know."""

    def lacking(self, text_hashes: Iterable[bytes]) -> set[bytes]:
        """Those of the hashed texts that have no vector yet."""
        wanted = set(text_hashes)
        known: set[bytes] = set()
        for some in batches(sorted(wanted)):
            statement = f"SELECT hash FROM vector WHERE workspace = ? AND hash IN ({marks(some)})"
            known |= {row[0] for row in self._db.execute(statement, (self._db.workspace, *some))}
        return wanted - known

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of texts, eight bits for each number."""
        import numpy as np

        quantized = np.clip(np.rint(vectors * 127), -127, 127).astype(np.int8)
        self.put_packed((key, row.tobytes()) for key, row in zip(text_hashes, quantized, strict=True))

    def put_packed(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors as they are kept: eight bits for each number."""
        replaces = " ON CONFLICT (workspace, hash) DO UPDATE SET vector = excluded.vector"
        insert(self._db, "vector", "hash, vector", vectors, replaces)

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Keep what history says, in place of what was kept."""
        self._db.execute("DELETE FROM activity WHERE workspace = ?", (self._db.workspace,))
        rows = (
            (path_bytes(a.block), int(a.timestamp.timestamp()), plain(a.actor), a.action, plain(a.detail), a.reference)
            for a in activities
        )
        insert(self._db, "activity", "path, at, actor, action, detail, reference", rows)
        self.set_fact("history", head)

    def settle_embedder(self, name: str, dimensions: int) -> None:
        """Record who makes the vectors; refuse a second one."""
        held, length = fact(self._db, "embedder"), fact(self._db, "dimensions")
        if held is None:
            self.set_fact("embedder", name)
            self.set_fact("dimensions", dimensions)
        elif held != name:
            raise EmbedderMismatch(str(held), name)
        elif int(length) != dimensions:
            raise EmbedderMismatch(f"{held} with {length} dimensions", f"{name} with {dimensions} dimensions")

    def set_fact(self, name: str, value: str | int) -> None:
        """Keep a fact about the whole index, as text."""
        self._db.execute(
            "INSERT INTO fact (workspace, name, value) VALUES (?,?,?)"
            " ON CONFLICT (workspace, name) DO UPDATE SET value = excluded.value",
            (self._db.workspace, name, str(value)),
        )


def _block_row(file: int, place: int, block: OutlineBlock) -> tuple[Any, ...]:
    name, qualified, signature, doc = map(plain, (block.name, block.qualified, block.signature, block.doc))
    lines = (block.parent, block.first_line, block.last_line)
    return file, place, block.type, name[:_MOST_NAME_CHARS], qualified, *lines, signature, doc, block.page


def _piece_row(file: int, piece: OutlinePiece, lines: Lines, key: bytes) -> tuple[Any, ...]:
    first, last = piece.first_line, piece.last_line
    defines = ",".join(map(str, piece.defines))
    return file, first, last, lines.start(first), lines.end(last), piece.block, defines, key, piece.page


def _page_row(file: int, page: OutlinePage, lines: Lines) -> tuple[Any, ...]:
    start = lines.start(page.first_line)
    place = (page.number, page.first_line, page.last_line, start, max(start, lines.end(page.last_line)))
    texts = map(plain, (page.name, page.section_path, page.parent_heading))
    captions = plain(json.dumps(page.captions, ensure_ascii=False))
    return file, *place, *texts, page.headings, page.tables, page.pictures, captions, int(page.is_recognized)


def drop_unused_vectors(db: Database) -> None:
    """Delete the vectors that no piece uses any more."""
    used = "SELECT hash FROM piece WHERE workspace = ?"
    statement = f"DELETE FROM vector WHERE workspace = ? AND hash NOT IN ({used})"
    db.execute(statement, (db.workspace, db.workspace))


def piece_hashes(file: NewFile) -> list[bytes]:
    """For each piece of a file the hash under which its vector is kept."""
    return [text_hash(embedded_text(file.outline, p, file.text[p.start : p.end])) for p in file.outline.pieces]


def fact(connection: Database, name: str) -> Any:
    """A fact about the whole index, or None."""
    statement = "SELECT value FROM fact WHERE workspace = ? AND name = ?"
    row = connection.execute(statement, (connection.workspace, name)).fetchone()
    return None if row is None else row[0]
