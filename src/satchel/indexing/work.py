"""Prepare files for the index: outlines by confined children, documents by readers, vectors of pieces on request.

Used by this process for the local index, and by remote workers.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.walk import NO_DOCUMENTS, DocumentPolicy
from satchel.models.document import Document, Unreadable
from satchel.models.outline import Outline, embedded_text, text_hash
from satchel.ports.workers import Job, Load, Prepared, Vectors

if TYPE_CHECKING:
    from satchel.indexing.documents.readers import DocumentReaders
    from satchel.indexing.parse import Parsers
    from satchel.ports.embedder import Embedder

_MAX_JOBS_AHEAD: Final = 64  # keeps the children busy while results are stored
_MAX_CHARS_AHEAD: Final = 20_000_000  # bounds the texts in memory
_MAX_PROCESSES: Final = 8  # as child_process._MAX_CHILDREN: beyond, disk and store take the time
FEW_BYTES: Final = 500_000
"""Up to this many bytes of source, parsing in this process is faster than starting a child."""

_SOURCE_SECONDS: Final = 15.0  # more than the deadline of a parser (10 s)
_SECONDS_PER_CHAR: Final = 2e-6  # of a text split by lines: several times what a slow machine needs
_DOCUMENT_SECONDS: Final = 900.0  # more than the limits of a document: 120 s, 600 s for scans, 30 s for pictures
_OVERHEAD_SECONDS: Final = 120.0  # for the start of processes and the vectors of a batch


class _Started(NamedTuple):
    """A job in work; `finish` waits for the result."""

    finish: Callable[[], Prepared]
    is_document: bool
    chars: int


class LocalWorkers:
    """Local child processes; started with the first file in need of them, ended with the context."""

    notes: Sequence[str] = ()
    """Notes on the work as a whole: none, because each file has notes of its own."""

    def __init__(
        self, count: int | None = None, *, documents: DocumentPolicy = NO_DOCUMENTS, load: Load | None = None
    ) -> None:
        self.count = max(1, min(count or os.cpu_count() or 1, _MAX_PROCESSES))
        """Number of parallel processes."""
        self._documents = documents
        self._few = load is not None and load.sources <= FEW_BYTES
        self._ending = ExitStack()

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    @cached_property
    def _parsers(self) -> Parsers:
        from satchel.indexing.parse import Parsers

        return self._ending.enter_context(Parsers(self.count))

    @cached_property
    def _readers(self) -> DocumentReaders:
        from satchel.indexing.documents.readers import readers_for

        return self._ending.enter_context(readers_for(self._documents, self.count))

    def prepare(self, jobs: Iterable[Job]) -> Iterator[Prepared]:
        """The prepared files in job order, without vectors; a bounded number of jobs is taken ahead."""
        waiting: deque[_Started] = deque()
        for job in jobs:
            waiting.append(_Started(self._begin(job), job.data is not None, len(job.text)))
            while self._is_far_ahead(waiting):
                yield waiting.popleft().finish()
        for job_started in waiting:
            yield job_started.finish()

    def _is_far_ahead(self, waiting: Collection[_Started]) -> bool:
        """True if no further job should be started before the first is finished."""
        documents = sum(job.is_document for job in waiting)
        chars = sum(job.chars for job in waiting)
        return len(waiting) >= _MAX_JOBS_AHEAD or documents > self.count or chars > _MAX_CHARS_AHEAD

    def _begin(self, job: Job) -> Callable[[], Prepared]:
        """Start a job; the returned function waits for the result."""
        if job.prepared is not None:
            known = job.prepared
            return lambda: known
        if job.data is not None:
            return self._readers.submit(job.path, job.data, partial(_outlined, job.path)).result
        from satchel.indexing.parse import SourceFile, is_tame, read_outline

        if self._few and is_tame(job.text):
            return lambda: Prepared(job.path, read_outline(job.path, job.text))
        outline = self._parsers.submit(SourceFile(job.path, job.text))
        return lambda: Prepared(job.path, outline.result())


def _outlined(path: str, document: Document | Unreadable) -> Prepared:
    """The document's stored form, or the reason why the document cannot be stored."""
    from satchel.indexing.documents.document_outline import outline_document

    if isinstance(document, Unreadable):
        return Prepared(path, Outline(None), unreadable=document.reason)
    if not document.pages:
        return Prepared(path, Outline(None), unreadable="contains no text")
    try:
        read = outline_document(path, document)
    except Exception as error:  # whatever is in it, the others are read
        return Prepared(path, Outline(None), unreadable=f"cannot be stored ({type(error).__name__})")
    return Prepared(path, read.outline, read.text)


def texts_of(outline: Outline, text: str) -> dict[bytes, str]:
    """The texts of a file for the embedder, by text hash."""
    texts = (embedded_text(outline, piece, text[piece.start : piece.end]) for piece in outline.pieces)
    return {text_hash(text): text for text in texts}


class Tools(NamedTuple):
    """Configuration of a remote worker; can be serialized."""

    documents: DocumentPolicy
    embedder_maker: str = ""
    """The function that makes the embedder, as `module:name`; empty: the sender of the jobs makes the vectors."""
    embedder_name: str = ""
    """Argument of `embedder_maker`."""


def prepare_batch(workers: LocalWorkers, jobs: Sequence[Job], embedder: Embedder | None) -> list[Prepared]:
    """The prepared files of some jobs, with vectors for jobs with `embed`."""
    prepared = list(workers.prepare(jobs))
    if embedder is None:
        return prepared
    texts_by_file = {
        i: texts_of(file.outline, file.text if job.data is not None else job.text)
        for i, (job, file) in enumerate(zip(jobs, prepared, strict=True))
        if job.embed
    }
    texts = {key: text for of_file in texts_by_file.values() for key, text in of_file.items()}
    rows = embedder.embed_texts(list(texts.values())).astype("<f4", copy=False) if texts else ()
    vectors = {key: row.tobytes() for key, row in zip(texts, rows, strict=True)}
    for i, own in texts_by_file.items():
        prepared[i] = prepared[i]._replace(vectors=Vectors(tuple(own), b"".join(vectors[key] for key in own)))
    return prepared


def longest_seconds(jobs: Iterable[Job]) -> float:
    """Maximum seconds for a batch before the worker is given up: more than the sum of all limits."""
    seconds = (
        _SOURCE_SECONDS + _SECONDS_PER_CHAR * len(job.text) if job.data is None else _DOCUMENT_SECONDS for job in jobs
    )
    return _OVERHEAD_SECONDS + sum(seconds)
