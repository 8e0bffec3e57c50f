"""Reading documents that anybody may have made: in child processes that are watched, and ended when they go too far.

A file that crashes a parser, keeps it busy or fills the memory costs one child and the time it was given. It is
reported with the limit that it ran into, and the next file gets a new child.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

from satchel.indexing.documents.child import ANSWER, CONFINED, HEAD, PICTURE, READY, RECOGNIZED, REQUEST
from satchel.indexing.documents.options import ReadOptions
from satchel.indexing.documents.tidy import one_line, unreadable
from satchel.indexing.documents.wire import Garbled, decode
from satchel.models.document import Document, Unreadable

_DEADLINE_SECONDS: Final = 120.0
_MEMORY_BYTES: Final = 2 << 30
_OUR_PLACE: Final = str(Path(__file__).resolve().parents[3])
_MOST_WORKERS: Final = 8
_BETWEEN_LOOKS: Final = 0.05
_AT_ONCE: Final = 1 << 20
_MOST_PICTURE_BYTES: Final = 200_000_000

# A long PDF stops at the pages that it has before the deadline takes them all.
_FOR_PAGES: Final = 0.7

# Libraries leak a little with every file; a new child costs a tenth of a second.
_FILES_OF_A_CHILD: Final = 200
_STARTING_SECONDS: Final = 60.0

# What a child is told of its surroundings: where programs and Tesseract's languages are. No token, no proxy, no home.
_PASSED_ON: Final = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "SYSTEMROOT")
_OWN_SURROUNDINGS: Final = {
    "LANG": "C.UTF-8",
    "HOME": "/nonexistent",
    "PYTHONPATH": _OUR_PLACE,
    "PYTHONDONTWRITEBYTECODE": "1",
    "HF_HUB_OFFLINE": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
}


class _Limits(NamedTuple):
    seconds: float
    ocr_seconds: float
    memory_bytes: int
    answer_bytes: int


class DocumentReaders:
    """Child processes that read documents; started when the first file comes, ended with the context."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        deadline: float = _DEADLINE_SECONDS,
        memory_bytes: int = _MEMORY_BYTES,
        options: ReadOptions = ReadOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self._count = max(1, min(workers or os.cpu_count() or 1, _MOST_WORKERS))
        self._options = options._replace(read_seconds=min(options.read_seconds, _FOR_PAGES * deadline))
        self._limits = _Limits(
            deadline,
            options.ocr_seconds + options.picture_seconds if options.ocr else 0.0,
            memory_bytes,
            options.most_chars * 8,
        )
        self._lock = threading.Lock()
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._children: list[_Child] = []
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    def __enter__(self) -> DocumentReaders:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the children; whoever waits for one of them waits no longer."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        for child in self._children:
            child.end()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.stop()

    @property
    def confined(self) -> bool | None:
        """Whether the kernel keeps every child so far from the network and from writing; None before the first."""
        told = [child.confined for child in self._children if child.confined is not None]
        return all(told) if told else None

    def is_confined(self) -> bool:
        """The same, a child being started to tell if none was."""
        if self.confined is None:
            self.read("probe.txt", b"probe")
        return bool(self.confined)

    def read(self, name: str, data: bytes) -> Document | Unreadable:
        """The document, or why it cannot be read; any number of threads may ask at once."""
        answer = self._ask({"what": "read", "name": _name(name), "options": list(self._options)}, data, self._limits)
        assert not isinstance(answer, bytes)
        return answer

    def render(self, data: bytes, name: str, page: int, **how: Any) -> bytes | Unreadable:
        """A page as a picture (see `render_page`), or why there is none."""
        limits = self._limits._replace(answer_bytes=_MOST_PICTURE_BYTES, ocr_seconds=0.0)
        answer = self._ask({"what": "render", "name": _name(name), "page": page, "how": how}, data, limits)
        assert not isinstance(answer, Document)
        return answer

    def _ask(self, request: dict[str, Any], data: bytes, limits: _Limits) -> Document | Unreadable | bytes:
        with self._lock:
            if self._closed:
                raise ValueError("the readers are closed")
            if self._threads is None:
                # Threads of our own start the children: the kernel ends a child with the thread that started it.
                self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="satchel-documents")
                self._children = [_Child(limits.memory_bytes) for _ in range(self._count)]
                for child in self._children:
                    self._idle.put(child)
            future = self._threads.submit(self._answer, request, data, limits)
        return future.result()

    def _answer(self, request: dict[str, Any], data: bytes, limits: _Limits) -> Document | Unreadable | bytes:
        child = self._idle.get()
        try:
            return child.ask(request, data, limits)
        finally:
            self._idle.put(child)


class _TooFar(Exception):
    """A limit was reached, or the child died; the text is the reason for the file's owner."""


