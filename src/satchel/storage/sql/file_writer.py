"""Writes files in a commit: blocks, pieces, pages, mentions, vectors, access and usage counts.

Grants at files and folders are stored by path and outlive the file: a file that comes back has the same access as
before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satchel.errors import EmbedderMismatch, InvalidInput
from satchel.models.access import ROOT, Access, Effect, Grant
from satchel.models.block import Activity
from satchel.models.files import FileState
from satchel.models.outline import OutlineBlock, OutlinePage, OutlinePiece, embedded_text, text_hash
from satchel.ports.file_index import NewFile
from satchel.storage.sql.rows import (
    FIRST_PATH,
    IN_FILES,
    Database,
    Lines,
    access_number,
    access_of,
    decoded,
    encoded,
    id_bytes,
    is_node,
    known_id,
    marks,
    plain,
)

FILE_COLUMNS: Final = (
    "path, hash, size, modified_ns, read_ns, language, note, generation, access, granted, called, own_readers"
)
_BLOCK_COLUMNS: Final = "file, place, type, name, qualified, parent, first_line, last_line, signature, doc, page"
_PIECE_COLUMNS: Final = "file, first_line, last_line, start, finish, block, defines, hash, page"
_PAGE_COLUMNS: Final = (
    "file, number, first_line, last_line, start, finish, name, section_path, parent_heading, headings, tables,"
    " pictures, captions, is_recognized"
)
_MAX_NAME_CHARS: Final = 600
"""Longer names are cut: names are indexed, and an index limits the length of its keys."""

_PATH_KEY: Final = b"\0/"
"""The prefix of a grant key for a path; no block id begins with it."""

# Of the files: after smaller changes the old centrality stays, as counting reads all mentions.
_RELINK_SHARE: Final = 0.05
_CHEAP_MENTIONS: Final = 20_000  # up to here counting is cheap enough for every change
_MAX_DEFINING_FILES: Final = 3  # a name that more files define says little about any of them
_MAX_USING_FILES: Final = 20  # caps the effect of a single name that is used everywhere


class SqlFileWriter:
    """Writes files with their blocks, pieces, pages, vectors and facts within a commit."""

    def __init__(self, database: Database, generation: int) -> None:
        self._db = database
        self._generation = generation
        self.changed = False
        self.changed_files: set[int] = set()
        """Numbers of the files and blocks whose readers can see a change of this commit."""
        self.changed_lists: set[int] = set()
        """Further access lists whose readers can see a change: those of dropped and of formerly readable files."""
        self.concerns_all = False
        """True if the commit may change what any user sees."""
        self.access_number = cache(partial(access_number, database))
        """The number of an access list."""
        self.access_of = cache(partial(access_of, database))
        """The access list of a number."""

    def put(self, file: NewFile) -> None:
        """Store a file and replace any stored file with the same path; `readers` of None keeps the access."""
        self.keep(file)

    def keep(self, file: NewFile, *, is_new: bool = False) -> int:
        """Store a file like `put` and return the file's number; `is_new` skips the search for a stored file."""
        path = encoded(file.path)
        known = "SELECT access, own_readers FROM file WHERE workspace = ? AND path = ?"
        before = None if is_new else self._db.run(known, path).fetchone()
        if before is not None:
            self.drop(file.path)
        if file.readers is not None:
            access = self.access_number(Access(frozenset(file.readers)))
        elif before:
            access = int(before[0])
        else:
            access = self.access_number(ROOT if is_node(path) else access_at(self._db, path))
        has_own_readers = file.readers is not None or bool(before and before[1])
        number = self.insert(file, access, has_own_readers=has_own_readers)
        self.fill([(number, file, piece_hashes(file))])
        return number

    def insert(self, file: NewFile, access: int, *, has_own_readers: bool) -> int:
        """Insert a new file with an access list, without content; return the file's number."""
        outline = file.outline
        self.changed = True
        row = (encoded(file.path), *file.state, outline.language, outline.note, self._generation, access)
        number = self._insert_file((*row, self._generation, plain(outline.title), int(has_own_readers)))
        self.changed_files.add(number)
        return number

    def _insert_file(self, values: tuple[Any, ...]) -> int:
        """Insert the row of a file; return the file's number."""
        statement = f"INSERT INTO file (workspace, {FILE_COLUMNS}) VALUES (?,{marks(values)}) RETURNING id"
        return int(self._db.run(statement, *values).get)

    def fill(self, files: Sequence[tuple[int, NewFile, Sequence[bytes]]]) -> None:
        """Store the content of files, by number, with the hashes of their pieces' vectors."""
        texts = [(number, encoded(file.text)) for number, file, _ in files]
        lines = {number: Lines(data) for number, data in texts}
        outlines = [(number, file.outline) for number, file, _ in files]
        blocks = (_block_row(number, i, b) for number, outline in outlines for i, b in enumerate(outline.blocks))
        pieces = (
            _piece_row(number, piece, lines[number], key)
            for number, file, hashes in files
            for piece, key in zip(file.outline.pieces, hashes, strict=True)
        )
        pages = (_page_row(number, page, lines[number]) for number, outline in outlines for page in outline.pages)
        mentions = (
            (number, m.block, m.kind, plain(m.name)[:_MAX_NAME_CHARS])
            for number, outline in outlines
            for m in outline.mentions
        )
        self._db.insert("content", "file, text", texts)
        self._db.insert("block", _BLOCK_COLUMNS, blocks)
        self._db.insert("piece", _PIECE_COLUMNS, pieces)
        self._db.insert("page", _PAGE_COLUMNS, pages)
        self._db.insert("mention", "file, block, kind, name", mentions, " ON CONFLICT DO NOTHING")

    def regrant(self, changed: Sequence[tuple[int, int]]) -> None:
        """Change the access lists of files and blocks."""
        before = "SELECT DISTINCT access FROM file WHERE workspace = ? AND id IN ({keys})"
        self.changed_lists.update(row[0] for row in self._db.run_in(before, [file for file, _ in changed]))
        self.changed_files.update(file for file, _ in changed)
        rows = ((access, self._generation, self._db.workspace, file) for file, access in changed)
        self._db.executemany("UPDATE file SET access = ?, granted = ? WHERE workspace = ? AND id = ?", rows)

    def touch(self, path: str, state: FileState) -> None:
        """Record a new state for unchanged content."""
        self._db.execute(
            "UPDATE file SET hash = ?, size = ?, modified_ns = ?, read_ns = ? WHERE workspace = ? AND path = ?",
            (*state, self._db.workspace, encoded(path)),
        )

    def drop(self, path: str) -> None:
        """Remove a file."""
        row = self._db.run("SELECT id, access FROM file WHERE workspace = ? AND path = ?", encoded(path)).fetchone()
        if row is None:
            return
        self.changed_lists.add(row[1])
        self._dropping(row[0])
        for table in ("block", "piece", "mention", "content", "page"):
            self._db.run(f"DELETE FROM {table} WHERE workspace = ? AND file = ?", row[0])
        self._db.run("DELETE FROM file WHERE workspace = ? AND id = ?", row[0])
        self.changed = True

    def _dropping(self, file: int) -> None:
        """Hook before a file is removed, for the derived search data."""

    def lacking(self, text_hashes: Iterable[bytes]) -> set[bytes]:
        """The hashes of texts without a stored vector."""
        hashes = set(text_hashes)
        statement = "SELECT hash FROM vector WHERE workspace = ? AND hash IN ({keys})"
        return hashes - {row[0] for row in self._db.run_in(statement, sorted(hashes))}

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Store the vectors of texts, with eight bits for each number."""
        quantized = np.clip(np.rint(vectors * 127), -127, 127).astype(np.int8)
        self.put_packed((key, row.tobytes()) for key, row in zip(text_hashes, quantized, strict=True))

    def put_packed(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Store vectors already quantized to eight bits for each number."""
        replaces = " ON CONFLICT (workspace, hash) DO UPDATE SET vector = excluded.vector"
        self._db.insert("vector", "hash, vector", vectors, replaces)

    def put_activity(self, activities: Iterable[Activity], head: str) -> None:
        """Replace the stored version history."""
        self._db.run("DELETE FROM activity WHERE workspace = ?")
        rows = (
            (encoded(a.block), int(a.timestamp.timestamp()), plain(a.actor), a.action, plain(a.detail), a.reference)
            for a in activities
        )
        self._db.insert("activity", "path, at, actor, action, detail, reference", rows)
        self.set_fact("history", head)

    def settle_embedder(self, name: str, dimensions: int) -> None:
        """Record the name of the embedder; a different embedder later raises EmbedderMismatch."""
        embedder, length = self._db.fact("embedder"), self._db.fact("dimensions")
        if embedder is None:
            self.set_fact("embedder", name)
            self.set_fact("dimensions", dimensions)
        elif embedder != name:
            raise EmbedderMismatch(str(embedder), name)
        elif int(length) != dimensions:
            raise EmbedderMismatch(f"{embedder} with {length} dimensions", f"{name} with {dimensions} dimensions")

    def set_fact(self, name: str, value: str | int) -> None:
        """Store a fact about the whole index, as text."""
        replaces = " ON CONFLICT (workspace, name) DO UPDATE SET value = excluded.value"
        self._db.insert("fact", "name, value", [(name, str(value))], replaces)


