"""The store in PostgreSQL beside the embedded one: builds, what row-level security costs, and what the index finds.

`python benchmarks/postgres_bench.py` measures this part alone and puts it into docs/benchmarks.md. It starts a
PostgreSQL of its own, or takes the one that `SATCHEL_TEST_POSTGRES` names; `--blocks` makes it smaller.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import psycopg  # noqa: E402

from benchmarks.places import is_full  # noqa: E402
from benchmarks.sections import put_section  # noqa: E402
from benchmarks.workspace_bench import requests  # noqa: E402
from benchmarks.workspaces import GROUPS, NOW, USERS, workspace  # noqa: E402
from satchel.models.options import DEFAULT_CONTEXT_CONFIG  # noqa: E402
from satchel.models.request import ContextRequest  # noqa: E402
from satchel.models.search import Filters  # noqa: E402
from satchel.ports.file_index import StoreQuery  # noqa: E402
from satchel.retrieval.query import understand  # noqa: E402
from satchel.service.engine import ContextEngine  # noqa: E402
from satchel.service.factory.opening import open_engine  # noqa: E402
from satchel.storage.postgres import search as searching  # noqa: E402
from satchel.storage.postgres.derived import signed  # noqa: E402
from satchel.storage.postgres.store import PostgresStore  # noqa: E402
from satchel.storage.sql.scoring import hash_of, in_steps  # noqa: E402
from tests.support.postgres import postgres_url, workspace_url  # noqa: E402

HEADING = "## PostgreSQL"
_CONCLUSION = (
    "What makes the difference is the number of statements: 61 for most builds, however much they find, of which 24 begin, "
    "enter and end seven transactions (`tests/storage/test_postgres_surfaces.py` counts them). On a busy machine both "
    "stores wait for the processor, and the ratio is smaller than on a quiet one."
)
BLOCKS = 100_000
BOUNDED = 20_000
BUILDS = 160
WARMING = 20
NEIGHBOURS = 50
# No collector is left out for being late: on a busy machine the builds would differ.
UNHURRIED = replace(DEFAULT_CONTEXT_CONFIG, collectors=replace(DEFAULT_CONTEXT_CONFIG.collectors, deadline_ms=60_000))
MOST_SLOWER, LEAST_RECALL, MOST_FOR_POLICIES = 3.0, 0.97, 1.30


def page(blocks: int) -> str:
    """The part of docs/benchmarks.md that is about PostgreSQL."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, postgres_url() as url:
        here, took_here = made(Path(folder) / "embedded", blocks, "")
        there, took_there = made(Path(folder) / "postgres", blocks, workspace_url(url, folder))
        with here, there:
            asked = list(requests(here, blocks, BUILDS))
            rows = builds(here, there, asked)
            assert isinstance(there.store, PostgresStore)
            rows += policies(url, there, asked)
            rows += recalls(there, asked)
    intro = (
        f"{blocks:,} blocks, {len(USERS)} users, {len(GROUPS)} groups (`benchmarks/workspaces.py`), in a PostgreSQL on this machine, reached through a "
        "socket; the same questions by the same users of both stores in turn, every one new, so that nothing comes from a cache. Measured by "
        f"`python benchmarks/postgres_bench.py`. Loading took {took_here:.0f} s into the embedded store and {took_there:.0f} s into PostgreSQL, in one "
        f"commit each. The load average at the start was {load:.1f} on two cores."
    )
    head = ["| what | measured | target | met |", "|---|--:|--:|---|"]
    return f"{HEADING}\n\n{intro}\n\n" + "\n".join([*head, *rows]) + f"\n\n{_CONCLUSION}\n"


def made(folder: Path, blocks: int, store: str) -> tuple[ContextEngine, float]:
    """An engine on a workspace, and how long loading it took."""
    print(f"loading {blocks:,} blocks {'into PostgreSQL' if store else ''} …", file=sys.stderr)
    (folder / "root").mkdir(parents=True)
    engine = open_engine(folder / "root", index_dir=str(folder / "index"), store=store or None, clock=lambda: NOW)
    started = time.perf_counter()
    engine.workspace.load(workspace(blocks))
    return engine, time.perf_counter() - started


