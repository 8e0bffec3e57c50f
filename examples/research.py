"""Numbered pages for a question about a folder of documents.

pip install '.[documents]'
python examples/research.py "what is the penalty for late delivery?" path/to/folder
"""

from __future__ import annotations

import asyncio
import sys

import satchel
from satchel.research import ContextBuilder


def main() -> int:
    """Print the context for a model, and which page each number cites."""
    question, folder = sys.argv[1:3]
    with satchel.open_library(folder) as library:
        library.engine.index()  # only what has changed is read
        builder = ContextBuilder(library, library, max_sources=3, max_tokens=1500)
        context = asyncio.run(builder.build_context(question))
    print(context.formatted_text)
    print("-" * 8, f"{context.total_tokens} tokens{', shortened' if context.truncated else ''}")
    for number, source in context.get_citation_map().items():
        print(f"[{number}] {source.filename}, page {source.page}, relevance {source.relevance_score:.2f}")
    return 0 if context.sources else 3


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())
