"""Child processes: started without secrets, confined, and killed when a limit is exceeded.

A file that crashes a parser, stalls the parser or fills the memory costs a child process and the time limit; the next
file gets a new child.

Messages are msgpack in frames, decoded into fixed types. An attacker who takes over a child through a parser can send
any bytes: no answer makes the receiver run, import or nest anything, a frame over the receiver's limit is refused
before reading, and decoding takes a bounded multiple of the length (a list of n bytes has at most n entries).
"""

from __future__ import annotations

import os
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final, NamedTuple, Self, TypeVar, cast

import msgspec

FRAME_HEADER: Final = struct.Struct("<Q")
"""Length of the following payload, in bytes."""

_PLAIN: Final = b"\0"
_ESCAPED: Final = b"\1"

Message = TypeVar("Message")


class Garbled(Exception):
    """The bytes are not a message of the expected type."""


def encode(message: object) -> bytes:
    """The message as bytes."""
    try:
        return _PLAIN + msgspec.msgpack.encode(message)
    except UnicodeEncodeError:  # a byte of a file that is not UTF-8 is a lone surrogate, which msgpack cannot hold
        return _ESCAPED + msgspec.msgpack.encode(_map_texts(message, _escape))


def decode(data: bytes | bytearray, message_type: type[Message]) -> Message:
    """The message of the given type; raises Garbled for invalid bytes."""
    try:
        message: Message = _decoder(cast(Hashable, message_type)).decode(memoryview(data)[1:])
        if data[:1] == _ESCAPED:
            message = _map_texts(message, _unescape)
        elif data[:1] != _PLAIN:
            raise Garbled
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Garbled from error
    return message


def frame(payload: bytes) -> bytes:
    """The payload, preceded by the length of the payload."""
    return FRAME_HEADER.pack(len(payload)) + payload


def send(pipe: IO[bytes], message: object) -> None:
    """Write a message as a frame."""
    pipe.write(frame(encode(message)))
    pipe.flush()


def receive(pipe: IO[bytes], message_type: type[Message], max_bytes: int) -> Message:
    """The next message; raises EOFError at the end of the pipe, and Garbled for an invalid or oversized message."""
    return decode(receive_payload(pipe, max_bytes), message_type)


def receive_payload(pipe: IO[bytes], max_bytes: int) -> bytes:
    """The payload of the next frame; raises EOFError at the end of the pipe, and Garbled for an oversized frame."""
    (length,) = FRAME_HEADER.unpack(_read_exactly(pipe, FRAME_HEADER.size))
    if length > max_bytes:
        raise Garbled
    return _read_exactly(pipe, length)


