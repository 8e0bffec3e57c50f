"""Nobody sees what they may not read, in PostgreSQL as in the embedded store: random workspaces held to a model.

`scripts/soak_workspace.py --store postgres` does the same at length.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from satchel import ContextRequest, User
from satchel.storage.postgres.connections import WRITER
from satchel.storage.postgres.store import PostgresStore
from tests.support.postgres import workspace_url
from tests.support.workspace_oracle import OWNER, StoreMaker, Violation, World
from tests.workspace.test_laws import KNOWN_FAULTS, embedder


@pytest.fixture
def make_store(postgres: str) -> StoreMaker:
    return lambda folder: PostgresStore(workspace_url(postgres, folder))


@pytest.mark.parametrize("seed", range(3))
def test_law_random_workspaces_in_postgres_keep_to_the_model(seed: int, tmp_path: Path, make_store: StoreMaker) -> None:
    """What is compared at the end is compared with the embedded store: the two also answer alike."""
    chooser = Random(f"postgres/{seed}")
    with closing(World(tmp_path, embedder(), KNOWN_FAULTS, make_store)) as world:
        with world.edit(chooser) as edit:
            world.fill(chooser, edit, 24)
        for _ in range(2):
            with world.edit(chooser) as edit:
                for _ in range(3):
                    world.change(chooser, edit)
            with world.cut_off(chooser) as edit:
                world.take_away(chooser, edit)
            for _ in range(5):
                world.ask(world.request(chooser, world.user(chooser)), world.engine(chooser))
            world.look(chooser, world.user(chooser), world.engine(chooser))
            world.ask_plainly(chooser, world.user(chooser), world.engine(chooser))
        user = world.user(chooser)
        with world.without_hidden(user) as reference:
            for _ in range(4):
                world.compare(world.request(chooser, user), world.engine(chooser), reference)


def test_a_store_without_locks_is_noticed(
    tmp_path: Path, make_store: StoreMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    chooser = Random(3)
    with closing(World(tmp_path, embedder(), KNOWN_FAULTS, make_store)) as world:
        with world.edit(chooser) as edit:
            world.fill(chooser, edit, 20)
        assert world.model.default != OWNER
        monkeypatch.setattr(PostgresStore, "_allowed", lambda *_: None)
        monkeypatch.setattr("satchel.storage.postgres.store.reading_as", lambda _: WRITER)
        stranger = User(id="zoe")
        with pytest.raises(Violation, match="leak"):
            world.ask(ContextRequest(query="harbor budget", user=stranger), world.engines[0])
        with pytest.raises(Violation, match="leak"):
            world.look(chooser, stranger, world.engines[1])
