"""Counting tokens and assembling hits, as ratios of two things measured alternately in one run, as CPU time."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import measure  # noqa: E402
from benchmarks.texts import english_prose, kinds, python_source  # noqa: E402
from satchel import ContextBuildOptions, KnowledgeChunk, assemble, counter_for, estimate_tokens  # noqa: E402
from satchel.assembly.knapsack import pack_by_value  # noqa: E402
from satchel.models.options import OverflowPolicy, TokenEstimationMethod  # noqa: E402
from tests.assembly.test_knapsack import a_case, greedy, optimum, worth  # noqa: E402
from tests.support.oracle import tiktoken_encoding, true_count  # noqa: E402

HEADING = "## Counting and assembling"
ROUNDS = 15


@dataclass(frozen=True)
class Figure:
    """A measured ratio with its spread, and what it should be."""

    what: str
    ratios: tuple[float, ...]
    target: str
    ok: bool

    @property
    def row(self) -> str:
        spread = f"{min(self.ratios):.2f}–{max(self.ratios):.2f}" if len(self.ratios) > 1 else "exact"
        met = "yes" if self.ok else "NO"
        digits = 2 if len(self.ratios) > 1 else 3
        return f"| {self.what} | {statistics.median(self.ratios):.{digits}f} | {spread} | {self.target} | {met} |"


def at_most(what: str, limit: float, ratios: list[float]) -> Figure:
    return Figure(what, tuple(ratios), f"< {limit:g}", statistics.median(ratios) < limit)


def at_least(what: str, limit: float, ratios: list[float]) -> Figure:
    return Figure(what, tuple(ratios), f"≥ {limit:g}", statistics.median(ratios) >= limit)


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def fresh_parts(text: str, size: int) -> Iterator[str]:
    """Parts of the text in random order: a tokenizer's cache must not know what comes next."""
    starts = list(range(0, len(text) - size, size))
    random.Random(1).shuffle(starts)
    for start in starts:
        yield text[start : start + size]


