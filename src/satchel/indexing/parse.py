"""Parse source code into outlines in child processes with a deadline.

A parser is C code at work on untrusted text. A file that crashes or stalls the parser costs a child process and a few
seconds, and is then read by lines.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import IO, Final, NamedTuple

from satchel.indexing.child_process import ChildFailed, ChildPool, ChildProcess, RequestLimits, encode, frame, receive
from satchel.indexing.child_process import serve as serve_requests
from satchel.indexing.code.read_code import grammar_name, read_code
from satchel.indexing.split import PART_CHARS, read_sections, with_own_names
from satchel.models.files import detect_language
from satchel.models.outline import Outline

_COMMAND: Final = "from satchel.indexing.parse import serve; serve()"
_DEADLINE_SECONDS: Final = 10.0  # a parser busy for longer is stuck on hostile text; the file is then read by lines
_MAX_SOURCE_BYTES: Final = 1 << 32  # from our parent, which has limits of its own
# Outlines are up to 4 times as long as sources that people write, and 21 times as long as functions 4,000 deep.
_ANSWER_BYTES_PER_CHARACTER: Final = 32
_MIN_ANSWER_BYTES: Final = 1_000_000  # room for outlines that are longer than their short sources
_MAX_TAME_BYTES: Final = 300_000  # larger texts take a parser longer; a child with a deadline reads them
_MAX_TAME_BRACKETS: Final = 200  # nested; deeper text can stall or crash a parser, and is read by a child
_TOO_LONG_TO_PARSE: Final = f"is longer than {PART_CHARS:,} characters; split by lines, without symbols"
_OPENING: Final = frozenset(b"([{<")
_BRACKETS: Final = bytes(c for c in range(256) if c not in b"()[]{}<>")


def read_outline(path: str, text: str) -> Outline:
    """The outline of a file; a large file, and a language without a grammar, is read by lines."""
    language = detect_language(path)
    grammar = grammar_name(path, text)
    if grammar is None:
        return with_own_names(read_sections(text, language))
    if len(text) > PART_CHARS:
        outline = with_own_names(read_sections(text, language))
        return outline._replace(note="; ".join(filter(None, (_TOO_LONG_TO_PARSE, outline.note))))
    return with_own_names(read_code(text, grammar, "cpp" if grammar == "cpp" else language))


class SourceFile(NamedTuple):
    """A file to be read."""

    path: str
    text: str


class OutlineAnswer(NamedTuple):
    """A child's answer: the outline of a source, or None if the parser failed."""

    outline: Outline | None


class Parsers(ChildPool):
    """Child processes for parsing; started with the first file to parse, ended with the context."""

    def __init__(self, workers: int | None = None, *, deadline: float = _DEADLINE_SECONDS) -> None:
        super().__init__(workers, lambda: ChildProcess(_COMMAND))
        self._deadline = deadline

    def submit(self, source: SourceFile) -> Future[Outline]:
        """Future outline of a file."""
        return self.run(partial(_read, source, self._deadline))


def _read(source: SourceFile, deadline: float, child: ChildProcess) -> Outline:
    if len(source.text) > PART_CHARS or grammar_name(source.path, source.text) is None:
        return read_outline(source.path, source.text)
    answer_bytes = _MIN_ANSWER_BYTES + _ANSWER_BYTES_PER_CHARACTER * len(source.text)
    limits = RequestLimits(seconds=deadline, answer_bytes=answer_bytes)
    try:
        answer = child.ask([frame(encode(source))], limits, OutlineAnswer)
    except ChildFailed:
        answer = OutlineAnswer(None)
    if answer.outline is not None:
        return answer.outline
    outline = read_sections(source.text, detect_language(source.path))
    return outline._replace(note="the parser failed; the file was split by lines")


def is_tame(text: str) -> bool:
    """True if a text is small and flat enough to be parsed quickly."""
    if len(text) > _MAX_TAME_BYTES:  # a character has at least a byte
        return False
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > _MAX_TAME_BYTES:
        return False
    depth = deepest = 0
    for byte in data.translate(None, _BRACKETS):
        depth = depth + 1 if byte in _OPENING else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest < _MAX_TAME_BRACKETS


def serve() -> None:
    """Read the outlines of sources sent by the parent."""
    serve_requests(_answer)


def _answer(requests: IO[bytes], send: Callable[[OutlineAnswer], None]) -> None:
    source = receive(requests, SourceFile, _MAX_SOURCE_BYTES)
    # If the parent is gone, this timer ends the process: the default action of the signal needs no interpreter.
    signal.setitimer(signal.ITIMER_REAL, 2 * _DEADLINE_SECONDS)
    try:
        outline: Outline | None = read_outline(source.path, source.text)
    except Exception:  # whatever it is, the parent reads the file by its lines
        outline = None
    send(OutlineAnswer(outline))
