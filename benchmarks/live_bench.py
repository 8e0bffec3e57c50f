"""A live index: the first answer of a first run, a question without a walk, and the memory of many servers.

`python benchmarks/live_bench.py` measures and prints; with `--write` it also puts the figures into docs/benchmarks.md.
The tree is made of the packages that are installed for this interpreter; `--files` says how many files it gets.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.mcp_bench import Client  # noqa: E402
from benchmarks.places import WORK  # noqa: E402
from benchmarks.sections import put_section  # noqa: E402
from satchel.indexing.first_run import FirstRunLayout  # noqa: E402
from satchel.service.local_client import LocalSatchel, open_local  # noqa: E402

HEADING: Final = "## A live index"
MANY_FILES: Final = 30_000
RELAID_FILES: Final = 3_000  # an index run of so many takes long enough to be compared, and is repeated
WARM_FILES: Final = 7_000  # as many as django has
ROUNDS: Final = 3
QUESTIONS: Final = (
    "where is a request retried",
    "how is a password hashed",
    "parse the header of a message",
    "open a socket",
)
SERVERS: Final = 10
MAX_FILE_BYTES: Final = 40_000


def tree_of(count: int) -> Path:
    """A folder with so many source files of the installed packages; kept for the next time."""
    tree = WORK / f"live-{count}"
    if (tree / ".complete").exists():
        return tree
    shutil.rmtree(tree, ignore_errors=True)
    packages = Path(sysconfig.get_path("purelib"))
    made = 0
    for number in range(100):
        for file in _sources(packages):
            target = tree / f"copy{number}" / file.relative_to(packages)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
            made += 1
            if made == count:
                (tree / ".complete").touch()
                return tree
    raise SystemExit(f"fewer than {count:,} files can be made of {packages}")


def _sources(packages: Path) -> Iterator[Path]:
    for file in sorted(packages.rglob("*.py")):
        if 0 < file.stat().st_size < MAX_FILE_BYTES:
            yield file


@contextmanager
def opened(tree: Path, patience: float = float("inf")) -> Iterator[LocalSatchel]:
    """A client of a tree with a new index."""
    with tempfile.TemporaryDirectory() as index, open_local(tree, index_dir=index, patience=patience) as client:
        yield client


def first_answer(tree: Path) -> tuple[float, float, str]:
    """The first answer of an MCP server about a tree without an index: seconds, CPU seconds, and how much was in."""
    with tempfile.TemporaryDirectory() as index:
        client = Client([sys.executable, "-m", "satchel", "mcp", str(tree)], Path(index))
        try:
            client.listed()
            begun = time.perf_counter()
            answer = client.call("build_context", question="how does requests/adapters.py send a request")
            seconds, cpu_seconds = time.perf_counter() - begun, _cpu_seconds(client.pid)
        finally:
            client.end()
        result = json.loads(answer)["result"]
        assert "adapters.py" in result["content"][0]["text"], result
        return (
            seconds,
            cpu_seconds,
            next(note for note in result["structuredContent"]["notes"] if "files are indexed" in note),
        )


def relative_index_time(tree: Path) -> float:
    """The CPU time of a first run that can be searched on the way, relative to one that is laid out at its end."""
    times: dict[bool, list[float]] = {True: [], False: []}
    begun = FirstRunLayout.begun
    for number in range(2 * ROUNDS):
        is_live = number % 2 == 0
        FirstRunLayout.begun = begun if is_live else lambda *_: None  # type: ignore[method-assign]
        with opened(tree) as client:
            started = os.times()
            client.index()
            times[is_live].append(sum(os.times()[:4]) - sum(started[:4]))
    FirstRunLayout.begun = begun  # type: ignore[method-assign]
    return min(times[True]) / min(times[False])


def warm_times(tree: Path) -> dict[str, float]:
    """The median milliseconds of a warm question: with a walk, with a watched folder, and with an older look."""
    times: dict[str, list[float]] = {"now": [], "watched": [], "none": []}
    with opened(tree) as client:
        for question in QUESTIONS:
            client.search(question)
        for number in range(12 * ROUNDS):
            for way, fresh in (("now", "now"), ("watched", None), ("none", 3_600.0)):
                begun = time.perf_counter()
                client.search(f"{QUESTIONS[number % len(QUESTIONS)]} {way} {number}", fresh=fresh)  # type: ignore[arg-type]
                times[way].append((time.perf_counter() - begun) * 1_000)
    return {way: statistics.median(values) for way, values in times.items()}


def memory(tree: Path) -> dict[int, float]:
    """The megabytes (PSS) of one and of many servers on one repository after a question each, by their number."""
    sizes: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as index:
        with open_local(tree, index_dir=index) as local:
            local.index()
        for count in (1, SERVERS):
            with ExitStack() as running:
                clients = []
                for _ in range(count):
                    client = Client([sys.executable, "-m", "satchel", "mcp", str(tree)], Path(index))
                    running.callback(client.end)
                    client.listed()
                    clients.append(client)
                for client in clients:
                    client.call("build_context", question=QUESTIONS[0])
                sizes[count] = sum(_proportional_mb(client.pid) for client in clients)
    return sizes


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _proportional_mb(process: int) -> float:
    rows = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Pss:")) / 1024


def section(files: int) -> str:
    """The section of docs/benchmarks.md."""
    seconds, cpu_seconds, note = first_answer(tree_of(files))
    cost = relative_index_time(tree_of(RELAID_FILES))
    warm = warm_times(tree_of(WARM_FILES))
    sizes = memory(tree_of(RELAID_FILES))
    rows = (
        (
            f"first answer of `satchel mcp` on {files:,} files without an index",
            f"{seconds:.1f} s",
            "",
            None,
        ),
        ("its CPU time until then", f"{cpu_seconds:.1f} s", "under 3 s", cpu_seconds < 3),
        (
            f"CPU time of a first run that can be searched / of one laid out at its end ({RELAID_FILES:,} files)",
            f"{cost:.2f}",
            "at most 1.05",
            cost <= 1.05,
        ),
        (f"warm question on {WARM_FILES:,} files, walked / watched", f"{warm['now'] / warm['watched']:.1f}", "", None),
        (
            "watched / not looked at",
            f"{warm['watched'] / warm['none']:.2f}",
            "at most 1.2",
            warm["watched"] <= 1.2 * warm["none"],
        ),
        ("memory (PSS) of one server", f"{sizes[1]:.0f} MB", "", None),
        (f"of {SERVERS} servers on one repository, for each", f"{sizes[SERVERS] / SERVERS:.0f} MB", "", None),
    )
    table = "\n".join(
        f"| {what} | {figure} | {target} | {'' if is_met is None else 'yes' if is_met else 'NO'} |"
        for what, figure, target, is_met in rows
    )
    return (
        f"{HEADING}\n\n"
        "`python benchmarks/live_bench.py --write`: source files of the installed packages. The first answer came when "
        f"{note.partition(' are indexed')[0]} were indexed. "
        f"Load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores.\n\n"
        f"| | figure | target | met |\n| --- | --: | --- | --- |\n{table}\n"
    )


def main() -> None:
    """Measure and print; with `--write` put the section into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    parser.add_argument("--files", type=int, default=MANY_FILES, help="files of the tree for the first answer")
    given = parser.parse_args()
    measured = section(given.files)
    print(measured)
    if given.write:
        put_section(ROOT / "docs" / "benchmarks.md", HEADING, measured)


if __name__ == "__main__":
    main()
