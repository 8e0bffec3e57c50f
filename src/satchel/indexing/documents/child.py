"""What a child that reads documents is asked, what it answers, and its life."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Annotated, Any, Final, NamedTuple

from msgspec import Meta

from satchel.indexing.child_process import serve as serve_requests
from satchel.indexing.child_protocol import receive, receive_payload
from satchel.indexing.documents.options import ReadOptions
from satchel.models.document import Bookmark, Document, Page, Unreadable

_MAX_ENTRIES: Final = 100_000  # of pages, bookmarks or notes: small entries take twenty times their bytes
_MAX_NUMBER: Final = 0xFFFFFFFF  # what every store's columns take
_MAX_REQUEST_BYTES: Final = 1 << 32  # from our parent, which has limits of its own


class Request(NamedTuple):
    """What the parent asks; the file's bytes follow in a frame of their own."""

    name: str
    seconds: float
    options: ReadOptions = ReadOptions()
    picture: dict[str, Any] | None = None
    """Which page should be rendered, and how (the arguments of `render_page`); None to read the document."""


class DocumentMessage(NamedTuple):
    """A document as it travels: the same fields, with a limit on how many entries there are."""

    pages: Annotated[tuple[Page, ...], Meta(max_length=_MAX_ENTRIES)]
    title: str
    bookmarks: Annotated[tuple[Bookmark, ...], Meta(max_length=_MAX_ENTRIES)]
    notes: Annotated[tuple[str, ...], Meta(max_length=_MAX_ENTRIES)]

    def document(self) -> Document:
        """The document, with every number in the range that stores take."""
        pages = (page._replace(number=_in_range(page.number), pictures=_in_range(page.pictures)) for page in self.pages)
        bookmarks = (mark._replace(level=_in_range(mark.level), page=_in_range(mark.page)) for mark in self.bookmarks)
        return Document(pages=tuple(pages), title=self.title, bookmarks=tuple(bookmarks), notes=self.notes)


class Answer(NamedTuple):
    """What a child sends: the document, the picture or why there is none; without any, that a page was recognized."""

    document: DocumentMessage | None = None
    picture: bytes | None = None
    unreadable: str = ""


def serve(memory_bytes: int) -> None:
    """Read what the parent sends."""
    serve_requests(_answer, memory_bytes)


def _answer(requests: IO[bytes], send: Callable[[Answer], None]) -> None:
    import signal

    request = receive(requests, Request, _MAX_REQUEST_BYTES)
    data = receive_payload(requests, _MAX_REQUEST_BYTES)
    # Should nobody be left to stop us, these do: signals that need no interpreter to be obeyed.
    signal.setitimer(signal.ITIMER_REAL, request.seconds + 5)
    _limit_cpu(request.seconds)
    if request.picture is None:
        from satchel.indexing.documents.read_document import read_document

        result: Document | bytes | Unreadable = read_document(
            request.name, data, request.options, on_page=lambda: send(Answer())
        )
    else:
        result = _render(data, request.name, request.picture)
    send(_message(result))


def _message(result: Document | bytes | Unreadable) -> Answer:
    if isinstance(result, Unreadable):
        return Answer(unreadable=result.reason)
    if isinstance(result, bytes):
        return Answer(picture=result)
    return Answer(document=DocumentMessage(*result))


def _render(data: bytes, name: str, picture: dict[str, Any]) -> bytes | Unreadable:
    from satchel.indexing.documents.render import render_page

    try:
        return render_page(data, name, **picture)
    except Exception:  # whatever it is, it is this page's matter alone
        return Unreadable("cannot be shown; it is probably damaged")


def _limit_cpu(seconds: float) -> None:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + 2
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _in_range(number: int) -> int:
    return max(0, min(number, _MAX_NUMBER))
