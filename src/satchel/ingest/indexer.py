"""The write path: walk → read → embed → store, only for what has changed.

A file whose size and time are as they were is not opened; one whose content is as it was is not read again; the vectors
of a moved file are found by its content. Every commit is whole, so that whoever stops us loses at most the last one.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import WorkspaceMissing
from satchel.ingest.documents.policy import NO_DOCUMENTS, DocumentPolicy, way_of_reading
from satchel.ingest.read import read_bytes, text_of
from satchel.ingest.walk import DEFAULT_MAX_FILE_BYTES, NOTE_FILES, FoundFile, PassedOver, Skip, surroundings, walk
from satchel.model.access import DefaultAccess
from satchel.model.document import DOCUMENTS, PLAIN_TOO, extension_of
from satchel.model.outline import Outline, embedded_text, text_hash
from satchel.ports.store import SAME_AS, FileState, NewFile, is_untouched

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from satchel.ingest.documents.readers import DocumentReaders
    from satchel.ingest.parse import Parsers, Source
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store, StoreWriter

_COMMIT_AT_CHARS: Final = 6_000_000
_COMMIT_AT_FILES: Final = 1_000
_COMMIT_AT_SECONDS: Final = 20.0
"""So much work is lost at most when somebody stops us."""
_MOST_DOCUMENTS_AT_ONCE: Final = 8
_FEW_BYTES: Final = 500_000
"""So much is read sooner than a child process is started."""

PASSED_OVER: Final = "passed over: "
"""How the note of a file begins that was opened and found to hold nothing for us."""

_WAY: Final = "documents"
"""The fact that says how documents were read."""


class Step(NamedTuple):
    """How far the work is: what is being done, how much of it is done, and how much there is (0: unknown)."""

    doing: str
    done: int
    of: int


Watcher = Callable[[Step], None]
"""Somebody who wants to know how far the work is."""


class Changes(NamedTuple):
    """What is different from what the store holds, judged by size and time alone."""

    found: int
    suspect: tuple[FoundFile, ...]
    missing: tuple[str, ...]
    passed: tuple[PassedOver, ...]

    @property
    def to_look_at(self) -> int:
        """How many files have to be looked at."""
        return len(self.suspect) + len(self.missing)


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


class Indexer:
    """Keeps a store in step with a folder."""

    def __init__(
        self,
        root: Path,
        store: Store,
        embedder: Embedder,
        *,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        workers: int | None = None,
        without: str = "",
        documents: DocumentPolicy = NO_DOCUMENTS,
    ) -> None:
        self._without = without
        self._documents = documents
        self._vaults: tuple[str, ...] | None = None
        self._notes: dict[str, str] = {}
        self._root = root
        self._store = store
        self._embedder = embedder
        self._max_file_bytes = max_file_bytes
        self._workers = workers

    def changes(self) -> Changes:
        """What has to be looked at; nothing is opened."""
        known = self._store.files()
        suspect: list[FoundFile] = []
        passed: list[PassedOver] = []
        present: dict[str, FoundFile] = {}
        with self._opened() as folder:
            for entry in walk(
                folder,
                max_file_bytes=self._max_file_bytes,
                within=surroundings(os.fspath(self._root)),
                documents=self._documents.extensions,
                max_document_bytes=self._documents.max_bytes,
            ):
                if isinstance(entry, PassedOver):
                    passed.append(entry)
                    continue
                if (self._without and entry.path.startswith(self._without)) or self._kept_otherwise(entry.path):
                    continue  # the index itself, or notes that are in it as blocks
                present[entry.path] = entry
                state = known.get(entry.path)
                if state is None or not is_untouched(state, entry.size, entry.modified_ns, entry.changed_ns):
                    suspect.append(entry)
        missing = tuple(path for path in known if path not in present)
        suspect += self._read_otherwise(present, {file.path for file in suspect}, known)
        suspect += self._twins_alone(present, {file.path for file in suspect}, known)
        return Changes(len(present), tuple(suspect), missing, tuple(passed))

    def _twins_alone(
        self, present: dict[str, FoundFile], suspect: set[str], known: dict[str, FileState]
    ) -> list[FoundFile]:
        """Documents that are kept as copies of others which are gone, or may say something else or be closed now."""
        alone = []
        one_user = self._has_one_user()
        for path, note in self._store.notes().items():
            if not note.startswith(SAME_AS) or path not in present or path in suspect:
                continue
            first = note.removeprefix(SAME_AS)
            if (
                not one_user
                or first not in present
                or first in suspect
                or known[first].content_hash != known[path].content_hash
            ):
                alone.append(present[path])
        return alone

    def _read_otherwise(
        self, present: dict[str, FoundFile], suspect: set[str], known: dict[str, FileState]
    ) -> list[FoundFile]:
        """Documents that were read in another way than they would be now, or not at all."""
        if not self._is_read_otherwise():
            return []
        return [
            file
            for path, file in present.items()
            if path in known and path not in suspect and extension_of(path) in DOCUMENTS
        ]

    def _is_read_otherwise(self) -> bool:
        return self._store.generation > 0 and self._store.fact(_WAY) != way_of_reading(self._documents)

    def _has_one_user(self) -> bool:
        """Whether whoever may read one file may read all: then one copy of a document will do."""
        return self._store.default_access() is DefaultAccess.OWNER

    def _kept_otherwise(self, path: str) -> bool:
        """Whether the file belongs to a vault that was imported: its notes are blocks, with readers of their own."""
        if not path.endswith(NOTE_FILES):
            return False
        if self._vaults is None:
            roots = json.loads(self._store.fact("sources") or "{}").values()
            self._vaults = tuple(os.path.join(one["path"], "") for one in roots if one["kind"] == "vault")
        return os.path.join(self._root, path).startswith(self._vaults)

    def run(self, changes: Changes | None = None, watcher: Watcher | None = None) -> IndexReport:
        """Bring the store up to the folder."""
        started = time.perf_counter()
        watch = watcher or _nobody
        report = IndexReport()
        with self._store.lock():
            watch(Step("looking", 0, 0))
            changes = changes or self.changes()
            report.found = changes.found
            for passed in changes.passed:
                report.passed_over[passed.reason.value] += 1
                report.passed_paths.append((passed.path, passed.reason.value))
            looked_at = {file.path for file in changes.suspect}
            for path, note in self._store.notes().items():
                if note.startswith(PASSED_OVER) and path not in looked_at and path not in changes.missing:
                    report.passed_over[note.removeprefix(PASSED_OVER)] += 1
                    report.passed_paths.append((path, note.removeprefix(PASSED_OVER)))
            with self._store.write() as writer:
                writer.settle_embedder(self._embedder.name, self._embedder.dimensions)
                if not any(extension_of(path) in DOCUMENTS for path in self._store.files()):
                    writer.set_fact(_WAY, way_of_reading(self._documents))
            if changes.to_look_at:
                self._bring_up(changes, report, watch)
            if self._store.fact(_WAY) != way_of_reading(self._documents):
                with self._store.write() as writer:
                    writer.set_fact(_WAY, way_of_reading(self._documents))
            watch(Step("arranging", 0, 0))
            self._store.catch_up()
            if report.dropped or report.read:
                self._store.tidy()
        report.generation = self._store.generation
        report.seconds = time.perf_counter() - started
        return report

    def _bring_up(self, changes: Changes, report: IndexReport, watch: Watcher) -> None:
        from satchel.ingest.parse import Parsers

        held = known = self._store.files()
        if self._is_read_otherwise():
            known = {path: state for path, state in known.items() if extension_of(path) not in DOCUMENTS}
        self._notes = self._store.notes()
        done = 0
        batch = _Batch()
        plain = [file for file in changes.suspect if not self._documents.takes(file.path)]
        maybe = [file for file in changes.suspect if self._documents.takes(file.path)]
        with self._opened() as folder, Parsers(self._workers) as parsers:
            papers: list[FoundFile] = []
            loaded = chain(self._load(folder, plain, known), self._load_or_set_aside(folder, maybe, known, papers))
            few = sum(file.size for file in plain) <= _FEW_BYTES
            outlined = _outlined(loaded, parsers, few)
            try:
                for change in chain(outlined, self._read_documents(folder, papers, known, changes)):
                    done += 1
                    batch.add(change)
                    if batch.is_full:
                        self._commit(batch, report)
                        batch = _Batch()
                    watch(Step("reading", done, len(changes.suspect)))
            except KeyboardInterrupt:
                # What was read is kept: reading documents takes long.
                self._commit(batch, report)
                raise
            batch.missing = [path for path in changes.missing if path in held]
            self._commit(batch, report)

    def _load(self, folder: int, files: Iterable[FoundFile], known: dict[str, FileState]) -> Iterator[_Loaded]:
        for file in files:
            begun = time.time_ns()
            data = read_bytes(folder, file.path, self._max_file_bytes)
            if isinstance(data, Skip):
                yield _Loaded(file.path, None, "", data.value)
                continue
            state = _state_of(file, data, begun)
            before = known.get(file.path)
            if before is not None and before.content_hash == state.content_hash:
                yield _Loaded(file.path, state, "", self._reason_before(file.path), same=True)
                continue
            read = text_of(file.path, data)
            yield _Loaded(file.path, state, read.text, read.reason.value if read.reason else "")

    def _load_or_set_aside(
        self, folder: int, files: Iterable[FoundFile], known: dict[str, FileState], papers: list[FoundFile]
    ) -> Iterator[_Loaded]:
        """Those files that only have a document's name, as the text they are; the others are put on a pile."""
        from satchel.ingest.documents.kinds import is_document

        for file in files:
            if extension_of(file.path) in PLAIN_TOO:
                data = read_bytes(folder, file.path, self._documents.max_bytes)
                if not isinstance(data, Skip) and not is_document(file.path, data):
                    yield from self._load(folder, [file], known)
                    continue
            papers.append(file)

    def _read_documents(
        self, folder: int, papers: Sequence[FoundFile], known: dict[str, FileState], changes: Changes
    ) -> Iterator[_Change]:
        """The documents, read by child processes, each of those of one content once."""
        if not papers:
            return
        from concurrent.futures import ThreadPoolExecutor

        from satchel.ingest.documents.policy import readers_for

        untrusted = {file.path for file in changes.suspect} | set(changes.missing)
        copies = {path for path, note in self._store.notes().items() if note.startswith(SAME_AS)}
        holders = {
            state.content_hash: path
            for path, state in known.items()
            if path not in untrusted and path not in copies and self._documents.takes(path)
        }
        # What is a copy of another comes after it; of several, the one with the shortest name holds the text.
        ordered = sorted(papers, key=lambda file: (file.path in copies, len(file.path), file.path))
        at_once = max(1, min(self._workers or os.cpu_count() or 1, _MOST_DOCUMENTS_AT_ONCE))
        waiting: list[Future[_Change]] = []
        # The readers end first: whoever waits for one of them waits no longer.
        started = _ending(ThreadPoolExecutor(at_once, "satchel-documents"))
        with started as threads, readers_for(self._documents, at_once) as readers:
            for file in ordered:
                change = self._known_document(folder, file, known, holders, copies)
                if isinstance(change, _Change):
                    yield change
                    continue
                waiting.append(threads.submit(_read_document, readers, change))
                if len(waiting) > at_once:
                    yield waiting.pop(0).result()
            for future in waiting:
                yield future.result()

    def _known_document(
        self, folder: int, file: FoundFile, known: dict[str, FileState], holders: dict[bytes, str], copies: set[str]
    ) -> _Change | _Paper:
        """What has to be done about a document without reading it, or the document to be read."""
        begun = time.time_ns()
        data = read_bytes(folder, file.path, self._documents.max_bytes)
        if isinstance(data, Skip):
            return _Change(_Loaded(file.path, None, "", data.value), Outline(None, note=PASSED_OVER + data.value))
        state = _state_of(file, data, begun)
        holder = holders.setdefault(state.content_hash, file.path) if self._has_one_user() else file.path
        before = known.get(file.path)
        if (
            before is not None
            and before.content_hash == state.content_hash
            and (file.path in copies) == (holder != file.path)
        ):
            return _Change(_Loaded(file.path, state, "", self._reason_before(file.path), same=True), Outline(None))
        if holder != file.path:
            return _Change(_Loaded(file.path, state, "", "", twin=True), Outline(None, note=SAME_AS + holder))
        return _Paper(file.path, state, data)

    def _reason_before(self, path: str) -> str:
        """Why a file that is as it was was passed over then."""
        note = self._notes.get(path, "")
        return note.removeprefix(PASSED_OVER) if note.startswith(PASSED_OVER) else ""

    def _commit(self, batch: _Batch, report: IndexReport) -> None:
        if not batch.changes and not batch.missing:
            return
        with self._store.write() as writer:
            for path in batch.missing:
                writer.drop(path)
                report.dropped += 1
            self._embed(batch, writer, report)
            for change in batch.changes:
                loaded = change.loaded
                if loaded.state is None:
                    # It was there a moment ago; what we may not read we do not keep.
                    writer.drop(loaded.path)
                elif loaded.same:
                    writer.touch(loaded.path, loaded.state)
                    report.touched += 1
                else:
                    writer.put(NewFile(loaded.path, loaded.state, loaded.text, change.outline))
                    report.read += not loaded.reason and not loaded.twin
                    report.duplicates += loaded.twin
                    if change.outline.note and not loaded.reason and not loaded.twin:
                        report.notes.append(f"{loaded.path}: {change.outline.note}")
                if loaded.reason:
                    report.passed_over[loaded.reason] += 1
                    report.passed_paths.append((loaded.path, loaded.reason))

    def _embed(self, batch: _Batch, writer: StoreWriter, report: IndexReport) -> None:
        texts: dict[bytes, str] = {}
        for change in batch.changes:
            for piece in change.outline.pieces:
                text = embedded_text(change.outline, piece, change.loaded.text[piece.start : piece.end])
                texts[text_hash(text)] = text
        lacking = sorted(writer.lacking(texts))
        if lacking:
            writer.put_vectors(lacking, self._embedder.embed_texts([texts[key] for key in lacking]))
            report.embedded += len(lacking)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError:
            raise WorkspaceMissing("path", str(self._root), "is not a folder") from None
        except OSError as error:
            raise WorkspaceMissing("path", str(self._root), f"cannot be opened ({error.strerror})") from None
        try:
            yield folder
        finally:
            os.close(folder)