def builds(here: ContextEngine, there: ContextEngine, asked: Sequence[ContextRequest]) -> list[str]:
    """How long builds take on both, and whether they give the same."""
    spent: dict[ContextEngine, list[float]] = {here: [], there: []}
    texts: dict[ContextEngine, list[str]] = {here: [], there: []}
    for one in asked:
        for engine in (here, there):
            begun = time.perf_counter()
            texts[engine].append(engine.build(one, config=UNHURRIED).serialized)
            spent[engine].append((time.perf_counter() - begun) * 1000)
    p95, median = (
        {engine: cut(times[WARMING:]) for engine, times in spent.items()} for cut in (_p95, statistics.median)
    )
    ratio = p95[there] / p95[here]
    same = sum(a == b for a, b in zip(texts[here], texts[there], strict=True))
    return [
        f"| build for a user, p95: PostgreSQL {p95[there]:.0f} ms (median {median[there]:.0f}) ÷ embedded {p95[here]:.0f} ms "
        f"(median {median[here]:.0f}) | {ratio:.2f} | ≤ {MOST_SLOWER:.0f} | {_met(ratio <= MOST_SLOWER)} |",
        f"| builds that are the same, byte for byte | {same} of {len(asked)} | all | {_met(same == len(asked))} |",
    ]


