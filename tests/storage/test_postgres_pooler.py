"""The store in PostgreSQL behind PgBouncer in transaction mode: the contracts, and what a session must not keep."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import satchel
from benchmarks.workspace_bench import requests
from benchmarks.workspaces import NOW, workspace
from satchel.errors import IndexBusy, StoreUnavailable
from satchel.models.search import Filters
from satchel.ports.store import Store
from satchel.storage.postgres import administration
from satchel.storage.postgres.address import address_of
from satchel.storage.postgres.connections import WRITER
from satchel.storage.postgres.store import PostgresStore
from satchel.testing.store_contract import StoreContract
from satchel.testing.store_suite import file_of
from tests.support.pgbouncer import PGBOUNCER, pooled
from tests.support.postgres import workspace_url

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed (scripts/system.sh)")


@pytest.fixture(scope="module")
def pooler(postgres: str) -> Iterator[str]:
    """The address of the tests' database through a pooler."""
    with pooled(postgres) as url:
        yield url


class TestPooledStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _database(self, pooler: str) -> None:
        self.url = pooler

    def make_store(self, folder: Path) -> Store:
        return PostgresStore(workspace_url(self.url, folder), patience=0.2)


def test_nothing_is_prepared_where_the_next_transaction_may_be_elsewhere(
    pooler: str, postgres: str, tmp_path: Path
) -> None:
    for url, is_prepared in ((pooler, False), (postgres, True)):
        with (
            closing(PostgresStore(workspace_url(url, tmp_path))) as store,
            store._connections.transaction(WRITER) as visit,
        ):
            for _ in range(9):
                visit.database.execute("SELECT 1").fetchall()
            prepared = visit.database.execute("SELECT count(*) FROM pg_prepared_statements").get
            assert bool(prepared) == is_prepared


def test_answers_are_the_same_through_the_pooler(pooler: str, postgres: str, tmp_path: Path) -> None:
    direct, through = (workspace_url(url, tmp_path) for url in (postgres, pooler))
    with (
        satchel.open_engine(store=direct, index_dir=str(tmp_path / "a"), clock=lambda: NOW) as here,
        satchel.open_engine(store=through, index_dir=str(tmp_path / "b"), clock=lambda: NOW) as there,
    ):
        there.workspace.load(workspace(300))
        for request in requests(here, 300, 5):
            assert there.build(request).serialized == here.build(request).serialized


def test_sessions_of_the_server_keep_nothing_of_whom_they_served(pooler: str, postgres: str, tmp_path: Path) -> None:
    """A client of the pooler that is not ours gets the same sessions."""
    with closing(PostgresStore(workspace_url(pooler, tmp_path))) as store:
        TestPooledStore().commit(store, file_of("a.py", ["retry"], readers=("user:ann",)))
        store.text_of("a.py", Filters(readers=frozenset({"user:ann"})))
        with store.lock():
            store.catch_up()
        left = (
            "SELECT current_setting('role'), coalesce(current_setting('satchel.readers', true), ''),"
            " current_setting('statement_timeout'), current_setting('jit'),"
            " (SELECT count(*) FROM pg_prepared_statements),"
            " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
        )
        with psycopg.connect(postgres) as fresh:
            clean = fresh.execute(
                "SELECT 'none', '', current_setting('statement_timeout'), current_setting('jit'), 0, 0"
            )
            expected = clean.fetchone()
        with psycopg.connect(pooler, prepare_threshold=None, autocommit=True) as stranger:
            for _ in range(5):
                assert stranger.execute(left.encode()).fetchone() == expected


def test_one_writer_at_a_time_through_the_pooler_and_beside_it(pooler: str, postgres: str, tmp_path: Path) -> None:
    with (
        closing(PostgresStore(workspace_url(pooler, tmp_path), patience=0.2)) as store,
        closing(PostgresStore(workspace_url(postgres, tmp_path), patience=0.2)) as beside,
        closing(PostgresStore(workspace_url(pooler, tmp_path))) as another,
    ):
        with store.lock():
            for other in (beside, another):
                with pytest.raises(IndexBusy), other.lock():
                    pass
            with pytest.raises(IndexBusy):
                TestPooledStore().commit(beside, file_of("b.py", ["retry"]))
            TestPooledStore().commit(store, file_of("a.py", ["retry"]))
        TestPooledStore().commit(beside, file_of("b.py", ["retry"]))
        assert set(store.files()) == {"a.py", "b.py"}
        assert store.generation == beside.generation >= 2


def test_the_pooler_refuses_options_and_the_error_says_so(pooler: str) -> None:
    with pytest.raises(StoreUnavailable, match="unsupported startup parameter: options"):
        PostgresStore(f"{pooler}?options=-cstatement_timeout%3D300")


def test_migrations_run_under_a_lock_through_the_pooler(pooler: str, postgres: str) -> None:
    name = "behind_a_pooler"
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    url = pooler.rpartition("/")[0] + f"/{name}"
    try:
        done: list[int] = []
        threads = [
            threading.Thread(target=lambda: done.append(administration.set_up(address_of(url)).before))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One made everything, and the others waited for it.
        assert sorted(done) == [0, administration.VERSION, administration.VERSION]
        seen = administration.look_at(address_of(url))
        assert (seen.version, seen.can_write) == (administration.VERSION, True)
    finally:
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