class _Loaded(NamedTuple):
    """A file's text and state: no state when it could not be read, the same when nothing in it changed."""

    path: str
    state: FileState | None
    text: str
    reason: str
    same: bool = False
    twin: bool = False


class _Change(NamedTuple):
    loaded: _Loaded
    outline: Outline


class _Paper(NamedTuple):
    """A document to be read."""

    path: str
    state: FileState
    data: bytes


@contextmanager
def _ending(threads: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Threads that are given nothing more to do once somebody has enough."""
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def _state_of(file: FoundFile, data: bytes, begun: int) -> FileState:
    """What a file was when it was read: what is changed after the reading began is looked at again."""
    return FileState(blake2b(data, digest_size=16).digest(), file.size, file.modified_ns, begun)


def _read_document(readers: DocumentReaders, paper: _Paper) -> _Change:
    """The document as it is kept, or why it is not."""
    from satchel.ingest.documents.outline import outline_document
    from satchel.model.document import Unreadable

    document = readers.read(paper.path, paper.data)
    if not isinstance(document, Unreadable) and not document.pages:
        document = Unreadable("holds no text")
    try:
        read = None if isinstance(document, Unreadable) else outline_document(paper.path, document)
    except Exception as error:  # whatever is in it, the others are read
        document = Unreadable(f"cannot be kept ({type(error).__name__})")
    if isinstance(document, Unreadable) or read is None:
        reason = document.reason if isinstance(document, Unreadable) else ""
        return _Change(_Loaded(paper.path, paper.state, "", reason), Outline(None, note=PASSED_OVER + reason))
    return _Change(_Loaded(paper.path, paper.state, read.text, ""), read.outline)


class _Batch:
    """What goes into one commit."""

    def __init__(self) -> None:
        self.changes: list[_Change] = []
        self.missing: list[str] = []
        self._chars = 0
        self._begun = time.monotonic()

    def add(self, change: _Change) -> None:
        self.changes.append(change)
        self._chars += len(change.loaded.text)

    @property
    def is_full(self) -> bool:
        late = time.monotonic() - self._begun > _COMMIT_AT_SECONDS
        return late or self._chars > _COMMIT_AT_CHARS or len(self.changes) >= _COMMIT_AT_FILES


def _outlined(loaded: Iterator[_Loaded], parsers: Parsers, few: bool) -> Iterator[_Change]:
    """Each file with its outline; those that need none pass by in their turn."""
    from satchel.ingest.parse import Source

    waiting: dict[str, _Loaded] = {}
    passing: list[_Loaded] = []

    def sources() -> Iterator[Source]:
        for one in loaded:
            if one.state is None or one.same or one.reason:
                passing.append(one)
            else:
                waiting[one.path] = one
                yield Source(one.path, one.text)

    read = parsers.read_here if few else parsers.read
    for source, outline in read(sources()):
        yield from _passed(passing)
        yield _Change(waiting.pop(source.path), outline)
    yield from _passed(passing)


def _passed(passing: list[_Loaded]) -> Iterator[_Change]:
    for one in passing:
        yield _Change(one, Outline(None, note=PASSED_OVER + one.reason if one.reason else ""))
    passing.clear()


def _nobody(_: Step) -> None:
    """Nobody is watching."""
