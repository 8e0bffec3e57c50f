"""semble, through its own index and search. `semble_search.py MODEL`, or `semble_search.py words` for words alone."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.scoreboard.workers.hosting import Json, Tool, passage, ranked, serve
from benchmarks.scoreboard.workers.static_model import ignorant

_RESULTS = 50


class Semble(Tool):
    """Its own chunks and ranking; code is indexed as code, prose as docs, as its `--content` has it."""

    version = version("semble")

    def __init__(self, model: str) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="semble-")
        os.environ["SEMBLE_CACHE_LOCATION"] = self._place.name
        self._semble = import_module("semble")
        self._alpha = None  # semble's own choice, by the kind of question
        self._model = model
        if model == "words":
            self._alpha, self._model = 0.0, f"{self._place.name}/model"
            ignorant(Path(self._model))
        import_module("semble.index.dense").load_model(self._model)
        self._index: Any = None

    def index(self, folder: Path, kind: str) -> None:
        """Chunk, embed and index the folder."""
        content = self._semble.ContentType.DOCS if kind == "prose" else self._semble.ContentType.CODE
        self._index = self._semble.SembleIndex.from_path(folder, content=content, model_path=self._model)

    def ask(self, question: str, budgets: Sequence[int]) -> Json:  # noqa: ARG002
        """semble's chunks in semble's order."""
        found = [result.chunk for result in self._index.search(question, top_k=_RESULTS, alpha=self._alpha)]
        return ranked([passage(Path(c.file_path).as_posix(), c.start_line, c.end_line, c.content) for c in found])

    def close(self) -> None:
        """Remove the model and what semble noted down."""
        self._place.cleanup()


if __name__ == "__main__":
    serve(lambda: Semble(sys.argv[1]))
