"""Satchel as a contestant in the evaluation harness: one JSON request a line on stdin, one answer a line on stdout.

    {"op": "index", "corpus_dir": …}   {"op": "query", "query": …, "max_tokens": …}   {"op": "exit"}

Every index is made from nothing, in a temporary folder.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import replace
from typing import Any

from satchel.service.engine import ENGINE_OPTIONS, ContextEngine
from satchel.service.factory.opening import open_engine

RANKED = 50


class Contestant:
    """What the harness talks to."""

    def __init__(self) -> None:
        self._engine: ContextEngine | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def index(self, folder: str) -> None:
        """Index a folder from nothing."""
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="satchel-eval-")
        self._engine = open_engine(folder, index_dir=self._folder.name, history_commits=0)
        self._engine.index()

    def query(self, question: str, max_tokens: int) -> tuple[str, list[tuple[str, int, int]]]:
        """The context for a question, and the ranked pieces."""
        assert self._engine is not None
        result = self._engine.build(question, replace(ENGINE_OPTIONS, max_tokens=max_tokens))
        hits = self._engine.search(question, top_k=RANKED).hits
        return result.context, [(hit.path, hit.start_line, hit.end_line) for hit in hits]

    def close(self) -> None:
        """Forget the index."""
        if self._engine is not None:
            self._engine.close()
        if self._folder is not None:
            self._folder.cleanup()


def main() -> None:
    """Answer until told to stop."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contestant = Contestant()

    def say(answer: dict[str, Any]) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "exit":
                break
            if request["op"] == "index":
                contestant.index(request["corpus_dir"])
                say({"ok": True})
            else:
                context, ranked = contestant.query(request["query"], request["max_tokens"])
                say({"context": context, "ranked": ranked})
        except Exception as error:  # the harness wants to know, whatever it is
            say({"error": repr(error)[:500]})
    contestant.close()


if __name__ == "__main__":
    main()
