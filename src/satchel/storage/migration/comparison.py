"""Whether two stores hold the same and answer the same, without either in memory.

Everything in a store is encoded in one canonical way, in an order that does not depend on the store, and counted and
hashed kind by kind. What a store derives from that is compared by asking both stores the same questions.
"""

from __future__ import annotations

import json
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import blake2b
from itertools import cycle, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.models.access import DEFAULT, EVERYONE, DefaultAccess, Grant
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.ports.transfer import RowKind, StoredFile, TransferSource
from satchel.storage.sql.rows import path_bytes
from satchel.text.words import terms

if TYPE_CHECKING:
    from satchel.ports.file_index import FileIndex
    from satchel.ports.store import Store

_FILES: Final = "files"
_OWN_BLOCKS: Final = "workspace_blocks"
_FACTS: Final = "facts"
_PARTS: Final = ("blocks", "pieces", "pages", "mentions", "vectors")
KINDS: Final = (_FILES, _OWN_BLOCKS, *_PARTS, *(kind.value for kind in RowKind), _FACTS)

_FILES_AT_ONCE: Final = 500
_QUESTIONS: Final = 20
_QUESTION_CHARS: Final = 100
_TOP: Final = 10
_DIGITS: Final = 4
_MOST_PIECES_BY_MEANING: Final = 20_000
"""With more pieces than that a store may look for what is near in meaning through an index, which may miss some."""

Watcher = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Tallied:
    """How many there are of a kind, and the hash of all of them."""

    count: int
    digest: str


