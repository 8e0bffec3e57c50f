"""How far a store in PostgreSQL goes: workspaces of 10⁴ blocks and more, measured, fitted and plotted.

    python benchmarks/scale_bench.py                    up to 10⁵ blocks, a few minutes; prints
    python benchmarks/scale_bench.py --most 1000000     all points; half an hour on two cores
    python benchmarks/scale_bench.py --keep             also writes points.json, the pictures and docs/scale.md; points of
                                                        sizes that were not measured now stay as they are
    python benchmarks/scale_bench.py --draw             measures nothing: pictures and tables from points.json

A server of its own is started, filled, asked, and thrown away.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.scale import measure, model, page, writing  # noqa: E402
from benchmarks.scale.fill import DIMENSIONS, FEW, HALF, Language, fill  # noqa: E402
from benchmarks.scale.plot import pictures  # noqa: E402
from benchmarks.workspaces import workspace as records  # noqa: E402
from satchel.models.search import Filters  # noqa: E402
from satchel.service.factory.opening import open_engine  # noqa: E402
from satchel.storage.postgres.store import PostgresStore  # noqa: E402
from tests.support.postgres import PostgresServer, running_postgres  # noqa: E402

IMPORTED = 5_000
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
POINTS = ROOT / "benchmarks" / "scale" / "points.json"
PAGE = ROOT / "docs" / "scale.md"
PICTURES = ROOT / "docs" / "pictures"
BUFFERS, BUILDING = "1GB", "2GB"
SETTINGS = {
    "shared_buffers": BUFFERS, "maintenance_work_mem": BUILDING, "max_wal_size": "6GB", "work_mem": "32MB",
    "max_parallel_maintenance_workers": "1", "autovacuum": "off", "checkpoint_timeout": "30min",
}  # fmt: skip
SMALL_MB, GRAPH_AT = 24, 30_000
INDEX = (
    f"CREATE INDEX dense_nearest_256 ON dense USING hnsw ((vector::halfvec({DIMENSIONS})) halfvec_ip_ops)"
    f" WITH (m = 16, ef_construction = 128) WHERE indexed = {DIMENSIONS}"
)
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
READERS = {"owner": Filters(), "half": Filters(readers=frozenset({HALF})), "few": Filters(readers=frozenset({FEW}))}


def main() -> None:
    """Measure, and keep or print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=100_000, help="the largest workspace, in blocks")
    parser.add_argument("--least", type=int, default=SIZES[0], help="the smallest")
    parser.add_argument("--index-most", type=int, default=10**9, help="the largest whose HNSW index is built")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--draw", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the server with us
    if not given.draw:
        found = measured([size for size in SIZES if given.least <= size <= given.most], given.index_most)
        if not given.keep:
            print(json.dumps(found, indent=1))
            return
        keep(found)
    draw()


def keep(found: dict[str, Any]) -> None:
    """Keep points, in the place of those of the same size."""
    sizes = {one["blocks"] for one in found["points"]}
    before = model.read(POINTS)["points"] if POINTS.exists() else []
    found["points"] = sorted(
        [*found["points"], *(one for one in before if one["blocks"] not in sizes)], key=lambda one: one["blocks"]
    )
    POINTS.write_text(json.dumps(rounded(found), indent=1) + "\n", encoding="utf-8")


def rounded(found: Any) -> Any:
    """Five digits of every figure: more was not measured."""
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items()}
    if isinstance(found, list):
        return [rounded(value) for value in found]
    return float(f"{found:.5g}") if isinstance(found, float) else found


