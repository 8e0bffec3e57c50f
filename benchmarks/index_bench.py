"""The index: how well it finds, how fast it is made and asked, beside the peers.

    SATCHEL_EVAL=FOLDER              the evaluation data with its trees checked out (its README says how)
    SATCHEL_EVAL_CONTESTANTS=a,b     adapters of its adapters.json to run beside ours; results in FOLDER/results/bench stay
    SATCHEL_EVAL_MAX_QUERIES=N       at most so many questions of each set, spread evenly
    SATCHEL_SEMBLE_PYTHON=PYTHON     a Python that has semble installed, and
    SATCHEL_SEMBLE_MODEL=FOLDER      a static model for it, to compare the time of indexing

What is not there is left out, and the page says so. Without evaluation data, Python's own library is what is indexed.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from satchel.engine import ENGINE_OPTIONS, ContextEngine
from satchel.wiring import open_engine

QUESTIONS = (
    "where is the retry backoff computed", "parse http headers", "how are connections pooled", "json encoder",
    "timeout handling in sockets", "thread pool shutdown", "how is a cache entry evicted", "command line arguments",
    "compress a stream", "read a configuration file", "escape html entities", "regular expression compile",
    "close file descriptor", "random number generator seed", "date parsing with time zones", "walk a directory tree",
    "class ThreadPool", "HTTPConnection", "how does logging choose a handler", "copy an object deeply",
)  # fmt: skip
INDEX_ROUNDS = 3
CLI_ROUNDS = 9
COMPARED = ("requests", "fastapi", "vitest", "jackson-databind", "pandoc")

_OURS = """
import sys, time, tempfile
from satchel.wiring import open_engine
with tempfile.TemporaryDirectory() as place:
    engine = open_engine(sys.argv[1], index_dir=place, history_commits=0)
    engine._embedder.embed_query("warm")
    started = time.perf_counter()
    engine.index()
    print(time.perf_counter() - started)
"""
_PEAK = """
import resource, sys, tempfile
from satchel.wiring import open_engine
with tempfile.TemporaryDirectory() as place:
    engine = open_engine(sys.argv[1], index_dir=place, history_commits=0, workers=2)
    engine.index()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print((own + 2 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024)
"""
_SEMBLE = """
import sys, time
from semble import SembleIndex
from model2vec import StaticModel
import inspect
model = StaticModel.from_pretrained(sys.argv[2])
model.encode(["warm"])
takes = inspect.signature(SembleIndex.from_path).parameters
given = {"model": model} if "model" in takes else {"model_path": sys.argv[2]}
started = time.perf_counter()
SembleIndex.from_path(sys.argv[1], **given)
print(time.perf_counter() - started)
"""


def page(root: Path) -> str:
    """The part of docs/benchmarks.md that is about the index."""
    given = os.environ.get("SATCHEL_EVAL")
    trees = Path(given) / "trees" / "code_semble" if given else None
    parts = ["## The index", _INTRODUCTION.format(load=os.getloadavg()[0])]
    if given:
        parts.append(quality(root, Path(given)))
    else:
        parts.append("*Quality was not measured in this run: SATCHEL_EVAL names no evaluation data.*")
    rows = ["| what | measured | target | met |", "|---|--:|--:|---|"]
    small = trees / "jackson-databind" if trees else Path(sysconfig.get_path("stdlib")) / "asyncio"
    large = trees if trees else Path(sysconfig.get_path("stdlib"))
    rows += [*against_semble(trees), *on(small, 20), *on(large, 60), *command_line(root)]
    parts += ["\n".join(rows), _CONCLUSION]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """Times of indexing and asking are wall time, taken in one run with the peers where there are any; the load average at its
start was {load:.1f} on two cores, so times spread (the range stands beside the median)."""


_CONCLUSION = """`satchel build` takes 350 to 400 ms here when the machine is quiet and misses its targets when it is not: the floor is loading a tokenizer, which happens in
a child beside everything else ([why](decisions/0019-a-tokenizer-in-a-child.md))."""


def quality(root: Path, folder: Path) -> str:
    """The harness' own table, for us and for whoever else is asked for."""
    print("quality …", file=sys.stderr)
    others = [name for name in os.environ.get("SATCHEL_EVAL_CONTESTANTS", "").split(",") if name]
    out = folder / "results" / "bench"
    run_harness(root, folder, out, tasks=("code_semble", "code_swelite"), names=("satchel", *others))
    return "\n\n".join((_table(out, "code_semble"), _table(out, "code_swelite")))


def run_harness(
    root: Path,
    folder: Path,
    out: Path,
    *,
    tasks: Sequence[str],
    names: Sequence[str],
    budgets: str = "1000,2000,4000",
) -> None:
    """Let contestants answer sets of questions, one after the other."""
    python = folder / ".venv" / "bin" / "python"
    contestants = json.loads((folder / "adapters.json").read_text())
    contestants["satchel"] = {"cmd": [sys.executable, str(root / "benchmarks" / "ctxeval_adapter.py")]}
    # The harness' own workers run in its own environment.
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(contestants, file)
        file.flush()
        for one in tasks:
            for name in names:
                command = [
                    str(python if python.exists() else sys.executable), "ctxeval.py", "run", "--adapter", name,
                    "--adapters", file.name, "--tasks", f"data/{one}/dev.jsonl", "--out", str(out),
                    "--budgets", budgets, "--max-queries", os.environ.get("SATCHEL_EVAL_MAX_QUERIES", "0"),
                ]  # fmt: skip
                subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr, env=environment)


