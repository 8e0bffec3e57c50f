"""The store in PostgreSQL: the contracts, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.ports.store import Store
from satchel.storage.postgres.database import with_psycopg_marks
from satchel.storage.postgres.store import PostgresStore
from satchel.testing.store_contract import StoreContract
from tests.support.postgres import workspace_url


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _database(self, postgres: str) -> None:
        self.url = postgres

    def make_store(self, folder: Path) -> Store:
        return PostgresStore(workspace_url(self.url, folder), patience=0.2)


def test_the_mark_for_a_value_is_psycopgs() -> None:
    statement = "SELECT 1 FROM file WHERE workspace = ? AND path IN (?,?)"
    assert with_psycopg_marks(statement) == "SELECT 1 FROM file WHERE workspace = %s AND path IN (%s,%s)"
