"""The search data in tables: inverted lists of the words of files, pieces as columns, and vectors.

Every row belongs to an access list, hence row-level security can hide the row. A segment holds the files of a commit,
or of several merged small segments; a deleted file, or a file with changed access, is marked dead in the old segment. A
file's search data is written in the file's own commit: both become visible together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from satchel.storage.postgres.administration import DIMENSIONS, TABLES
from satchel.storage.sql.block_writer import RelationalWriter
from satchel.storage.sql.file_writer import FILE_COLUMNS
from satchel.storage.sql.scoring import FILE_FIELDS, FOLDER_WIDTH, NAME_WIDTH, PATH_WORDS, PIECE_FIELDS
from satchel.storage.sql.scoring_layout import lay_out, segments_to_merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satchel.storage.postgres.database import PostgresDatabase


FIELDS: Final = {name: number for number, name in enumerate((*PIECE_FIELDS, *FILE_FIELDS))}


class Column(NamedTuple):
    """A column of a chunk: its number type, and how many numbers it has for each file, or each piece."""

    name: str
    kind: str
    of_pieces: bool = False
    width: int = 1

    def shaped(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The numbers as an array with a row for each file or piece."""
        return numbers if self.width == 1 else numbers.reshape(-1, self.width)


COLUMNS: Final = (
    Column("files", "<i8"),
    Column("reading", "u1"),
    Column(PATH_WORDS, "<u4", width=NAME_WIDTH + FOLDER_WIDTH),
    Column("piece_ids", "<i8", of_pieces=True),
    Column("piece_files", "<u4", of_pieces=True),
    *(Column(f"{name}.lengths", "<u4", name in PIECE_FIELDS) for name in (*PIECE_FIELDS, *FILE_FIELDS)),
)
"""The columns of a chunk."""
_HEADER_BYTES: Final = 8  # two 32-bit counts: files and pieces
_MAX_RESERVED_NUMBERS: Final = 512  # saves round trips; numbers left over at the end of a commit are lost
_ANALYZE_FROM_FILES: Final = 2_000  # smaller commits change the planner's statistics little, and ANALYZE takes time
_INDEX_BATCH_VECTORS: Final = 2_000  # per commit: other writers wait for one batch at most
_INSERT_BATCH_ROWS: Final = 4_000  # larger batches save round trips, and need more memory on both sides
_CHUNK_ROWS: Final = (
    "INSERT INTO chunk (workspace, segment, access, files, pieces, columns)"
    " SELECT %s, * FROM unnest(%s::int8[], %s::int4[], %s::int4[], %s::int4[], %s::bytea[])"
)
_POSTING_ROWS: Final = (
    "INSERT INTO posting (workspace, segment, access, field, term, documents, counts)"
    " SELECT %s, * FROM unnest(%s::int8[], %s::int4[], %s::int2[], %s::int8[], %s::bytea[], %s::bytea[])"
)
_DENSE_ROWS: Final = (
    "INSERT INTO dense (workspace, piece, file, access, indexed, vector)"
    " SELECT %s, p, f, a, i, v::halfvec"
    " FROM unnest(%s::int8[], %s::int8[], %s::int4[], %s::int4[], %s::text[]) AS t (p, f, a, i, v)"
)
NEAREST: Final = "nearest"
"""The name of the fact set once all vectors of a workspace are in the vector index; the value is their dimensions."""


def signed(term: int) -> int:
    """A term's hash as a signed 64-bit integer, as PostgreSQL stores the hash."""
    return term - 2**64 if term >= 2**63 else term