class Sample(NamedTuple):
    """What a question can be made from: the name of something in a file, and the vector of the file's first piece."""

    rank: bytes
    """The hash of the file's path: those with the smallest are asked about."""
    name: str
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Everything that a store holds at one moment, in numbers and hashes."""

    generation: int
    kinds: dict[str, Tallied]
    policy: DefaultAccess
    samples: list[Sample]

    def differences(self, other: Tally, *, policy_too: bool = True) -> list[str]:
        """The kinds of which the other store holds something else, in words."""
        differences = []
        for kind in KINDS:
            ours, theirs = self.kinds[kind], other.kinds[kind]
            name = kind.replace("_", " ")
            if ours.count != theirs.count:
                differences.append(f"{name}: {ours.count:,} there, {theirs.count:,} here")
            elif ours.digest != theirs.digest:
                differences.append(f"{name}: {ours.count:,} in both, and not the same")
        if policy_too and self.policy is not other.policy:
            differences.append(f"by default: {self.policy.value} there, {other.policy.value} here")
        return differences


# -- the canonical encoding


def line(*values: Any) -> bytes:
    """Values in one encoding; NUL becomes the character that replaces it where a database cannot store it."""
    text = json.dumps(values, separators=(",", ":"), default=_encodable)
    return text.encode().replace(b"\\u0000", b"\\ufffd")


def _encodable(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
        case frozenset():
            return sorted(value)
        case Mapping():
            return dict(value)
    return [getattr(value, field.name) for field in fields(value)]


def content_lines(stored: StoredFile, vectors: Mapping[bytes, bytes]) -> Iterator[tuple[str, bytes]]:
    """The blocks, pieces, vectors, pages and mentions of a file, each as a line of its kind."""
    path, outline = stored.path, stored.file.outline
    for i, block in enumerate(outline.blocks):
        yield "blocks", line(path, i, *block)
    for i, (piece, key) in enumerate(zip(outline.pieces, stored.hashes, strict=True)):
        yield "pieces", line(path, i, *piece, key)
        if key in vectors:
            yield "vectors", line(path, i, vectors[key])
    for page in outline.pages:
        yield "pages", line(path, *page)
    for mention in sorted({line(path, *mention) for mention in outline.mentions}):
        yield "mentions", mention


def standing_line(stored: StoredFile) -> bytes:
    """Everything else that is stored of a file or block: its state, who may read it, and its place in the tree."""
    place = (stored.block, stored.origin)
    return line(stored.path, stored.file.state, _text_facts(stored), stored.access, stored.has_own_readers, place)


def content_of(stored: StoredFile, vectors: Mapping[bytes, bytes]) -> list[Any]:
    """The text of a file and how it was read, to compare it with another."""
    return [line(_text_facts(stored)), *content_lines(stored, vectors)]


def _text_facts(stored: StoredFile) -> tuple[Any, ...]:
    outline = stored.file.outline
    digest = blake2b(path_bytes(stored.file.text), digest_size=16).digest()
    return digest, outline.language, outline.note, outline.title


# -- counting


def _files_by_path(store: TransferSource) -> Iterator[tuple[StoredFile, dict[bytes, bytes]]]:
    """Every file and block, with the vectors of it and its neighbours."""
    after = ""
    while batch := store.transfer.files_by_path(after=after, limit=_FILES_AT_ONCE):
        vectors = store.transfer.vectors(key for stored in batch for key in stored.hashes)
        for stored in batch:
            yield stored, vectors
        after = batch[-1].path


def tally(store: Store, watch: Watcher, doing: str) -> Tally:
    """Count and hash everything that a store holds, as it is at one moment."""
    counts: Counter[str] = Counter()
    hashes = {kind: blake2b(digest_size=16) for kind in KINDS}
    samples: list[Sample] = []

    def add(kind: str, encoded: bytes) -> None:
        counts[kind] += 1
        hashes[kind].update(encoded + b"\n")

    with store.snapshot():
        total = store.transfer.count()
        for done, (stored, vectors) in enumerate(_files_by_path(store), 1):
            add(_FILES if stored.block is None else _OWN_BLOCKS, standing_line(stored))
            for kind, encoded in content_lines(stored, vectors):
                add(kind, encoded)
            _sample(samples, stored, vectors)
            if done % _FILES_AT_ONCE == 0 or done == total:
                watch(doing, done, total)
        for row_kind in RowKind:
            for row in store.transfer.rows(row_kind):
                add(row_kind.value, line(row))
        for fact in sorted(store.transfer.facts().items()):
            add(_FACTS, line(*fact))
        kinds = {kind: Tallied(counts[kind], hashes[kind].hexdigest()) for kind in KINDS}
        return Tally(store.generation, kinds, store.default_access(), samples)


def _sample(samples: list[Sample], stored: StoredFile, vectors: Mapping[bytes, bytes]) -> None:
    """Take a file into the samples, if the hash of its path is one of the smallest."""
    names = (block.name for block in stored.file.outline.blocks if block.name)
    stem = "" if stored.block is not None else stored.path.rpartition("/")[2].partition(".")[0]
    name = next(names, stem or stored.file.text)[:_QUESTION_CHARS]
    if stored.hashes and "\0" not in name:
        rank = blake2b(path_bytes(stored.path), digest_size=8).digest()
        insort(samples, Sample(rank, name, vectors.get(stored.hashes[0])))
        del samples[_QUESTIONS:]


def _everything(stored: StoredFile, vectors: Mapping[bytes, bytes]) -> list[Any]:
    return [standing_line(stored), *content_lines(stored, vectors)]


def first_difference(source: Store, target: Store) -> str | None:
    """The first path at which two stores do not hold the same file or block."""
    with source.snapshot(), target.snapshot():
        for ours, theirs in zip_longest(_files_by_path(source), _files_by_path(target)):
            present = [entry for entry in (ours, theirs) if entry is not None]
            if len(present) < 2 or _everything(*ours) != _everything(*theirs):
                return min((stored.path for stored, _ in present), key=path_bytes)
    return None


# -- questions


def differing_question(source: Store, target: Store, held: Tally) -> str | None:
    """The first question that two stores do not answer alike; each is asked as another reader."""
    grants = source.transfer.rows(RowKind.GRANTS)
    principals = sorted({grant.principal for grant in grants if isinstance(grant, Grant)})
    by_meaning = held.kinds["pieces"].count <= _MOST_PIECES_BY_MEANING
    for sample, principal in zip(held.samples, cycle(principals or [EVERYONE])):
        query = _query(sample, by_meaning=by_meaning)
        filters = Filters(readers=frozenset({DEFAULT, EVERYONE, principal}))
        if not _alike(*(_evidence(store, query, filters) for store in (source, target))):
            return sample.name
    return None


def _query(sample: Sample, *, by_meaning: bool) -> StoreQuery:
    import numpy as np

    vector = None
    if by_meaning and sample.vector is not None:
        vector = np.frombuffer(sample.vector, np.int8).astype(np.float32) / np.float32(127)
    return StoreQuery(terms=dict.fromkeys(terms(sample.name), 1.0), names=(sample.name,), vector=vector)


def _evidence(store: FileIndex, query: StoreQuery, filters: Filters) -> list[tuple[Any, Any]]:
    """The place of each piece that a store returns, and the evidence for it."""
    candidates = store.search(query, filters, top_k=_TOP)
    places = {
        piece.id: (piece.path, piece.block, piece.first_line, piece.last_line)
        for piece in store.pieces([candidate.piece for candidate in candidates], filters)
    }
    return [
        (places[candidate.piece], [_rounded(candidate.signals), _rounded(candidate.of_file)])
        for candidate in candidates
        if candidate.piece in places
    ]


def _rounded(signals: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted((name, round(value, _DIGITS)) for name, value in signals.items())


def _alike(ours: list[tuple[Any, Any]], theirs: list[tuple[Any, Any]]) -> bool:
    """True if the evidence is the same. Of pieces that are equally good, any may be the last among the top."""
    known = dict(ours)
    return sorted(evidence for _, evidence in ours) == sorted(evidence for _, evidence in theirs) and all(
        known.get(place, evidence) == evidence for place, evidence in theirs
    )
