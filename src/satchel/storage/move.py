"""Transfer of a whole store to another, and comparison of two stores by content and by answers.

A transfer goes in small commits, and every finished commit survives an interruption. At no time may anybody read in the
target what the source forbids: group members come first, each file and block comes with its access list, and until the
end the default access is "deny". An incomplete store carries the fact `moving` and is never used as a complete store.
An interrupted transfer is simply started again; rows already in the target are skipped. The source may change
meanwhile: changed rows are transferred again until both stores are equal.

Two stores are compared without loading either into memory: everything is put into a canonical encoding, in an order
independent of the store, then counted and hashed by kind. Data derived from the rows is compared by asking both stores
the same questions.
"""

from __future__ import annotations

import json
import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from hashlib import blake2b
from itertools import chain, cycle, islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import IndexBusy, InvalidOption, MoveUnfinished, StoresDiffer
from satchel.models.access import DEFAULT, EVERYONE, DefaultAccess, Grant
from satchel.models.search import Filters
from satchel.ports.file_index import StoreQuery
from satchel.ports.transfer import MOVING, RowKind, StoredFile, TransferSource
from satchel.storage.sql.rows import encoded
from satchel.text.words import terms

if TYPE_CHECKING:
    from satchel.ports.file_index import FileIndex
    from satchel.ports.store import Store


_FILES: Final = "files"
_OWN_BLOCKS: Final = "workspace_blocks"
_FACTS: Final = "facts"
_PARTS: Final = ("blocks", "pieces", "pages", "mentions", "vectors")
KINDS: Final = (_FILES, _OWN_BLOCKS, *_PARTS, *(kind.value for kind in RowKind), _FACTS)

_TALLY_BATCH_FILES: Final = 500  # a batch is in memory at once; progress is reported after each
_MAX_QUESTIONS: Final = 20  # each question is a search in both stores: more find rarer differences, and take longer
_MAX_QUESTION_CHARS: Final = 100  # enough for a name; a block without a name is asked about by the start of its text
_TOP_K: Final = 10  # candidates compared for each question: the part of the order that readers see first
_COMPARED_DECIMALS: Final = 4  # more would report rounding errors as differences, fewer would hide differences
_MAX_PIECES_COMPARED_EXACTLY: Final = 20_000
"""With more pieces, a store may search vectors through an approximate index, and answers may differ."""