def draw() -> None:
    """Write the pictures, and the tables into the page."""
    points = model.read(POINTS)
    for name, svg in pictures(points).items():
        (PICTURES / name).write_text(svg, encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    for name, table in page.parts(points).items():
        text = page.with_part(text, name, table)
    PAGE.write_text(text, encoding="utf-8")


def measured(sizes: list[int], index_most: int) -> dict[str, Any]:
    """All points, the smallest first."""
    began = time.time()
    with running_postgres() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        server.restart()
        engine = imported(server)
        points = [one_point(server, size, size <= index_most) for size in sizes]
    return {
        "taken": time.strftime("%Y-%m-%d"),
        "seconds": round(time.time() - began),
        "cores": os.cpu_count(),
        "settings": SETTINGS,
        "engine": engine,
        "points": points,
    }


def imported(server: PostgresServer) -> dict[str, Any]:
    """A workspace that the engine itself took over, to hold what is filled by COPY against."""
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE imported")
    url = with_database(server.url, "imported")
    with tempfile.TemporaryDirectory() as folder, open_engine(folder, store=f"{url}&workspace=real") as engine:
        wall, client = time.perf_counter(), time.process_time()
        engine.workspace.load(records(IMPORTED))
        wall, client = time.perf_counter() - wall, time.process_time() - client
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            room = measure.room(connection)
            words = connection.execute(
                "SELECT avg(array_length(regexp_split_to_array(convert_from(text, 'UTF8'), '\\s+'), 1)) FROM satchel.content"
            ).fetchone()
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("DROP DATABASE imported WITH (FORCE)")
    found = {
        "blocks": room["node"]["rows"],
        "import_s": wall,
        "client_cpu_s": client,
        "words": float(words[0]) if words else 0.0,
        "room": room,
    }
    print(f"imported: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def one_point(server: PostgresServer, size: int, with_index: bool) -> dict[str, Any]:
    """A database with a workspace of that size, filled, asked, written to and dropped."""
    name = f"scale{size}"
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        durable(admin, False)
    url = f"{with_database(server.url, name)}&workspace=scale"
    point: dict[str, Any] = {"blocks": size, "load": os.getloadavg()[0]}
    store = measure.opened(url)
    with psycopg.connect(with_database(server.url, name), autocommit=True) as connection:
        connection.execute("SET search_path = satchel, public")
        connection.execute("DROP INDEX dense_nearest_256")
        fill_point(point, connection, store._connections.workspace)
        ask_point(point, server, connection, store, url=url, with_index=with_index)
        store.close()
        durable(connection, True)
        write_point(point, connection, url)
        durable(connection, False)
    _say(point, "load_after", os.getloadavg()[0])
    print(f"POINT {json.dumps(point)}", file=sys.stderr, flush=True)
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    return point


def fill_point(point: dict[str, Any], connection: psycopg.Connection[Any], workspace: int) -> None:
    """Fill the workspace, and see what that took."""
    before = writing.wal_bytes(connection)
    told: dict[str, Any] = fill(connection, workspace, point["blocks"])._asdict()
    told["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told["wal_bytes"] = writing.wal_bytes(connection) - before
    _say(point, "fill", told)
    at = time.perf_counter()
    connection.execute("ANALYZE")
    point["analyze_s"] = time.perf_counter() - at
    connection.execute("VACUUM")
    connection.execute("CHECKPOINT")


def ask_point(
    point: dict[str, Any],
    server: PostgresServer,
    connection: psycopg.Connection[Any],
    store: PostgresStore,
    *,
    url: str,
    with_index: bool,
) -> None:
    """Ask: first as long as there is no index of near vectors, then with it."""
    plain, heavy = measure.asked(measure.PLAIN), measure.asked(measure.HEAVY)
    point["exact"] = searched(store, plain, tuple(READERS))
    _say(point, "first", {name: measure.first_search(url, plain[0], filters) for name, filters in READERS.items()})
    if with_index:
        graph = graph_bytes(connection) if point["blocks"] == GRAPH_AT else 0.0
        _say(point, "hnsw", {**built(server, connection), "graph_bytes": graph})
    point["room"] = measure.room(connection)
    writing.set_nearest(connection, store._connections.workspace, DIMENSIONS)
    with measure.always_by_index():
        # Without the index the server finds the nearest by looking at all; what the client does with them is the same.
        point["by_index"] = measure.parts_of_searches(store, plain, READERS["owner"])
        if with_index:
            point["hnsw"]["recall"] = measure.recall(store, plain, READERS["owner"])
        else:
            writing.set_nearest(connection, store._connections.workspace, 0)
    _say(point, "search", searched(store, plain, tuple(READERS)))
    point["heavy"] = searched(store, heavy, ("owner",))


def write_point(point: dict[str, Any], connection: psycopg.Connection[Any], url: str) -> None:
    """Write: single blocks, a grant, blocks that are laid out again, vectors that are taken into the index."""
    texts = Language(seed=21).texts(writing.COMMITS)
    point["commit"], point["first"]["after_commit_ms"] = writing.commits(url, connection, texts, "hnsw" in point)
    _say(point, "grant", writing.grant(url, connection))
    _say(point, "relay", writing.laying_out(url, connection))
    if "hnsw" in point:
        point["hnsw"]["insert_ms"] = writing.taking_into_index(url, connection, 1_000)


def searched(store: PostgresStore, queries: list[Any], readers: tuple[str, ...]) -> dict[str, Any]:
    """Whole searches and their parts, for each reader."""
    return {
        name: {
            **measure.whole_searches(store, queries, READERS[name]),
            **measure.parts_of_searches(store, queries, READERS[name]),
        }
        for name in readers
    }


def built(server: PostgresServer, connection: psycopg.Connection[Any]) -> dict[str, float]:
    """The index of near vectors, built at once: seconds on the clock and of CPU, and its size."""
    postmaster = (server.folder / "postmaster.pid").read_text().splitlines()[0]
    before, at = _cpu_s(connection, postmaster), time.perf_counter()
    connection.execute(INDEX.encode())
    wall = time.perf_counter() - at
    row = connection.execute("SELECT pg_relation_size('dense_nearest_256')").fetchone()
    assert row is not None
    return {"build_s": wall, "build_cpu_s": _cpu_s(connection, postmaster) - before, "bytes": float(row[0])}


def graph_bytes(connection: psycopg.Connection[Any]) -> float:
    """The memory that a vector takes while the index is built: the server tells when a small limit is reached."""
    told: list[str] = []

    def stop(diagnostic: psycopg.errors.Diagnostic) -> None:
        told.append(diagnostic.message_primary or "")
        connection.cancel_safe()

    connection.add_notice_handler(stop)
    connection.execute(f"SET maintenance_work_mem = '{SMALL_MB}MB'".encode())
    connection.execute("SET max_parallel_maintenance_workers = 0")
    try:
        connection.execute(INDEX.replace("dense_nearest_256", "dense_small").encode())
        connection.execute("DROP INDEX dense_small")
    except psycopg.errors.QueryCanceled:
        pass
    finally:
        connection.remove_notice_handler(stop)
        connection.execute("RESET maintenance_work_mem")
        connection.execute("RESET max_parallel_maintenance_workers")
    counts = [int(word) for text in told for word in text.split() if word.isdigit()]
    return SMALL_MB * 2**20 / counts[0] if counts else 0.0


def _cpu_s(connection: psycopg.Connection[Any], postmaster: str) -> float:
    """Of the connection's process, and of the server's children that have ended: its helpers are among them."""
    own = int(Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text().split()[0]) / 1e9
    fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
    return own + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def durable(connection: psycopg.Connection[Any], wanted: bool) -> None:
    """As a server is run by whoever means to keep what is in it, or as it is filled fastest."""
    for name in DURABLE:
        connection.execute(f"ALTER SYSTEM SET {name} = {'on' if wanted else 'off'}".encode())
    connection.execute("SELECT pg_reload_conf()")
    time.sleep(0.2)


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _say(point: dict[str, Any], name: str, figures: Any) -> None:
    point[name] = figures
    print(f"{point['blocks']:,} {name}: {json.dumps(figures)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