def _block_row(file: int, place: int, block: OutlineBlock) -> tuple[Any, ...]:
    name, qualified, signature, doc = map(plain, (block.name, block.qualified, block.signature, block.doc))
    lines = (block.parent, block.first_line, block.last_line)
    return file, place, block.type, name[:_MAX_NAME_CHARS], qualified, *lines, signature, doc, block.page


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


def piece_hashes(file: NewFile) -> list[bytes]:
    """For each piece of a file the hash of the embedded text, the key of the vector."""
    return [text_hash(embedded_text(file.outline, p, file.text[p.start : p.end])) for p in file.outline.pieces]


def drop_unused_vectors(db: Database) -> None:
    """Delete the vectors without a piece."""
    used = "SELECT hash FROM piece WHERE workspace = ?"
    db.run(f"DELETE FROM vector WHERE workspace = ? AND hash NOT IN ({used})", db.workspace)


# -- grants at paths


def is_file_key(key: bytes) -> bool:
    """True if a grant key is for a path."""
    return key.startswith(_PATH_KEY)


def path_of(key: bytes) -> str:
    """The path of a file, or of a folder with a final `/`; `/` for all files."""
    return decoded(key[len(_PATH_KEY) :]) or "/"


def path_key(path: str) -> bytes:
    """The grant key of a path, whether or not the path exists; the key of a folder ends in `/`."""
    stored = id_bytes(path)
    if stored in (b"/", b".", b"./"):
        return _PATH_KEY
    if b"\0" in stored or any(part in (b"", b".", b"..") for part in stored.removesuffix(b"/").split(b"/")):
        raise InvalidInput(
            "block", path, "must be a path relative to the folder, e.g. docs/a.pdf, docs/ or / for all files"
        )
    return _PATH_KEY + stored


