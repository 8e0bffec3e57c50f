"""A worker while it runs: asked over a pipe, timed, and always ended."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from benchmarks.scoreboard import environments
from benchmarks.scoreboard.contestants import Contestant
from benchmarks.scoreboard.process_tree import ProcessTree

TO_START: Final = 180.0
TO_INDEX: Final = 900.0
TO_ANSWER: Final = 120.0
_TO_LEAVE: Final = 5.0
_TAIL: Final = 1500
_AT_ONCE: Final = 1 << 20


class ContestantFailed(Exception):
    """A worker said that it could not do what was asked; it can be asked again."""


class ContestantGone(ContestantFailed):
    """A worker died, said what nobody understands, or took too long; it cannot be asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a call cost: seconds by the clock, and of all processors in all of the worker's processes."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A ranked piece; lines are None where the tool doesn't say them."""

    path: str
    first: int | None
    last: int | None
    text: str
    relevance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A numbered source as it stands in a context."""

    number: int
    path: str
    first: int | None
    last: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A text that the tool wrote, how many tokens it says that it has, and its sources, where it names them."""

    text: str
    claimed: int | None
    cited: tuple[Cited, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """A folder was read; `packed` is all that a tool has to say that doesn't look at questions."""

    spent: Spent
    packed: Context | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer. Without passages and without contexts, it is what was packed."""

    spent: Spent
    passages: tuple[Passage, ...] | None = None
    contexts: Mapping[int, Context] | None = None


class Running:
    """A started worker, to be used as a context manager."""

    def __init__(
        self, command: Sequence[str], *, variables: Mapping[str, str] | None = None, to_start: float = TO_START
    ) -> None:
        self._name = next((Path(part).stem for part in command if part.endswith(".py")), command[0])
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._heard = bytearray()
        self._gone = ""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(variables) if variables is not None else None,
            start_new_session=True,
        )
        self._tree = ProcessTree(self._process.pid)
        try:
            told, self.started = self._timed(None, to_start)
        except BaseException:
            self.close()
            raise
        self.version = str(told.get("version", ""))

    @classmethod
    def of(cls, contestant: Contestant, place: Path) -> Self:
        """Start a contestant, in its environment below the work folder."""
        return cls(environments.ready(contestant, place), variables=environments.variables(place))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def peak_memory(self) -> int:
        """The most bytes that the worker and its children held at a time, as far as was seen."""
        return self._tree.peak_memory

    def index(self, folder: Path, *, kind: str = "code", timeout: float = TO_INDEX) -> Indexed:
        """Let it read a folder from nothing."""
        told, spent = self._timed({"op": "index", "folder": str(folder.resolve()), "kind": kind}, timeout)
        return Indexed(spent=spent, packed=_context(told["packed"]) if told.get("packed") else None)

    def ask(self, question: str, budgets: Sequence[int], *, timeout: float = TO_ANSWER) -> Answered:
        """Put a question to it."""
        return self._answered({"op": "ask", "question": question, "budgets": list(budgets)}, timeout)

    def answer(self, question: str, budget: int, *, timeout: float = TO_ANSWER) -> Answered:
        """Put a question to it as its users do: for a context or for passages, not for both."""
        return self._answered({"op": "answer", "question": question, "budget": budget}, timeout)

    def _answered(self, request: dict[str, Any], timeout: float) -> Answered:
        told, spent = self._timed(request, timeout)
        passages, contexts = told.get("passages"), told.get("contexts")
        return Answered(
            spent=spent,
            passages=None if passages is None else tuple(_passage(one) for one in passages),
            contexts=None if contexts is None else {int(budget): _context(one) for budget, one in contexts.items()},
        )

    def count(self, texts: Sequence[str], *, timeout: float = TO_ANSWER) -> list[int | None]:
        """What its own token counter says."""
        told, _ = self._timed({"op": "count", "texts": list(texts)}, timeout)
        return list(told["counts"])

    def close(self) -> None:
        """End it: politely if it still listens, and then with all its children."""
        if not self._gone:
            self._gone = "it was closed"
            self._leave()
        self._tree.close()
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _leave(self) -> None:
        try:
            self._send({"op": "exit"})
            self._process.wait(_TO_LEAVE)
        except (OSError, subprocess.TimeoutExpired):
            return

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # all of them have left already
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _timed(self, request: Mapping[str, Any] | None, timeout: float) -> tuple[dict[str, Any], Spent]:
        if self._gone:
            raise ContestantGone(f"{self._name} cannot be asked any more: {self._gone}")
        cpu, started = self._tree.cpu_seconds(), time.perf_counter()
        if request is not None:
            try:
                self._send(request)
            except OSError:
                raise self._lost(self._how_it_ended()) from None
        line = self._line(started + timeout, timeout)
        spent = Spent(wall=time.perf_counter() - started, cpu=max(0.0, self._tree.cpu_seconds() - cpu))
        self._tree.look()
        try:
            told = json.loads(line)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise self._lost(f"it answered something else than JSON: {line[:200]!r}")
        if "error" in told:
            if request is None:
                raise self._lost(f"it could not start: {told['error']}")
            raise ContestantFailed(f"{self._name}, {request['op']}: {told['error']}")
        return told, spent

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self, until: float, timeout: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while (end := self._heard.find(b"\n")) < 0:
            left = until - time.perf_counter()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise self._lost(f"no answer within {timeout:g} s")
            part = os.read(pipe, _AT_ONCE)
            if not part:
                raise self._lost(self._how_it_ended())
            self._heard += part
        line = bytes(self._heard[:end])
        del self._heard[: end + 1]
        return line

    def _how_it_ended(self) -> str:
        try:
            return f"it ended with code {self._process.wait(_TO_LEAVE)}"
        except subprocess.TimeoutExpired:
            return "it closed its output"

    def _lost(self, why: str) -> ContestantGone:
        """Note why, and end what is left of it."""
        self._gone = why
        self._kill()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _TAIL))
        said = self._errors.read().decode("utf-8", errors="replace").strip()
        return ContestantGone(f"{self._name}: {why}" + (f"; it said last:\n{said}" if said else ""))


def _passage(told: Mapping[str, Any]) -> Passage:
    return Passage(
        path=told["path"],
        first=told["first"],
        last=told["last"],
        text=told["text"],
        relevance=told.get("relevance"),
    )


def _context(told: Mapping[str, Any]) -> Context:
    cited = told.get("cited")
    return Context(
        text=told["text"],
        claimed=told["claimed"],
        cited=None
        if cited is None
        else tuple(
            Cited(number=one["number"], path=one["path"] or "", first=one["first"], last=one["last"], text=one["text"])
            for one in cited
        ),
    )
