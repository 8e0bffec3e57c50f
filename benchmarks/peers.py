"""The tools we are measured against, each behind the same two calls: index a folder, then ask it questions.

Semble          its own chunks and ranking, with a static embedding model or by words alone
LineBm25        BM25 over windows of lines: what anyone can build in an afternoon
Ripgrep         the files in which most of the question's words occur: what an agent does without an index

A peer ranks; none of them knows of a budget. So all are filled up the same way: what they rank first comes first, and
the passage that no longer fits is cut after its last whole line.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from satchel import counter_for
from satchel.tokens.counter import TokenCounter

Place = tuple[str, int, int]
"""A path below the indexed folder, with its first and last line."""

_O200K = "o200k_base"
_NOT_SOURCE = frozenset({".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules", "build", "dist"})
_MAX_FILE_BYTES = 1_500_000
_BINARY_PROBE_BYTES = 4_000


class PeerMissing(Exception):
    """A peer was asked for that is not installed here."""

    def __init__(self, peer: str, install: str) -> None:
        super().__init__(f"{peer} is not installed; to measure against it, run: {install}")
        self.peer = peer
        self.install = install


class Peer(Protocol):
    """A tool that finds the parts of a folder that answer a question."""

    def index(self, folder: Path) -> None:
        """Read the folder; what was indexed before is forgotten."""
        ...

    def query(self, question: str, max_tokens: int) -> tuple[str, list[Place]]:
        """A context within the budget, and everything that was ranked, best first."""
        ...


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive lines of a file."""

    path: str
    first_line: int
    last_line: int
    text: str

    @property
    def place(self) -> Place:
        return self.path, self.first_line, self.last_line

    @property
    def heading(self) -> str:
        return f"### {self.path}:{self.first_line}-{self.last_line}\n"


def filled(passages: Iterable[Passage], max_tokens: int, counter: TokenCounter) -> str:
    """The passages in their order, as far as the budget reaches."""
    text, spent = "", 0
    for passage in passages:
        block = passage.heading + passage.text.rstrip("\n") + "\n\n"
        spent += counter.count(block)
        if spent > max_tokens:
            # Only with at least one line of the passage: a heading alone would claim what isn't there.
            cut = _cut(text + block, max_tokens, counter)
            return cut if len(cut) > len(text) + len(passage.heading) else _cut(text, max_tokens, counter)
        text += block
    # Tokens can fall otherwise across a seam, so the sum of the blocks is near the count of the whole, but not it.
    return _cut(text, max_tokens, counter)


def _cut(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """The text, or as many of its first lines as fit."""
    while not counter.fits(text, max_tokens):
        # One character fewer at least, since a text cut at a line's end can have more tokens than one cut behind it.
        text = counter.prefix(text[:-1], max_tokens)
        text = text[: text.rfind("\n") + 1]
    return text


def _imported(module: str, peer: str, install: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PeerMissing(peer, install) from error


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every text file below the folder, as its path and what it says."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _NOT_SOURCE)
        for path in (Path(base, name) for name in sorted(names)):
            if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
                continue
            raw = path.read_bytes()
            if b"\0" not in raw[:_BINARY_PROBE_BYTES]:
                yield path.relative_to(folder).as_posix(), raw.decode("utf-8", errors="replace")


class Semble:
    """semble, through its own index and search.

    Without a model it ranks by words alone: its dense half then gets a model that knows nothing, and no weight.
    """

    def __init__(self, model: Path | None = None, *, results: int = 50, tokenizer: str = _O200K) -> None:
        self._library = _imported("semble", "semble", "pip install semble==0.7.0")
        self._results = results
        self._counter = counter_for(tokenizer)
        self._no_model = None if model else tempfile.TemporaryDirectory(prefix="no-model-")
        if self._no_model:
            _write_model_that_knows_nothing(Path(self._no_model.name))
        self._model_path = self._no_model.name if self._no_model else str(model)
        self._dense_weight = 0.0 if self._no_model else None  # None leaves it to semble, by the kind of question
        self._index: Any = None

    def index(self, folder: Path) -> None:
        """Chunk, embed and index the folder's code."""
        self._index = self._library.SembleIndex.from_path(folder, model_path=self._model_path)

    def query(self, question: str, max_tokens: int) -> tuple[str, list[Place]]:
        """semble's chunks in semble's order."""
        found = self._index.search(question, top_k=self._results, alpha=self._dense_weight)
        passages = [
            Passage(Path(chunk.file_path).as_posix(), chunk.start_line, chunk.end_line, chunk.content)
            for chunk in (result.chunk for result in found)
        ]
        return filled(passages, max_tokens, self._counter), [passage.place for passage in passages]


def _write_model_that_knows_nothing(folder: Path) -> None:
    """A static model with the same vector for every text: semble asks for one, and its own is a download."""
    install = "pip install semble==0.7.0"
    model2vec, numpy, tokenizers = (_imported(name, "semble", install) for name in ("model2vec", "numpy", "tokenizers"))
    _imported("tokenizers.models", "semble", install)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "[PAD]": 1}, unk_token="[UNK]"))
    model2vec.StaticModel(numpy.ones((2, 1), dtype=numpy.float32), tokenizer).save_pretrained(folder)


