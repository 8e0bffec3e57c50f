"""Child processes for reading untrusted documents, killed when a limit is exceeded."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import IO, Annotated, Any, Final, NamedTuple, TypeVar

from msgspec import Meta

from satchel.indexing.child_process import (
    FRAME_HEADER,
    MEMORY_BYTES,
    SENSELESS,
    ChildFailed,
    ChildPool,
    ChildProcess,
    RequestLimits,
    encode,
    frame,
    receive,
    receive_payload,
)
from satchel.indexing.child_process import serve as serve_requests
from satchel.indexing.documents.recognition import ReadOptions
from satchel.indexing.documents.tidy import one_line, unreadable
from satchel.indexing.walk import DocumentPolicy
from satchel.models.document import Bookmark, Document, Page, Unreadable

_MAX_ENTRIES: Final = 100_000  # of pages, bookmarks or notes: small entries take twenty times their bytes
_MAX_NUMBER: Final = 0xFFFFFFFF  # what every store's columns take
_MAX_REQUEST_BYTES: Final = 1 << 32  # from our parent, which has limits of its own


Result = TypeVar("Result")


class Request(NamedTuple):
    """A request of the parent; the file's bytes follow in a separate frame."""

    name: str
    seconds: float
    options: ReadOptions = ReadOptions()
    picture: dict[str, Any] | None = None
    """Which page should be rendered, and how (the arguments of `render_page`); None to read the document."""


class DocumentMessage(NamedTuple):
    """A document in transit: the same fields, with limits on the number of entries."""

    pages: Annotated[tuple[Page, ...], Meta(max_length=_MAX_ENTRIES)]
    title: str
    bookmarks: Annotated[tuple[Bookmark, ...], Meta(max_length=_MAX_ENTRIES)]
    notes: Annotated[tuple[str, ...], Meta(max_length=_MAX_ENTRIES)]

    def document(self) -> Document:
        """The document, with every number clamped to the range of store columns."""
        pages = (page._replace(number=_in_range(page.number), pictures=_in_range(page.pictures)) for page in self.pages)
        bookmarks = (mark._replace(level=_in_range(mark.level), page=_in_range(mark.page)) for mark in self.bookmarks)
        return Document(pages=tuple(pages), title=self.title, bookmarks=tuple(bookmarks), notes=self.notes)


class Answer(NamedTuple):
    """A child's answer: a document, a picture or a reason for failure; an empty answer reports progress."""

    document: DocumentMessage | None = None
    picture: bytes | None = None
    unreadable: str = ""


def serve(memory_bytes: int) -> None:
    """Answer the parent's requests until the pipe ends."""
    serve_requests(_answer, memory_bytes)


def _answer(requests: IO[bytes], send: Callable[[Answer], None]) -> None:
    request = receive(requests, Request, _MAX_REQUEST_BYTES)
    data = receive_payload(requests, _MAX_REQUEST_BYTES)
    # If the parent is gone, these limits end the process: the default actions of the signals need no interpreter.
    signal.setitimer(signal.ITIMER_REAL, request.seconds + 5)
    _limit_cpu(request.seconds)
    if request.picture is not None:
        send(_render(data, request.name, request.picture))
        return
    from satchel.indexing.documents.read_document import read_document

    document = read_document(request.name, data, request.options, on_page=lambda: send(Answer()))
    if isinstance(document, Unreadable):
        send(Answer(unreadable=document.reason))
    else:
        send(Answer(document=DocumentMessage(*document)))


def _render(data: bytes, name: str, picture: dict[str, Any]) -> Answer:
    from satchel.indexing.documents.pictures import render_page

    try:
        page = render_page(data, name, **picture)
    except Exception:  # whatever it is, it is this page's matter alone
        return Answer(unreadable="cannot be rendered; it is probably damaged")
    return Answer(picture=page) if isinstance(page, bytes) else Answer(unreadable=page.reason)


