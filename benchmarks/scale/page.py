"""The tables of docs/scale.md, from the points: the page holds them between marks, and a test compares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from benchmarks.scale import model, plan
from benchmarks.scale.model import Model, Points

_TABLES = ("file", "content", "node", "block", "piece", "vector", "posting", "chunk", "dense")
_FITS = (
    ("truth", "bytes"), ("words", "bytes"), ("dense", "bytes"), ("hnsw", "bytes"), ("rows", ""), ("fill", "s"), ("build", "s"),
    ("insert", "ms"), ("analyze", "s"), ("peak", "bytes"), ("exact", "ms"), ("hnsw_near", "ms"), ("second", "ms"), ("postings", "ms"), ("heavy", "ms"),
    ("weigh", "ms"), ("weigh_twice", "ms"), ("bytes", "bytes"), ("heavy_bytes", "bytes"), ("held", "bytes"), ("question", "bytes"),
    ("first", "ms"), ("first_after", "ms"), ("commit", "ms"), ("after", "ms"), ("wal", "bytes"), ("relay", "ms"), ("grant", "ms"),
)  # fmt: skip


def parts(points: Points) -> dict[str, str]:
    """Every table by its name."""
    found = Model(points)
    return {
        "run": _run(points),
        "measured": _measured(found),
        "room": _room(found),
        "fits": _fits(found),
        "latency": _latency(found),
        "merging": _merging(found),
        "deployment": _deployment(found),
        "breaks": _breaks(found),
    }


def with_part(text: str, name: str, part: str) -> str:
    """The page with a part put between its marks."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no marks for {name!r}")
    return f"{head}{begin}{part}{end}{tail}"


def number(value: float) -> str:
    """Three digits, with a word for the size."""
    if value == 0:
        return "0"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{_three(value / (1e3 if letter == 'k' else size))} {letter}"
    return _three(value)


def _three(value: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 3)}f}"


def seconds(value: float) -> str:
    """A time as people say it."""
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{_three(value / size)} {name}"
    return f"{_three(value)} s"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _run(points: Points) -> str:
    loads = [one[key] for one in points["points"] for key in ("load", "load_after")]
    told = points["settings"]
    return (
        f"Taken on {points['taken']} on {points['cores']} shared cores with a load of {min(loads):.1f} to {max(loads):.1f}; shared_buffers "
        f"{told['shared_buffers']}, maintenance_work_mem {told['maintenance_work_mem']}, one parallel worker for the index."
    )


