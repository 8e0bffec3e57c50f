"""Bring your own retriever: BM25 finds the chunks, Satchel packs them.

    python examples/ask_folder.py "how is the token budget kept?" path/to/folder

Any retriever will do; the last three lines are all that Satchel asks of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import bm25s

from satchel import ContextBuildOptions, KnowledgeChunk, TokenEstimationMethod, assemble
from satchel.model.language import detect_language
from satchel.surfaces.cli.files import files_under, read_text_file

LINES_PER_CHUNK = 40


def read_chunks(root: Path) -> list[KnowledgeChunk]:
    """Every text file below the folder in chunks of forty lines."""
    chunks = []
    for path in files_under(root):
        lines = read_text_file(path).text.split("\n")
        name = str(path.relative_to(root)) if path != root else path.name
        for start in range(0, len(lines), LINES_PER_CHUNK):
            part = lines[start : start + LINES_PER_CHUNK]
            if "".join(part).strip():
                chunks.append(
                    KnowledgeChunk(
                        "\n".join(part),
                        file_path=name,
                        start_line=start + 1,
                        end_line=start + len(part),
                        language=detect_language(name),
                    )
                )
    return chunks


def words(text: str) -> list[str]:
    """The words of a text, identifiers taken apart."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text)]


def search(question: str, chunks: list[KnowledgeChunk], count: int = 20) -> list[KnowledgeChunk]:
    """The best chunks by BM25, the best with relevance 1."""
    from dataclasses import replace

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
    options = ContextBuildOptions(
        max_tokens=2000, token_estimation=TokenEstimationMethod.TOKENIZER, include_citations=True, include_sources=True
    )
    result = assemble(search(question, chunks), options, query=question)
    print(result.context)
    print(
        f"\n{result.chunks_included} of {result.total_chunks_available} hits from {result.file_count} files, "
        f"{result.estimated_tokens:,} of {options.max_tokens:,} tokens",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
