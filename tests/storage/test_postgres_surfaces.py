"""A workspace in a database at every surface: what it can do, what it cannot, and what it must not tell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import satchel
from benchmarks.workspace_bench import requests
from benchmarks.workspaces import NOW, workspace
from satchel.errors import InvalidOption, WorkspaceMissing
from tests.support.api import files, served
from tests.support.postgres import workspace_url


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environ}
    return subprocess.run(
        [sys.executable, "-m", "satchel", *arguments], env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def url(postgres: str, tmp_path: Path) -> str:
    """A workspace with a small folder in it."""
    found = workspace_url(postgres, tmp_path)
    with satchel.open_engine(files(tmp_path / "root"), store=found) as engine:
        engine.index()
    return found


def test_a_folder_and_the_database_alone_give_the_same(url: str, tmp_path: Path) -> None:
    with satchel.open(tmp_path / "root", store=url) as with_folder, satchel.open(url) as alone:
        asked = "how long to wait before the next attempt"
        assert with_folder.build(asked).text == alone.build(asked).text != ""
        assert alone.status().state == "up to date"
        assert alone.search(asked).hits == with_folder.search(asked).hits
        with pytest.raises(InvalidOption, match="without a folder on this machine"):
            alone.index()


def test_what_changed_in_the_folder_is_seen_through_it(url: str, tmp_path: Path) -> None:
    (tmp_path / "root" / "new.md").write_text("Zebras are counted in March.\n")
    with satchel.open(tmp_path / "root", store=url) as local_client:
        assert "March" in local_client.build("when are zebras counted?").text
    with satchel.open(url) as alone:
        assert "March" in alone.build("when are zebras counted?").text


def test_documents_are_not_taken_where_there_is_no_folder(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder beside us that happens to have the workspace's name is not its folder."""
    beside = tmp_path / "beside"
    (beside / url.rpartition("=")[2] / "uploads").mkdir(parents=True)
    monkeypatch.chdir(beside)
    with served(url, tmp_path / "index") as api:  # type: ignore[arg-type]
        sent = api.owner.put("/v1/documents/a.md", content=b"Zebras.")
        assert sent.status_code == 422
        assert "without a folder on this machine" in sent.text
        assert api.owner.delete("/v1/documents/a.md").status_code == 422
        assert api.owner.post("/v1/context", json={"query": "how long to wait"}).status_code == 200
    assert not list(beside.rglob("*.md"))


# Statements of a build with a focus, with those that begin, enter and end its six transactions.
MOST_STATEMENTS = 66


def test_a_build_asks_by_lists_of_keys_and_never_one_by_one(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[int, list[int]] = {}
    for blocks in (200, 2_000):
        url = workspace_url(postgres, tmp_path / str(blocks))
        with satchel.open_engine(store=url, index_dir=str(tmp_path / f"{blocks}"), clock=lambda: NOW) as engine:
            engine.workspace.load(workspace(blocks))
            for request in requests(engine, blocks, 12):
                with statements(monkeypatch) as sent:
                    payload = engine.build(request)
                assert len(payload.items) > 5
                counts.setdefault(blocks, []).append(len(sent))
    # The first builds also learn what a cached view holds.
    assert max(counts[200][2:] + counts[2_000][2:]) <= MOST_STATEMENTS, counts


@contextmanager
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that are sent, by all threads."""
    sent: list[str] = []
    execute: Any = psycopg.Cursor.execute

    def noted(self: Any, query: Any, *values: Any, **more: Any) -> Any:
        sent.append(str(query))
        return execute(self, query, *values, **more)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", noted)
        yield sent


@pytest.mark.slow
def test_the_doctor_finds_nothing_wrong(url: str) -> None:
    done = run("doctor", url.replace("postgres:@", "postgres:hush@"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hush" not in done.stdout + done.stderr


@pytest.mark.parametrize("place", ["postgresq://u:hush@h/x", "postgresql://u:hush@127.0.0.1:1/x", "mysql://u:hush@h/x"])
def test_no_password_is_told(place: str) -> None:
    for arguments in (("build", "q", place), ("status", place), ("index", ".", "--store", place)):
        done = run(*arguments)
        assert done.returncode != 0
        assert "hush" not in done.stdout + done.stderr, arguments


def test_a_project_may_not_name_a_database(tmp_path: Path) -> None:
    (tmp_path / "satchel.toml").write_text('store = "postgresql://evil/x"\n')
    with pytest.raises(InvalidOption, match="a project may not set this"):
        satchel.open_engine(tmp_path)


def test_a_folder_is_no_url() -> None:
    with pytest.raises(WorkspaceMissing, match="is not a folder"):
        satchel.open_engine("redis://u:hush@h")


def test_the_command_line_sets_up_indexes_asks_and_clears(postgres: str, tmp_path: Path) -> None:
    place = workspace_url(postgres, tmp_path)
    root = str(files(tmp_path / "root"))
    assert run("postgres", "setup", postgres).returncode == 0
    done = run("index", root, "--store", place)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 files" in done.stderr
    assert "retry.py" in run("search", "retry", place).stdout
    assert place.rpartition("=")[2] in run("postgres", "workspaces", postgres).stdout
    assert "3 files" in run("status", root, SATCHEL_STORE=place).stdout
    assert run("clear", root, "--store", place).returncode == 0
    assert run("status", place).returncode == 3