def _measured(found: Model) -> str:
    points = found.points
    rows: list[list[str]] = []

    def row(name: str, value: Callable[[Points], float], *, lacking: str = "") -> None:
        rows.append([name, *(number(value(one)) if not lacking or lacking in one else "–" for one in points)])

    row(
        "bytes a block, all tables and indexes",
        lambda one: sum(sum(v for k, v in r.items() if k != "rows") for r in one["room"].values()) / one["blocks"],
    )
    row("rows of `posting` a block", lambda one: one["fill"]["posting_rows"] / one["blocks"])
    row("filling by COPY, s", model.filled_s)
    row("WAL of filling, bytes a block", lambda one: one["fill"]["wal_bytes"] / one["blocks"])
    row("ANALYZE, s", lambda one: one["analyze_s"])
    row("HNSW, CPU s (one build at once)", lambda one: one["hnsw"]["build_cpu_s"], lacking="hnsw")
    row("HNSW, s on the clock", lambda one: one["hnsw"]["build_s"], lacking="hnsw")
    row("HNSW, CPU ms a vector taken in later", lambda one: one["hnsw"]["insert_ms"], lacking="hnsw")
    row("HNSW, of the 50 nearest found among its 400", lambda one: one["hnsw"]["recall"], lacking="hnsw")
    for reader, name in (("owner", "the owner"), ("half", "one who sees half"), ("few", "one who sees 1 %")):
        row(f"search by {name}: ms on the clock", lambda one, reader=reader: one["search"][reader]["wall_ms"])  # type: ignore[misc]
        row("– server CPU ms", lambda one, reader=reader: one["search"][reader]["server_cpu_ms"])  # type: ignore[misc]
        row("– client CPU ms", lambda one, reader=reader: one["search"][reader]["client_cpu_ms"])  # type: ignore[misc]
    row(
        "the owner's, in parts: lists, CPU ms",
        lambda one: one["search"]["owner"]["postings_server_cpu_ms"] + one["search"]["owner"]["postings_client_cpu_ms"],
    )
    row("– comparing all, CPU ms", lambda one: one["exact"]["owner"]["near_server_cpu_ms"])
    row("– or 400 nearest by HNSW, CPU ms", lambda one: one["by_index"]["near_server_cpu_ms"], lacking="hnsw")
    row(
        "– and the second exchange, CPU ms",
        lambda one: one["by_index"]["second_server_cpu_ms"] + one["by_index"]["second_client_cpu_ms"],
        lacking="by_index",
    )
    row("– weighing once (all compared), client CPU ms", lambda one: one["exact"]["owner"]["weigh_client_cpu_ms"])
    row(
        "– weighing twice (HNSW), client CPU ms", lambda one: one["by_index"]["weigh_client_cpu_ms"], lacking="by_index"
    )
    row("postings that come for a question", lambda one: one["search"]["owner"]["postings"])
    row("– for one of six frequent words", lambda one: one["heavy"]["owner"]["postings"])
    row("– whose search takes, ms on the clock", lambda one: one["heavy"]["owner"]["wall_ms"])
    row("first search of a process, ms on the clock", lambda one: one["first"]["owner"]["wall_ms"])
    row("first search after a commit, ms on the clock", lambda one: one["first"]["after_commit_ms"])
    row(
        "client memory that stays, bytes a visible piece",
        lambda one: one["first"]["owner"]["held_bytes"] / one["blocks"],
    )
    row(
        "client memory within a question, bytes a visible piece",
        lambda one: one["first"]["owner"]["question_bytes"] / one["blocks"],
    )
    row("commit of one block, ms on the clock", lambda one: one["commit"]["wall_ms"])
    row("– CPU ms, server and client", lambda one: model.cpu_ms(one["commit"]))
    row("– WAL, bytes", lambda one: one["commit"]["wal_bytes"])
    row("– WAL without page images, bytes", lambda one: one["commit"]["wal_bare_bytes"])
    row("catching up after it, CPU ms", lambda one: model.cpu_ms(one["commit"], "after_"))
    row("a grant on 1,000 blocks, CPU ms a block", lambda one: model.cpu_ms(one["grant"]) / one["grant"]["blocks"])
    row("– WAL, bytes a block", lambda one: one["grant"]["wal_bytes"] / one["grant"]["blocks"])
    row("laying out again, CPU ms a block", lambda one: model.cpu_ms(one["relay"]) / one["relay"]["blocks"])
    return _table(["blocks", *(f"{one['blocks']:,}" for one in points)], rows)


def _room(found: Model) -> str:
    """Bytes a block of each table, at the largest workspace whose index was built."""
    point = [one for one in found.points if "hnsw" in one][-1]
    blocks = point["blocks"]
    rows = []
    total = [0.0] * 4
    for name in _TABLES:
        held = point["room"][name]
        indexes = sum(value for key, value in held.items() if key.startswith("index") and key != model.HNSW)
        figures = [held["heap"], held["toast"], indexes, held.get(model.HNSW, 0.0)]
        total = [a + b for a, b in zip(total, figures, strict=True)]
        rows.append(
            [
                f"`{name}`",
                f"{held['rows'] / blocks:.3g}",
                *(f"{value / blocks:,.0f}" for value in (*figures, sum(figures))),
            ]
        )
    rows.append(["together", "", *(f"{value / blocks:,.0f}" for value in (*total, sum(total)))])
    return _table(
        [f"at {blocks:,} blocks", "rows a block", "rows' bytes", "kept apart", "B-trees", "HNSW", "together"], rows
    )


