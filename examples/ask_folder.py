"""Bring your own retriever: BM25 finds the chunks, Satchel packs them.

    pip install bm25s
    python examples/ask_folder.py "how is the token budget kept?" path/to/folder

Any retriever will do; `assemble` is all that Satchel asks of it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from satchel import ContextBuildOptions, KnowledgeChunk, assemble

try:
    import bm25s
except ImportError:
    sys.exit("this example needs a package: pip install bm25s")

LINES_PER_CHUNK = 40
LANGUAGES = {".py": "python", ".md": "markdown", ".toml": "toml", ".js": "javascript", ".ts": "typescript", ".go": "go"}


def text_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Path and text of every text file below the folder, hidden folders and links left out."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            path = Path(root, name)
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                if b"\0" not in data[:8192]:
                    yield str(path.relative_to(folder)), data.decode("utf-8", "replace")


def read_chunks(folder: Path) -> list[KnowledgeChunk]:
    """Every text file below the folder in chunks of forty lines."""
    chunks = []
    for path, text in text_files(folder):
        lines = text.split("\n")
        for start in range(0, len(lines), LINES_PER_CHUNK):
            part = lines[start : start + LINES_PER_CHUNK]
            if "".join(part).strip():
                chunks.append(
                    KnowledgeChunk(
                        "\n".join(part),
                        file_path=path,
                        start_line=start + 1,
                        end_line=start + len(part),
                        language=LANGUAGES.get(Path(path).suffix),
                    )
                )
    return chunks


def words(text: str) -> list[str]:
    """The words of a text, identifiers taken apart."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text)]


def search(question: str, chunks: list[KnowledgeChunk], count: int = 20) -> list[KnowledgeChunk]:
    """The best chunks by BM25, the best with relevance 1."""
    retriever = bm25s.BM25()
    retriever.index([words(f"{chunk.file_path} {chunk.content}") for chunk in chunks], show_progress=False)
    found, scores = retriever.retrieve([words(question)], k=min(count, len(chunks)), show_progress=False)
    best = float(scores[0][0]) or 1.0
    return [replace(chunks[i], relevance=float(score) / best) for i, score in zip(found[0], scores[0], strict=True)]


def main() -> int:
    """Print a context for a question about a folder."""
    question, folder = sys.argv[1], Path(sys.argv[2])
    chunks = read_chunks(folder)
    if not chunks:
        print(f"{folder}: no text files there", file=sys.stderr)
        return 3
    options = ContextBuildOptions(max_tokens=2000, tokenizer="gpt-5", include_citations=True, include_sources=True)
    result = assemble(search(question, chunks), options, query=question)
    print(result.context)
    print(
        f"\n{result.chunks_included} of {result.total_chunks_available} hits from {result.file_count} files, "
        f"{result.estimated_tokens:,} of {options.max_tokens:,} tokens",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())
