"""The life of a child that reads documents: a request in, an answer out, until the pipe ends."""

from __future__ import annotations

import json
import os
import struct
import sys
from contextlib import suppress
from typing import IO, Any, Final

from satchel.indexing.confine import confine, die_with_parent
from satchel.indexing.documents.options import ReadOptions
from satchel.indexing.documents.wire import encode
from satchel.models.document import Unreadable

HEAD: Final = struct.Struct("<cQ")
REQUEST: Final = struct.Struct("<QQ")
READY: Final = b"r"
CONFINED: Final = b"kernel"
ANSWER: Final = b"a"
PICTURE: Final = b"p"
RECOGNIZED: Final = b"o"


def serve(memory_bytes: int) -> None:
    """Read what the parent sends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _send(answers, READY, CONFINED if confine(memory_bytes) else b"")
    with suppress(EOFError, BrokenPipeError):
        while True:
            _answer_one(sys.stdin.buffer, answers)


def _answer_one(requests: IO[bytes], answers: IO[bytes]) -> None:
    import signal

    said, length = REQUEST.unpack(_exactly(requests, REQUEST.size))
    request = json.loads(_exactly(requests, said))
    data = _exactly(requests, length)
    # Should nobody be left to stop us, these do: signals that need no interpreter to be obeyed.
    seconds = float(request["seconds"])
    signal.setitimer(signal.ITIMER_REAL, seconds + 5)
    _limit_cpu(seconds)
    if request["what"] == "render":
        picture = _rendered(data, request)
        _send(answers, ANSWER if isinstance(picture, Unreadable) else PICTURE,
              encode(picture) if isinstance(picture, Unreadable) else picture)  # fmt: skip
    else:
        from satchel.indexing.documents.read_document import read_document

        document = read_document(
            request["name"], data, ReadOptions(*request["options"]), lambda: _send(answers, RECOGNIZED)
        )
        _send(answers, ANSWER, encode(document))
    signal.setitimer(signal.ITIMER_REAL, 0)


def _rendered(data: bytes, request: Any) -> bytes | Unreadable:
    from satchel.indexing.documents.render import render_page

    try:
        return render_page(data, request["name"], request["page"], **request["how"])
    except Exception:  # whatever it is, it is this page's matter alone
        return Unreadable("cannot be shown; it is probably damaged")


def _limit_cpu(seconds: float) -> None:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + 2
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _send(pipe: IO[bytes], kind: bytes, data: bytes = b"") -> None:
    pipe.write(HEAD.pack(kind, len(data)) + data)
    pipe.flush()


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data