# -- columns of a chunk


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The columns of a chunk as a single binary value."""
    head = np.array([len(arrays["files"]), len(arrays["piece_ids"])], "<u4").tobytes()
    return head + b"".join(arrays[name].astype(kind).tobytes() for name, kind, *_ in COLUMNS)


def unpacked(data: bytes) -> dict[str, NDArray[Any]]:
    """The columns of a chunk from a value of `packed`."""
    files, pieces = (int(count) for count in np.frombuffer(data, "<u4", 2))
    arrays: dict[str, NDArray[Any]] = {}
    at = _HEADER_BYTES
    for column in COLUMNS:
        count = (pieces if column.of_pieces else files) * column.width
        arrays[column.name] = column.shaped(np.frombuffer(data, column.kind, count, at))
        at += arrays[column.name].nbytes
    return arrays


# -- writing segments


def lay_out_fresh(db: PostgresDatabase, dimensions: int, new_vectors: bool) -> None:
    """Write search data for every file without a segment, and fill in vectors added after their pieces."""
    fresh: list[Any] = db.execute(
        "SELECT id, access FROM file WHERE workspace = ? AND segment = 0 ORDER BY access, id", (db.workspace,)
    ).fetchall()
    if fresh:
        arrays, lists = _lay_out(db, fresh, dimensions)
        _put_vectors(db, arrays, lists)
    if new_vectors:
        _complete_vectors(db)


def _complete_vectors(db: PostgresDatabase) -> None:
    rows: list[Any] = db.execute(
        "SELECT dense.piece, vector.vector FROM dense"
        " JOIN piece ON piece.workspace = dense.workspace AND piece.id = dense.piece"
        " JOIN vector ON vector.workspace = piece.workspace AND vector.hash = piece.hash"
        " WHERE dense.workspace = ? AND dense.vector IS NULL",
        (db.workspace,),
    ).fetchall()
    known = [(piece, np.frombuffer(data, np.int8)) for piece, data in rows]
    indexed = int(db.fact(NEAREST) or 0)
    db.executemany(
        "UPDATE dense SET vector = ?::text::halfvec, indexed = ? WHERE workspace = ? AND piece = ?",
        ((str(vector.tolist()), indexed, db.workspace, piece) for piece, vector in known if vector.any()),
    )


def _lay_out(
    db: PostgresDatabase, files: Sequence[tuple[int, int]], dimensions: int
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Write a new segment of these files, ordered by access list; return the arrays and each file's list."""
    segment = int(db.execute("SELECT nextval('satchel.segment_number')").get)
    arrays = lay_out(db, [file for file, _ in files], dimensions)
    access_of = dict(files)
    lists = np.array([access_of[int(file)] for file in arrays["files"]], np.int64)
    chunks = _chunks(arrays, lists)
    _insert(db, _CHUNK_ROWS, [(segment, *chunk.row(arrays)) for chunk in chunks])
    _insert(db, _POSTING_ROWS, ((segment, *row) for row in _postings(arrays, chunks)))
    db.connection.execute(
        "UPDATE file SET segment = %s WHERE workspace = %s AND id = ANY(%s)",
        (segment, db.workspace, [file for file, _ in files]),
    )
    return arrays, lists


def _put_vectors(db: PostgresDatabase, arrays: Mapping[str, NDArray[Any]], lists: NDArray[np.int64]) -> None:
    """Store the pieces' vectors with their access lists."""
    files = arrays["files"].tolist()
    db.connection.execute("DELETE FROM dense WHERE workspace = %s AND file = ANY(%s)", (db.workspace, files))
    indexed = int(db.fact(NEAREST) or 0)
    pieces, owners = arrays["piece_ids"].tolist(), arrays["piece_files"].tolist()
    rows = (
        (piece, files[owner], int(lists[owner]), indexed if vector else 0, vector)
        for piece, owner, vector in zip(pieces, owners, map(_vector_text, arrays["vectors"]), strict=True)
    )
    _insert(db, _DENSE_ROWS, rows)


def _vector_text(vector: NDArray[np.int8]) -> str | None:
    """A vector in pgvector's text format; None for a zero vector."""
    return str(vector.tolist()) if vector.any() else None