def _fits(found: Model) -> str:
    rows = []
    for key, unit in _FITS:
        one = found.fits[key]
        unseen = "–" if one.unseen is None else f"{100 * one.unseen:+.0f} %"
        name = found.names[key]
        rows.append(
            [
                f"{name}, {unit}" if unit else name,
                one.form,
                number(one.a),
                f"{one.b:.3g}",
                f"{100 * one.worst:.0f} %",
                unseen,
            ]
        )
    return _table(["what", "form", "a", "b", "worst point", "largest point, unseen"], rows)


def _latency(found: Model) -> str:
    """How long a question takes to those who see so many pieces."""
    rows = []
    for pieces in (10_000, 50_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000):
        exact, near = found.search_ms(pieces, by_index=False), found.search_ms(pieces, by_index=True)
        rows.append(
            [f"{pieces:,}", *(number(value) for value in (exact, near, found.fits["weigh_twice"](pieces), found.fits["bytes"](pieces),
             found.fits["heavy_bytes"](pieces), found.fits["held"](pieces)))]
        )  # fmt: skip
    most = [found.most_pieces(plan.TARGET_MS, by_index=by_index) for by_index in (False, True)]
    rows.append([f"most within {plan.TARGET_MS:.0f} ms", *(number(one) for one in most), "", "", "", ""])
    return _table(
        [
            "pieces that may be seen",
            "ms, all compared",
            "ms, by HNSW",
            "of it weighing",
            "bytes of lists",
            "six frequent words",
            "memory that stays",
        ],
        rows,
    )


def _merging(found: Model) -> str:
    rows = []
    for size in (1_000, 10_000, 100_000, 1_000_000):
        times = plan.relaid(size)
        each = found.fits["relay"](max(size, found.points[0]["blocks"])) / 1e3
        rows.append([f"{size:,}", number(times), seconds(times * each), seconds(size * 0.1 * each)])
    return _table(
        [
            "blocks",
            "times a new block is laid out again",
            "seconds of laying out for each new block",
            "the longest merge",
        ],
        rows,
    )


def _deployment(found: Model) -> str:
    rows = []
    plans = [plan.deployment(found, 1e6, (1_000_000,)), plan.deployment(found, 1e8), plan.deployment(found, 1e9)]
    head = ["blocks", *("10⁶ (one workspace)", "10⁸", "10⁹")]
    rows.append(
        [
            "workspaces of 10⁴ / 10⁵ / 10⁶",
            "– / – / 1",
            *(" / ".join(f"{count:,}" for count in one.workspaces) for one in plans[1:]),
        ]
    )
    rows.append(["disk, one copy", *(f"{number(one.disk)}B" for one in plans)])
    rows.append([f"disk, {plan.COPIES} copies", *(f"{number(plan.COPIES * one.disk)}B" for one in plans)])
    rows.append(["RAM of the working set, one copy", *(f"{number(one.ram)}B" for one in plans)])
    rows.append(["server cores busy with questions", *(number(one.cores) for one in plans)])
    rows.append(["shards (primaries)", *(f"{one.shards:,}" for one in plans)])
    rows.append([f"machines, {plan.COPIES} copies", *(f"{plan.COPIES * one.shards:,}" for one in plans)])
    rows.append(
        [
            "– vCPU / RAM / disk",
            *(
                f"{plan.COPIES * one.shards * plan.VCPUS:,} / {number(plan.COPIES * one.shards * plan.RAM)}B / {number(plan.COPIES * one.shards * plan.DISK)}B"
                for one in plans
            ),
        ]
    )
    rows.append(["blocks a shard", *(number(one.blocks / one.shards) for one in plans)])
    rows.append(["building the HNSW indexes, CPU", *(seconds(one.index_cpu_s) for one in plans)])
    rows.append(
        [
            f"– each shard, {plan.VCPUS} cores at work",
            *(seconds(one.index_cpu_s / one.shards / plan.VCPUS) for one in plans),
        ]
    )
    rows.append([f"importing all of it, {plan.WORKERS} workers", "–", *(seconds(one.import_s) for one in plans[1:])])
    return _table(head, rows)


