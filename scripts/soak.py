"""Random assemblies by the hundred thousand, each counted and parsed by implementations that are not ours.

    python scripts/soak.py --count 100000 --seed 1

Two processes share the work. Every failure is printed with the seed that repeats it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from satchel import ContextBuildOptions, ContextFormat, Entity, EntityResult, KnowledgeChunk, assemble
from satchel.errors import BudgetCannotBeMet
from satchel.models.options import (
    HeadingStyle,
    Ordering,
    OverflowPolicy,
    Packing,
    ProviderFormat,
    RerankingStrategy,
    TokenEstimationMethod,
)
from tests.support import lawbook
from tests.support.strategies import NASTY

BATCH = 500
PROSE = "the budget is counted on the finished text and never on a guess of what it may become".split()


def text(chooser: random.Random, longest: int = 14) -> str:
    parts = [
        chooser.choice(NASTY) if chooser.random() < 0.5 else " ".join(chooser.choices(PROSE, k=chooser.randint(1, 12)))
        for _ in range(chooser.randint(0, longest))
    ]
    return chooser.choice(["", " ", "\n"]).join(parts)


def chunk(chooser: random.Random) -> KnowledgeChunk:
    content = text(chooser)
    lines: dict[str, int] = {}
    if chooser.random() < 0.7:
        start = chooser.randint(0, 30)
        honest = content.count("\n") + (not content.endswith("\n"))
        lines = {"start_line": start, "end_line": start + max(honest, 1) - 1}
    return KnowledgeChunk(
        content,
        file_path=chooser.choice(["src/a.py", "src/b.py", "docs/c.md", "", text(chooser, 2)[:60]]),
        relevance=chooser.random(),
        language=chooser.choice([None, "python", "text", "`bad"]),
        expanded_context=text(chooser) if chooser.random() < 0.1 else None,
        type=chooser.choice(["", "function", "document", "odd"]),
        **lines,
    )


def entity(chooser: random.Random) -> EntityResult:
    maybe: list[str | None] = [None, text(chooser), text(chooser) * chooser.choice([1, 30])]
    return EntityResult(
        Entity(
            f"e{chooser.randint(1, 9)}",
            text(chooser, 2) or "name",
            chooser.choice(["function", "document", "decision", "odd"]),
            chooser.choice([None, "src/a.py", text(chooser, 2)]),
            chooser.choice([None, 0, 12]),
            chooser.choice(maybe),
            chooser.choice(maybe),
        ),
        chooser.random(),
    )


def options(chooser: random.Random) -> ContextBuildOptions:
    def coin() -> bool:
        return chooser.random() < 0.5

    wrappings = [None, "", "Context:", text(chooser, 5)]
    chosen: dict[str, Any] = {
        "max_tokens": chooser.choice([chooser.randint(1, 80), chooser.randint(80, 700), 4000]),
        "max_chunks": chooser.randint(1, 12),
        "min_relevance": chooser.choice([0.0, 0.3]),
        "format": chooser.choice(list(ContextFormat)),
        "include_file_headers": chooser.random() < 0.8,
        "include_line_numbers": coin(),
        "include_scores": coin(),
        "group_by_file": coin(),
        "group_by_type": chooser.random() < 0.3,
        "chunk_separator": chooser.choice(["\n\n", "\n", "\n---\n"]),
        "context_header": chooser.choice(wrappings),
        "context_footer": chooser.choice(wrappings),
        "token_estimation": chooser.choice(list(TokenEstimationMethod)),
        "include_sources": coin(),
        "include_code_content": coin(),
        "include_citations": coin(),
        "heading_style": chooser.choice(list(HeadingStyle)),
        "ordering": chooser.choice([None, *Ordering]),
        "overflow": chooser.choice(list(OverflowPolicy)),
        "packing": chooser.choice(list(Packing)),
        "merge_adjacent": coin(),
        "provider": chooser.choice(list(ProviderFormat)),
        "reranking": chooser.choice([s for s in RerankingStrategy if s is not RerankingStrategy.CROSS_ENCODER]),
        "min_truncated_tokens": chooser.choice([0, 20, 100]),
    }
    if chosen["token_estimation"] is TokenEstimationMethod.TOKENIZER:
        chosen["tokenizer"] = chooser.choice(["o200k_base", "cl100k_base"])
    return ContextBuildOptions(**chosen)


def one(seed: int) -> str:
    """What came of one random assembly: a word for the tally, or the failure."""
    chooser = random.Random(seed)
    hits = [chunk(chooser) if chooser.random() < 0.8 else entity(chooser) for _ in range(chooser.randint(1, 12))]
    chosen = options(chooser)
    try:
        result = assemble(hits, chosen, query=chooser.choice([None, "budget text"]))
    except BudgetCannotBeMet:
        return "fixed parts over budget, refused"
    try:
        lawbook.check(result, chosen)
    except Exception as error:
        return f"FAILED seed={seed} {type(error).__name__}: {str(error)[:300]}"
    if result.is_empty:
        return "empty"
    return f"{chosen.format} {'trimmed or dropped' if result.was_truncated else 'whole'}"


def batch(start: int, count: int) -> Counter[str]:
    return Counter(one(seed) for seed in range(start, start + count))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tally: Counter[str] = Counter()
    started = time.monotonic()
    starts = range(arguments.seed, arguments.seed + arguments.count, BATCH)
    sizes = [min(BATCH, arguments.seed + arguments.count - start) for start in starts]
    with ProcessPoolExecutor(2) as pool:
        for done, found in enumerate(pool.map(batch, starts, sizes), start=1):
            tally += found
            if sys.stderr.isatty():
                print(f"\r{min(done * BATCH, arguments.count):,} of {arguments.count:,}", end="", file=sys.stderr)
    failures = [what for what in tally if what.startswith("FAILED")]
    for what, times in sorted(tally.items()):
        print(f"{times:>9,}  {what}")
    seconds = time.monotonic() - started
    print(f"{sum(tally.values()):,} assemblies in {seconds:.0f} s: {len(failures)} above budget or not parsing")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