def _limit_cpu(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + 2
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _in_range(number: int) -> int:
    return max(0, min(number, _MAX_NUMBER))


_DEADLINE_SECONDS: Final = 120.0  # beyond OCR; a document that takes longer holds up the documents behind
_MAX_PICTURE_BYTES: Final = 200_000_000  # above the 120 MB of an uncompressed page (pictures._MAX_RENDERED_PIXELS)
_BYTES_PER_CHARACTER: Final = 8  # UTF-8 takes four at most; as much again for what is not counted as text

# Reading of a long PDF stops before the deadline, which would lose all pages.
_PAGES_SHARE: Final = 0.7

# Libraries leak a little with every file; a new child costs a tenth of a second.
_FILES_PER_CHILD: Final = 200


class DocumentReaders(ChildPool):
    """Child processes for reading documents; started with the first file, ended with the context."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        deadline: float = _DEADLINE_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        options: ReadOptions = ReadOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self._options = options._replace(read_seconds=min(options.read_seconds, _PAGES_SHARE * deadline))
        self._limits = RequestLimits(
            seconds=deadline,
            answer_bytes=options.most_chars * _BYTES_PER_CHARACTER,
            memory_bytes=memory_bytes,
            progress_seconds=options.ocr_seconds + options.picture_seconds if options.ocr else 0.0,
        )
        command = f"from satchel.indexing.documents.readers import serve; serve({memory_bytes})"
        super().__init__(workers, partial(ChildProcess, command, max_requests=_FILES_PER_CHILD))

    def is_confined(self) -> bool:
        """True if the kernel confines every child started until now; starts a child if there is none."""
        if all(child.is_confined is None for child in self.children):
            self.read("probe.txt", b"probe")
        return {child.is_confined for child in self.children} - {None} == {True}

    def read(self, name: str, data: bytes) -> Document | Unreadable:
        """The document, or the reason for failure; thread-safe."""
        return self.submit(name, data, lambda document: document).result()

    def submit(self, name: str, data: bytes, use: Callable[[Document | Unreadable], Result]) -> Future[Result]:
        """Future result of `use`, called with the document or the reason for failure."""
        request = Request(name=_safe_name(name), seconds=0.0, options=self._options)

        def read(child: ChildProcess) -> Result:
            answer = _ask(child, request, data, self._limits)
            return use(answer.document.document() if answer.document is not None else unreadable(answer.unreadable))

        return self.run(read)

    def render(self, data: bytes, name: str, page: int, **picture: Any) -> bytes | Unreadable:
        """A page as a picture (see `render_page`), or the reason why there is none."""
        limits = self._limits._replace(answer_bytes=_MAX_PICTURE_BYTES, progress_seconds=0.0)
        request = Request(name=_safe_name(name), seconds=0.0, picture={"page": page, **picture})
        answer = self.run(partial(_ask, request=request, data=data, limits=limits)).result()
        return answer.picture if answer.picture is not None else unreadable(answer.unreadable)


def _ask(child: ChildProcess, request: Request, data: bytes, limits: RequestLimits) -> Answer:
    message = encode(request._replace(seconds=limits.seconds + limits.progress_seconds))
    try:
        parts = (frame(message), FRAME_HEADER.pack(len(data)), data)
        answer = child.ask(parts, limits, Answer, progress=Answer())
    except ChildFailed as failure:
        return Answer(unreadable=str(failure))
    if answer.unreadable or (answer.document if request.picture is None else answer.picture) is not None:
        return answer
    child.stop()
    return Answer(unreadable=SENSELESS)


def readers_for(policy: DocumentPolicy, workers: int | None = None) -> DocumentReaders:
    """Child processes for reading documents under the given policy."""
    return DocumentReaders(workers, options=ReadOptions(ocr=policy.ocr, languages=policy.languages))


def _safe_name(name: str) -> str:
    """The name for the child: only the suffix matters."""
    if name.isprintable():
        return one_line(name.rpartition("/")[2][-100:])
    return f"document.{one_line(name.rpartition('.')[2])}"