def _table(out: Path, tasks: str) -> str:
    rows = [
        f"**{tasks}**, development part (scored by the evaluation harness):\n",
        "| | questions | cover@1000 | cover@2000 | cover@4000 | NDCG@10 | right file first | in the first five | over budget |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    of_us = {json.loads(line)["id"] for line in (out / f"satchel__{tasks}__dev.jsonl").open()}
    for file in sorted(out.glob(f"*__{tasks}__dev.jsonl")):
        answers = [json.loads(line) for line in file.open()]
        # Everybody is held against the same questions.
        answers = [one for one in answers if one["id"] in of_us]
        cover = [statistics.mean(one["b"][b]["cover"] for one in answers) for b in ("1000", "2000", "4000")]
        over = sum(bool(budget.get("over")) for one in answers for budget in one["b"].values())
        ndcg = statistics.mean(one.get("ndcg10_unit", 0) for one in answers)
        first = statistics.mean(one.get("mrr", 0) == 1 for one in answers)
        five = statistics.mean(one.get("mrr", 0) >= 0.2 for one in answers)
        name = file.name.split("__")[0]
        cells = [f"{value:.3f}" for value in (*cover, ndcg)] + [f"{first:.0%}", f"{five:.0%}", str(over)]
        rows.append(f"| {'**satchel**' if name == 'satchel' else name} | {len(answers)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def against_semble(trees: Path | None) -> list[str]:
    """Our time to index a repository from nothing, divided by semble's."""
    python, model = os.environ.get("SATCHEL_SEMBLE_PYTHON"), os.environ.get("SATCHEL_SEMBLE_MODEL")
    if not trees or not python or not model:
        return ["| indexing ÷ semble's | not measured: semble is not here | ≤ 1.5 | – |"]
    rows = []
    totals = [0.0, 0.0]
    for name in COMPARED:
        print(f"indexing {name} …", file=sys.stderr)
        folder = str((trees / name).resolve())
        ratios, ours_all, theirs_all = [], [], []
        for _ in range(INDEX_ROUNDS):
            ours = _seconds([sys.executable, "-c", _OURS, folder])
            theirs = _seconds([python, "-c", _SEMBLE, folder, model])
            ratios.append(ours / theirs)
            ours_all.append(ours)
            theirs_all.append(theirs)
        totals[0] += statistics.median(ours_all)
        totals[1] += statistics.median(theirs_all)
        rows.append(_row(f"indexing {name} from nothing ÷ semble's time", ratios, 1.5, "≤"))
    rows.append(_row(f"the same, all {len(COMPARED)} together", [totals[0] / totals[1]], 1.5, "≤"))
    return rows


def on(folder: Path, limit_ms: float) -> list[str]:
    """One workspace: memory, the first index, the next after one change, and questions."""
    print(f"asking {folder.name} …", file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        subprocess.run(["cp", "-r", str(folder.resolve()), str(copy)], check=True)
        with open_engine(copy, index_dir=place, history_commits=0) as engine:
            time.sleep(0.1)
            cold = _timed(engine.index)
            facts = engine.status()
            lines = _lines(engine)
            what = f"{facts.blocks:,} blocks in {facts.pieces:,} pieces, {lines:,} lines"
            peak = _peak_mb(copy)
            rows.append(
                f"| {what}: peak memory of the index run and its two children | {peak:.0f} MB | < 600 MB | {_met(peak < 600)} |"
            )
            again = []
            changed = next(
                path
                for path in sorted(copy.rglob("*.*"))
                if path.suffix in (".java", ".py") and path.stat().st_size > 2000
            )
            for i in range(5):
                changed.write_text(changed.read_text() + f"\n# {i}\n")
                time.sleep(0.05)
                again.append(_timed(engine.index) / cold)
            rows.append(_row("index again after one changed file ÷ from nothing", again, 0.05, "<"))
            took = asked(engine)
            p95 = sorted(took)[int(0.95 * len(took))]
            spread = f"median {statistics.median(took):.1f}, worst {max(took):.1f}"
            rows.append(
                f"| warm question, searched, ranked, assembled to 4,000 tokens: p95 ({spread}) | {p95:.1f} ms | < {limit_ms:.0f} ms | {_met(p95 < limit_ms)} |"
            )
    return rows


def asked(engine: ContextEngine) -> list[float]:
    """Milliseconds of questions that were never asked before, on a warm engine."""
    for question in QUESTIONS[:5]:
        engine.build(f"{question} please", ENGINE_OPTIONS)
    took = []
    for extra in ("", " again", " with errors", " in tests", " by default"):
        for question in QUESTIONS:
            started = time.perf_counter()
            engine.build(question + extra, replace(ENGINE_OPTIONS, max_tokens=4000))
            took.append((time.perf_counter() - started) * 1000)
    return took


def command_line(root: Path) -> list[str]:
    """`satchel build` on an indexed repository, beside `import numpy`."""
    print("command line …", file=sys.stderr)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as place:
        environ |= {"SATCHEL_INDEX_DIR": place, "PYTHONPYCACHEPREFIX": f"{place}/pyc"}
        build = [sys.executable, "-m", "satchel", "build", "how is the token budget kept", str(root), "-q"]
        numpy = [sys.executable, "-c", "import numpy"]
        for _ in range(2):
            subprocess.run(build, env=environ, check=True, capture_output=True)
        ours, theirs = [], []
        for _ in range(CLI_ROUNDS):
            ours.append(_timed(lambda: subprocess.run(build, env=environ, check=True, capture_output=True)))
            theirs.append(_timed(lambda: subprocess.run(numpy, env=environ, check=True)))
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    best = statistics.median(ours) * 1000
    spread = f"{min(ours) * 1000:.0f}–{max(ours) * 1000:.0f}"
    return [
        f"| `satchel build` on this repository, indexed: whole process | {best:.0f} ms ({spread}) | < 400 ms | {_met(best < 400)} |",
        _row('the same ÷ `python -c "import numpy"`', ratios, 3, "<"),
    ]


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _seconds(command: list[str]) -> float:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def _lines(engine: ContextEngine) -> int:
    from satchel.ports.store import Filters

    return sum((engine.store.text_of(path, Filters()) or "").count("\n") for path in engine.store.files())


def _peak_mb(folder: Path) -> float:
    """The most that an index run in a process of its own and its children held (the largest child taken twice)."""
    return _seconds([sys.executable, "-c", _PEAK, str(folder)])


def _row(what: str, values: list[float], limit: float, sign: str) -> str:
    middle = statistics.median(values)
    spread = f" ({min(values):.3g}–{max(values):.3g})" if len(values) > 1 else ""
    return f"| {what} | {middle:.3g}{spread} | {sign} {limit:g} | {_met(middle < limit)} |"


def _met(is_met: bool) -> str:
    return "yes" if is_met else "NO"
