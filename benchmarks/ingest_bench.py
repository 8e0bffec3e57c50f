"""Ingest: one worker and two, as processes of this machine and on Ray, on sources and on PDFs.

    python benchmarks/ingest_bench.py            measures, and puts its part into docs/benchmarks.md
    python benchmarks/ingest_bench.py --print    measures and prints

Every index run is the first of a process of its own, into an empty index; one and two workers take turns, and a ratio
is that of two runs which followed each other. Starting Ray is timed apart from the run: it takes as long for ten files
as for a million.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import put_section  # noqa: E402
from tests.support.documents import text_pdf  # noqa: E402

HEADING = "## Ingest with one worker and two"
ROUNDS = int(os.environ.get("SATCHEL_BENCH_ROUNDS", "5"))
TARGET = 1.6
PDFS, PAGES = 40, 40
LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "__pycache__")

_RUN = """
import json, sys, tempfile, time
from contextlib import nullcontext
from pathlib import Path
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.integrations.ray.ray_workers import RayWorkers
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.service.engine import ContextEngine
from satchel.indexing.walk import Reading, policy_for
from satchel.indexing.work import LocalWorkers, Tools
from satchel.ports.workers import Job

root, where, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
documents = policy_for(Reading.AUTO, is_source=False, max_bytes=10**8, ocr=False)
embedder = StaticEmbedder()
embedder.embed_query("warm")
started = time.perf_counter()
if where == "ray":
    workers = RayWorkers("ray", Tools(documents, "satchel.service.factory.adapters:make_named_embedder", "static"), embedder, count=count)
else:
    workers = LocalWorkers(count, documents=documents)
with tempfile.TemporaryDirectory() as place, workers:
    if where == "ray":
        while len(workers.workers) < count:
            list(workers.prepare([Job("warm.txt", "warm")] * 64 * count))
    ready = time.perf_counter()
    with ContextEngine(
        root, EmbeddedStore(Path(place)), embedder, max_file_bytes=10**6, documents=documents,
        workers=lambda load: nullcontext(workers),
    ) as engine:
        step = []
        report = engine.index(lambda one: step.append((one.doing, time.perf_counter())))
        ended = time.perf_counter()
        files, pieces = engine.status().files, engine.status().pieces
arranging = next(at for doing, at in step if doing == "arranging")
print(json.dumps({"start": ready - started, "run": ended - ready, "reading": arranging - ready,
                  "files": files, "pieces": pieces}))
"""


def page() -> str:
    """The part of docs/benchmarks.md that is about ingest."""
    load = os.getloadavg()[0]
    rows = ["| what | one worker (s) | two (s) | one ÷ two | target | met |", "|---|--:|--:|--:|--:|---|"]
    starts: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        for what, folder in (("sources", sources(Path(place))), ("PDFs", papers(Path(place)))):
            for where, named in (("local", "processes of this machine"), ("ray", "Ray")):
                found, began = measured(folder, where)
                starts += began
                rows.append(row(f"{what}, {named}", found))
    return "\n".join(
        [
            HEADING,
            "",
            f"`python benchmarks/ingest_bench.py`; {os.cpu_count()} shared cores, load {load:.1f} when it began; medians of {ROUNDS} rounds.",
            "The sources are those of Python's own library, the PDFs "
            f"{PDFS} of {PAGES} pages each. What the workers do not do, walking, committing and arranging, is",
            "in the times: it is done by one process, beside the workers or after them.",
            "",
            *rows,
            "",
            f"Starting Ray on this machine took {statistics.median(starts):.1f} s ({min(starts):.1f} to {max(starts):.1f}), "
            "which is not in the times above.",
            "",
        ]
    )


def measured(folder: Path, where: str) -> tuple[list[tuple[float, float]], list[float]]:
    """Seconds with one worker and with two, in turns; and what Ray took to start."""
    pairs, starts = [], []
    run(folder, where, 2)  # the disk's cache is warm for all
    for _ in range(ROUNDS):
        one, two = run(folder, where, 1), run(folder, where, 2)
        assert (one["files"], one["pieces"]) == (two["files"], two["pieces"])
        pairs.append((one["run"], two["run"]))
        starts += [one["start"], two["start"]] if where == "ray" else []
        print(f"{folder.name} {where}: {one} {two}", file=sys.stderr)
    return pairs, starts


def run(folder: Path, where: str, count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(folder), where, str(count)], capture_output=True, text=True, check=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def row(what: str, pairs: Sequence[tuple[float, float]]) -> str:
    ratios = [one / two for one, two in pairs]
    middle = statistics.median(ratios)
    met = "yes" if middle >= TARGET else "NO"
    return (
        f"| {what} | {statistics.median(one for one, _ in pairs):.1f} | {statistics.median(two for _, two in pairs):.1f} "
        f"| {middle:.2f} ({min(ratios):.2f}–{max(ratios):.2f}) | ≥ {TARGET:g} | {met} |"
    )


def sources(place: Path) -> Path:
    """Python's own library, without its tests and what others have put there."""
    folder = place / "sources"
    shutil.copytree(sysconfig.get_path("stdlib"), folder, ignore=shutil.ignore_patterns(*LEFT_OUT, "*.so", "*.a"))
    return folder


def papers(place: Path) -> Path:
    """A pile of PDFs, each of another length."""
    folder = place / "papers"
    folder.mkdir()
    for i in range(PDFS):
        (folder / f"report {i}.pdf").write_bytes(text_pdf(PAGES + i % 2, lines=20 + i // 2))
    return folder


if __name__ == "__main__":
    told = page()
    print(told)
    if "--print" not in sys.argv[1:]:
        put_section(ROOT / "docs/benchmarks.md", HEADING, told)