def counting() -> list[Figure]:
    counter, peer = counter_for("o200k_base"), tiktoken_encoding("o200k_base")
    counter.count("warm"), peer.encode_ordinary("warm")

    def ratios(parts: list[str]) -> list[float]:
        found = []
        for part in parts:
            ours = cpu_seconds(lambda text=part: counter.count(text))  # type: ignore[misc]
            found.append(cpu_seconds(lambda text=part: peer.encode_ordinary(text)) / ours)  # type: ignore[misc]
        return found

    figures = []
    # Prose first: its words occur in the source's comments, and must not be remembered from there.
    for kind, text in (("English prose", english_prose()), ("Python source", python_source(6))):
        parts = list(fresh_parts(text, min(400_000, len(text) // (ROUNDS + 1))))[:ROUNDS]
        what = f"exact counting, {kind}, tiktoken's time ÷ ours:"
        figures.append(at_least(f"{what} text never seen", 3, ratios(parts)))
        figures.append(at_least(f"{what} the same again", 3, ratios(parts)))
    return figures


def formulas() -> list[Figure]:
    """What exact counting costs beside the two formulas, on chunks of 2,000 characters; no target, a fact for the docs."""
    counter = counter_for("o200k_base")
    figures = []
    for method in (TokenEstimationMethod.CHARACTER_BASED, TokenEstimationMethod.WORD_BASED):
        ratios = []
        for part in list(fresh_parts(python_source(3, after=18.6), 190_000))[:ROUNDS]:
            chunks = [part[i : i + 2000] for i in range(0, len(part), 2000)]
            exact = cpu_seconds(lambda chunks=chunks: [counter.count(c) for c in chunks])  # type: ignore[misc]
            formula = cpu_seconds(lambda chunks=chunks, m=method: [estimate_tokens(c, m) for c in chunks])  # type: ignore[misc]
            ratios.append(exact / formula)
        figures.append(Figure(f"exact counting ÷ the formula `{method}`, Python source", tuple(ratios), "none", True))
    return figures


def a_hundred_chunks(text: str) -> list[KnowledgeChunk]:
    chunks = []
    for i in range(100):
        part = text[i * 2000 : (i + 1) * 2000]
        first = 1 + i * 200
        chunks.append(
            KnowledgeChunk(
                part,
                file_path=f"src/module_{i % 30}.py",
                start_line=first,
                end_line=first + part.count("\n"),
                relevance=0.5 + i / 250,
                language="python",
            )
        )
    return chunks


def assembling() -> list[Figure]:
    counter = counter_for("o200k_base")
    parts = fresh_parts(python_source(12.6, after=6), 200_000)
    everything = ContextBuildOptions(
        max_tokens=10**6, max_chunks=1000, min_relevance=0, token_estimation=TokenEstimationMethod.TOKENIZER
    )
    assemble(a_hundred_chunks(next(parts)), everything)
    whole = []
    for _ in range(ROUNDS):
        floor = ours = 0.0
        for _ in range(2):
            alone, assembled = a_hundred_chunks(next(parts)), a_hundred_chunks(next(parts))
            floor += cpu_seconds(lambda chunks=alone: [counter.count(c.content) for c in chunks])  # type: ignore[misc]
            ours += cpu_seconds(lambda chunks=assembled: assemble(chunks, everything))  # type: ignore[misc]
        whole.append(ours / floor)
    return [at_most("assembling 100 chunks of 2,000 characters ÷ counting their text", 3, whole)]


def memory() -> list[Figure]:
    """Peak memory of an assembly ÷ the size of its output, for outputs of growing size."""
    peaks = []
    # One character beyond ASCII doubles or quadruples Python's memory for a text, which is not what is measured here.
    text = python_source(12).encode("ascii", "replace").decode()
    for count in (100, 200, 400):
        chunks = [KnowledgeChunk(text[i * 20_000 : (i + 1) * 20_000], file_path=f"{i}.py") for i in range(count)]
        options = ContextBuildOptions(
            max_tokens=10**8, max_chunks=10**6, token_estimation=TokenEstimationMethod.TOKENIZER
        )
        tracemalloc.start()
        result = assemble(chunks, options)
        peaks.append(tracemalloc.get_traced_memory()[1] / len(result.context))
        tracemalloc.stop()
    growth = peaks[-1] / peaks[0]
    return [at_most("memory: (peak ÷ output) at 8 MB ÷ the same at 2 MB (1 is linear)", 1.2, [growth])]


def start_up() -> list[Figure]:
    def seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    seconds("import satchel"), seconds("import dataclasses, json")
    ratios = [seconds("import satchel") / seconds("import dataclasses, json") for _ in range(ROUNDS)]
    return [at_most("`import satchel` ÷ `import dataclasses, json`, whole processes", 2.5, ratios)]


def packing() -> list[Figure]:
    chooser = random.Random(42)
    to_optimum, to_greedy = [], []
    for _ in range(600):
        candidates, capacity, limit = a_case(chooser)
        best = optimum(candidates, capacity, limit)
        if best:
            value = worth(candidates, pack_by_value(candidates, capacity, limit))
            to_optimum.append(value / best)
            to_greedy.append(value / worth(candidates, greedy(candidates, capacity, limit)))
    mean, least, better = statistics.mean(to_optimum), min(to_greedy), statistics.mean(to_greedy)
    return [
        at_least("packing: value ÷ exact optimum, mean of 600 small cases", 0.99, [mean]),
        at_least("packing: value ÷ greedy's, smallest of the 600", 1 - 1e-9, [least]),
        at_least("packing: value ÷ greedy's, mean", 1, [better]),
    ]


def use_of_the_budget() -> list[Figure]:
    counter = counter_for("o200k_base")
    options = ContextBuildOptions(
        max_tokens=4000, max_chunks=100, min_relevance=0, token_estimation=TokenEstimationMethod.TOKENIZER
    )
    full = []
    for part in list(fresh_parts(python_source(8), 200_000))[:ROUNDS]:
        result = assemble(a_hundred_chunks(part), options)
        assert true_count(result.context) == counter.count(result.context) <= 4000
        full.append(result.estimated_tokens / 4000)
    trimmed = assemble(
        [KnowledgeChunk(python_source(1), file_path="big.py")],
        ContextBuildOptions(token_estimation=TokenEstimationMethod.TOKENIZER, overflow=OverflowPolicy.TRUNCATE),
    )
    return [
        at_least("share of a 4,000-token budget used, 100 hits, whole chunks only", 0.9, full),
        at_least("share used when one huge hit is trimmed", 0.98, [trimmed.estimated_tokens / 4000]),
    ]


def token_errors() -> str:
    """The error of each method on chunks of 2,000 characters, as a table."""
    rows = ["| kind of text | characters | words | exact |", "|---|--:|--:|--:|"]
    for kind, text in kinds().items():
        chunks = [text[i : i + 2000] for i in range(0, min(len(text), 100_000) - 1999, 2000)] or [text]
        cells = []
        for method in TokenEstimationMethod:
            errors = [estimate_tokens(chunk, method) / true_count(chunk) - 1 for chunk in chunks]
            cells.append(f"{statistics.mean(errors):+.0%} (worst {max(errors, key=abs):+.0%})")
        rows.append(f"| {kind} | {' | '.join(cells)} |".replace("+0% (worst +0%)", "0"))
    return "\n".join(rows)


PAGE = """## Counting and assembling

`python benchmarks/assembly_bench.py`. Every figure is a ratio of two things measured alternately in the same run as CPU time; the machine is shared, so the spread over {rounds} rounds
stands beside the median. The rows for counting and assembling work on different parts of Python's library, so that no text is counted twice; words that occurred
before are still remembered by our tokenizer, as they are in a running program.

{figures}

Our tokenizer remembers words. "Text never seen" is the first text of its kind in a fresh process, the worst case: for the
half megabyte of prose here, the ratio begins near 2 and ends near 3.5, so that its median lies about 3 and a run may miss
the target. The library alone is no faster there. A program that has been running is nearer to "the same again".

How far each way of counting is off, against tiktoken (o200k), on chunks of 2,000 characters: mean error, and the worst chunk.

{errors}

No formula keeps within 5 or 10 % on more than a few kinds of text, which is why the command line counts exactly by
default, and why naming a tokenizer is the first thing to do in Python.
"""


def page() -> str:
    """The part of docs/benchmarks.md that is about counting and assembling."""
    figures: list[Figure] = []
    for part in (counting, assembling, formulas, memory, start_up, packing, use_of_the_budget):
        print(f"{part.__name__} …", file=sys.stderr)
        figures += part()
    table = "\n".join(["| what | median | spread | target | met |", "|---|--:|--:|--:|---|", *(f.row for f in figures)])
    return PAGE.format(rounds=ROUNDS, figures=table, errors=token_errors())


if __name__ == "__main__":
    measure(HEADING, page)
