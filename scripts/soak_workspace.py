"""Random workspaces, random rights and random requests by the hundred thousand: nobody sees what they may not read.

    python scripts/soak_workspace.py --builds 200000 --seed 1
    python scripts/soak_workspace.py --builds 5000 --store postgres

Every workspace is held to the model of tests/support/workspace_oracle.py. The first promise that is not kept ends the
run, with the command that repeats it. With `--store postgres` they are kept in the database that
SATCHEL_TEST_POSTGRES names, or in one that is started for it; what they are compared with is
in the embedded store all the same.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

# Two processes with two threads of algebra each would be in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

from satchel.integrations.embedders.static_embedder import StaticEmbedder
from tests.support.workspace_oracle import StoreMaker, Violation, World
from tests.workspace.test_laws import KNOWN_FAULTS

ROUNDS = 14
ASKED = 20
COMPARED = 5
IN_MEMORY = Path("/dev/shm")


class Report(NamedTuple):
    """What came of one workspace."""

    number: int
    builds: int
    compared: int
    problem: str = ""
    kind: str = ""


@cache
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


def store_in(database: str) -> StoreMaker | None:
    """What makes the stores: of a database a workspace for each folder, or the embedded store."""
    if not database:
        return None
    from satchel.storage.postgres.store import PostgresStore
    from tests.support.postgres import workspace_url

    return lambda folder: PostgresStore(workspace_url(database, folder))


def forget(database: str, folder: Path) -> None:
    """Leave nothing of a workspace in a database that others may use."""
    from satchel.storage.postgres.store import PostgresStore
    from tests.support.postgres import workspace_url

    with closing(PostgresStore(workspace_url(database, folder))) as store:
        store.clear()


def one_world(seed: int, number: int, database: str = "") -> Report:
    """A workspace that is changed and asked in turns."""
    chooser = Random(f"{seed}/{number}")
    folder = Path(tempfile.mkdtemp(prefix="soak-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    world = World(folder, embedder(), KNOWN_FAULTS, store_in(database))
    compared = 0
    step = "filling"
    try:
        size = chooser.randint(90, 150) if chooser.random() < 0.05 else chooser.randint(5, 60)
        with world.edit(chooser) as edit:
            world.fill(chooser, edit, size)
        for turn in range(ROUNDS):
            step = f"round {turn}, changing"
            for _ in range(chooser.randint(1, 3)):
                with world.edit(chooser) as edit:
                    for _ in range(chooser.choice([1, 1, 1, 5])):
                        world.change(chooser, edit)
            if chooser.random() < 0.1:
                with world.cut_off(chooser) as edit:
                    world.take_away(chooser, edit)
            for asked in range(ASKED):
                step = f"round {turn}, request {asked}"
                user = world.user(chooser)
                world.ask(world.request(chooser, user), world.engine(chooser), thoroughly=asked % 4 == 0)
            step = f"round {turn}, looking"
            world.look(chooser, world.user(chooser), world.engine(chooser))
            world.ask_plainly(chooser, world.user(chooser), world.engine(chooser))
            if turn % 2 == 0:
                user = world.user(chooser)
                with world.without_hidden(user) as reference:
                    for asked in range(COMPARED):
                        step = f"round {turn}, comparison {asked}"
                        compared += 1
                        world.compare(world.request(chooser, user), world.engine(chooser), reference)
    except Violation as error:
        return Report(number, world.builds, compared, f"{step}: {error}", error.kind)
    except Exception as error:
        return Report(number, world.builds, compared, f"{step}: {type(error).__name__}: {error}", "wrong")
    finally:
        world.close()
        if database:
            forget(database, folder)
        shutil.rmtree(folder)
    return Report(number, world.builds, compared)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=200_000, help="how many contexts are built at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="how many processes share the work")
    parser.add_argument("--world", type=int, help="only the workspace of this number")
    parser.add_argument("--store", choices=["embedded", "postgres"], default="embedded", help="where they are kept")
    arguments = parser.parse_args()
    with databases(arguments.store) as database:
        return run(arguments, database)


def databases(store: str) -> AbstractContextManager[str]:
    """The database for the time of a run; none for the embedded store."""
    if store == "embedded":
        return nullcontext("")
    from tests.support.postgres import postgres_url

    return postgres_url()


def run(arguments: argparse.Namespace, database: str) -> int:
    if arguments.world is not None:
        report = one_world(arguments.seed, arguments.world, database)
        print(report.problem or f"{report.builds:,} builds, nothing wrong")
        return 1 if report.problem else 0
    started = time.monotonic()
    builds = compared = number = told = 0
    step = min(10_000, max(1, arguments.builds // 10))
    failed: Report | None = None
    with ProcessPoolExecutor(arguments.jobs) as pool:
        running: set[Future[Report]] = set()
        while failed is None and (builds < arguments.builds or running):
            while builds < arguments.builds and len(running) < arguments.jobs + 1:
                running.add(pool.submit(one_world, arguments.seed, number, database))
                number += 1
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for report in (future.result() for future in done):
                builds, compared = builds + report.builds, compared + report.compared
                failed = report if report.problem else failed
            if builds // step > told or failed:
                told = builds // step
                print(f"{builds:,} builds, {compared:,} compared, {time.monotonic() - started:.0f} s", flush=True)
        for future in running:
            future.cancel()
    if failed is not None:
        print(f"FAILED in workspace {failed.number}, {failed.problem}")
        again = f"--seed {arguments.seed} --world {failed.number} --store {arguments.store}"
        print(f"again with: python {sys.argv[0]} {again}")
    kinds = {"leak": 0, "hint": 0, "over budget": 0, "wrong": 0} | ({failed.kind: 1} if failed else {})
    print(
        f"{builds:,} builds in {number:,} workspaces, {kinds['leak']} leaks, {kinds['hint']} hints "
        f"({compared:,} compared), {kinds['over budget']} over budget, {kinds['wrong']} otherwise wrong "
        f"in {time.monotonic() - started:.0f} s"
    )
    return 1 if failed is not None else 0


if __name__ == "__main__":
    sys.exit(main())