def known_path_key(db: Database, path: str) -> bytes | None:
    """The grant key of an existing file, of a folder with files, or of a path with stored grants; else None."""
    stored = known_id(path)
    if stored is None:
        return None
    a_file = f"SELECT 1 FROM file WHERE workspace = ? AND path = ? AND {IN_FILES}"
    if db.run(a_file, stored, FIRST_PATH).fetchone():
        return _PATH_KEY + stored
    folder = stored.rstrip(b"/") + b"/"
    if folder in (b"/", b"./"):
        return _PATH_KEY
    below = "SELECT 1 FROM file WHERE workspace = ? AND path > ? AND path < ? LIMIT 1"
    if db.run(below, *_below(folder)).fetchone():
        return _PATH_KEY + folder
    # Grants can be revoked even after the files are deleted.
    for key in (_PATH_KEY + stored, _PATH_KEY + folder):
        if db.run("SELECT 1 FROM permit WHERE workspace = ? AND block = ? LIMIT 1", key).fetchone():
            return key
    return None


def granted_files(db: Database, key: bytes) -> list[tuple[int, int, Access]]:
    """The files under a grant key: file number, number of the stored access list, and current access."""
    path = key[len(_PATH_KEY) :]
    where, values = "path = ?", [path]
    if not path:
        where, values = "true", []
    elif path.endswith(b"/"):
        where, values = "path > ? AND path < ?", [*_below(path)]
    statement = f"SELECT id, path, access FROM file WHERE workspace = ? AND {where} AND {IN_FILES} AND own_readers = 0"
    files = db.run(statement, *values, FIRST_PATH).fetchall()
    return [(number, access, access_at(db, path)) for number, path, access in files]


