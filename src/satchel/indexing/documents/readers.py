"""Reading documents that anybody may have made: in child processes that are watched, and ended when they go too far."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from satchel.indexing.child_process import MEMORY_BYTES, SENSELESS, ChildFailed, ChildPool, ChildProcess, Limits
from satchel.indexing.child_protocol import FRAME_HEADER, encode, frame
from satchel.indexing.documents.child import Answer, Request
from satchel.indexing.documents.options import ReadOptions
from satchel.indexing.documents.tidy import one_line, unreadable
from satchel.models.document import Document, Unreadable

_DEADLINE_SECONDS: Final = 120.0
_MAX_PICTURE_BYTES: Final = 200_000_000
_BYTES_PER_CHARACTER: Final = 8  # UTF-8 takes four at most; as much again for what is not counted as text

# A long PDF stops at the pages that it has before the deadline takes them all.
_PAGES_SHARE: Final = 0.7

# Libraries leak a little with every file; a new child costs a tenth of a second.
_FILES_PER_CHILD: Final = 200


class DocumentReaders:
    """Child processes that read documents; started when the first file comes, ended with the context."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        deadline: float = _DEADLINE_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        options: ReadOptions = ReadOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self._options = options._replace(read_seconds=min(options.read_seconds, _PAGES_SHARE * deadline))
        self._limits = Limits(
            seconds=deadline,
            answer_bytes=options.most_chars * _BYTES_PER_CHARACTER,
            memory_bytes=memory_bytes,
            progress_seconds=options.ocr_seconds + options.picture_seconds if options.ocr else 0.0,
        )
        command = f"from satchel.indexing.documents.child import serve; serve({memory_bytes})"
        self._pool = ChildPool(workers, partial(ChildProcess, command, max_requests=_FILES_PER_CHILD))

    def __enter__(self) -> DocumentReaders:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the children; whoever waits for one of them waits no longer."""
        self._pool.close()

    @property
    def confined(self) -> bool | None:
        """True if the kernel keeps every child so far from the network and from writing; None before the first."""
        known = [child.is_confined for child in self._pool.children if child.is_confined is not None]
        return all(known) if known else None

    def is_confined(self) -> bool:
        """The same, a child being started to tell if none was."""
        if self.confined is None:
            self.read("probe.txt", b"probe")
        return bool(self.confined)

    def read(self, name: str, data: bytes) -> Document | Unreadable:
        """The document, or why it cannot be read; any number of threads may ask at once."""
        request = Request(name=_safe_name(name), seconds=0.0, options=self._options)
        answer = self._ask(request, data, self._limits)
        return answer.document.document() if answer.document is not None else unreadable(answer.unreadable)

    def render(self, data: bytes, name: str, page: int, **picture: Any) -> bytes | Unreadable:
        """A page as a picture (see `render_page`), or why there is none."""
        limits = self._limits._replace(answer_bytes=_MAX_PICTURE_BYTES, progress_seconds=0.0)
        request = Request(name=_safe_name(name), seconds=0.0, picture={"page": page, **picture})
        answer = self._ask(request, data, limits)
        return answer.picture if answer.picture is not None else unreadable(answer.unreadable)

    def _ask(self, request: Request, data: bytes, limits: Limits) -> Answer:
        message = encode(request._replace(seconds=limits.seconds + limits.progress_seconds))
        parts = (frame(message), FRAME_HEADER.pack(len(data)), data)

        def ask(child: ChildProcess) -> Answer:
            answer = child.ask(parts, limits, Answer, progress=Answer())
            if answer.unreadable or (answer.document if request.picture is None else answer.picture) is not None:
                return answer
            child.stop()
            raise ChildFailed(SENSELESS)

        try:
            return self._pool.submit(ask).result()
        except ChildFailed as failure:
            return Answer(unreadable=str(failure))


def _safe_name(name: str) -> str:
    """The name as the child gets it: its suffix matters, and nothing else does."""
    return (
        one_line(name.rpartition("/")[2][-100:])
        if name.isprintable()
        else f"document.{one_line(name.rpartition('.')[2])}"
    )
