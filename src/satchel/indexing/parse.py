"""Reading outlines at full speed and in safety: source code is parsed by child processes with a deadline.

A parser is C code at work on text that anybody may have written. A file that crashes it or keeps it busy costs one
child and a few seconds, and is then read by its lines.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from satchel.indexing.code.grammars import grammar_name
from satchel.indexing.plain import comes_within, receive, send, send_within
from satchel.indexing.read_outline import read_outline
from satchel.indexing.sections import read_sections
from satchel.models.language import detect_language
from satchel.models.outline import Outline

__all__ = ["Parsers", "Source", "is_tame", "receive", "serve"]

_DEADLINE_SECONDS: Final = 10.0
_OUR_PLACE: Final = str(Path(__file__).resolve().parents[2])
_MOST_WORKERS: Final = 8
_MEMORY_BYTES: Final = 2 << 30
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")
_OWN_SURROUNDINGS: Final = {"PYTHONPATH": _OUR_PLACE, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
_AHEAD: Final = 64
_TAME_BYTES: Final = 300_000
_TAME_DEPTH: Final = 200
_OPENING: Final = frozenset(b"([{<")
_BRACKETS: Final = bytes(c for c in range(256) if c not in b"()[]{}<>")


class Source(NamedTuple):
    """A file to be read."""

    path: str
    text: str


class Parsers:
    """Child processes that read outlines; started when the first hard file comes, ended with the context."""

    def __init__(self, workers: int | None = None, *, deadline: float = _DEADLINE_SECONDS) -> None:
        self._count = max(1, min(workers or os.cpu_count() or 1, _MOST_WORKERS))
        self._deadline = deadline
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._children: list[_Child] = []
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Parsers:
        return self

    def __exit__(self, *_: object) -> None:
        # The children first: whoever waits for one of them waits no longer.
        for child in self._children:
            child.kill()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.stop()

    def read(self, sources: Iterable[Source]) -> Iterator[tuple[Source, Outline]]:
        """The outlines of any number of files, in their order, a bounded number of them at once."""
        waiting: list[tuple[Source, Future[Outline]]] = []
        for source in sources:
            waiting.append((source, self.submit(source)))
            if len(waiting) >= _AHEAD:
                first, future = waiting.pop(0)
                yield first, future.result()
        for source, future in waiting:
            yield source, future.result()

    def submit(self, source: Source) -> Future[Outline]:
        """The outline of a file, when it is there."""
        if self._threads is None:
            self._start()
        assert self._threads is not None
        return self._threads.submit(self._outline, source)

    def _start(self) -> None:
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="satchel-parse")
        for _ in range(self._count):
            child = _Child()
            self._children.append(child)
            self._idle.put(child)

    def _outline(self, source: Source) -> Outline:
        if grammar_name(source.path, source.text) is None:
            return read_outline(source.path, source.text)
        child = self._idle.get()
        try:
            answer = child.ask(source, self._deadline)
        finally:
            self._idle.put(child)
        if answer is not None:
            return answer
        outline = read_sections(source.text, detect_language(source.path))
        return outline._replace(note="the parser failed on it; read by its lines")


class _Child:
    """One child process; a new one takes its place when it had to be stopped."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._over = False
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            # Nothing is imported from where we happen to be: the folder may be a stranger's.
            [sys.executable, "-P", "-c", "from satchel.indexing.parse import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            start_new_session=True,  # a terminal's Ctrl-C is ours to deal with
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _OWN_SURROUNDINGS,
        )

    def ask(self, source: Source, deadline: float) -> Outline | None:
        """The outline, or None when the child crashed or took too long."""
        if self._over:
            return None
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send_within(process.stdin, source, deadline)
            if not comes_within(process.stdout, deadline):
                raise TimeoutError
            answer = receive(process.stdout)
        except (OSError, EOFError, TimeoutError, pickle.UnpicklingError):
            self.stop()
            return None
        return answer if isinstance(answer, Outline) else None

    def kill(self) -> None:
        """End the process, and start no other in its place."""
        self._over = True
        process = self._process
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()


def is_tame(text: str) -> bool:
    """Whether a text is so small and so flat that parsing it cannot take long."""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > _TAME_BYTES:
        return False
    depth = deepest = 0
    for byte in data.translate(None, _BRACKETS):
        depth = depth + 1 if byte in _OPENING else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest < _TAME_DEPTH


def serve() -> None:
    """The child's life: sources in, outlines out, until the pipe ends."""
    import signal

    from satchel.indexing.confine import confine, die_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    confine(_MEMORY_BYTES)
    with suppress(EOFError, BrokenPipeError):
        while True:
            source = receive(sys.stdin.buffer)
            assert isinstance(source, Source)
            # Should nobody be left to stop us, this does: a signal that needs no interpreter to be obeyed.
            signal.setitimer(signal.ITIMER_REAL, 2 * _DEADLINE_SECONDS)
            try:
                answer: Outline | None = read_outline(source.path, source.text)
            except Exception:  # whatever it is, the parent reads the file by its lines
                answer = None
            signal.setitimer(signal.ITIMER_REAL, 0)
            send(answers, answer)
