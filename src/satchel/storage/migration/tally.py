"""What a store holds, counted and hashed kind by kind, so that two stores can be compared without either in memory.

Everything is written in one canonical way, in an order that does not depend on the store, and hashed as it goes by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.models.access import DefaultAccess, Grant
from satchel.models.block import Activity, Link
from satchel.ports.transfer import Member, RowKind, StoredFile, TransferRow, TransferSource

if TYPE_CHECKING:
    from satchel.ports.store import Store

FILES: Final = "files"
OWN_BLOCKS: Final = "workspace_blocks"
_OF_FILES: Final = (FILES, OWN_BLOCKS, "blocks", "pieces", "pages", "mentions", "vectors")
_FACTS: Final = "facts"
KINDS: Final = (*_OF_FILES, *(kind.value for kind in RowKind), _FACTS)

_FILES_AT_ONCE: Final = 500
_SAMPLES: Final = 20
_PRINCIPALS: Final = 50
_SAMPLE_CHARS: Final = 100

Watcher = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Tallied:
    """How many there are of a kind, and the hash of all of them."""

    count: int
    digest: str


class Sample(NamedTuple):
    """What can be asked about: a name, and the vector of what it stands on."""

    name: str
    vector: bytes | None


@dataclass(slots=True)
class Tally:
    """All that a store holds at one moment."""

    generation: int = 0
    kinds: dict[str, Tallied] = field(default_factory=dict)
    policy: DefaultAccess = DefaultAccess.OWNER
    samples: list[Sample] = field(default_factory=list)
    principals: list[str] = field(default_factory=list)

    def differences(self, other: Tally, *, policy_too: bool = True) -> list[str]:
        """What the other has otherwise, in words."""
        told = []
        for kind in KINDS:
            ours, theirs = self.kinds[kind], other.kinds[kind]
            name = kind.replace("_", " ")
            if ours.count != theirs.count:
                told.append(f"{name}: {ours.count:,} there, {theirs.count:,} here")
            elif ours.digest != theirs.digest:
                told.append(f"{name}: {ours.count:,} in both, and not the same")
        if policy_too and self.policy is not other.policy:
            told.append(f"by default: {self.policy.value} there, {other.policy.value} here")
        return told


# -- how things are written


def _line(*values: Any) -> bytes:
    """Values in the one way in which they are written; NUL as what stands for it where a database cannot hold it."""
    return json.dumps(values, separators=(",", ":")).encode().replace(b"\\u0000", b"\\ufffd")


def content_lines(kept: StoredFile, vectors: Mapping[bytes, bytes]) -> Iterator[tuple[str, bytes]]:
    """What is in a file: its blocks, pieces, pages, mentions and vectors, each as a line of its kind."""
    path, outline = kept.path, kept.file.outline
    for i, block in enumerate(outline.blocks):
        yield "blocks", _line(path, i, *block)
    for i, (piece, key) in enumerate(zip(outline.pieces, kept.hashes, strict=True)):
        yield "pieces", _line(path, i, *piece, key.hex())
        if key in vectors:
            yield "vectors", _line(path, i, vectors[key].hex())
    for page in outline.pages:
        yield "pages", _line(path, *page)
    for mention in sorted({_line(path, *one) for one in outline.mentions}):
        yield "mentions", mention


def standing_line(kept: StoredFile) -> bytes:
    """Everything else that is kept of a file or block: its state, who may read it, and its place in the tree."""
    file = kept.file
    values: list[Any] = [kept.path, file.state.content_hash.hex(), *file.state[1:], _text_of(kept)]
    values += [sorted(kept.access.allow), sorted(kept.access.deny), kept.has_own_readers]
    block = kept.block
    if block is not None:
        modified = None if block.last_modified is None else block.last_modified.isoformat()
        values += [block.id, str(block.type), block.title, block.parent, float(block.position), block.summary]
        values += [block.source_path, block.start_line, block.end_line, modified, dict(block.metadata)]
        values += [block.inherits, kept.origin]
    return _line(*values)


def content_of(kept: StoredFile, vectors: Mapping[bytes, bytes]) -> bytes:
    """The hash of what is in a file: two of the same need not be put again."""
    digest = blake2b(_line(_text_of(kept)), digest_size=16)
    for _, line in content_lines(kept, vectors):
        digest.update(line + b"\n")
    return digest.digest()


def _text_of(kept: StoredFile) -> list[Any]:
    outline = kept.file.outline
    text = blake2b(kept.file.text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return [text, outline.language, outline.note, outline.title]


def row_line(row: TransferRow) -> bytes:
    """A member, grant, link, deed or commit."""
    match row:
        case Member():
            return _line(*row)
        case Grant():
            return _line(row.block, row.principal, row.effect.value, row.is_path)
        case Link():
            return _line(row.source, row.kind.value, row.target, row.name)
        case Activity():
            return _line(row.block, row.timestamp.isoformat(), row.actor, row.action, row.detail, row.reference)


def path_order(path: str) -> bytes:
    """What paths are ordered by, in every store: their bytes."""
    return path.encode("utf-8", "surrogateescape")


# -- counting


def in_path_order(store: TransferSource) -> Iterator[tuple[StoredFile, dict[bytes, bytes]]]:
    """Every file and block, with the vectors of it and its neighbours."""
    after = ""
    while some := store.transfer.files_by_path(after=after, limit=_FILES_AT_ONCE):
        vectors = store.transfer.vectors(key for one in some for key in one.hashes)
        for one in some:
            yield one, vectors
        after = some[-1].path


def tally(store: Store, watch: Watcher, doing: str) -> Tally:
    """Count and hash all that a store holds, as it is at one moment."""
    counting = _Counting()
    with store.snapshot():
        total = store.transfer.count()
        for done, (kept, vectors) in enumerate(in_path_order(store), 1):
            counting.add_file(kept, vectors)
            if done % _FILES_AT_ONCE == 0 or done == total:
                watch(doing, done, total)
        for kind in RowKind:
            for row in store.transfer.rows(kind):
                counting.add_row(kind, row)
        for name, value in sorted(store.transfer.facts().items()):
            counting.add(_FACTS, _line(name, value))
        return counting.result(store.generation, store.default_access())


class _Counting:
    def __init__(self) -> None:
        self._hashes = {kind: blake2b(digest_size=16) for kind in KINDS}
        self._counts = dict.fromkeys(KINDS, 0)
        self._samples: list[tuple[int, Sample]] = []
        self._principals: dict[str, None] = {}

    def add(self, kind: str, line: bytes) -> None:
        self._hashes[kind].update(line + b"\n")
        self._counts[kind] += 1

    def add_file(self, kept: StoredFile, vectors: Mapping[bytes, bytes]) -> None:
        self.add(FILES if kept.block is None else OWN_BLOCKS, standing_line(kept))
        for kind, line in content_lines(kept, vectors):
            self.add(kind, line)
        name = _name_of(kept)
        if kept.hashes and "\0" not in name:
            self._consider(kept, Sample(name, vectors.get(kept.hashes[0])))

    def add_row(self, kind: RowKind, row: TransferRow) -> None:
        self.add(kind.value, row_line(row))
        if isinstance(row, Grant) and len(self._principals) < _PRINCIPALS:
            self._principals[row.principal] = None

    def _consider(self, kept: StoredFile, sample: Sample) -> None:
        """Take a file as a sample, if the hash of its path is one of the smallest."""
        rank = -int.from_bytes(blake2b(path_order(kept.path), digest_size=8).digest())
        entry = (rank, sample)
        if len(self._samples) < _SAMPLES:
            heappush(self._samples, entry)
        elif rank > self._samples[0][0]:
            heapreplace(self._samples, entry)

    def result(self, generation: int, policy: DefaultAccess) -> Tally:
        return Tally(
            generation,
            {kind: Tallied(self._counts[kind], self._hashes[kind].hexdigest()) for kind in KINDS},
            policy,
            [sample for _, sample in sorted(self._samples, reverse=True)],
            list(self._principals),
        )


def _name_of(kept: StoredFile) -> str:
    outline = kept.file.outline
    named: Sequence[str] = [one.name for one in outline.blocks if one.name]
    stem = "" if kept.block is not None else kept.path.rpartition("/")[2].partition(".")[0]
    return (named[0] if named else stem or kept.file.text)[:_SAMPLE_CHARS]


# -- where two stores differ


def first_difference(source: Store, target: Store) -> str | None:
    """The first path at which two stores do not hold the same file or block."""
    with source.snapshot(), target.snapshot():
        theirs = in_path_order(target)
        for ours in in_path_order(source):
            other = next(theirs, None)
            if other is None or not _same(ours, other):
                return min((one[0].path for one in (ours, other) if one is not None), key=path_order)
        more = next(theirs, None)
        return None if more is None else more[0].path


def _same(one: tuple[StoredFile, dict[bytes, bytes]], other: tuple[StoredFile, dict[bytes, bytes]]) -> bool:
    return standing_line(one[0]) == standing_line(other[0]) and content_of(*one) == content_of(*other)