def _breaks(found: Model) -> str:
    """What gives way, and at which size; in the order of that size."""
    fits = found.fits
    granting = fits["grant"](100_000) / 1e3
    graph = max(one["hnsw"]["graph_bytes"] for one in found.points if "hnsw" in one)
    insert = fits["insert"](1_000_000)
    told = [
        (plan.most_blocks_of_views(), "views of 64 readers who each see half no longer fit into a process's memory for them (256 MB)",
         f"a question whose view was dropped costs a first search: {number(fits['first'](1e6 / 2))} ms at 10⁶ blocks",
         "views as bit masks over shared columns: one copy of the columns for all readers"),
        (found.most_pieces(plan.TARGET_MS, by_index=False), "one HNSW index for all workspaces of a database: with six equal ones, each is less than a fifth of it, and all are compared",
         f"{1e3 * fits['exact'].b:.2g} µs a visible piece", "a partition of `dense`, with its own index, for each large workspace"),
        (_reaching(fits["first_after"], plan.TARGET_MS), "every commit has every process put its views together anew: the next question of each waits for that",
         f"{1e3 * fits['first_after'].b:.2g} µs a block, besides {number(fits['first_after'].a)} ms", "adding a new segment to the columns that are there; counts kept by list"),
        (_reaching(fits["after"], 1_000), "catching up after every commit counts all files and reads the names of all blocks",
         f"{number(fits['after'](1e6))} ms at 10⁶ blocks, one commit after the other", "counts kept as facts; links weighed anew by those that changed"),
        (found.most_pieces(plan.TARGET_MS, by_index=True), "weighing in the client goes over all visible pieces, twice where HNSW is used",
         f"{number(fits['weigh_twice'](1e6))} of {number(found.search_ms(1e6, by_index=True))} ms at 10⁶ pieces",
         "weighing only what a list or a near vector names; then the best k in the server, lists in blocks by impact with the most that each can give (block-max), or an extension for BM25 where there is one"),
        (1.0 / granting * 60, "a grant on a subtree lays all of it out again, in one transaction",
         f"{number(1e3 * granting)} ms a block; after 30 % of a workspace, all of it", "an access list for each subtree that is named once and changed in one row"),
        (plan.RAM * 0.1 / fits["peak"].b, "whoever lays out a whole workspace holds it in memory (a tenth of a machine's is left for that)",
         f"{number(fits['peak'].b)} bytes a block", "laying out in runs of 10⁵ blocks, and merging them from disk"),
        (3_600e3 / insert, "taking vectors into HNSW one by one, 2,000 in each commit, takes an hour",
         f"{number(insert)} ms a vector; built at once {number(1e3 * fits['build'](1e6) / 1e6)} ms, on all cores",
         "CREATE INDEX CONCURRENTLY on a new partition when a workspace has become large"),
        (plan.RAM * plan.USED_RAM / graph, "the graph of one HNSW build no longer fits into a machine's memory",
         f"{number(graph)} bytes a vector while it is built", "a shard is full long before: partitions"),
        (_reaching(fits["heavy_bytes"], 1e9 / 8 * 0.05), "the lists of six frequent words take 50 ms on a network of 1 Gbit/s",
         f"{number(fits['heavy_bytes'].b)} bytes a visible piece; {number(fits['bytes'].b)} for a plain question", "as for weighing"),
    ]  # fmt: skip
    rows = [[f"{number(at)}", what, figure, remedy] for at, what, figure, remedy in sorted(told)]
    text = _table(["blocks", "what gives way", "figure", "what would be done"], rows)
    return text.replace("| --- | --: | --: | --: |", "|--:|---|---|---|")


def _reaching(line: model.Fit, value: float) -> float:
    """Where a straight line reaches a value."""
    return (value - line.a) / line.b
