"""A workspace of N blocks in a database, put there by COPY: the same tables, formats and layout code as a commit's.

The language is made up. Its words are as frequent as Zipf and Mandelbrot have it; who may read is one of 200 access
lists for each page of 20 blocks; vectors lie around 300 centres.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

from satchel.storage.postgres import derived
from satchel.storage.sql.scoring import NOTE
from satchel.storage.sql.scoring_layout import SearchArraysBuilder
from satchel.text.words import terms_of

DIMENSIONS = 256
LISTS = 200
BLOCKS_PER_PAGE, BLOCKS_PER_SPACE = 20, 1_000
VOCABULARY = 1_000_000
STOP_WORDS = 120
HALF, FEW = "user:half", "user:few"
SHARES = {HALF: 0.5, FEW: 0.01}
_AT_ONCE = 5_000
_CENTRES = 300
_SYLLABLES = [f"{first}{second}" for first in "bdfgklmnprtvz" for second in "aeiou"]

_STAGE = "CREATE TEMP TABLE stage (id int8, access int4, title text, text bytea, vector bytea)"
_FILLS = (
    "INSERT INTO file (workspace, id, path, hash, size, modified_ns, read_ns, language, note, generation, access, segment)"
    " SELECT {w}, id, '\\x00'::bytea || convert_to('b' || id, 'UTF8'), decode(md5(text), 'hex'), length(text), 0, 0, NULL, '', 1,"
    " access, {s} FROM stage ORDER BY id",
    "INSERT INTO content (workspace, file, text) SELECT {w}, id, text FROM stage ORDER BY id",
    "INSERT INTO node (workspace, file, id, type, title, parent, position, summary, source_path, first_line, last_line, modified,"
    " metadata, due, done, inherits, origin) SELECT {w}, id, convert_to('b' || id, 'UTF8'), 'text', title, CASE WHEN id % {space} = 0"
    " THEN NULL ELSE convert_to('b' || CASE WHEN id % {page} = 0 THEN id - id % {space} ELSE id - id % {page} END, 'UTF8') END,"
    " id % {page}, '', '', 1, 1, 1750000000000000, '{{}}', NULL, 0, 1, '' FROM stage ORDER BY id",
    "INSERT INTO block (workspace, file, place, type, name, qualified, parent, first_line, last_line, signature, doc)"
    " SELECT {w}, id, 0, 'text', title, title, -1, 1, 1, '', '' FROM stage ORDER BY id",
    "INSERT INTO piece (workspace, id, file, first_line, last_line, start, finish, block, defines, hash)"
    " SELECT {w}, id, id, 1, 1, 0, length(text), 0, '', decode(md5(text), 'hex') FROM stage ORDER BY id",
    "INSERT INTO vector (workspace, hash, vector) SELECT {w}, decode(md5(text), 'hex'), vector FROM stage ORDER BY id ON CONFLICT DO NOTHING",
)


class Filled(NamedTuple):
    """What filling took, in seconds, and what came of it."""

    generate_s: float
    layout_s: float
    truth_s: float
    chunk_posting_s: float
    dense_s: float
    posting_rows: int
    postings: int


class Language:
    """Words by rank, and texts of them."""

    def __init__(self, seed: int = 7) -> None:
        self.chance = np.random.default_rng(seed)
        self.words = _words()
        weights = 1 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.05
        self._up_to = np.cumsum(weights) / weights.sum()

    def texts(self, count: int) -> list[str]:
        """Blocks of 50 to 60 words."""
        lengths = self.chance.integers(50, 61, count)
        drawn = self.words[np.searchsorted(self._up_to, self.chance.random(int(lengths.sum())))]
        ends = np.cumsum(lengths)
        return [
            " ".join(drawn[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
        ]

    def titles(self, count: int) -> list[str]:
        """Every sixth block has a title of three words."""
        drawn = self.words[np.searchsorted(self._up_to, self.chance.random((count, 3)))]
        return [" ".join(three) if i % 6 == 0 else "" for i, three in enumerate(drawn)]

    def question(self, low: int, high: int, words: int = 6) -> dict[str, float]:
        """Terms of words whose ranks lie between two bounds, spread evenly on a logarithmic scale."""
        ranks = np.exp(self.chance.uniform(np.log(low), np.log(high), words)).astype(int)
        return {term: 1.0 for word in self.words[ranks] for term in terms_of(word)}


@lru_cache(maxsize=1)
def _words() -> NDArray[Any]:
    return np.array([_word(i) for i in range(VOCABULARY)], object)


def _word(rank: int) -> str:
    rest, parts = rank + len(_SYLLABLES), []
    while rest:
        rest, one = divmod(rest, len(_SYLLABLES))
        parts.append(_SYLLABLES[one])
    return "".join(parts) + "k"  # no ending that a stemmer knows


class Space:
    """Vectors around centres, which questions are asked of too."""

    def __init__(self, seed: int = 11) -> None:
        self.chance = np.random.default_rng(seed)
        self._centres = _unit(self.chance.standard_normal((_CENTRES, DIMENSIONS), np.float32))
        weights = 1 / np.arange(1, _CENTRES + 1) ** 0.7
        self._shares = weights / weights.sum()

    def vectors(self, count: int) -> NDArray[np.int8]:
        """So many vectors as they are kept."""
        centre = self.chance.choice(_CENTRES, count, p=self._shares)
        noise = _unit(self.chance.standard_normal((count, DIMENSIONS), np.float32))
        return np.rint(127 * _unit(self._centres[centre] + 0.8 * noise)).astype(np.int8)

    def question(self) -> NDArray[np.float32]:
        """A vector of somebody's question."""
        return _unit(self.vectors(1)[0].astype(np.float32))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def lists_of(count: int, seed: int = 5) -> tuple[NDArray[np.int64], dict[int, list[str]]]:
    """For each block its access list, and for each list whom it lets in."""
    chance = np.random.default_rng(seed)
    weights = chance.permutation(1 / (np.arange(1, LISTS + 1) + 3) ** 0.8)
    shares = weights / weights.sum()
    pages = chance.choice(LISTS, -(-count // BLOCKS_PER_PAGE), p=shares) + 1
    lets_in = {number: [f"group:team{number}"] for number in range(1, LISTS + 1)}
    for reader, wanted in SHARES.items():
        held = 0.0
        for number in np.argsort(shares) if reader == FEW else chance.permutation(LISTS):
            if held + shares[number] <= wanted * 1.02:
                held += float(shares[number])
                lets_in[int(number) + 1].append(reader)
    return np.repeat(pages, BLOCKS_PER_PAGE)[:count].astype(np.int64), lets_in


def fill(connection: psycopg.Connection[Any], workspace: int, count: int) -> Filled:
    """Fill an empty workspace as one large commit would."""
    language, space = Language(), Space()
    access, lets_in = lists_of(count)
    order = np.argsort(access, kind="stable")
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO access (workspace, id, readers) VALUES (%s, %s, %s)",
            [(workspace, number, json.dumps(sorted(names))) for number, names in lets_in.items()],
        )
    connection.execute(_STAGE)
    layout = SearchArraysBuilder(DIMENSIONS)
    generating = laying = 0.0
    types = ["int8", "int4", "text", "bytea", "bytea"]
    for first in range(0, count, _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        began = time.perf_counter()
        texts, titles, vectors = language.texts(len(some)), language.titles(len(some)), space.vectors(len(some))
        rows = [
            (number, access.item(number), title, text.encode(), vector.tobytes())
            for number, title, text, vector in zip(some.tolist(), titles, texts, vectors, strict=True)
        ]
        with connection.cursor().copy("COPY stage FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)
        generating += time.perf_counter() - began
        began = time.perf_counter()
        for (number, _, title, _, vector), text in zip(rows, texts, strict=True):
            layout.add_file(number, NOTE, title)
            layout.add_piece(number, text, title, vector)
        laying += time.perf_counter() - began
    began = time.perf_counter()
    arrays = layout.arrays()
    del layout
    laying += time.perf_counter() - began
    segment = int(_one(connection, "SELECT nextval('segment_number')"))
    began = time.perf_counter()
    put = {"w": workspace, "s": segment, "page": BLOCKS_PER_PAGE, "space": BLOCKS_PER_SPACE}
    for statement in _FILLS:
        connection.execute(statement.format(**put).encode())
    connection.execute("DROP TABLE stage")
    truth = time.perf_counter() - began
    began = time.perf_counter()
    lists = access[order]
    rows_put, postings = _put_words(connection, workspace, segment, arrays, lists)
    words = time.perf_counter() - began
    began = time.perf_counter()
    _put_vectors(connection, workspace, arrays, lists)
    dense = time.perf_counter() - began
    _settle(connection, workspace, count)
    return Filled(generating, laying, truth, words, dense, rows_put, postings)


def _put_words(
    connection: psycopg.Connection[Any],
    workspace: int,
    segment: int,
    arrays: dict[str, NDArray[Any]],
    lists: NDArray[np.int64],
) -> tuple[int, int]:
    chunks = derived._chunks(arrays, lists)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO chunk (workspace, segment, access, files, pieces, columns) VALUES (%s, %s, %s, %s, %s, %s)",
            [(workspace, segment, *chunk.row(arrays)) for chunk in chunks],
        )
    rows = postings = 0
    statement = "COPY posting (workspace, segment, access, field, term, documents, counts) FROM STDIN (FORMAT BINARY)"
    with connection.cursor().copy(statement) as copy:
        copy.set_types(["int8", "int8", "int4", "int2", "int8", "bytea", "bytea"])
        for row in derived._postings(arrays, chunks):
            copy.write_row((workspace, segment, *row))
            rows += 1
            postings += len(row[-1])
    return rows, postings


def _put_vectors(
    connection: psycopg.Connection[Any], workspace: int, arrays: dict[str, NDArray[Any]], lists: NDArray[np.int64]
) -> None:
    """Through COPY in its binary form, which numpy writes: every row is as long as every other."""
    fields = [("workspace", ">i8"), ("piece", ">i8"), ("file", ">i8"), ("access", ">i4"), ("indexed", ">i4")]
    kinds: list[Any] = [("count", ">i2")]
    for name, kind in fields:
        kinds += [(f"{name}.length", ">i4"), (name, kind)]
    kinds += [("length", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f2", (DIMENSIONS,))]
    owner = arrays["piece_files"]
    with connection.cursor().copy(
        "COPY dense (workspace, piece, file, access, indexed, vector) FROM STDIN (FORMAT BINARY)"
    ) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for first in range(0, len(owner), _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, len(owner)))
            rows = np.zeros(some.stop - some.start, np.dtype(kinds))
            rows["count"] = 6
            for name, kind in fields:
                rows[f"{name}.length"] = np.dtype(kind).itemsize
            rows["workspace"], rows["piece"], rows["indexed"] = workspace, arrays["piece_ids"][some], DIMENSIONS
            rows["file"], rows["access"] = arrays["files"][owner[some]], lists[owner[some]]
            rows["length"], rows["dimensions"], rows["vector"] = 4 + 2 * DIMENSIONS, DIMENSIONS, arrays["vectors"][some]
            copy.write(rows.tobytes())
        copy.write(b"\xff\xff")


def _settle(connection: psycopg.Connection[Any], workspace: int, count: int) -> None:
    """What a commit leaves beside the rows: facts, and where numbers go on."""
    facts = {
        "generation": 1,
        "linked": 1,
        "dimensions": DIMENSIONS,
        "embedder": "scale",
        "pieces": count,
        "multi_user": 0,
    }
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO fact (workspace, name, value) VALUES (%s, %s, %s)",
            [(workspace, name, str(value)) for name, value in facts.items()],
        )
    for table, last in (("file", count), ("piece", count), ("access", LISTS)):
        connection.execute(sql.SQL("SELECT setval({}, {})").format(f"satchel.{table}_id_seq", last + 1))


def _one(connection: psycopg.Connection[Any], statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def questions(count: int, low: int, high: int) -> Iterator[tuple[dict[str, float], NDArray[np.float32]]]:
    """Always the same questions: terms, and a vector."""
    language, space = Language(seed=3), Space()
    for _ in range(count):
        yield language.question(low, high), space.question()