def _insert(db: PostgresDatabase, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    """Insert many rows, some thousand in each statement: COPY does not support row-level security."""
    waiting = iter(rows)
    while batch := list(islice(waiting, _INSERT_BATCH_ROWS)):
        columns = [list(column) for column in zip(*batch, strict=True)]
        db.connection.execute(statement.encode(), (db.workspace, *columns))


class _Chunk(NamedTuple):
    """A run of files with the same access list, and their pieces."""

    access: int
    first_file: int
    last_file: int
    first_piece: int
    last_piece: int

    def row(self, arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int, int, bytes]:
        """The access list, the numbers of files and pieces, and their packed columns."""
        files, pieces = slice(self.first_file, self.last_file), slice(self.first_piece, self.last_piece)
        columns = {name: arrays[name][pieces if of_pieces else files] for name, _, of_pieces, _ in COLUMNS}
        columns["piece_files"] = columns["piece_files"] - np.uint32(self.first_file)
        return self.access, len(columns["files"]), len(columns["piece_ids"]), packed(columns)


def _chunks(arrays: Mapping[str, NDArray[Any]], lists: NDArray[np.int64]) -> list[_Chunk]:
    starts = np.flatnonzero(np.diff(lists, prepend=lists[:1] - 1)) if len(lists) else np.empty(0, np.int64)
    ends = np.append(starts[1:], len(lists))
    owner = arrays["piece_files"]
    return [
        _Chunk(int(lists[first]), int(first), int(last), *(int(np.searchsorted(owner, at)) for at in (first, last)))
        for first, last in zip(starts, ends, strict=True)
    ]


def _postings(
    arrays: Mapping[str, NDArray[Any]], chunks: Sequence[_Chunk]
) -> Iterator[tuple[int, int, int, bytes, bytes]]:
    """For each term and each access list the documents, numbered from the start of their chunk."""
    for name, number in FIELDS.items():
        of_pieces = name in PIECE_FIELDS
        starts = np.array([chunk.first_piece if of_pieces else chunk.first_file for chunk in chunks], np.int64)
        documents, offsets = arrays[f"{name}.documents"].astype(np.int64), arrays[f"{name}.offsets"]
        if not len(documents):
            continue
        counts, hashes = arrays[f"{name}.counts"], arrays[f"{name}.hashes"]
        terms = np.repeat(np.arange(len(hashes)), np.diff(offsets))
        chunk_of = np.searchsorted(starts, documents, side="right") - 1
        local = (documents - starts[chunk_of]).astype("<u4")
        borders = np.flatnonzero(np.diff(terms * len(chunks) + chunk_of, prepend=-1))
        ends = np.append(borders[1:], len(documents))
        signed_hashes = hashes.astype(np.int64).tolist()
        for first, last in zip(borders.tolist(), ends.tolist(), strict=True):
            access = chunks[chunk_of[first]].access
            yield access, number, signed_hashes[terms[first]], local[first:last].tobytes(), counts[first:last].tobytes()


# -- merging segments


def lay_together(db: PostgresDatabase, dimensions: int) -> bool:
    """Merge small or mostly dead segments; True if there was anything to merge."""
    rows: list[Any] = db.execute(
        "SELECT segment, sum(pieces), sum(files) FROM chunk WHERE workspace = ? GROUP BY segment", (db.workspace,)
    ).fetchall()
    sizes = {int(segment): int(pieces) for segment, pieces, _ in rows}
    laid_out = sum(int(files) for *_, files in rows)
    numbers = ",".join(map(str, sorted(segments_to_merge(sizes, gone=db.count("dead"), files=laid_out))))
    if not numbers:
        return False
    files: list[Any] = db.execute(
        f"SELECT id, access FROM file WHERE workspace = ? AND segment IN ({numbers}) ORDER BY access, id",
        (db.workspace,),
    ).fetchall()
    for table in ("posting", "chunk", "dead"):
        db.execute(f"DELETE FROM {table} WHERE workspace = ? AND segment IN ({numbers})", (db.workspace,))
    if files:
        _lay_out(db, files, dimensions)
    return True


# -- the vector index


def lacks_index(db: PostgresDatabase, dimensions: int, from_pieces: int) -> bool:
    """True if the workspace is large enough for the vector index, and the vectors are not yet in the index."""
    is_indexed = bool(int(db.fact(NEAREST) or 0))
    return not is_indexed and dimensions in DIMENSIONS and piece_count(db) >= from_pieces


def piece_count(db: PostgresDatabase) -> int:
    """The number of pieces in the search data."""
    return int(db.execute("SELECT coalesce(sum(pieces), 0) FROM chunk WHERE workspace = ?", (db.workspace,)).get)


def index_some(db: PostgresDatabase, dimensions: int) -> int:
    """Add a batch of vectors to the vector index; return the number."""
    db.execute(
        f"UPDATE dense SET indexed = {dimensions} WHERE workspace = ? AND piece IN (SELECT piece FROM dense"
        f" WHERE workspace = ? AND indexed = 0 AND vector IS NOT NULL ORDER BY piece LIMIT {_INDEX_BATCH_VECTORS})",
        (db.workspace, db.workspace),
    )
    return db.changes()


# -- a commit


class PostgresWriter(RelationalWriter):
    """An open commit."""

    def __init__(self, database: PostgresDatabase, generation: int) -> None:
        super().__init__(database, generation)
        self.database = database
        self._new_vectors = False
        self._reserved: list[int] = []
        self._reserve_count = 1
        self._put = 0

    def _insert_file(self, values: tuple[Any, ...]) -> int:
        """Insert a file with a number reserved in advance, to save a round trip."""
        if not self._reserved:
            numbers = self.database.connection.execute(
                "SELECT nextval('satchel.file_id_seq') FROM generate_series(1, %s)", (self._reserve_count,)
            )
            self._reserved = [int(row[0]) for row in numbers.fetchall()][::-1]
            self._reserve_count = min(2 * self._reserve_count, _MAX_RESERVED_NUMBERS)
        self._put += 1
        number = self._reserved.pop()
        self._db.insert("file", f"id, {FILE_COLUMNS}", [(number, *values)])
        return number

    def _dropping(self, file: int) -> None:
        self._mark_dead([file])
        self._db.execute("DELETE FROM dense WHERE workspace = ? AND file = ?", (self._db.workspace, file))

    def regrant(self, changed: Sequence[tuple[int, int]]) -> None:
        """Change access lists of files; their search data under the old lists is dead from this commit on."""
        self._mark_dead([file for file, _ in changed])
        super().regrant(changed)
        self._db.executemany(
            "UPDATE file SET segment = 0 WHERE workspace = ? AND id = ? AND segment > 0",
            ((self._db.workspace, file) for file, _ in changed),
        )

    def _mark_dead(self, files: Sequence[int]) -> None:
        self.database.flush()
        self.database.connection.execute(
            "INSERT INTO dead (workspace, segment, access, file) SELECT workspace, segment, access, id FROM file"
            " WHERE workspace = %s AND id = ANY(%s) AND segment > 0",
            (self.database.workspace, list(files)),
        )

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Store the vectors of texts, with eight bits for each number."""
        super().put_vectors(text_hashes, vectors)
        self._new_vectors = True

    def clear(self) -> None:
        """Remove all data of the workspace."""
        for table in TABLES:
            self._db.execute(f"DELETE FROM {table} WHERE workspace = ?", (self._db.workspace,))
        self.changed = True

    def seal(self) -> None:
        """Write what belongs at the end of a commit, which the caller then ends.

        Recomputes deferred access, writes the search data of new files, and raises the generation.
        """
        if self._put >= _ANALYZE_FROM_FILES:
            # The planner's statistics do not know the new rows yet, and would lead to plans for small tables.
            self.database.flush()
            self.database.connection.execute("SELECT satchel.look_again()")
        self.settle_access()
        lay_out_fresh(self.database, int(self._db.fact("dimensions") or 1), self._new_vectors)
        pieces = piece_count(self.database)
        # Readers can see this fact: rounded up to a power of two, it tells little about hidden pieces.
        self.set_fact("pieces", 1 << max(pieces - 1, 0).bit_length())
        self.set_fact("generation", self._generation)