Watcher = Callable[[str, int, int], None]
"""Called with the current step, the amount done, and the total amount (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Tallied:
    """The number of entries of a kind, and the hash of all of them."""

    count: int
    digest: str


class Sample(NamedTuple):
    """The material for a test question: the name of something in a file, and the vector of the file's first piece."""

    rank: bytes
    """The hash of the file's path: the samples with the smallest hashes become questions."""
    name: str
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts and hashes of everything in a store at a single moment."""

    generation: int
    kinds: dict[str, Tallied]
    policy: DefaultAccess
    samples: list[Sample]

    def differences(self, other: Tally, *, policy_too: bool = True) -> list[str]:
        """A message for each kind with different content in the other store."""
        differences = []
        for kind in KINDS:
            there, here = self.kinds[kind], other.kinds[kind]
            name = kind.replace("_", " ")
            if there.count != here.count:
                differences.append(f"{name}: {there.count:,} there, {here.count:,} here")
            elif there.digest != here.digest:
                differences.append(f"{name}: {there.count:,} in both, but with different content")
        if policy_too and self.policy is not other.policy:
            differences.append(f"default access: {self.policy.value} there, {other.policy.value} here")
        return differences


# -- the canonical encoding


_ENCODERS: Final[dict[type, Any]] = {bytes: bytes.hex, datetime: datetime.isoformat, frozenset: sorted}


def _encodable(value: Any) -> Any:
    encode = _ENCODERS.get(type(value))
    return encode(value) if encode else [getattr(value, field.name) for field in fields(value)]


_JSON: Final = json.JSONEncoder(separators=(",", ":"), default=_encodable)


def line(*values: Any) -> bytes:
    """The values in the canonical encoding; NUL becomes U+FFFD, as in databases without support for NUL."""
    return _JSON.encode(values).encode().replace(b"\\u0000", b"\\ufffd")


def content_lines(stored: StoredFile, vectors: Mapping[bytes, bytes]) -> Iterator[tuple[str, bytes]]:
    """The blocks, pieces, vectors, pages and mentions of a file, each with its kind and as an encoded line."""
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
    """The encoded state, access and place in the tree of a file or block: all stored data except the content."""
    place = (stored.block, stored.origin)
    return line(stored.path, stored.file.state, _text_facts(stored), stored.access, stored.has_own_readers, place)


def content_of(stored: StoredFile, vectors: Mapping[bytes, bytes]) -> list[Any]:
    """The text and outline of a file in a form for comparison."""
    return [line(_text_facts(stored)), *content_lines(stored, vectors)]


def _text_facts(stored: StoredFile) -> tuple[Any, ...]:
    outline = stored.file.outline
    digest = blake2b(encoded(stored.file.text), digest_size=16).digest()
    return digest, outline.language, outline.note, outline.title


# -- counting


def _files_by_path(store: TransferSource) -> Iterator[tuple[StoredFile, dict[bytes, bytes]]]:
    """Every file and block, with the vectors of the whole batch."""
    after = ""
    while batch := store.transfer.files_by_path(after=after, limit=_TALLY_BATCH_FILES):
        vectors = store.transfer.vectors(key for stored in batch for key in stored.hashes)
        for stored in batch:
            yield stored, vectors
        after = batch[-1].path


def tally(store: Store, watch: Watcher, doing: str) -> Tally:
    """Count and hash everything in a store within a single snapshot."""
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
            if done % _TALLY_BATCH_FILES == 0 or done == total:
                watch(doing, done, total)
        for row_kind in RowKind:
            for row in store.transfer.rows(row_kind):
                add(row_kind.value, line(row))
        for fact in sorted(store.transfer.facts().items()):
            add(_FACTS, line(*fact))
        kinds = {kind: Tallied(counts[kind], hashes[kind].hexdigest()) for kind in KINDS}
        return Tally(store.generation, kinds, store.default_access(), samples)


def _sample(samples: list[Sample], stored: StoredFile, vectors: Mapping[bytes, bytes]) -> None:
    """Add a file to the samples if the hash of the path is among the smallest."""
    names = (block.name for block in stored.file.outline.blocks if block.name)
    stem = "" if stored.block is not None else stored.path.rpartition("/")[2].partition(".")[0]
    name = next(names, stem or stored.file.text)[:_MAX_QUESTION_CHARS]
    if stored.hashes and "\0" not in name:
        rank = blake2b(encoded(stored.path), digest_size=8).digest()
        insort(samples, Sample(rank, name, vectors.get(stored.hashes[0])))
        del samples[_MAX_QUESTIONS:]


def first_difference(source: Store, target: Store) -> str | None:
    """The first path with a different file or block in the two stores."""
    with source.snapshot(), target.snapshot():
        for pair in zip_longest(_files_by_path(source), _files_by_path(target)):
            present = [entry for entry in pair if entry is not None]
            contents = [(standing_line(stored), content_of(stored, vectors)) for stored, vectors in present]
            if len(contents) < 2 or contents[0] != contents[1]:
                return min((stored.path for stored, _ in present), key=encoded)
    return None


# -- questions


def differing_question(source: Store, target: Store, source_tally: Tally) -> str | None:
    """The first question with different answers from the two stores; readers take turns with the questions."""
    grants = source.transfer.rows(RowKind.GRANTS)
    principals = sorted({grant.principal for grant in grants if isinstance(grant, Grant)})
    by_meaning = source_tally.kinds["pieces"].count <= _MAX_PIECES_COMPARED_EXACTLY
    for sample, principal in zip(source_tally.samples, cycle(principals or [EVERYONE])):
        query = _query(sample, by_meaning=by_meaning)
        filters = Filters(readers=frozenset({DEFAULT, EVERYONE, principal}))
        if not _same_evidence(*(_evidence(store, query, filters) for store in (source, target))):
            return sample.name
    return None


def _query(sample: Sample, *, by_meaning: bool) -> StoreQuery:
    import numpy as np

    vector = None
    if by_meaning and sample.vector is not None:
        vector = np.frombuffer(sample.vector, np.int8).astype(np.float32) / np.float32(127)
    return StoreQuery(terms=dict.fromkeys(terms(sample.name), 1.0), names=(sample.name,), vector=vector)


def _evidence(store: FileIndex, query: StoreQuery, filters: Filters) -> list[tuple[Any, Any]]:
    """The location and the evidence of each piece in a store's answer."""
    candidates = store.search(query, filters, top_k=_TOP_K)
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
    return sorted((name, round(value, _COMPARED_DECIMALS)) for name, value in signals.items())