def _read_exactly(pipe: IO[bytes], length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data


_decoders: Final[dict[Hashable, msgspec.msgpack.Decoder[Any]]] = {}
_decoders_lock: Final = threading.Lock()


def _decoder(message_type: Hashable) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of a type, made by one thread at a time: msgspec 0.22 crashes where two make one of the same type."""
    decoder = _decoders.get(message_type)
    if decoder is None:
        with _decoders_lock:
            decoder = _decoders.get(message_type)
            if decoder is None:
                decoder = _decoders[message_type] = msgspec.msgpack.Decoder(message_type)
    return decoder


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if not isinstance(value, list | tuple):
        return value
    changed = (_map_texts(entry, change) for entry in value)
    return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)


def _escape(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _unescape(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "surrogatepass")


MEMORY_BYTES: Final = 2 << 30
"""Memory limit of a child; a file that needs more was made to fill the memory."""

_MAX_CHILDREN: Final = 8  # beyond, reading from disk and writing the index are what takes the time
_POLL_SECONDS: Final = 0.05  # a child cannot take much more than its memory between two looks
_CHUNK_BYTES: Final = 1 << 20  # sent or received at a time; longer calls would delay the checks of time and memory
_START_SECONDS: Final = 60.0  # a tenth of a second on a quiet machine; starting up is not the file's time
_MAX_READY_BYTES: Final = 100  # the first message is a single flag; anything longer is not from our code
SENSELESS: Final = "made its reader send an invalid answer"

# Environment variables for a child: paths of programs and Tesseract's languages. No token, no proxy, no home.
_INHERITED: Final = ("PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "SYSTEMROOT")
_SOURCE_FOLDER: Final = str(Path(__file__).resolve().parents[2])
_ENVIRONMENT: Final = {
    "LANG": "C.UTF-8",
    "HOME": "/nonexistent",
    "PYTHONDONTWRITEBYTECODE": "1",
    "HF_HUB_OFFLINE": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
}

Answer = TypeVar("Answer")
Result = TypeVar("Result")


class RequestLimits(NamedTuple):
    """Limits on the time, memory and answer size of a request."""

    seconds: float
    answer_bytes: int
    memory_bytes: int | None = None
    """Limit for the child and all descendants; None: not watched (the kernel still limits each process)."""
    progress_seconds: float = 0.0
    """Additional time in all for a child that reports progress; `seconds` is then the time between reports."""


class ChildFailed(Exception):
    """The child broke a limit or died; the text is the reason for the file's owner."""


class Ready(NamedTuple):
    """A child's first message."""

    is_confined: bool
    """True if the kernel refuses the child the network and writing."""


class ChildProcess:
    """A child process; a killed child is replaced at the next request."""

    def __init__(self, command: str, max_requests: int = sys.maxsize) -> None:
        self._command = command
        self._max_requests = max_requests
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_ended = False
        self._requests = 0
        self.is_confined: bool | None = None

    def ask(
        self, parts: Sequence[bytes], limits: RequestLimits, answer_type: type[Answer], progress: Answer | None = None
    ) -> Answer:
        """The answer to a request, after any progress reports; raises ChildFailed if no answer comes."""
        if self._process is not None and (self._requests >= self._max_requests or self._process.poll() is not None):
            self.stop()
        try:
            process = self._process or self._start()
            self._requests += 1
            return _Exchange(process, parts, limits).run(answer_type, progress)
        except ChildFailed:
            self.stop()
            if self._is_ended:
                raise ChildFailed("was not read: the index run was stopped") from None
            raise
        except OSError as error:
            self.stop()
            raise ChildFailed(f"was not read: its reader process could not be started ({error.strerror})") from error

    def end(self) -> None:
        """Kill the process and start no replacement."""
        with self._lock:
            self._is_ended = True
            process = self._process
        if process is not None:
            _kill(process)

    def stop(self) -> None:
        """Kill the process; the next request starts a new process, unless `end` was called."""
        with self._lock:
            process, self._process = self._process, None
        self._requests = 0
        if process is not None:
            with suppress(OSError), process:
                _kill(process)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_ended:
                raise ChildFailed
            process = self._process = self._spawn()
        limits = RequestLimits(seconds=_START_SECONDS, answer_bytes=_MAX_READY_BYTES)
        self.is_confined = _Exchange(process, (), limits).run(Ready).is_confined
        return process

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and words
            # -P: nothing is imported from the current folder, which may be hostile.
            [sys.executable, "-P", "-c", self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Messages of libraries quote untrusted files; no terminal should print escape sequences from there.
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # a terminal's Ctrl-C is ours to deal with; and its own children end with it
            env=_environment(),
        )


class ChildPool:
    """A pool of children, each with a thread; started with the first job, ended with the context."""

    def __init__(self, count: int | None, make_child: Callable[[], ChildProcess]) -> None:
        self.children: list[ChildProcess] = []
        self._count = max(1, min(count or os.cpu_count() or 1, _MAX_CHILDREN))
        self._make_child = make_child
        self._idle: SimpleQueue[ChildProcess] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, job: Callable[[ChildProcess], Result]) -> Future[Result]:
        """Run a job with an idle child; thread-safe."""
        with self._lock:
            if self._is_closed:
                raise ValueError("the readers are closed")
            if self._threads is None:
                # The pool's own threads start the children: the kernel kills a child with the thread that started it.
                self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="satchel-child")
                self.children += [self._make_child() for _ in range(self._count)]
                for child in self.children:
                    self._idle.put(child)
            return self._threads.submit(self._work, job)

    def close(self) -> None:
        """Kill the children; callers waiting for an answer stop waiting."""
        with self._lock:
            self._is_closed = True
            threads, self._threads = self._threads, None
        for child in self.children:
            child.end()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        for child in self.children:
            child.stop()

    def _work(self, job: Callable[[ChildProcess], Result]) -> Result:
        child = self._idle.get()
        try:
            return job(child)
        finally:
            self._idle.put(child)