class _Child:
    """One child process; a new one takes its place when it had to be ended."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._over = False
        self._files = 0
        self.confined: bool | None = None

    def ask(self, request: dict[str, Any], data: bytes, limits: _Limits) -> Document | Unreadable | bytes:
        """The child's answer, or the limit that the file ran into."""
        if self._process is not None and (self._files >= _FILES_OF_A_CHILD or self._process.poll() is not None):
            self.stop()
        try:
            process = self._process or self._start()
            said = json.dumps({**request, "seconds": limits.seconds + limits.ocr_seconds}).encode()
            self._files += 1
            exchange = _Exchange(process, [REQUEST.pack(len(said), len(data)), said, data], limits)
            return _opened(request["what"], *exchange.run())
        except _TooFar as limit:
            self.stop()
            return unreadable(str(limit) if not self._over else "was not read: reading was ended")
        except OSError as error:
            self.stop()
            return unreadable(f"was not read: no process for it could be started ({error.strerror})")

    def end(self) -> None:
        """End the process, and start no other in its place."""
        with self._lock:
            self._over = True
            process = self._process
        if process is not None:
            _kill(process)

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            process, self._process = self._process, None
        self._files = 0
        if process is not None:
            _kill(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._over:
                raise _TooFar
            process = self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and words
                # Nothing is imported from where we happen to be: the folder may be a stranger's.
                [
                    sys.executable,
                    "-P",
                    "-c",
                    f"from satchel.indexing.documents.child import serve; serve({self._memory_bytes})",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # What libraries print about a stranger's file is a stranger's text, which no terminal should see.
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C is ours to deal with; and its own children end with it
                env={**{name: os.environ[name] for name in _PASSED_ON if name in os.environ}, **_OWN_SURROUNDINGS},
            )
        # Starting up is not the file's time.
        limits = _Limits(_STARTING_SECONDS, 0.0, self._memory_bytes, len(CONFINED))
        kind, told = _Exchange(process, [], limits).run()
        if kind != READY:
            raise _TooFar("was not read: its reader did not start")
        self.confined = told == CONFINED
        return process


class _Exchange:
    """One request and its answer, within the limits: nothing here waits longer than the deadline."""

    def __init__(self, process: subprocess.Popen[bytes], parts: list[bytes], limits: _Limits) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._limits = limits
        self._in = process.stdin.fileno()
        self._out = process.stdout.fileno()
        self._parts = [memoryview(part) for part in parts if part]
        self._received = bytearray()
        self._expected = HEAD.size
        now = time.monotonic()
        self._ends = now + limits.seconds
        self._ends_at_last = self._ends + limits.ocr_seconds

    def run(self) -> tuple[bytes, bytes]:
        """The kind of the answer, and the answer."""
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        looked = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            if self._parts:
                selector.register(self._in, selectors.EVENT_WRITE)
            while True:
                now = time.monotonic()
                if now >= self._ends:
                    raise _TooFar(f"took longer than {self._limits.seconds:g} s to read")
                if now - looked >= _BETWEEN_LOOKS:
                    looked = now
                    self._check_memory()
                for key, _ in selector.select(min(_BETWEEN_LOOKS, self._ends - now)):
                    if key.fd == self._out:
                        answer = self._receive()
                        if answer is not None:
                            return answer
                    elif not self._send():
                        selector.unregister(self._in)

    def _send(self) -> bool:
        """Whether there is more to send."""
        try:
            sent = os.write(self._in, self._parts[0][:_AT_ONCE])
        except BlockingIOError:
            return True
        except OSError:
            raise _TooFar(self._death()) from None
        self._parts[0] = self._parts[0][sent:]
        if not self._parts[0]:
            del self._parts[0]
        return bool(self._parts)

    def _receive(self) -> tuple[bytes, bytes] | None:
        try:
            data = os.read(self._out, min(_AT_ONCE, self._expected - len(self._received)))
        except BlockingIOError:
            return None
        if not data:
            raise _TooFar(self._death())
        self._received += data
        if len(self._received) < self._expected:
            return None
        kind, length = HEAD.unpack_from(self._received)
        if self._expected == HEAD.size and length:
            if length > self._limits.answer_bytes:
                raise _TooFar(f"gave more text than is taken: {length:,} bytes")
            self._expected += length
            return None
        if kind != RECOGNIZED:
            return kind, bytes(self._received[HEAD.size :])
        # A scan was recognized: there is time for the next, as long as there is for all of them.
        self._ends = min(time.monotonic() + self._limits.seconds, self._ends_at_last)
        self._received.clear()
        return None

    def _check_memory(self) -> None:
        if sum(map(_resident_bytes, _family(self._process.pid))) > self._limits.memory_bytes:
            raise _TooFar(f"needs more than {self._limits.memory_bytes >> 20:,} MB of memory to read")

    def _death(self) -> str:
        """Why the child died, as far as it can be told."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "made its reader stop answering"
        if code == -signal.SIGXCPU:
            return f"took more computing than {self._limits.seconds:g} s allow to read"
        if code >= 0:
            return "made its reader end"
        with suppress(ValueError):
            return f"made its reader crash ({signal.Signals(-code).name}); it is damaged, or needs too much memory"
        return "made its reader crash"


def _opened(asked: str, kind: bytes, answer: bytes) -> Document | Unreadable | bytes:
    """The answer, if it is one to what was asked."""
    with suppress(Garbled):
        if kind == PICTURE and asked == "render":
            return answer
        document = decode(answer) if kind == ANSWER else None
        if isinstance(document, Unreadable):
            return unreadable(document.reason)
        if document is not None and asked == "read":
            return document
    raise _TooFar("made its reader give a senseless answer")


def _name(name: str) -> str:
    """The name as the child is told it: its suffix matters, and nothing else does."""
    return (
        one_line(name.rpartition("/")[2][-100:])
        if name.isprintable()
        else f"document.{one_line(name.rpartition('.')[2])}"
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a child and whatever it started."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def _family(pid: int) -> Iterator[int]:
    """A process and those that it started, where the system tells."""
    yield pid
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        with suppress(OSError, ValueError):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                yield from _family(int(child))


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
