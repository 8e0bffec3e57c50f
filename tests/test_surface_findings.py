"""Faults that reviews of the servers found, each with the test that would have caught it."""

from __future__ import annotations

import asyncio
import json
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel import ContextHints, TokenBudget
from satchel.errors import IndexBusy
from satchel.http.guard.credentials import entry_for, new_token
from satchel.http.routes import requests as module
from satchel.http.routes.requests import WorkerThreads
from satchel.http_client import events
from satchel.service.auto_index import AutoIndex
from satchel.service.local_client import open_local
from satchel.service.uploads import Upload
from satchel.text.patterns import matches
from tests.api import Api, files, served
from tests.effort import no_blow_up
from tests.servers import TOKEN, until
from tests.waiting import HANG_SECONDS, wait_for
from tests.workspaces import fill

QUESTION = "how long to wait before the next attempt"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with served(files(tmp_path / "root"), tmp_path / "index") as found:
        yield found


# -- uploads


def test_a_file_that_is_still_being_sent_is_nobodys_to_read(api: Api) -> None:
    with Upload(api.engine.root, "hr.md") as upload:
        upload.write(b"The zebra's salary is 9000.")
        assert api.local_client.index().read == 3
        assert all("upload" not in hit.path for hit in api.local_client.search("zebra salary").hits)
        upload.keep()
    assert api.local_client.search("zebra salary").hits[0].path == "uploads/hr.md"


def test_what_a_killed_upload_left_is_swept_away(tmp_path: Path) -> None:
    import os

    left = tmp_path / "uploads" / ".satchel-upload-0123"
    left.parent.mkdir()
    left.write_text("half")
    os.utime(left, (1, 1))
    with Upload(tmp_path, "a.md"):
        assert not left.exists()


def test_uploads_and_edits_wait_for_each_other(api: Api) -> None:
    stop = threading.Event()

    def edit() -> None:
        while not stop.is_set():
            api.owner.post("/v1/activity", json={"block": "retry.py", "user": "ann"})

    api.local_client.index()
    thread = threading.Thread(target=edit)
    thread.start()
    try:
        statuses = [api.owner.put(f"/v1/documents/a{i}.md", content=b"# Tides").status_code for i in range(6)]
    finally:
        stop.set()
        thread.join()
    assert statuses == [200] * 6


def test_a_name_that_no_file_system_takes_is_a_problem(api: Api) -> None:
    name = "é" * 140
    assert api.owner.put(f"/v1/documents/{name}", content=b"x").status_code == 422
    assert api.owner.delete(f"/v1/documents/{name}").status_code == 422


@pytest.mark.parametrize("name", ["a%0Ab", "a%0A", "%0Aa", "a%0D%0Ab"])
def test_a_line_break_in_an_address_is_the_route_s_to_judge(api: Api, name: str) -> None:
    for answer in (api.owner.put(f"/v1/documents/{name}", content=b"x"), api.owner.delete(f"/v1/documents/{name}")):
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")
    for answer in (api.owner.get(f"/v1/blocks/{name}"), api.owner.delete(f"/v1/blocks/{name}")):
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown-block")


# -- index runs


def test_a_question_that_joins_a_run_sees_what_was_written_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = files(tmp_path / "root")
    with open_local(root, index_dir=str(tmp_path / "index")) as local_client:
        local_client.index()
        looked, go_on = threading.Event(), threading.Event()
        changes = local_client.engine.changes

        def slow() -> Any:
            found = changes()
            looked.set()
            assert go_on.wait(10)
            return found

        monkeypatch.setattr(local_client.engine, "changes", slow)
        first = threading.Thread(target=lambda: local_client.search(QUESTION))
        first.start()
        assert looked.wait(10)
        (root / "tide.py").write_text("def tide_table(harbour):\n    return harbour.moon\n")
        threading.Timer(0.1, go_on.set).start()
        assert local_client.search("tide table of a harbour").hits[0].path == "tide.py"
        first.join()