def access_at(db: Database, path: bytes) -> Access:
    """The access of a file at a path."""
    return access_by_path(db, [path])[0]


def access_by_path(db: Database, paths: Sequence[bytes]) -> list[Access]:
    """The access of a file at each of the paths, whether or not the file is stored."""
    keys = {key for path in paths for key in _keys_above(path)}
    grants = grants_of(db, sorted(keys.union(key[:-1] for key in keys)))
    return [_access_by_grants(path, grants) for path in paths]


def _access_by_grants(path: bytes, grants: Mapping[bytes, Sequence[Grant]]) -> Access:
    keys = list(_keys_above(path))
    access = ROOT
    for key in keys:
        # Denials at a file also apply to a folder of the same name that replaces the file.
        instead = grants.get(key[:-1], ()) if key.endswith(b"/") and key != _PATH_KEY else ()
        denied = [grant for grant in instead if grant.effect is Effect.DENY]
        access = access.changed_by(denied).changed_by(grants.get(key, ()))
    return access


def grants_of(db: Database, keys: Sequence[bytes]) -> dict[bytes, list[Grant]]:
    """The grants at the given keys of blocks or paths."""
    grants: dict[bytes, list[Grant]] = {}
    statement = "SELECT block, principal, effect FROM permit WHERE workspace = ? AND block IN ({keys})"
    for key, who, effect in db.run_in(statement, keys):
        grants.setdefault(key, []).append(Grant(block="", principal=who, effect=Effect(effect)))
    return grants


def _below(folder: bytes) -> tuple[bytes, bytes]:
    return folder, folder[:-1] + b"0"  # the character after the slash


def _keys_above(path: bytes) -> Iterator[bytes]:
    """The grant keys of all files, of each folder on the path, and of the file itself."""
    yield _PATH_KEY
    for i, sign in enumerate(path):
        if sign == ord("/"):
            yield _PATH_KEY + path[: i + 1]
    yield _PATH_KEY + path


# -- centrality of files


def file_centrality(db: Database) -> dict[int, float]:
    """The centrality of each file, from uses in other files; unused files are left out."""
    return dict(db.run("SELECT id, central FROM file WHERE workspace = ? AND central <> 0"))


def weigh_links(db: Database, generation: int) -> bool:
    """Recompute the centrality of files, except after small changes; True if any value changed."""
    since = int(db.fact("linked") or 0)
    fresh = int(db.run("SELECT count(*) FROM file WHERE workspace = ? AND generation > ?", since).get)
    if fresh <= _RELINK_SHARE * db.count("file") and db.count("mention") > _CHEAP_MENTIONS:
        return False
    before = file_centrality(db)
    mentioning = "SELECT name, count(DISTINCT file) FROM mention WHERE workspace = ? GROUP BY name"
    users = dict(db.run(mentioning))
    homes: dict[str, set[int]] = {}
    for file, name in db.run("SELECT file, name FROM block WHERE workspace = ?"):
        homes.setdefault(name, set()).add(file)
    used: dict[int, float] = {}
    for name, files in sorted(homes.items()):  # a sum of floats depends on the order
        # A name that many files define says little about any of them.
        if len(files) <= _MAX_DEFINING_FILES and name in users:
            for file in files:
                used[file] = used.get(file, 0.0) + min(users[name], _MAX_USING_FILES) / len(files)
    now = {file: math.log1p(value) for file, value in used.items()}
    changed = [file for file in sorted(before.keys() | now.keys()) if before.get(file) != now.get(file)]
    rows = [(now.get(file, 0.0), db.workspace, file) for file in changed]
    db.executemany("UPDATE file SET central = ? WHERE workspace = ? AND id = ?", rows)
    SqlFileWriter(db, generation).set_fact("linked", generation)
    return bool(changed)