def policies(url: str, engine: ContextEngine, asked: Sequence[ContextRequest]) -> list[str]:
    """The statements of a search by the policies, and with the lists written out by one whom no policy binds."""
    store: Any = engine.store
    workspace_number = store._connections.workspace
    ratios = []
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as raw:
        for setting in store._connections.settings.items():
            raw.execute("SELECT set_config(%s, %s, false)", setting)
        for request in asked[: BUILDS // 2]:
            filters = engine.filters_for(request.user)
            understood = understand(request.query)
            terms = [signed(hash_of(term)) for term in understood.terms]
            vector = str(in_steps(engine.embedder.embed_query(request.query)).astype(int).tolist())
            times = [
                _searched(raw, workspace_number, filters, terms, vector, bound=bound)
                for bound in (True, False, False, True)
            ]
            ratios.append((times[0] + times[3]) / (times[1] + times[2]))
    cost = statistics.median(ratios)
    return [
        f"| a search's statements by policies ÷ with the lists written out and no policy | {cost:.2f} | < {MOST_FOR_POLICIES} | "
        f"{_met(cost < MOST_FOR_POLICIES)} |"
    ]


def _searched(
    raw: psycopg.Connection[Any], here: int, filters: Filters, terms: Sequence[int], vector: str, *, bound: bool
) -> float:
    begun = time.perf_counter()
    with raw.transaction():
        role = "satchel_reader" if bound else "postgres"
        entered = raw.execute(
            "SELECT e.visible, set_config('role', %s, true), set_config('enable_indexscan', 'off', true)"
            " FROM satchel.enter(%s, %s, false) AS e",
            (role, here, sorted(filters.readers or ())),
        ).fetchone()
        assert entered is not None
        only = "" if bound else f" AND access = ANY('{{{','.join(map(str, entered[0]))}}}'::integer[])"
        raw.execute((searching._ALL + only).encode(), (vector, here)).fetchall()
        raw.execute("SELECT set_config('enable_indexscan', 'on', true)")
        raw.execute((searching._POSTINGS + only).encode(), (here, list(terms))).fetchall()
    return time.perf_counter() - begun


def recalls(engine: ContextEngine, asked: Sequence[ContextRequest]) -> list[str]:
    """Of the nearest pieces that may be seen, how many a search looks at: as it chooses, and through the index."""
    rows = []
    store: Any = engine.store
    for share, readers in _readers(engine):
        filters = Filters(readers=readers)
        # Through the index only where there is one.
        for forced in (False, True) if share > 0.2 and _has_index(store, filters) else (False,):
            found = [_recall(store, filters, engine, one.query, forced) for one in asked[:40]]
            how = "through HNSW" if forced else "as the store chooses (exact)"
            mean = statistics.fmean(found)
            rows.append(
                f"| recall@{NEIGHBOURS} of exact, {share:.0%} of the pieces visible, {how}; the worst of {len(found)} questions "
                f"{min(found):.2f} | {mean:.3f} | ≥ {LEAST_RECALL} | {_met(mean >= LEAST_RECALL)} |"
            )
    return rows


def _readers(engine: ContextEngine) -> list[tuple[float, frozenset[str]]]:
    """Those who may see about a hundredth and about half of the pieces."""
    store: Any = engine.store
    with store._reading() as db:
        held = dict(db.execute("SELECT access, sum(pieces)::bigint FROM chunk GROUP BY access"))
        lists = {
            number: (set(allow), set(deny)) for number, allow, deny in db.execute("SELECT id, allow, deny FROM access")
        }
    total = sum(held.values())
    names = sorted({name for allow, _ in lists.values() for name in allow if name.startswith("user:")})
    chance, best = random.Random(5), {0.01: frozenset[str](), 0.5: frozenset[str]()}
    shares = {0.01: 0.0, 0.5: 0.0}
    everybody = sorted({name for allow, _ in lists.values() for name in allow if name != "@default"})
    for _ in range(400):
        chosen = frozenset(chance.sample(everybody or names, chance.randrange(1, max(2, len(everybody)))))
        seen = sum(
            held.get(number, 0) for number, (allow, deny) in lists.items() if allow & chosen and not deny & chosen
        )
        for wanted in best:
            if abs(seen / total - wanted) < abs(shares[wanted] - wanted):
                best[wanted], shares[wanted] = chosen, seen / total
    return [(shares[wanted], best[wanted]) for wanted in best]


def _has_index(store: Any, filters: Filters) -> bool:
    with store._visiting(filters) as visit:
        return bool(store._views.of(visit, filters, store._allowed(visit.database, filters)).dimensions)


def _recall(store: Any, filters: Filters, engine: ContextEngine, question: str, forced: bool) -> float:
    vector = engine.embedder.embed_query(question)
    before = searching.EXACT_MOST, searching._INDEX_SHARE
    if forced:
        searching.EXACT_MOST, searching._INDEX_SHARE = 0, 0.0  # type: ignore[misc]
    try:
        with store._visiting(filters) as visit:
            seen = store._views.of(visit, filters, store._allowed(visit.database, filters))
            search = searching.Search(
                visit.database.connection, visit.database.workspace, seen, StoreQuery(vector=vector)
            )
            near = search._ask_near()
            assert near is not None
            rows = near.fetchall()
            far = searching._unpacked(rows)[1] if search.is_exact else np.array([row[1] for row in rows])
            found = np.sort(far)[:NEIGHBOURS]
            exact = visit.database.execute(
                "SELECT (vector <#> ?::text::halfvec) + 0 AS far FROM dense WHERE vector IS NOT NULL ORDER BY far"
                f" LIMIT {NEIGHBOURS}",
                (str(in_steps(vector).astype(int).tolist()),),
            ).fetchall()
    finally:
        searching.EXACT_MOST, searching._INDEX_SHARE = before  # type: ignore[misc]
    # Many are equally far: whichever of those was found is right.
    return float(np.count_nonzero(found <= exact[-1][0])) / len(exact)


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[18]


def _met(ok: bool) -> str:
    return "yes" if ok else "NO"


def main() -> None:
    told = argparse.ArgumentParser()
    told.add_argument("--blocks", type=int, default=BLOCKS if is_full() else BOUNDED)
    told.add_argument("--print", action="store_true", dest="only_print")
    given = told.parse_args()
    measured = page(given.blocks)
    print(measured)
    if not given.only_print:
        put_section(ROOT / "docs" / "benchmarks.md", HEADING, measured)


if __name__ == "__main__":
    main()
