"""The write path: walk → read → embed → store, only for what has changed.

A file whose size and time are as they were is not opened; one whose content is as it was is not read again; the vectors
of a moved file are found by its content. Every commit is whole, so that whoever stops us loses at most the last one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import ServerUnavailable
from satchel.indexing.changes import WAY, Changes, Lookout
from satchel.indexing.documents.policy import NO_DOCUMENTS, DocumentPolicy, way_of_reading
from satchel.indexing.loading import PASSED_OVER, Before, Loaded, Loader
from satchel.indexing.walk import DEFAULT_MAX_FILE_BYTES
from satchel.indexing.work import LocalWorkers, texts_of
from satchel.models.files import DOCUMENT_KINDS, document_suffixes, extension_of
from satchel.models.outline import Outline
from satchel.ports.file_index import NewFile
from satchel.ports.workers import Job, Load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.models.files import FileState
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store, StoreWriter
    from satchel.ports.workers import Prepared, Vectors, Workers, WorkersMaker

__all__ = ["PASSED_OVER", "Changes", "IndexReport", "Indexer", "Step", "Watcher"]

_COMMIT_AT_CHARS: Final = 6_000_000
_COMMIT_AT_FILES: Final = 1_000
_COMMIT_AT_SECONDS: Final = 20.0
"""So much work is lost at most when somebody stops us."""
_EMBED_AT_TEXTS: Final = 256
"""So many vectors are made at once, while others are still reading."""


class Step(NamedTuple):
    """How far the work is: what is being done, how much of it is done, and how much there is (0: unknown)."""

    doing: str
    done: int
    of: int


Watcher = Callable[[Step], None]
"""Somebody who wants to know how far the work is."""


@dataclass(slots=True)
class IndexReport:
    """What an index run did."""

    found: int = 0
    read: int = 0
    touched: int = 0
    dropped: int = 0
    embedded: int = 0
    seconds: float = 0.0
    generation: int = 0
    duplicates: int = 0
    """Documents of the very content of others, which are kept once."""
    passed_over: Counter[str] = field(default_factory=Counter)
    passed_paths: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything that can be found is different now."""
        return bool(self.read or self.dropped)

    def pass_over(self, path: str, reason: str) -> None:
        """A file is passed over."""
        self.passed_over[reason] += 1
        self.passed_paths.append((path, reason))


class Change(NamedTuple):
    """A file as it is to be kept, or to be forgotten."""

    loaded: Loaded
    outline: Outline
    hashes: tuple[bytes, ...] = ()
    """Those of the texts whose vectors it is found by."""
    texts: dict[bytes, str] | None = None
    vectors: Vectors | None = None

    @classmethod
    def of(cls, loaded: Loaded, prepared: Prepared) -> Change:
        """A file that was prepared, or could not be read."""
        if prepared.unreadable:
            reason = prepared.unreadable
            return cls(loaded._replace(reason=reason), Outline(None, note=PASSED_OVER + reason))
        loaded = loaded._replace(text=prepared.text or loaded.text)
        if prepared.vectors is not None:
            return cls(loaded, prepared.outline, prepared.vectors.hashes, None, prepared.vectors)
        texts = texts_of(prepared.outline, loaded.text)
        return cls(loaded, prepared.outline, tuple(texts), texts)


