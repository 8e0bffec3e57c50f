"""The write path: walk → read → embed → store, only for changed files.

A file of unchanged size and time is not opened; a file of unchanged content is not parsed again; the vectors of a
moved file are found by content. Every commit is complete: an interruption loses at most the last batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import ServerUnavailable
from satchel.indexing.changes import (
    WAY,
    Changes,
    FileLoader,
    IndexReport,
    Loaded,
    Lookout,
    is_document_name,
    skipped_fact,
)
from satchel.indexing.first_run import FirstRunLayout
from satchel.indexing.prepared_files import PreparedFiles, reader_version
from satchel.indexing.reading_order import reading_order
from satchel.indexing.tree_sketch import sketch_of
from satchel.indexing.walk import DEFAULT_MAX_FILE_BYTES, NO_DOCUMENTS, DocumentPolicy, opened_folder, way_of_reading
from satchel.indexing.work import LocalWorkers, texts_of
from satchel.models.files import DOCUMENT_KINDS, PASSED_OVER, READER, SKETCH, SKIPPED
from satchel.models.outline import Outline
from satchel.ports.file_index import NewFile
from satchel.ports.workers import Job, Load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.models.files import FileState
    from satchel.ports.embedder import Embedder
    from satchel.ports.prepared_cache import PreparedCache
    from satchel.ports.store import Store, StoreWriter
    from satchel.ports.workers import Vectors, Workers, WorkersMaker

_COMMIT_AT_CHARS: Final = 6_000_000  # bounds the memory of a batch
_COMMIT_AT_FILES: Final = 1_000  # bounds the time of a commit, for which other writers wait
_COMMIT_AT_SECONDS: Final = 20.0  # the most work lost when the run is killed
_EMBED_AT_TEXTS: Final = 256  # so many vectors are made at once, while others are still reading


class IndexStep(NamedTuple):
    """Progress of the work: the activity, the number of items done, and the total (0: unknown)."""

    doing: str
    done: int
    of: int


Watcher = Callable[[IndexStep], None]
"""Callback for progress."""


class FileChange(NamedTuple):
    """A file to store or to drop."""

    loaded: Loaded
    outline: Outline
    hashes: tuple[bytes, ...]
    """Hashes of the texts whose vectors belong to the file."""


@dataclass(slots=True)
class CommitBatch:
    """The changes and vectors of a commit."""

    changes: list[FileChange] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    max_files: int = _COMMIT_AT_FILES
    max_seconds: float = _COMMIT_AT_SECONDS
    chars: int = 0
    begun: float = field(default_factory=time.monotonic)
    unembedded: dict[bytes, str] = field(default_factory=dict)
    """Texts by hash whose vectors may be missing from the store."""
    rows: dict[bytes, NDArray[np.float32]] = field(default_factory=dict)
    """Vectors by text hash that may be missing from the store."""

    def add(self, loaded: Loaded, outline: Outline, vectors: Vectors | None) -> None:
        """Add a change; without vectors, the file's texts are noted for embedding."""
        self.chars += len(loaded.text)
        if vectors is not None:
            hashes = vectors.hashes
            self.add_vectors(hashes, vectors.as_array())
        else:
            texts = texts_of(outline, loaded.text)
            hashes = tuple(texts)
            self.unembedded |= {key: text for key, text in texts.items() if key not in self.rows}
        self.changes.append(FileChange(loaded, outline, hashes))

    def add_vectors(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Add vectors by text hash."""
        self.rows.update(zip(keys, vectors, strict=True))

    @property
    def is_full(self) -> bool:
        """True if the batch should be committed."""
        is_late = time.monotonic() - self.begun > self.max_seconds
        return is_late or self.chars > _COMMIT_AT_CHARS or len(self.changes) >= self.max_files


@dataclass
class Indexer:
    """Refreshes a store from a folder."""

    root: Path
    store: Store
    embedder: Embedder
    _: KW_ONLY
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    workers: WorkersMaker | None = None
    without: str = ""
    documents: DocumentPolicy = NO_DOCUMENTS
    cache: PreparedCache | None = None

    @cached_property
    def _prepared_files(self) -> PreparedFiles:
        return PreparedFiles(self.cache, self.documents, self.embedder)

    @cached_property
    def lookout(self) -> Lookout:
        """The comparison of the folder with the store."""
        return Lookout(self.root, self.store, self.max_file_bytes, self.without, self.documents)

    def changes(self) -> Changes:
        """Files to inspect; opens no file."""
        return self.lookout.changes()

    def run(
        self, changes: Changes | None = None, watcher: Watcher | None = None, *, waiting_question: str = ""
    ) -> IndexReport:
        """Refresh the store from the folder; what a waiting question names is read first."""
        started = time.perf_counter()
        watch = watcher or (lambda _: None)
        report = IndexReport()
        # A store with several writers needs no lock here: all writers store the same files.
        with nullcontext() if self.store.many_writers else self.store.lock():
            watch(IndexStep("looking", 0, 0))
            changes = changes or self.changes()
            report.found = changes.found
            report.notes += DOCUMENT_KINDS.problems.values()
            self._report_passed(changes, report)
            self._prepare_store(changes)
            first_run = FirstRunLayout.begun(self.store, changes.found, len(changes.suspect))
            if changes.to_look_at:
                suspect = reading_order(changes.suspect, waiting_question)
                self._refresh(changes._replace(suspect=tuple(suspect)), report, watch, first_run)
            if self.store.fact(WAY) != way_of_reading(self.documents):
                with self.store.write() as writer:
                    writer.set_fact(WAY, way_of_reading(self.documents))
            watch(IndexStep("arranging", 0, 0))
            self.store.catch_up()
            if first_run is not None:
                first_run.finish()
            if report.changed:
                self.store.tidy()
        report.generation = self.store.generation
        report.seconds = time.perf_counter() - started
        return report

    def _report_passed(self, changes: Changes, report: IndexReport) -> None:
        """Report files skipped by the walk, and files skipped after reading by an earlier run."""
        for passed in changes.passed:
            report.pass_over(passed.path, passed.reason.value)
        looked_at = changes.paths
        for path, note in self.store.notes().items():
            if note.startswith(PASSED_OVER) and path not in looked_at:
                report.pass_over(path, note.removeprefix(PASSED_OVER))

    def _prepare_store(self, changes: Changes) -> None:
        version = reader_version()
        is_whole = not self.store.generation or self.store.fact(READER) == version
        with self.store.write() as writer:
            # An index with files of different readers must not be the seed of another index.
            writer.set_fact(READER, version if is_whole else "")
            writer.set_fact(SKETCH, json.dumps(sketch_of(self.root)))
            writer.set_fact(SKIPPED, skipped_fact(changes.passed))
            writer.settle_embedder(self.embedder.name, self.embedder.dimensions)
            if not any(map(is_document_name, self.store.files())):
                writer.set_fact(WAY, way_of_reading(self.documents))

    def _refresh(self, changes: Changes, report: IndexReport, watch: Watcher, first_run: FirstRunLayout | None) -> None:
        stored = known = self.store.files()
        if self.lookout.is_read_otherwise():
            known = {path: state for path, state in known.items() if not is_document_name(path)}
        batch = _next_batch(first_run, 0)
        make_workers = self.workers or (lambda load: LocalWorkers(documents=self.documents, load=load))
        with opened_folder(self.root) as folder, make_workers(self._load_of(changes)) as workers:
            loader = FileLoader(
                folder=folder,
                documents=self.documents,
                max_file_bytes=self.max_file_bytes,
                one_user=self.lookout.has_one_user(),
                known=known,
                notes=self.store.notes(),
                untrusted=changes.paths,
            )
            try:
                for done, file in enumerate(self._prepared(loader.load(changes.suspect), workers, stored), 1):
                    batch.add(*file)
                    if len(batch.unembedded) >= _EMBED_AT_TEXTS:
                        self._embed(batch)
                    if batch.is_full:
                        self._commit(batch, report, stored)
                        if first_run is not None:
                            first_run.committed(done)
                        batch = _next_batch(first_run, done)
                    watch(IndexStep("reading", done, len(changes.suspect)))
            except (KeyboardInterrupt, ServerUnavailable):
                # Store the files read before the interruption: reading documents takes long.
                self._commit(batch, report, stored)
                raise
            finally:
                report.notes += workers.notes
                report.notes += self._prepared_files.close()
            batch.missing = [path for path in changes.missing if path in stored]
            self._commit(batch, report, stored)

    def _prepared(
        self, loaded: Iterator[Loaded], workers: Workers, stored: Mapping[str, FileState]
    ) -> Iterator[tuple[Loaded, Outline, Vectors | None]]:
        """Each file with an outline and vectors; files without work to do pass through in order."""
        waiting: dict[str, Loaded] = {}
        settled: list[Loaded] = []
        hashes = {state.content_hash for state in stored.values()}

        def jobs() -> Iterator[Job]:
            for file in loaded:
                if file.is_settled:
                    settled.append(file)
                    continue
                waiting[file.path] = file._replace(data=None)
                known = self._prepared_files.find(file)
                if known is not None:
                    yield Job(file.path, prepared=known, embed=False)
                    continue
                # The store has the vectors of a moved file.
                is_new = file.state is not None and file.state.content_hash not in hashes
                yield Job(file.path, file.text, file.data, embed=is_new)

        for prepared in chain(workers.prepare(jobs()), (None,)):
            for file in settled:
                yield file, Outline(None, note=file.note), None
            settled.clear()
            if prepared is None:
                continue
            self._prepared_files.keep(prepared)
            file = waiting.pop(prepared.path)
            if prepared.unreadable:
                file = file._replace(reason=prepared.unreadable)
                yield file, Outline(None, note=file.note), None
            else:
                yield file._replace(text=prepared.text or file.text), prepared.outline, prepared.vectors

    def _load_of(self, changes: Changes) -> Load:
        documents = sum(file.size for file in changes.suspect if self.documents.takes(file.path))
        return Load(sum(file.size for file in changes.suspect) - documents, documents)

    def _embed(self, batch: CommitBatch) -> None:
        """Make the vectors missing from the store, before the commit, because writers may be waiting for the commit."""
        if not batch.unembedded:
            return
        with self.store.write() as writer:
            lacking = sorted(writer.lacking(batch.unembedded))
        if lacking:
            batch.rows.update(self._prepared_files.embed({key: batch.unembedded[key] for key in lacking}))
        batch.unembedded.clear()

    def _commit(self, batch: CommitBatch, report: IndexReport, stored: Mapping[str, FileState]) -> None:
        if not batch.changes and not batch.missing:
            return
        self._embed(batch)
        self._prepared_files.save()
        with self.store.write() as writer:
            written = self._written_since(stored)
            for path in batch.missing:
                if path not in written:
                    writer.drop(path)
                    report.dropped += 1
            batch.changes = [change for change in batch.changes if not _is_overtaken(change.loaded, written)]
            self._put_vectors(batch, writer, report)
            for change in batch.changes:
                self._put(change, writer, report)

    def _written_since(self, stored: Mapping[str, FileState]) -> Mapping[str, FileState]:
        """Files put or touched by other writers since the start; empty for a store with a single writer."""
        if not self.store.many_writers:
            return {}
        return {path: state for path, state in self.store.files().items() if state != stored.get(path)}

    def _put_vectors(self, batch: CommitBatch, writer: StoreWriter, report: IndexReport) -> None:
        lacking = sorted(writer.lacking({key for change in batch.changes for key in change.hashes}))
        # Another writer may have dropped vectors since the store was asked.
        lost = [key for key in lacking if key not in batch.rows]
        if lost:
            texts: dict[bytes, str] = {}
            for change in batch.changes:
                texts |= texts_of(change.outline, change.loaded.text)
            batch.add_vectors(lost, self.embedder.embed_texts([texts[key] for key in lost]))
        if lacking:
            import numpy as np

            writer.put_vectors(lacking, np.stack([batch.rows[key] for key in lacking]))
            report.embedded += len(lacking)

    @staticmethod
    def _put(change: FileChange, writer: StoreWriter, report: IndexReport) -> None:
        loaded = change.loaded
        if loaded.state is None:
            # The file can no longer be read; the store keeps no text of unreadable files.
            writer.drop(loaded.path)
        elif loaded.same:
            writer.touch(loaded.path, loaded.state)
            report.touched += 1
        else:
            writer.put(NewFile(loaded.path, loaded.state, loaded.text, change.outline))
            report.duplicates += bool(loaded.twin_of)
            if not loaded.reason and not loaded.twin_of:
                report.read += 1
                report.notes += [f"{loaded.path}: {change.outline.note}"] if change.outline.note else []
        if loaded.reason:
            report.pass_over(loaded.path, loaded.reason)


def _next_batch(first_run: FirstRunLayout | None, done: int) -> CommitBatch:
    """An empty batch; in a first run the first batches are small, to be searchable soon."""
    if first_run is None:
        return CommitBatch()
    files, seconds = first_run.batch_limits(done)
    return CommitBatch(max_files=min(files, _COMMIT_AT_FILES), max_seconds=min(seconds, _COMMIT_AT_SECONDS))


def _is_overtaken(file: Loaded, written: Mapping[str, FileState]) -> bool:
    """True if another writer has put this or a newer version of the file since the start."""
    newer = written.get(file.path)
    if newer is None or file.state is None:
        return newer is not None
    return newer.content_hash == file.state.content_hash or newer.read_ns > file.state.read_ns
