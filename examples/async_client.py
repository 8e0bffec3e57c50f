"""Several questions at once, about a folder or to a server.

python examples/async_client.py path/to/folder "how are retries done" "where is the port set"
SATCHEL_TOKEN=satchel_… python examples/async_client.py http://127.0.0.1:8420 "how are retries done"
"""

from __future__ import annotations

import asyncio
import sys

import satchel


async def ask(where: str, questions: list[str]) -> int:
    """Print, for each question, how large its context is and where it comes from."""
    async with satchel.open_async(where) as client:
        contexts = await asyncio.gather(*(client.build(question, token_budget=500) for question in questions))
        for question, context in zip(questions, contexts, strict=True):
            sources = [f"[{source.number}] {source.id}" for source in context.sources]
            print(f"{question}: {context.tokens} tokens from {', '.join(sources) or 'nothing'}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        sys.exit(asyncio.run(ask(sys.argv[1], sys.argv[2:])))
    except satchel.SatchelError as refused:
        sys.exit(f"{refused}")