def test_every_run_has_its_own_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_local(files(tmp_path / "root"), index_dir=str(tmp_path / "index")) as local_client:
        monkeypatch.setattr(local_client.engine, "index", lambda *_, **__: (_ for _ in ()).throw(IndexBusy("x", "")))
        local_client.auto_index.busy_wait_s = 0.0
        failed: list[str] = []

        def run() -> None:
            try:
                local_client.index()
            except IndexBusy:
                failed.append("busy")

        threads = [threading.Thread(target=run) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == ["busy"] * 5


def test_a_run_that_cannot_start_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_local(files(tmp_path / "root"), index_dir=str(tmp_path / "index"), patience=60.0) as local_client:

        def cannot(_: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", cannot)
            with pytest.raises(RuntimeError):
                local_client.search(QUESTION)
        assert not local_client.auto_index.state.running
        assert local_client.search(QUESTION).hits


def test_questions_do_not_wait_for_a_run_in_each_others_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = files(tmp_path / "root")
    go_on = threading.Event()
    waiting: set[float] = set()
    is_current = AutoIndex.is_current

    def noted(index: AutoIndex, asked: float) -> bool:
        waiting.add(asked)
        return is_current(index, asked)

    with served(root, tmp_path / "index", every=0.0, patience=HANG_SECONDS) as api:
        monkeypatch.setattr(AutoIndex, "_refreshed", lambda *_: go_on.wait(HANG_SECONDS))
        monkeypatch.setattr(AutoIndex, "is_current", noted)
        answers: list[int] = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(api.owner.post("/v1/search", json={"query": QUESTION}).status_code)
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        # The run goes on only when all are waiting for it: whoever held up another would do so for ever.
        wait_for(lambda: len(waiting) == 8, "eight questions that wait for the run")
        assert api.owner.get("/v1/status").status_code == 200
        assert answers == []
        go_on.set()
        for thread in threads:
            thread.join()
        assert answers == [200] * 8


def test_others_are_not_told_how_many_files_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = files(tmp_path / "root")
    for i in range(30):
        (root / f"m{i}.py").write_text(f"x{i} = {i}\n")
    go_on = threading.Event()
    with served(root, tmp_path / "index", patience=0.05, every=0.0) as api:
        with api.engine.workspace.edit() as edit:
            edit.set_default("deny")
        index = api.engine.index

        def held(watch: Any, **more: Any) -> Any:
            from satchel.indexing.indexer import IndexStep

            watch(IndexStep("reading", 7, 33))
            assert go_on.wait(HANG_SECONDS)
            return index(watch, **more)

        monkeypatch.setattr(api.engine, "index", held)
        told = api.eve.post("/v1/search", json={"query": QUESTION}).json()
        until(lambda: api.owner.get("/v1/index").json()["of"] == 33)
        assert api.owner.get("/v1/status").json()["of"] == 33
        for path in ("/v1/index", "/v1/status"):
            assert api.eve.get(path).json()["of"] == 0
            assert "33" not in json.dumps(api.eve.get(path).json())
        assert told["notes"]
        assert "33" not in json.dumps(told["notes"])
        go_on.set()


# -- what is sent


@pytest.mark.parametrize(
    "body",
    [
        "{" + ",".join(f'"a{i}":0' for i in range(2_000)) + "}",
        "[" + ",".join(["{" + ",".join(f'"{i}":0' for i in range(900)) + "}"] * 200) + "]",
        "[" + "[]," * 310_000 + "[]]",
    ],
    ids=["one object", "many objects", "many lists"],
)
def test_bodies_that_cost_more_than_they_weigh_are_refused(api: Api, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = api.owner.post("/v1/search", content=body.encode(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-json")


def test_globs_cost_no_more_than_what_they_say() -> None:
    # Forms that try every way to share the folders out among the stars never end.
    with no_blow_up("a pattern"):
        for i in range(20_000):
            assert not matches(f"src/deep/er/m{i}.py", ["**/" * 160 + "nothing.py"])
        assert not matches("a/" * 200 + "m.py", ["**/" * 160 + "nothing.py"])
    assert matches("src/a/b.py", ["**/**/**/b.py"])
    assert matches("src/a/b.py", ["src/**/**"])
    assert not matches("b.py", ["a/b/c/d/**/b.py"])


def test_bytes_that_are_not_utf8_are_shown(api: Api) -> None:
    (api.engine.root / "old.py").write_bytes(b"def caf\xe9():\n    return 1\n")
    told = api.owner.post("/v1/expand", json={"id": "old.py"}).json()
    assert told["text"].startswith("def caf⟦0xE9⟧()")


def test_a_link_with_many_fields_is_no_link(api: Api) -> None:
    answer = api.owner.get("/login?" + "&".join(f"a{i}=1" for i in range(12)))
    assert answer.status_code == 403
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_falsy_values_get_to_the_server(api: Api) -> None:
    fill(api.engine)
    with satchel.open(api.url, token=TOKEN) as far:
        for told in (
            {"token_budget": TokenBudget(total=900, history=0, activity=0, relations=0), "focus": "book"},
            {"hints": ContextHints(max_depth=0), "focus": "book"},
            {"focus": ""},
        ):
            assert far.build("book the hall", **told).text == api.local_client.build("book the hall", **told).text
        with pytest.raises(satchel.errors.InvalidInput):
            far.search("x", top_k=5_000)
        with pytest.raises(satchel.errors.UnknownBlock) as error:
            far.expand("nowhere")
        assert error.value.block_id == "nowhere"


@pytest.mark.parametrize("user", ["ann \U0001f600", "größe", 'a"b', "a\\b"])
def test_an_entry_for_a_key_file_can_be_read(user: str) -> None:
    (entry,) = tomllib.loads(entry_for(new_token(), user, ("staff é",)))["token"]
    assert (entry["user"], entry["groups"]) == (user, ["staff é"])


@pytest.mark.parametrize(
    ("user", "groups", "owner"),
    [("a\nb", (), False), ("a\x7f", (), False), (" ", (), False), ("a", ("",), False), ("", ("x",), True)],
    ids=ascii,
)
def test_an_entry_that_the_server_would_refuse_is_not_made(user: str, groups: tuple[str, ...], owner: bool) -> None:
    with pytest.raises(satchel.errors.InvalidInput):
        entry_for(new_token(), user, groups, owner)


# -- streams


def test_a_stream_that_nobody_began_to_hear_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STREAMS_AT_ONCE", 2)
    work = WorkerThreads()
    for _ in range(5):
        work.stream(iter([1]))

    async def hear() -> list[int]:
        return [one async for one in work.stream(iter([1, 2]))]

    assert asyncio.run(hear()) == [1, 2]
    work.close()


def test_a_mistake_in_a_stream_is_a_problem_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL", "openai:tiny")
    monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL_URL", "http://127.0.0.1:9/v1")
    with served(files(tmp_path / "root"), tmp_path / "index") as api:

        def broken(*_: object) -> None:
            raise RuntimeError("a secret of the index")

        monkeypatch.setattr("satchel.http.routes.questions.streamed_from", broken)
        body = {"query": QUESTION, "stream": True}
        with api.owner.stream("POST", "/api/research/ask", json=body) as answer:
            heard = list(events(answer.iter_raw()))
    assert heard[-1].kind == "problem"
    assert json.loads(heard[-1].data)["code"] == "internal-error"
    assert "secret" not in capfd.readouterr().err
