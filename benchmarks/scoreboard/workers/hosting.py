"""What every worker does: one JSON request a line on stdin, one answer a line on stdout.

    (start)                                           {"ready": true, "version": "…"}
    {"op": "index", "folder": …, "kind": "code"}      {"ok": true}, and "packed": {"text", "claimed"} if that is all it does
    {"op": "ask", "question": …, "budgets": […]}      {"passages": […]}, {"contexts": {"1000": …}}, both, or {"same": true}
    {"op": "answer", "question": …, "budget": …}      the same, but no more than its users would ask it for: this is timed
    {"op": "count", "texts": […]}                     {"counts": […]}
    {"op": "exit"}

`kind` ("code" or "prose") is for tools whose users choose by it. `{"same": true}` says that the tool doesn't look at the
question: its answer is what it packed. Whatever goes wrong is answered as {"error": "…"}. This runs in each tool's own
environment, so it needs the standard library only; what a library prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

MOST_PASSAGES = 100
MAX_FILE_BYTES = 1_500_000
_NOT_SOURCE = frozenset({".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules"})
_BINARY_PROBE_BYTES = 4_000
_LONGEST_ERROR = 2_000

Json = dict[str, Any]


class Tool:
    """A tool behind the protocol; a worker says what it does for each request."""

    version = ""

    def index(self, folder: Path, kind: str) -> Json | None:
        """Read the folder from nothing; a text is returned by `packed` where that is all the tool does."""
        raise NotImplementedError

    def ask(self, question: str, budgets: Sequence[int]) -> Json:  # noqa: ARG002
        """The answer to a question."""
        return {"same": True}

    def answer(self, question: str, budget: int) -> Json:
        """What somebody with this question asks the tool for: a context, of a tool that makes them, and passages else."""
        return self.ask(question, (budget,))

    def count(self, texts: Sequence[str]) -> Sequence[int | None]:
        """How many tokens the tool itself says that texts have; None where it has no counter."""
        return [None] * len(texts)

    def close(self) -> None:
        """Leave nothing behind."""


def passage(path: str, first: int | None, last: int | None, text: str, **more: Any) -> Json:
    """A ranked piece of a file; a tool that doesn't know lines says None."""
    return {"path": path, "first": first, "last": last, "text": text, **more}


def ranked(passages: Sequence[Json]) -> Json:
    """The answer of a tool that ranks and knows no budget."""
    return {"passages": list(passages[:MOST_PASSAGES])}


def packed(text: str, claimed: int | None) -> Json:
    """The answer to `index` of a tool that writes all it has, whatever is asked."""
    return {"packed": {"text": text, "claimed": claimed}}


def files_below(folder: Path) -> Iterator[Path]:
    """The files of the folder in the order of their names."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _NOT_SOURCE)
        for path in (Path(base, name) for name in sorted(names)):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_FILE_BYTES:
                yield path


def texts_below(folder: Path) -> Iterator[tuple[str, str]]:
    """Every text file below the folder, as its path from there and what it says."""
    for path in files_below(folder):
        raw = path.read_bytes()
        if b"\0" not in raw[:_BINARY_PROBE_BYTES]:
            yield path.relative_to(folder).as_posix(), raw.decode("utf-8", errors="replace")


def lines_of(text: str, start: int, length: int) -> tuple[int, int]:
    """The first and the last line of a part of a text."""
    first = text.count("\n", 0, start) + 1
    return first, first + text.count("\n", start, start + length)


def serve(make: Callable[[], Tool]) -> None:
    """Answer until told to stop."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def say(answer: Json) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    try:
        tool = make()
    except Exception as error:  # a tool that cannot start says why
        say({"error": _told(error)})
        return
    say({"ready": True, "version": tool.version})
    try:
        for line in sys.stdin:
            request = json.loads(line)
            if request["op"] == "exit":
                break
            say(_answered(tool, request))
    finally:
        tool.close()


def _answered(tool: Tool, request: Json) -> Json:
    try:
        match request["op"]:
            case "index":
                return {"ok": True, **(tool.index(Path(request["folder"]), request.get("kind", "code")) or {})}
            case "ask":
                return tool.ask(request["question"], request["budgets"])
            case "answer":
                return tool.answer(request["question"], request["budget"])
            case "count":
                return {"counts": list(tool.count(request["texts"]))}
            case other:
                return {"error": f"no such request: {other!r}"}
    except Exception as error:  # the harness wants to know, whatever it is
        return {"error": _told(error)}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