class Batch:
    """What goes into one commit."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.missing: list[str] = []
        self.chars = 0
        self.begun = time.monotonic()
        self.unembedded: dict[bytes, str] = {}
        """Texts whose vectors the store may lack."""
        self.rows: dict[bytes, NDArray[np.float32]] = {}
        """Vectors that the store may lack."""

    def add(self, change: Change) -> None:
        """One more change."""
        self.chars += len(change.loaded.text)
        if change.texts is not None:
            self.unembedded.update(one for one in change.texts.items() if one[0] not in self.rows)
        if change.vectors is not None:
            self.keep(change.vectors.hashes, change.vectors.as_array())
        self.changes.append(change._replace(texts=None, vectors=None))

    def keep(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Vectors that were made."""
        self.rows.update(zip(keys, vectors, strict=True))

    def vectors(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """The vectors of these texts, one row each."""
        import numpy as np

        return np.stack([self.rows[key] for key in keys])


class Indexer:
    """Keeps a store in step with a folder."""

    def __init__(
        self,
        root: Path,
        store: Store,
        embedder: Embedder,
        *,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        workers: WorkersMaker | None = None,
        without: str = "",
        documents: DocumentPolicy = NO_DOCUMENTS,
    ) -> None:
        self._documents = documents
        self._store = store
        self._embedder = embedder
        self._max_file_bytes = max_file_bytes
        self._find_workers = workers or (lambda load: LocalWorkers(documents=documents, load=load))
        self._lookout = Lookout(root, store, max_file_bytes=max_file_bytes, without=without, documents=documents)

    def changes(self) -> Changes:
        """What has to be looked at; nothing is opened."""
        return self._lookout.changes()

    def run(self, changes: Changes | None = None, watcher: Watcher | None = None) -> IndexReport:
        """Bring the store up to the folder."""
        started = time.perf_counter()
        watch = watcher or (lambda _: None)
        report = IndexReport()
        # Where several may write, whoever commits last says the same as the others.
        with nullcontext() if self._store.many_writers else self._store.lock():
            watch(Step("looking", 0, 0))
            changes = changes or self.changes()
            report.found = changes.found
            report.notes += DOCUMENT_KINDS.problems.values()
            self._report_passed(changes, report)
            self._settle()
            if changes.to_look_at:
                self._bring_up(changes, report, watch)
            if self._store.fact(WAY) != way_of_reading(self._documents):
                with self._store.write() as writer:
                    writer.set_fact(WAY, way_of_reading(self._documents))
            watch(Step("arranging", 0, 0))
            self._store.catch_up()
            if report.dropped or report.read:
                self._store.tidy()
        report.generation = self._store.generation
        report.seconds = time.perf_counter() - started
        return report

    def _report_passed(self, changes: Changes, report: IndexReport) -> None:
        """What the walk passed over, and what was found to hold nothing for us when it was read."""
        for passed in changes.passed:
            report.pass_over(passed.path, passed.reason.value)
        looked_at = {file.path for file in changes.suspect}.union(changes.missing)
        for path, note in self._store.notes().items():
            if note.startswith(PASSED_OVER) and path not in looked_at:
                report.pass_over(path, note.removeprefix(PASSED_OVER))

    def _settle(self) -> None:
        with self._store.write() as writer:
            writer.settle_embedder(self._embedder.name, self._embedder.dimensions)
            if not any(extension_of(path) in document_suffixes() for path in self._store.files()):
                writer.set_fact(WAY, way_of_reading(self._documents))

    def _bring_up(self, changes: Changes, report: IndexReport, watch: Watcher) -> None:
        held = known = self._store.files()
        if self._lookout.is_read_otherwise():
            known = {path: state for path, state in known.items() if extension_of(path) not in document_suffixes()}
        untrusted = frozenset(file.path for file in changes.suspect).union(changes.missing)
        before = Before(known, self._store.notes(), untrusted)
        batch = Batch()
        with self._lookout.opened() as folder, self._find_workers(self._load_of(changes)) as workers:
            loader = Loader(
                folder,
                before,
                self._documents,
                max_file_bytes=self._max_file_bytes,
                one_user=self._lookout.has_one_user(),
            )
            try:
                for done, change in enumerate(_prepared(loader.load(changes.suspect), workers, held), 1):
                    batch.add(change)
                    if len(batch.unembedded) >= _EMBED_AT_TEXTS:
                        self._embed(batch)
                    if self._is_full(batch):
                        self._commit(batch, report, held)
                        batch = Batch()
                    watch(Step("reading", done, len(changes.suspect)))
            except (KeyboardInterrupt, ServerUnavailable):
                # What was read is kept: reading documents takes long.
                self._commit(batch, report, held)
                raise
            finally:
                report.notes += workers.notes
            batch.missing = [path for path in changes.missing if path in held]
            self._commit(batch, report, held)

    def _load_of(self, changes: Changes) -> Load:
        documents = sum(file.size for file in changes.suspect if self._documents.takes(file.path))
        return Load(sum(file.size for file in changes.suspect) - documents, documents)

    @staticmethod
    def _is_full(batch: Batch) -> bool:
        late = time.monotonic() - batch.begun > _COMMIT_AT_SECONDS
        return late or batch.chars > _COMMIT_AT_CHARS or len(batch.changes) >= _COMMIT_AT_FILES

    def _embed(self, batch: Batch) -> None:
        """Make the vectors that the store lacks: before the commit, for which other writers may be waiting."""
        if not batch.unembedded:
            return
        with self._store.write() as writer:
            lacking = sorted(writer.lacking(batch.unembedded))
        if lacking:
            batch.keep(lacking, self._embedder.embed_texts([batch.unembedded[key] for key in lacking]))
        batch.unembedded.clear()

    def _commit(self, batch: Batch, report: IndexReport, held: Mapping[str, FileState]) -> None:
        if not batch.changes and not batch.missing:
            return
        self._embed(batch)
        with self._store.write() as writer:
            theirs = self._written_since(held)
            for path in batch.missing:
                if path not in theirs:
                    writer.drop(path)
                    report.dropped += 1
            batch.changes = [change for change in batch.changes if not _is_overtaken(change.loaded, theirs)]
            self._put_vectors(batch, writer, report)
            for change in batch.changes:
                self._put(change, writer, report)

    def _written_since(self, held: Mapping[str, FileState]) -> Mapping[str, FileState]:
        """What others have put or touched since we began; nobody, where there is but one writer."""
        if not self._store.many_writers:
            return {}
        return {path: state for path, state in self._store.files().items() if state != held.get(path)}

    def _put_vectors(self, batch: Batch, writer: StoreWriter, report: IndexReport) -> None:
        lacking = writer.lacking({key for change in batch.changes for key in change.hashes})
        # Another writer may have dropped meanwhile what the store had when we asked.
        lost = lacking.difference(batch.rows)
        if lost:
            texts: dict[bytes, str] = {}
            for change in batch.changes:
                texts |= texts_of(change.outline, change.loaded.text)
            keys = sorted(lost)
            batch.keep(keys, self._embedder.embed_texts([texts[key] for key in keys]))
        if lacking:
            ordered = sorted(lacking)
            writer.put_vectors(ordered, batch.vectors(ordered))
            report.embedded += len(ordered)

    @staticmethod
    def _put(change: Change, writer: StoreWriter, report: IndexReport) -> None:
        loaded = change.loaded
        if loaded.state is None:
            # It was there a moment ago; what we may not read we do not keep.
            writer.drop(loaded.path)
        elif loaded.same:
            writer.touch(loaded.path, loaded.state)
            report.touched += 1
        else:
            writer.put(NewFile(loaded.path, loaded.state, loaded.text, change.outline))
            report.read += not loaded.reason and not loaded.twin_of
            report.duplicates += bool(loaded.twin_of)
            if change.outline.note and not loaded.reason and not loaded.twin_of:
                report.notes.append(f"{loaded.path}: {change.outline.note}")
        if loaded.reason:
            report.pass_over(loaded.path, loaded.reason)


def _prepared(loaded: Iterator[Loaded], workers: Workers, held: Mapping[str, FileState]) -> Iterator[Change]:
    """Each file as it is to be kept; those that need no preparing pass by in their turn."""
    waiting: dict[str, Loaded] = {}
    passing: list[Loaded] = []
    contents = {state.content_hash for state in held.values()}

    def jobs() -> Iterator[Job]:
        for one in loaded:
            if one.is_settled:
                passing.append(one)
            else:
                waiting[one.path] = one._replace(data=None)
                # Of a file that has moved the store has the vectors.
                is_new = one.state is not None and one.state.content_hash not in contents
                yield Job(one.path, one.text, one.data, embed=is_new)

    for prepared in workers.prepare(jobs()):
        yield from _passed(passing)
        yield Change.of(waiting.pop(prepared.path), prepared)
    yield from _passed(passing)


def _passed(passing: list[Loaded]) -> Iterator[Change]:
    for one in passing:
        yield Change(one, Outline(None, note=one.note))
    passing.clear()


def _is_overtaken(ours: Loaded, theirs: Mapping[str, FileState]) -> bool:
    """Whether another writer has put the file since we began, as it is or as it became later."""
    put = theirs.get(ours.path)
    if put is None:
        return False
    if ours.state is None:
        return True
    return put.content_hash == ours.state.content_hash or put.read_ns > ours.state.read_ns
