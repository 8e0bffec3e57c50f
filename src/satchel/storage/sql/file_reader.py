"""Reads files, their pieces and pages; every read is limited to the readers' access lists."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from satchel.models.access import DefaultAccess
from satchel.models.block import BlockType
from satchel.models.files import PASSED_OVER, SAME_AS, SKIPPED, FileState, SkippedFile
from satchel.models.outline import OutlineBlock, OutlinePage
from satchel.models.search import Filters
from satchel.ports.file_index import NamedMention, StoredPage, StoredPiece
from satchel.ports.store import StoreFacts
from satchel.storage.sql.file_writer import access_by_path
from satchel.storage.sql.rows import (
    FIRST_PATH,
    IN_FILES,
    Database,
    ReadableRows,
    conditions,
    decoded,
    default_access,
    encoded,
    filter_by_lists,
    is_node,
    known_id,
    marks,
    numbers_text,
    plain,
    readable_lists,
)
from satchel.text.patterns import matches

_, *_NAMED = Path(__file__).with_name("queries.sql").read_text().split("-- name: ")
QUERIES: Final = {name: statement.strip() for name, _, statement in (query.partition("\n") for query in _NAMED)}
"""The long statements by name; `format` inserts conditions and placeholders."""

NOBODY: Final = Filters(readers=frozenset())
"""A reader without any name: sees only data readable by everybody."""

_MAX_DEFINITIONS: Final = 10_000  # of a name; generated code has thousands of `build`
_MAX_DEFINING_ROWS: Final = 200  # a name with more definitions (`main`, `get`) tells little about any of them
_MAX_PAGE_NUMBER: Final = 2**62  # fits into SQL's 64-bit integers; no document has as many pages


class FileReader(ABC):
    """Reads files and facts; each store provides the tables and the readable access lists."""

    @abstractmethod
    def _reading(self, filters: Filters | None = None) -> AbstractContextManager[Database]:
        """The tables as visible to the readers; without filters, as visible to the workspace's owner."""

    @abstractmethod
    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:
        """The readable access lists; None means all."""

    _condition = staticmethod(filter_by_lists)
    """Turns access lists into an SQL condition."""

    def _known_blocks(self) -> dict[bytes, bool]:
        """The blocks that the present reader is known to see, and not to see; the caller adds to it."""
        return {}

    @contextmanager
    def _readable(self, filters: Filters) -> Iterator[ReadableRows]:
        with self._reading(filters) as db:
            allowed = self._allowed(db, filters)
            yield ReadableRows(db, allowed, self._condition(allowed), self._known_blocks())

    # -- facts about the whole store

    @property
    def generation(self) -> int:
        """The number of the last commit with an effect on search results."""
        with self._reading(NOBODY) as db:
            return int(db.fact("generation") or 0)

    def generation_for(self, filters: Filters) -> int:  # noqa: ARG002  a store may know which commits a reader can see
        """The number of the last commit with an effect that these readers can see."""
        return self.generation

    def fact(self, name: str) -> Any:
        """A fact about the whole index, or None."""
        with self._reading() as db:
            return db.fact(name)

    def embedder(self) -> str:
        """The name of the embedder behind the stored vectors, or "" while there are none."""
        with self._reading(NOBODY) as db:
            return str(db.fact("embedder") or "")

    def history_head(self) -> str:
        """The last commit of the version history in the store, or ""."""
        return str(self.fact("history") or "")

    def access_key(self, filters: Filters) -> object:
        """A value that is equal for two readers if and only if both have the same read access."""
        with self._reading(filters) as db:
            return self._allowed(db, filters)

    def default_access(self) -> DefaultAccess:
        """Who may read files and blocks without a grant."""
        with self._reading(NOBODY) as db:
            return default_access(db)

    def groups_of(self, user: str) -> frozenset[str]:
        """The names of the user's groups."""
        with self._reading(Filters(readers=frozenset({f"user:{user}"}))) as db:
            rows = db.run("SELECT team FROM member WHERE workspace = ? AND person = ?", user)
            return frozenset(row[0] for row in rows)

    def notes(self) -> dict[str, str]:
        """The notes on files, by path."""
        statement = f"SELECT path, note FROM file WHERE workspace = ? AND note != '' AND {IN_FILES}"
        with self._reading() as db:
            return {decoded(path): str(note) for path, note in db.run(statement, FIRST_PATH)}

    def skipped(self, filters: Filters) -> list[SkippedFile]:
        """The files left out of the index that the filters' readers may read, by path."""
        statement = f"SELECT path, note FROM file WHERE workspace = ? AND note <> '' AND {IN_FILES} AND {{readable}}"
        with self._readable(filters) as rows:
            notes = [(decoded(path), str(note)) for path, note in rows.run(statement, FIRST_PATH)]
        files = [
            SkippedFile(path, note.removeprefix(PASSED_OVER)) for path, note in notes if note.startswith(PASSED_OVER)
        ]
        with self._reading() as db:
            unread = [SkippedFile(*file) for file in json.loads(db.fact(SKIPPED) or "[]")]
            # The files are not stored: the grants at their paths decide, as for a new file.
            default = default_access(db)
            if unread and readable_lists(filters.readers, default, {}) is not None:
                access = dict(enumerate(access_by_path(db, [encoded(file.path) for file in unread])))
                readable = readable_lists(filters.readers, default, access) or ()
                unread = [file for i, file in enumerate(unread) if i in readable]
        return sorted(files + unread)

    def files(self) -> dict[str, FileState]:
        """The state of every stored file, by path."""
        statement = f"SELECT path, hash, size, modified_ns, read_ns FROM file WHERE workspace = ? AND {IN_FILES}"
        with self._reading() as db:
            return {decoded(path): FileState(*state) for path, *state in db.run(statement, FIRST_PATH)}

    def holds_blocks(self) -> bool:
        """True if the store has blocks beside the blocks of indexed files."""
        with self._reading() as db:
            return db.run("SELECT 1 FROM node WHERE workspace = ? LIMIT 1").fetchone() is not None

    def _counted(self, db: Database, *, bytes_on_disk: int, behind: int = 0) -> StoreFacts:
        return StoreFacts(
            generation=int(db.fact("generation") or 0),
            files=db.count("file") - db.count("node"),
            blocks=db.count("block"),
            pieces=db.count("piece"),
            mentions=db.count("mention"),
            bytes_on_disk=bytes_on_disk,
            embedder=str(db.fact("embedder") or ""),
            behind=behind,
        )

    # -- data of candidates

    def paths(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The paths of files by the numbers in candidates."""
        with self._readable(filters) as rows:
            paths = of_files(rows, "path", files)
        return {file: decoded(path) for file, path in paths.items() if not is_node(path)}

    def titles(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The titles of workspace blocks by the numbers in candidates."""
        return self._by_file("titles", files, filters)

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """The time of each file's last change in the version history, in seconds since 1970."""
        return self._by_file("last_changes", files, filters)

    def _by_file(self, query: str, files: Collection[int], filters: Filters) -> dict[int, Any]:
        if not files:
            return {}
        with self._readable(filters) as rows:
            return dict(rows.run(QUERIES[query], files=numbers_text(files)))

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """The readable pieces among the given ids, in the given order."""
        statement = QUERIES["pieces"].format(which="piece.id IN ({keys}) ORDER BY piece.file")
        with self._readable(filters) as rows:
            pieces = {piece.id: piece for piece in _stored_pieces(rows, rows.db.run_in(statement, ids))}
        return [pieces[number] for number in ids if number in pieces]

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""
        statement = QUERIES["pieces"].format(which="file.path = ? ORDER BY piece.first_line")
        with self._readable(filters) as rows:
            return list(_stored_pieces(rows, rows.db.run(statement, encoded(path))))

    # -- files and documents

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as indexed, or None."""
        with self._readable(filters) as rows:
            return text_of_file(rows, path)

    def outline_of(self, path: str, filters: Filters) -> list[OutlineBlock]:
        """The definitions and sections of a file from top to bottom, outer ones first."""
        with self._readable(filters) as rows:
            blocks = rows.db.run(QUERIES["outline_of_file"], file_key(path))
            return [OutlineBlock._make(row) for access, *row in blocks if rows.shows(access)]

    def texts(self, filters: Filters) -> Iterator[tuple[str, str | None, str]]:
        """The path, language and text of every readable file, by path."""
        with self._readable(filters) as rows:
            for path, language, text in rows.run(QUERIES["texts"], FIRST_PATH, in_files=IN_FILES):
                if _is_let_through(decoded(path), language, filters):
                    yield decoded(path), language, decoded(text)

    def definitions(self, name: str, filters: Filters) -> list[tuple[str, OutlineBlock]]:
        """The readable blocks with a name, with the paths of their files."""
        with self._readable(filters) as rows:
            found = rows.run(
                QUERIES["blocks_defined"], plain(name), FIRST_PATH, in_files=IN_FILES, limit=_MAX_DEFINITIONS
            )
            return [
                (decoded(path), OutlineBlock._make(block))
                for path, language, *block in found
                if _is_let_through(decoded(path), language, filters)
            ]

    def mentions_of(self, name: str, filters: Filters) -> list[NamedMention]:
        """The readable references to a name; an import also by the last part of what it names."""
        columns = (
            "file.path, file.language, mention.kind, coalesce(block.qualified, ''), "
            "coalesce(block.first_line, 0), coalesce(block.last_line, 0)"
        )
        with self._readable(filters) as rows:
            which = f"(mention.name = ? OR (mention.kind = 'imports' AND mention.name {rows.db.like} ? ESCAPE '!'))"
            escaped = name.replace("!", "!!").replace("%", "!%").replace("_", "!_")
            found = rows.run(
                QUERIES["mentions"], plain(name), plain(f"%.{escaped}"), columns=columns, which=which, order="file.path"
            )
            return [
                NamedMention(decoded(path), str(kind), *rest)
                for path, language, kind, *rest in found
                if _is_let_through(decoded(path), language, filters)
            ]

    def pages_of(self, path: str, filters: Filters, *, number: int | None = None) -> list[StoredPage]:
        """The pages of a document from first to last, or only page `number`; empty for a document without pages."""
        statement = QUERIES["pages"].format(and_number="" if number is None else " AND number = ?")
        page = () if number is None else (min(max(number, 0), _MAX_PAGE_NUMBER),)
        with self._readable(filters) as rows:
            pages = rows.db.run(statement, file_key(path), *page)
            return [
                StoredPage(path, title, outline_page(row[4:]), decoded(text or b""), FileState(*row[:4]))
                for access, title, text, *row in pages
                if rows.shows(access)
            ]

    def documents(self, filters: Filters) -> dict[str, bytes]:
        """The content hashes of the documents with pages, by path."""
        with self._readable(filters) as rows:
            return {decoded(path): digest for path, digest in rows.run(QUERIES["documents"], rows.db.workspace)}

    def paths_of(self, content_hash: bytes, filters: Filters) -> list[str]:
        """The paths of the files with exactly this content."""
        which = f"workspace = ? AND hash = ? AND {IN_FILES} AND {{readable}}"
        with self._readable(filters) as rows:
            same = rows.run(f"SELECT path FROM file WHERE {which} ORDER BY path", content_hash, FIRST_PATH)
            return [decoded(row[0]) for row in same]


def _is_let_through(path: str, language: str | None, filters: Filters) -> bool:
    """True if the filters for paths and languages let a file through."""
    is_language = not filters.languages or language in filters.languages
    return is_language and (not filters.patterns or matches(path, filters.patterns))


def file_key(path: str) -> bytes:
    """The key of a file's path; empty for the path of a workspace block."""
    return b"" if path.startswith("\0") else known_id(path) or b""


def text_of_file(rows: ReadableRows, path: str) -> str | None:
    """The whole text of a readable file, or None."""
    row = rows.db.run(QUERIES["text_of_file"], file_key(path)).fetchone()
    return decoded(row[1]) if row is not None and rows.shows(row[0]) else None


def outline_page(row: Sequence[Any]) -> OutlinePage:
    """The page in a row; the last two columns are the captions and the flag for recognized text (OCR)."""
    *facts, captions, recognized = row
    return OutlinePage._make((*facts, tuple(json.loads(captions)), bool(recognized)))


def of_files(rows: ReadableRows, column: str, files: Collection[int]) -> dict[int, Any]:
    """A column of the readable files among the given numbers."""
    if not files:
        return {}
    statement = f"SELECT id, {column} FROM file WHERE workspace = ? AND id IN ({numbers_text(files)}) AND {{readable}}"
    return dict(rows.run(statement))


def allowed_files(db: Database, filters: Filters) -> list[int] | None:
    """The files passing the filters, without regard to access; None means all files."""
    after, before = filters.modified_after, filters.modified_before
    where, values = conditions(
        ("modified_ns >= ?", after and int(after.timestamp() * 1e9)),
        ("modified_ns < ?", before and int(before.timestamp() * 1e9)),
        ("language IN ({})", filters.languages),
    )
    if not where and not filters.patterns:
        return None
    rows = db.run(f"SELECT id, path, note FROM file WHERE workspace = ?{where}", *values).fetchall()
    if not filters.patterns:
        return [row[0] for row in rows]
    fitting = [row for row in rows if not is_node(row[1]) and matches(decoded(row[1]), filters.patterns)]
    # The content of a duplicate document is stored under the path of the original.
    originals = {note.removeprefix(SAME_AS) for _, _, note in fitting if note.startswith(SAME_AS)}
    numbers = {number for number, _, _ in fitting}
    return sorted(numbers | {number for number, path, _ in rows if originals and decoded(path) in originals})


def pieces_of_types(db: Database, types: Sequence[str]) -> list[int]:
    """The pieces of blocks of these types."""
    or_file = " OR piece.block = -1" if BlockType.FILE in types else ""
    statement = QUERIES["pieces_of_types"].format(types=marks(types), or_file=or_file)
    return [row[0] for row in db.run(statement, *map(str, types))]


def defining(rows: ReadableRows, names: Sequence[str]) -> dict[int, set[int]]:
    """For each readable file the pieces with a definition of any of the names."""
    by_file: dict[int, set[int]] = {}
    statement = defining_statement(rows.filter.condition)
    for name in names:
        *owners, last = parts_of(name)
        defined = rows.db.run(statement, plain(last), *rows.filter.values).fetchall()
        for file, piece in exactly(defined, owners):
            by_file.setdefault(file, set()).add(piece)
    return by_file


def parts_of(name: str) -> list[str]:
    """The parts of a qualified name: `Class.method`, `mod::f`."""
    return [part for part in name.replace("::", ".").replace("#", ".").split(".") if part] or [""]


def defining_statement(condition: str) -> str:
    """SQL for the files, pieces and qualified names of the blocks with a given name."""
    return QUERIES["defining"].format(readable=condition, limit=_MAX_DEFINING_ROWS)


def exactly(rows: Sequence[Sequence[Any]], owners: Sequence[str]) -> list[tuple[int, int]]:
    """The files and pieces of rows with the given owner; of all rows if none has the owner."""
    exact = [row for row in rows if not owners or owners[-1] in row[2].split(".")]
    return [(file, piece) for file, piece, _ in exact or rows]


def _stored_pieces(rows: ReadableRows, pieces: Iterable[Sequence[Any]]) -> Iterator[StoredPiece]:
    """The readable pieces; the text of each file is read only once."""
    readable = [row for row in pieces if rows.shows(row[-1])]
    files = numbers_text(row[0] for row in readable)
    statement = f"SELECT file, text FROM content WHERE workspace = ? AND file IN ({files})"
    texts = dict(rows.db.run(statement)) if files else {}
    for file, start, finish, *row, _ in readable:
        if file in texts:  # not deleted in between
            yield _piece(row, decoded(texts[file][start:finish]))


def _piece(row: Sequence[Any], text: str) -> StoredPiece:
    number, path, language, kind, name, qualified, signature, doc, first, last, *state, page = row
    place = decoded(path)
    block = f"{place}#{qualified}" if qualified else place
    if is_node(path):
        place, block = "", place[1:]
    return StoredPiece(
        id=number,
        path=place,
        language=language,
        block=block,
        block_type=kind or BlockType.FILE.value,
        title=qualified or "",
        summary=" — ".join(part for part in (signature or name or "", doc or "") if part),
        first_line=first,
        last_line=last,
        text=text,
        state=FileState(*state),
        page=page or None,
    )
