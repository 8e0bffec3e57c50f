"""ripgrep for the question's words, then whole files: those with the most different words first.

It is what an agent does without an index.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.scoreboard.workers.hosting import Json, Tool, passage, ranked, serve

_FILES = 30
_WORD = re.compile(r"[^\W\d]\w{2,}")
_TOO_COMMON = frozenset(
    "and are but can could does for from get has have how into its may not our should that the their them then there"
    " they this used uses using was were what when where which while who why will with would you your".split()
)
_MAX_WORDS = 40
_COMMAND = (
    "rg", "--no-config", "--no-messages", "--ignore-case", "--fixed-strings", "--only-matching", "--no-heading",
    "--with-filename", "--no-line-number", "--null", "--max-count=200",
)  # fmt: skip


class Ripgrep(Tool):
    """Debian's rg, once for every question."""

    def __init__(self) -> None:
        told = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout
        self.version = told.split()[1]
        self._folder = Path()

    def index(self, folder: Path, kind: str) -> None:  # noqa: ARG002
        """Only remember the folder: ripgrep reads it anew for every question."""
        self._folder = folder

    def ask(self, question: str, budgets: Sequence[int]) -> Json:  # noqa: ARG002
        """The files in which most of the question's words occur."""
        return ranked([self._whole(path) for path in self._ranked(_words_of(question))[:_FILES]])

    def _ranked(self, words: list[str]) -> list[str]:
        if not words:
            return []
        words_in: dict[str, set[str]] = {}
        matches_in: dict[str, int] = {}
        for path, match in self._matches(words):
            words_in.setdefault(path, set()).update(word for word in words if word in match)
            matches_in[path] = matches_in.get(path, 0) + 1
        return sorted(words_in, key=lambda path: (-len(words_in[path]), -matches_in[path], path))

    def _matches(self, words: list[str]) -> Iterator[tuple[str, str]]:
        """Each match as its file and the matched text in small letters."""
        # ripgrep takes the first alternative that matches, so the longer words must come first.
        wanted = [argument for word in sorted(words, key=len, reverse=True) for argument in ("-e", word)]
        found = subprocess.run([*_COMMAND, *wanted, "."], cwd=self._folder, capture_output=True, check=False)
        for line in found.stdout.decode("utf-8", errors="replace").splitlines():
            path, separator, match = line.partition("\0")
            if separator:
                yield path.removeprefix("./"), match.lower()

    def _whole(self, path: str) -> Json:
        text = (self._folder / path).read_text(encoding="utf-8", errors="replace")
        return passage(path, 1, text.count("\n") + 1, text)


def _words_of(question: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(question))
    return list(dict.fromkeys(word for word in words if word not in _TOO_COMMON))[:_MAX_WORDS]


if __name__ == "__main__":
    serve(Ripgrep)