def _same_evidence(there: list[tuple[Any, Any]], here: list[tuple[Any, Any]]) -> bool:
    """True if the evidence is the same; among equally good pieces, any may be last in the top list."""
    if sorted(evidence for _, evidence in there) != sorted(evidence for _, evidence in here):
        return False
    known = dict(there)
    return all(known.get(place, evidence) == evidence for place, evidence in here)


_FILES_AT_ONCE: Final = 500  # per commit: an interruption repeats at most this many, and a batch is in memory at once
_BATCH_PATHS: Final = 5_000  # paths are short, hence more at once than files
_ROWS_AT_ONCE: Final = 10_000  # per commit: an interruption repeats at most this many
_MAX_ROUNDS: Final = 5  # a source still changing after five full transfers is too busy: the caller gets IndexBusy
# Outlasts the lock of a killed process, which a database may hold for a moment; a living writer is reported as busy.
_PATIENCE_S: Final = 10.0
_ACCESS_KINDS: Final = (RowKind.MEMBERS, RowKind.GRANTS)
_OTHER_KINDS: Final = (RowKind.LINKS, RowKind.ACTIVITY, RowKind.COMMITS)


class Side(NamedTuple):
    """A store with a display name."""

    store: Store
    name: str

    def refuse_unfinished(self) -> None:
        """Raise MoveUnfinished for a store with an unfinished transfer from another store."""
        begun = self.store.fact(MOVING)
        if begun is not None:
            raise MoveUnfinished(self.name, str(begun))


@dataclass(slots=True)
class MoveReport:
    """The result of a transfer, and counts and hashes of both stores by kind."""

    source: str
    target: str
    content: dict[str, Tallied] = field(default_factory=dict)
    put: int = 0
    """Files and blocks written."""
    amended: int = 0
    """Files and blocks with changed readers, time or place, and unchanged content."""
    already_present: int = 0
    """Files and blocks already in the target."""
    dropped: int = 0
    """Files and blocks removed, as the source has them no longer."""
    rounds: int = 0
    questions: int = 0
    """The number of questions with the same answers from both stores."""
    seconds: float = 0.0


def _ignore_progress(_doing: str, _done: int, _of: int) -> None:
    """Ignore progress reports."""


def move(source: Side, target: Side, watch: Watcher = _ignore_progress) -> MoveReport:
    """Transfer everything from the source to the target, and verify the result."""
    started = time.perf_counter()
    moving = _Move(source, target, watch, MoveReport(source.name, target.name))
    # To its database, a process killed a moment ago may still seem to be at work.
    with target.store.lock(wait=_PATIENCE_S):
        moving.run()
    moving.report.seconds = time.perf_counter() - started
    return moving.report