class _Exchange:
    """A request and the answer to the request, within the limits: no wait exceeds the deadline."""

    def __init__(self, process: subprocess.Popen[bytes], parts: Sequence[bytes], limits: RequestLimits) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._limits = limits
        self._in = process.stdin.fileno()
        self._out = process.stdout.fileno()
        self._parts = [memoryview(part) for part in parts if part]
        self._received = bytearray()
        self._payload_bytes: int | None = None
        self._ends = time.monotonic() + limits.seconds
        self._ends_at_last = self._ends + limits.progress_seconds

    def run(self, answer_type: type[Answer], progress: Answer | None = None) -> Answer:
        """The first answer after any progress reports."""
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
                    raise ChildFailed(f"took longer than {self._limits.seconds:g} s to read")
                if now - looked >= _POLL_SECONDS:
                    looked = now
                    self._check_memory()
                for key, _ in selector.select(min(_POLL_SECONDS, self._ends - now)):
                    if key.fd == self._in:
                        if not self._send():
                            selector.unregister(self._in)
                    elif (payload := self._receive()) is not None:
                        try:
                            answer = decode(payload, answer_type)
                        except Garbled:
                            raise ChildFailed(SENSELESS) from None
                        if answer != progress:
                            return answer
                        self._ends = min(time.monotonic() + self._limits.seconds, self._ends_at_last)

    def _send(self) -> bool:
        """Send a part of the request; True if there is more."""
        try:
            sent = os.write(self._in, self._parts[0][:_CHUNK_BYTES])
        except BlockingIOError:
            return True
        except OSError:
            raise ChildFailed(self._reason_of_death()) from None
        self._parts[0] = self._parts[0][sent:]
        if not self._parts[0]:
            del self._parts[0]
        return bool(self._parts)

    def _receive(self) -> bytearray | None:
        """Receive a part of a frame; returns the payload of a complete frame, else None."""
        expected = FRAME_HEADER.size if self._payload_bytes is None else self._payload_bytes
        try:
            data = os.read(self._out, min(_CHUNK_BYTES, expected - len(self._received)))
        except BlockingIOError:
            return None
        if not data:
            raise ChildFailed(self._reason_of_death())
        self._received += data
        if len(self._received) < expected:
            return None
        received, self._received = self._received, bytearray()
        if self._payload_bytes is not None:
            self._payload_bytes = None
            return received
        (self._payload_bytes,) = FRAME_HEADER.unpack(received)
        if self._payload_bytes > self._limits.answer_bytes:
            raise ChildFailed(f"contains too much text: {self._payload_bytes:,} bytes")
        if not self._payload_bytes:
            raise ChildFailed(SENSELESS)
        return None

    def _check_memory(self) -> None:
        limit = self._limits.memory_bytes
        if limit is not None and sum(map(_resident_bytes, _process_tree(self._process.pid))) > limit:
            raise ChildFailed(f"needs more than {limit >> 20:,} MB of memory to read")

    def _reason_of_death(self) -> str:
        """Reason for the child's death, as far as the exit code tells."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "made its reader stop answering"
        if code == -signal.SIGXCPU:
            return f"took more than {self._limits.seconds:g} s of CPU time to read"
        if code >= 0:
            return "made its reader exit"
        with suppress(ValueError):
            return (
                f"made its reader crash ({signal.Signals(-code).name}); the file is damaged, or needs too much memory"
            )
        return "made its reader crash"


def _environment() -> dict[str, str]:
    # Plug-ins may need PYTHONPATH; relative paths would resolve below a hostile folder.
    paths = [_SOURCE_FOLDER, *filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | _ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(paths)}


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and all processes in the child's process group."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def _process_tree(pid: int) -> Iterator[int]:
    """The process and all descendants, where `/proc` lists them."""
    yield pid
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, ValueError):
                for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                    yield from _process_tree(int(child))


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def serve(answer: Callable[[IO[bytes], Callable[[Any], None]], None], memory_bytes: int = MEMORY_BYTES) -> None:
    """Main loop of a child: confine the process, then answer requests from stdin until the pipe ends."""
    from satchel.indexing.confine import confine, die_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    send_answer = partial(send, answers)
    send_answer(Ready(is_confined=confine(memory_bytes)))
    with suppress(EOFError, BrokenPipeError):
        while True:
            answer(sys.stdin.buffer, send_answer)
            signal.setitimer(signal.ITIMER_REAL, 0)
