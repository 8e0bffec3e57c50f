"""LangChain: a recursive splitter that knows the language, BM25 and vectors, in an EnsembleRetriever.

`langchain_hybrid.py MODEL`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.scoreboard.workers.hosting import Json, Tool, lines_of, passage, ranked, serve, texts_below

_RESULTS = 50
_CODE_CHARACTERS, _PROSE_CHARACTERS, _OVERLAP = 700, 1000, 100
_WORD = re.compile(r"\w+")
_LANGUAGES = {
    ".py": "python", ".js": "js", ".mjs": "js", ".cjs": "js", ".jsx": "js", ".ts": "ts", ".tsx": "ts", ".java": "java",
    ".kt": "kotlin", ".scala": "scala", ".go": "go", ".rs": "rust", ".c": "c", ".h": "cpp", ".cc": "cpp",
    ".cpp": "cpp", ".hpp": "cpp", ".inc": "cpp", ".cs": "csharp", ".rb": "ruby", ".rake": "ruby", ".php": "php",
    ".lua": "lua", ".hs": "haskell", ".ex": "elixir", ".exs": "elixir", ".swift": "swift", ".md": "markdown",
    ".rst": "rst", ".html": "html", ".proto": "proto", ".tex": "latex", ".sol": "sol", ".ps1": "powershell",
}  # fmt: skip
_PROSE = frozenset({"markdown", "rst", "html", "latex"})


class LangChain(Tool):
    """The two retrievers count alike, as EnsembleRetriever's examples have it."""

    version = version("langchain")

    def __init__(self, model: str) -> None:
        self._splitting = import_module("langchain_text_splitters")
        self._community = import_module("langchain_community.retrievers")
        self._classic = import_module("langchain_classic.retrievers")
        self._core = import_module("langchain_core.vectorstores")
        self._messages = import_module("langchain_core.messages")
        self._documents = import_module("langchain_core.documents")
        self._embeddings = import_module("langchain_community.embeddings").Model2vecEmbeddings(model)
        self._splitters: dict[str | None, Any] = {}
        self._texts: dict[str, str] = {}
        self._retriever: Any = None

    def index(self, folder: Path, kind: str) -> None:  # noqa: ARG002
        """Read, split, embed and weigh."""
        self._texts = dict(texts_below(folder))
        pieces = [piece for path, text in self._texts.items() for piece in self._split(path, text)]
        # Without a preprocess_func it splits at blanks only, and "cache." is another word than "Cache".
        words = self._community.BM25Retriever.from_documents(pieces, k=_RESULTS, preprocess_func=_words)
        store = self._core.InMemoryVectorStore(self._embeddings)
        store.add_documents(pieces)
        vectors = store.as_retriever(search_kwargs={"k": _RESULTS})
        self._retriever = self._classic.EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])

    def ask(self, question: str, budgets: Sequence[int]) -> Json:  # noqa: ARG002
        """What the ensemble ranks."""
        return ranked([self._passage(found) for found in self._retriever.invoke(question)])

    def count(self, texts: Sequence[str]) -> list[int | None]:
        """By `count_tokens_approximately`, which its guides give to `trim_messages`, without what a message adds."""
        message = self._messages.HumanMessage
        count = self._messages.utils.count_tokens_approximately
        return [int(count([message(text)], extra_tokens_per_message=0)) for text in texts]

    def _split(self, path: str, text: str) -> list[Any]:
        language = _LANGUAGES.get(Path(path).suffix.lower())
        document = self._documents.Document(text, metadata={"source": path})
        pieces: list[Any] = self._splitter(language).split_documents([document])
        for piece in pieces:
            piece.page_content = f"{path}\n{piece.page_content}"
        return pieces

    def _splitter(self, language: str | None) -> Any:
        if language not in self._splitters:
            size = _PROSE_CHARACTERS if language is None or language in _PROSE else _CODE_CHARACTERS
            told = {"chunk_size": size, "chunk_overlap": _OVERLAP, "add_start_index": True}
            splitter = self._splitting.RecursiveCharacterTextSplitter
            self._splitters[language] = splitter.from_language(language, **told) if language else splitter(**told)
        return self._splitters[language]

    def _passage(self, document: Any) -> Json:
        path, start = document.metadata["source"], document.metadata["start_index"]
        text = document.page_content.removeprefix(f"{path}\n")
        first, last = lines_of(self._texts[path], start, len(text)) if start >= 0 else (None, None)
        return passage(path, first, last, text)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


if __name__ == "__main__":
    serve(lambda: LangChain(sys.argv[1]))
