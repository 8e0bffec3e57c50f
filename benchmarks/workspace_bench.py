"""Building contexts for users of a large workspace: how fast, what permissions cost, and how it grows.

`python benchmarks/workspace_bench.py` measures this part alone and puts it into docs/benchmarks.md.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import measure  # noqa: E402
from benchmarks.workspaces import BLOCKS_PER_PAGE, GROUPS, NOW, SUBJECTS, USERS, words, workspace  # noqa: E402
from satchel.models.access import DefaultAccess  # noqa: E402
from satchel.models.options import DEFAULT_CONTEXT_CONFIG  # noqa: E402
from satchel.models.request import ContextRequest, Focus, User  # noqa: E402
from satchel.service.engine import ContextEngine  # noqa: E402
from satchel.service.factory.opening import open_engine  # noqa: E402
from satchel.workspace.collectors import CollectorContext  # noqa: E402
from satchel.workspace.collectors.activity import ActivityCollector  # noqa: E402
from satchel.workspace.collectors.focus import FocusCollector  # noqa: E402
from satchel.workspace.collectors.relations import RelationCollector  # noqa: E402

SIZES = (1_000, 10_000, 100_000)
BUILDS = 300
WARMING = 20
TARGET_MS = 50
ROUNDS = 5
HEADING = "## Workspaces"

Collector = FocusCollector | RelationCollector | ActivityCollector


def page() -> str:
    """The part of docs/benchmarks.md that is about workspaces."""
    load = os.getloadavg()[0]
    rows = ["| what | measured | target | met |", "|---|--:|--:|---|"]
    costs: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            print(f"a workspace of {size:,} blocks …", file=sys.stderr)
            with made(Path(folder) / str(size), size) as engine:
                asked = list(requests(engine, size, BUILDS))
                costs[size] = collector_costs(engine, asked)
                if size == SIZES[-1]:
                    rows += speed(engine, asked)
    rows += growth(costs)
    intro = (
        f"{SIZES[-1]:,} blocks on {SIZES[-1] // BLOCKS_PER_PAGE:,} pages, {len(USERS)} users, {len(GROUPS)} groups, made by "
        f"`benchmarks/workspaces.py`; every build is another question by another user with another focus, nothing comes from the cache. "
        "Measured by `python benchmarks/workspace_bench.py`, in a run of its own. "
        f"The load average at the start was {load:.1f} on two cores."
    )
    return f"{HEADING}\n\n{intro}\n\n" + "\n".join(rows) + "\n"


def made(folder: Path, size: int) -> ContextEngine:
    """An engine on a workspace of that size."""
    root = folder / "root"
    root.mkdir(parents=True)
    engine = open_engine(root, index_dir=str(folder / "index"), clock=lambda: NOW)
    engine.workspace.load(workspace(size))
    return engine


def requests(engine: ContextEngine, size: int, count: int) -> Iterator[ContextRequest]:
    """Different questions by different users, each looking at something that they may read."""
    chance = random.Random(7)
    while count:
        user = User(id=chance.choice(USERS))
        filters = engine.filters_for(user)
        focus = f"page{chance.randrange(max(1, size // BLOCKS_PER_PAGE))}/{chance.choice((1, 2, 3, 4))}"
        if engine.store.block(focus, filters) is None:
            continue
        count -= 1
        query = f"What did we decide about the {chance.choice(SUBJECTS)} {words(chance, 2)}?"
        yield ContextRequest(query=query, user=user, focus=Focus(block_id=focus))


def speed(engine: ContextEngine, asked: list[ContextRequest]) -> list[str]:
    """How long builds take, and how much longer than without anybody's permissions to heed."""
    with_rights = [timed(lambda one=one: engine.build(one)) for one in asked][WARMING:]  # type: ignore[misc]
    # The same questions, as the owner of everything: alternately, so that both have the same machine.
    ratio = against_the_owner(engine, [again(one) for one in asked[: BUILDS // 3]])
    p95 = statistics.quantiles(with_rights, n=20)[18]
    median = statistics.median(with_rights)
    return [
        f"| build for a user, p95 (median {median:.1f}, worst {max(with_rights):.1f}) | {p95:.1f} ms | < {TARGET_MS} ms "
        f"(specification: 200) | {_met(p95 < TARGET_MS)} |",
        f"| the same ÷ for the owner of everything, CPU time | {ratio:.2f} | < 1.25 | {_met(ratio < 1.25)} |",
    ]


def again(request: ContextRequest) -> ContextRequest:
    """A question that was not asked yet."""
    from dataclasses import replace

    return replace(request, query=f"{request.query} And why?")


def against_the_owner(engine: ContextEngine, asked: list[ContextRequest]) -> float:
    """CPU time with permissions divided by CPU time without, over the same questions."""
    spent = {DefaultAccess.DENY: 0.0, DefaultAccess.OWNER: 0.0}
    for i in range(0, len(asked), 20):
        for default in spent:
            with engine.workspace.edit() as edit:
                edit.set_default(default)
            for one in asked[i : i + 2]:
                engine.build(one)  # what is remembered of rights and segments is remembered again
            for one in asked[i + 2 : i + 20]:
                started = time.process_time()
                engine.build(one)
                spent[default] += time.process_time() - started
    return spent[DefaultAccess.DENY] / spent[DefaultAccess.OWNER]


def collector_costs(engine: ContextEngine, asked: list[ContextRequest]) -> dict[str, float]:
    """The mean CPU milliseconds of the collectors that do not search: of the quietest of several rounds."""
    costs = {}
    for kind in (FocusCollector, RelationCollector, ActivityCollector):
        works = [_collecting(engine, kind, request) for request in asked]
        rounds = [sum(timed(work, cpu=True) for work in works) / len(works) for _ in range(ROUNDS)]
        costs[kind.name] = min(rounds)
    return costs


def _collecting(engine: ContextEngine, kind: type[Collector], request: ContextRequest) -> Callable[[], object]:
    assert request.focus is not None
    filters = engine.filters_for(request.user)
    focus = engine.store.block(request.focus.block_id or "", filters)
    view = CollectorContext(engine.store, filters, DEFAULT_CONTEXT_CONFIG.collectors, NOW, focus)
    return lambda: kind(view).collect(request)


def growth(costs: dict[int, dict[str, float]]) -> list[str]:
    """How the collectors' cost grows from the smallest workspace to the largest, beside the logarithm."""
    least, most = SIZES[0], SIZES[-1]
    allowed = math.log(most) / math.log(least)
    rows = []
    for name in costs[least]:
        grown = costs[most][name] / costs[least][name]
        rows.append(
            f"| {name}: cost at {most:,} ÷ at {least:,} blocks ({costs[most][name]:.2f} ms) | {grown:.2f} | "
            f"≤ {allowed:.2f} (log N) | {_met(grown <= allowed)} |"
        )
    return rows


def timed(work: Callable[[], object], *, cpu: bool = False) -> float:
    """The milliseconds that the work takes."""
    clock = time.thread_time if cpu else time.perf_counter
    started = clock()
    work()
    return (clock() - started) * 1000


def _met(ok: bool) -> str:
    return "yes" if ok else "NO"


if __name__ == "__main__":
    measure(HEADING, page)