class LineBm25:
    """BM25 over overlapping windows of lines, stemmed and without stop words; a window's path counts as its text."""

    def __init__(
        self,
        *,
        lines: int = 50,
        overlap: int = 10,
        results: int = 100,
        tokenizer: str = _O200K,
        stemmer: str = "english",
    ) -> None:
        install = "pip install bm25s PyStemmer"
        self._library = _imported("bm25s", "bm25s", install)
        self._stemmer = _imported("Stemmer", "PyStemmer", install).Stemmer(stemmer)
        self._lines, self._step, self._results = lines, lines - overlap, results
        self._counter = counter_for(tokenizer)
        self._windows: list[Passage] = []
        self._scores: Any = None

    def index(self, folder: Path) -> None:
        """Cut every file into windows and weigh their words."""
        self._windows = [window for path, text in _texts(folder) for window in self._cut(path, text)]
        self._scores = self._library.BM25()
        self._scores.index(self._words([f"{w.path}\n{w.text}" for w in self._windows]), show_progress=False)

    def query(self, question: str, max_tokens: int) -> tuple[str, list[Place]]:
        """The windows with the highest scores."""
        wanted = min(self._results, len(self._windows))
        (numbers,), (scores,) = self._scores.retrieve(self._words([question]), k=wanted, show_progress=False)
        scored = takewhile(lambda pair: pair[1] > 0, zip(numbers, scores, strict=True))
        passages = [self._windows[number] for number, _ in scored]
        return filled(passages, max_tokens, self._counter), [passage.place for passage in passages]

    def _cut(self, path: str, text: str) -> Iterator[Passage]:
        lines = text.split("\n")
        # The last window starts where it still has lines that the one before it hasn't.
        for start in range(0, max(1, len(lines) - self._lines + self._step), self._step):
            window = lines[start : start + self._lines]
            if any(line.strip() for line in window):
                yield Passage(path, start + 1, start + len(window), "\n".join(window))

    def _words(self, texts: list[str]) -> Any:
        return self._library.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


_WORD = re.compile(r"[^\W\d]\w{2,}")
_TOO_COMMON = frozenset(
    "and are but can could does for from get has have how into its may not our should that the their them then there"
    " they this used uses using was were what when where which while who why will with would you your".split()
)
_MAX_WORDS = 40


class Ripgrep:
    """ripgrep for the question's words, then whole files: those with the most different words first."""

    def __init__(self, *, results: int = 30, tokenizer: str = _O200K) -> None:
        program = shutil.which("rg")
        if program is None:
            raise PeerMissing("ripgrep", "apt-get install ripgrep")
        self._program = program
        self._results = results
        self._counter = counter_for(tokenizer)
        self._folder = Path()

    def index(self, folder: Path) -> None:
        """Only remember the folder: ripgrep reads it anew for every question."""
        self._folder = folder

    def query(self, question: str, max_tokens: int) -> tuple[str, list[Place]]:
        """The files in which most of the question's words occur."""
        passages = [self._whole(path) for path in self._ranked(_words_of(question))[: self._results]]
        return filled(passages, max_tokens, self._counter), [passage.place for passage in passages]

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
        command = [self._program, "--no-config", "--no-messages", "--ignore-case", "--fixed-strings", "--only-matching"]
        command += ["--no-heading", "--with-filename", "--no-line-number", "--null", "--max-count=200"]
        # ripgrep takes the first alternative that matches, so the longer words must come first.
        for word in sorted(words, key=len, reverse=True):
            command += ["-e", word]
        found = subprocess.run([*command, "."], cwd=self._folder, capture_output=True, check=False)
        for line in found.stdout.decode("utf-8", errors="replace").splitlines():
            path, separator, match = line.partition("\0")
            if separator:
                yield path.removeprefix("./"), match.lower()

    def _whole(self, path: str) -> Passage:
        text = (self._folder / path).read_text(encoding="utf-8", errors="replace")
        return Passage(path, 1, text.count("\n") + 1, text)


def _words_of(question: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(question))
    return list(dict.fromkeys(word for word in words if word not in _TOO_COMMON))[:_MAX_WORDS]
