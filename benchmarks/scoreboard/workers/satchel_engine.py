"""Satchel as anybody would use it: an index from nothing, `build` with default options, `search`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from benchmarks.scoreboard.workers.hosting import Json, Tool, passage, serve
from satchel.service.engine import ENGINE_OPTIONS, ContextEngine
from satchel.service.factory.opening import open_engine
from satchel.tokens.registry import DEFAULT_TOKENIZER, counter_for

_RESULTS = 50


class SatchelEngine(Tool):
    """This checkout."""

    version = version("satchel")

    def __init__(self) -> None:
        self._engine: ContextEngine | None = None
        self._place: tempfile.TemporaryDirectory[str] | None = None

    def index(self, folder: Path, kind: str) -> None:  # noqa: ARG002
        """Index the folder into a temporary one."""
        self.close()
        self._place = tempfile.TemporaryDirectory(prefix="satchel-bench-")
        self._engine = open_engine(folder, index_dir=self._place.name, history_commits=0)
        self._engine.index()

    def ask(self, question: str, budgets: Sequence[int]) -> Json:
        """A context for each budget, and what was ranked."""
        engine = self._indexed()
        hits = engine.search(question, top_k=_RESULTS).hits
        return {
            "contexts": {str(budget): self._context(engine, question, budget) for budget in budgets},
            "passages": [
                passage(hit.path, hit.start_line, hit.end_line, hit.content, relevance=hit.relevance) for hit in hits
            ],
        }

    def answer(self, question: str, budget: int) -> Json:
        """A context; the ranking is asked for apart."""
        return {"contexts": {str(budget): self._context(self._indexed(), question, budget)}}

    def _indexed(self) -> ContextEngine:
        if self._engine is None:
            raise RuntimeError("nothing is indexed yet")
        return self._engine

    def _context(self, engine: ContextEngine, question: str, budget: int) -> Json:
        result = engine.build(question, replace(ENGINE_OPTIONS, max_tokens=budget))
        cited = []
        for source in result.sources:
            # What was read from a document is cited by page: lines are those of the text that was read from it.
            lines = (None, None) if source.page else (source.line, source.end_line)
            cited.append(
                {"number": source.number, "path": source.file, "first": lines[0], "last": lines[1], "text": source.text}
            )
        return {"text": result.text, "claimed": result.tokens, "cited": cited}

    def count(self, texts: Sequence[str]) -> list[int | None]:
        """By the tokenizer it counts with unless told otherwise."""
        counter = counter_for(DEFAULT_TOKENIZER)
        return [counter.count(text) for text in texts]

    def close(self) -> None:
        """Forget the index."""
        if self._engine is not None:
            self._engine.close()
        if self._place is not None:
            self._place.cleanup()
        self._engine = self._place = None


if __name__ == "__main__":
    serve(SatchelEngine)
