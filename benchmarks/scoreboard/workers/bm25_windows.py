"""BM25 over overlapping windows of lines, stemmed and without stop words; a window's path counts as its text.

`bm25_windows.py LINES OVERLAP`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

import bm25s
import Stemmer

from benchmarks.scoreboard.workers.hosting import MOST_PASSAGES, Json, Tool, passage, ranked, serve, texts_below


class Bm25Windows(Tool):
    """What anyone can build in an afternoon."""

    version = version("bm25s")

    def __init__(self, lines: int, overlap: int) -> None:
        self._lines, self._step = lines, lines - overlap
        self._stemmer = Stemmer.Stemmer("english")
        self._windows: list[Json] = []
        self._scores: Any = None

    def index(self, folder: Path, kind: str) -> None:  # noqa: ARG002
        """Cut every file into windows and weigh their words."""
        self._windows = [window for path, text in texts_below(folder) for window in self._cut(path, text)]
        self._scores = bm25s.BM25()
        self._scores.index(self._words([f"{w['path']}\n{w['text']}" for w in self._windows]), show_progress=False)

    def ask(self, question: str, budgets: Sequence[int]) -> Json:  # noqa: ARG002
        """The windows with the highest scores."""
        wanted = min(MOST_PASSAGES, len(self._windows))
        (numbers,), (scores,) = self._scores.retrieve(self._words([question]), k=wanted, show_progress=False)
        scored = takewhile(lambda pair: pair[1] > 0, zip(numbers, scores, strict=True))
        return ranked([self._windows[number] for number, _ in scored])

    def _cut(self, path: str, text: str) -> Iterator[Json]:
        lines = text.split("\n")
        # The last window starts where it still has lines that the one before it hasn't.
        for start in range(0, max(1, len(lines) - self._lines + self._step), self._step):
            window = lines[start : start + self._lines]
            if any(line.strip() for line in window):
                yield passage(path, start + 1, start + len(window), "\n".join(window))

    def _words(self, texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


if __name__ == "__main__":
    serve(lambda: Bm25Windows(int(sys.argv[1]), int(sys.argv[2])))