def verify(source: Side, target: Side, watch: Watcher = _ignore_progress) -> MoveReport:
    """Compare the target with the source; any difference raises StoresDiffer."""
    started = time.perf_counter()
    source.refuse_unfinished()
    target.refuse_unfinished()
    source_tally, target_tally = _tally_both(source, target, watch)
    differences = source_tally.differences(target_tally)
    if differences:
        raise _differ(source, target, differences)
    report = MoveReport(source.name, target.name, source_tally.kinds)
    report.questions = _ask_both(source, target, source_tally)
    report.seconds = time.perf_counter() - started
    return report


@dataclass(slots=True)
class _Move:
    source: Side
    target: Side
    watch: Watcher
    report: MoveReport

    def run(self) -> None:
        self._check_stores()
        with self.target.store.write() as writer:
            writer.blocks.set_default(DefaultAccess.DENY)
            writer.transfer.set_facts({MOVING: self.source.name})
        source_tally = self._transfer_until_equal()
        with self.target.store.write() as writer:
            writer.blocks.set_default(source_tally.policy)
            writer.transfer.set_facts({MOVING: None})
        self.target.store.catch_up()
        self.report.content = source_tally.kinds

    def _check_stores(self) -> None:
        """Raise an error for an unsuitable source or target."""
        self.source.refuse_unfinished()
        store, name = self.target
        begun = store.fact(MOVING)
        if name == self.source.name:
            problem = "is the source itself; give another target"
        elif begun is not None and begun != self.source.name:
            problem = (
                f"contains an unfinished move from {begun!r}; finish that move, choose "
                "another target, or clear this one with `satchel clear`"
            )
        elif begun is None and not _is_empty(store):
            problem = (
                "is not empty; choose an empty target (another folder, or another "
                "workspace=… in the database), or clear it with `satchel clear`. To compare it with "
                "the source, use --verify-only"
            )
        else:
            return
        raise InvalidOption("target", name, problem)

    def _transfer_until_equal(self) -> Tally:
        """Repeat the transfer until both stores are equal; return the tally of the source."""
        before: Tally | None = None
        for _ in range(_MAX_ROUNDS):
            self.report.rounds += 1
            self._transfer_once()
            source_tally, target_tally = _tally_both(self.source, self.target, self.watch)
            differences = source_tally.differences(target_tally, policy_too=False)
            if not differences and self._answers_match(source_tally):
                return source_tally
            if differences and before is not None and not before.differences(source_tally):
                # The source has not changed for a whole round, yet the stores differ.
                raise _differ(self.source, self.target, differences)
            before = source_tally
        raise IndexBusy(self.source.name, "")

    def _answers_match(self, source_tally: Tally) -> bool:
        """True if both stores give the same answers; False if the source has changed since the count."""
        self.watch("arranging", 0, 0)
        self.target.store.catch_up()
        self.target.store.tidy()
        try:
            self.report.questions = _ask_both(self.source, self.target, source_tally)
        except StoresDiffer:
            if self.source.store.generation == source_tally.generation:
                raise
            return False
        return True

    # -- one round

    def _transfer_once(self) -> None:
        self._transfer_facts()
        for kind in _ACCESS_KINDS:
            self._transfer_rows(kind)
        self._drop_deleted()
        self._transfer_files()
        for kind in _OTHER_KINDS:
            self._transfer_rows(kind)

    def _transfer_facts(self) -> None:
        facts, known = self.source.store.transfer.facts(), self.target.store.transfer.facts()
        changed = {name: value for name, value in facts.items() if known.get(name) != value}
        with self.target.store.write() as writer:
            writer.transfer.set_facts({**dict.fromkeys(known.keys() - facts.keys()), **changed})

    def _transfer_files(self) -> None:
        store = self.source.store
        after = done = 0
        total = store.transfer.count()
        while True:
            with store.snapshot():
                batch = store.transfer.files(after=after, limit=_FILES_AT_ONCE)
                vectors = store.transfer.vectors(key for stored in batch for key in stored.hashes)
            if not batch:
                return
            self._put(batch, vectors)
            after, done = batch[-1].number, done + len(batch)
            self.watch("moving", done, max(done, total))

    def _put(self, batch: list[StoredFile], vectors: dict[bytes, bytes]) -> None:
        reader = self.target.store.transfer
        there = reader.files_at([stored.path for stored in batch])
        known = reader.vectors(key for stored in there.values() for key in stored.hashes)
        new, amended = [], []
        for stored in batch:
            other = there.get(stored.path)
            if other is None or content_of(stored, vectors) != content_of(other, known):
                new.append(stored)
            elif standing_line(stored) != standing_line(other):
                amended.append(stored)
        if new or amended:
            keys = {key for stored in new for key in stored.hashes}
            with self.target.store.write() as writer:
                writer.transfer.put(new, {key: vectors[key] for key in keys & vectors.keys()})
                for stored in amended:
                    writer.transfer.amend(stored)
        self.report.put += len(new)
        self.report.amended += len(amended)
        if self.report.rounds == 1:
            self.report.already_present += len(batch) - len(new) - len(amended)

    def _drop_deleted(self) -> None:
        with self.source.store.snapshot():
            gone = self._only_in_target()
            while batch := list(islice(gone, _FILES_AT_ONCE)):
                with self.target.store.write() as writer:
                    writer.transfer.drop(batch)
                self.report.dropped += len(batch)

    def _only_in_target(self) -> Iterator[str]:
        """The paths present only in the target."""
        source_paths = _paths(self.source.store)
        in_source = next(source_paths, None)
        for path in _paths(self.target.store):
            while in_source is not None and encoded(in_source) < encoded(path):
                in_source = next(source_paths, None)
            if in_source != path:
                yield path

    def _transfer_rows(self, kind: RowKind) -> None:
        """Append missing rows; if the target's rows are no prefix of the source's rows, replace all of them."""
        self.watch(f"moving {kind.value}", 0, 0)
        with self.source.store.snapshot():
            rows = self.source.store.transfer.rows(kind)
            is_beginning = all(line(row) == line(next(rows, None)) for row in self.target.store.transfer.rows(kind))
            if not is_beginning:
                rows = self.source.store.transfer.rows(kind)
            # A single commit for members and grants: with half of them, a denied reader might have access.
            following = None if kind in _ACCESS_KINDS else _ROWS_AT_ONCE - 1
            while (first := next(rows, None)) is not None or not is_beginning:
                with self.target.store.write() as writer:
                    if not is_beginning:
                        writer.transfer.clear_rows(kind)
                    if first is not None:
                        writer.transfer.put_rows(kind, chain((first,), islice(rows, following)))
                is_beginning = True


def _paths(store: Store) -> Iterator[str]:
    after = ""
    while batch := store.transfer.paths(after=after, limit=_BATCH_PATHS):
        yield from batch
        after = batch[-1]


def _is_empty(store: Store) -> bool:
    return not store.transfer.count() and all(next(store.transfer.rows(kind), None) is None for kind in RowKind)


def _tally_both(source: Side, target: Side, watch: Watcher) -> tuple[Tally, Tally]:
    return tally(source.store, watch, "counting the source"), tally(target.store, watch, "counting the target")


def _differ(source: Side, target: Side, differences: list[str]) -> StoresDiffer:
    path = first_difference(source.store, target.store)
    return StoresDiffer(target.name, source.name, [*differences, *([] if path is None else [f"first at {path!r}"])])


def _ask_both(source: Side, target: Side, source_tally: Tally) -> int:
    """Ask both stores the same questions and return their number; 0 if the search data of a store is behind."""
    if source.store.facts().behind or target.store.facts().behind:
        return 0
    name = differing_question(source.store, target.store, source_tally)
    if name is not None:
        raise StoresDiffer(target.name, source.name, [f"the answers to a question about {name!r} differ"])
    return len(source_tally.samples)
