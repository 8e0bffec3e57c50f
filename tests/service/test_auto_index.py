"""Refreshing the index before an answer: what a question waits for, what it sees, and what it is told."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel.errors import IndexBusy
from satchel.models.files import _CLOCK_TICK_NS
from satchel.service.auto_index import AutoIndex, IndexState
from satchel.service.local_client import LocalSatchel, open_local
from tests.support.api import files, served
from tests.support.threads import entered_elsewhere
from tests.support.waiting import HANG_SECONDS, wait_for

QUESTION = "how long to wait before the next attempt"


def test_a_question_finds_what_was_written_just_before(local_client: LocalSatchel, folder: Path) -> None:
    assert local_client.status().state == "not indexed yet"
    local_client.search("backoff")
    (folder / "tide.py").write_text("def tide_table(harbour):\n    return harbour.moon\n")
    assert local_client.search("tide table of a harbour").hits[0].path == "tide.py"


def test_an_index_run_is_told_about_and_happens_once_for_all(local_client: LocalSatchel) -> None:
    seen: list[IndexState] = []
    report = local_client.index(seen.append)
    assert report.read == 3
    assert report.generation
    assert seen[0].running
    assert not seen[-1].running
    assert any(state.doing == "reading" for state in seen)
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(local_client.index().read)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0] * 6
    assert local_client.auto_index.state.runs <= 8


def test_what_an_index_run_did_is_reported_in_sentences(local_client: LocalSatchel, folder: Path) -> None:
    sentences: list[tuple[str, bool]] = []
    written_ns = time.time_ns()
    # Files that were written within a tick of the clock before they are read are read again.
    wait_for(lambda: time.time_ns() > written_ns + 2 * _CLOCK_TICK_NS, "the clock")
    told = replace(local_client, report=lambda sentence, is_problem: sentences.append((sentence, is_problem)))
    told.search("backoff")
    told.search("backoff")
    assert [sentence.partition(" in ")[0] for sentence, _ in sentences] == ["indexed"]
    (folder / "tide.py").write_text("def tide_table(harbour):\n    return harbour.moon\n")
    with entered_elsewhere(local_client.engine.store.lock):
        local_client.auto_index.busy_wait_s = 0.0
        found = told.search("backoff")
    assert sentences[1:] == [("another process is indexing; answering from the existing index", False)]
    assert not found.notes
    quick = replace(told, quick=True)
    assert all(hit.path != "tide.py" for hit in quick.search("tide table").hits)
    assert "as it is" in sentences[2][0]


def test_an_interruption_ends_a_run_and_leaves_nothing_running(local_client: LocalSatchel) -> None:
    def interrupt(_: IndexState) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local_client.index(interrupt)
    assert not local_client.auto_index.state.running
    assert local_client.search("backoff delay").hits[0].path == "retry.py"


def test_questions_do_not_wait_longer_than_they_may(folder: Path, tmp_path: Path) -> None:
    for i in range(400):
        (folder / f"m{i}.py").write_text(f"def harbour_{i}():\n    return {i}\n" * 20)
    with open_local(folder, index_dir=str(tmp_path / "index"), patience=0.0) as opened:
        found = opened.search("backoff delay")
        assert any("being refreshed" in note for note in found.notes)
        opened.index()
        assert opened.search("backoff delay").hits[0].path == "retry.py"


def test_a_folder_is_not_looked_at_more_often_than_said(folder: Path, tmp_path: Path) -> None:
    with open_local(folder, index_dir=str(tmp_path / "index"), every=3600) as opened:
        opened.search("backoff")
        (folder / "tide.py").write_text("def tide_table(harbour):\n    return harbour.moon\n")
        assert all(hit.path != "tide.py" for hit in opened.search("tide table").hits)
        opened.index()
        assert opened.search("tide table").hits[0].path == "tide.py"


def test_closing_stops_a_run_and_what_was_committed_stays(folder: Path, tmp_path: Path) -> None:
    for i in range(800):
        (folder / f"m{i}.py").write_text(f"def harbour_{i}():\n    return {i}\n" * 20)
    opened = open_local(folder, index_dir=str(tmp_path / "index"), patience=0.0)
    opened.search("backoff")
    opened.close()
    assert not opened.auto_index.state.running
    with open_local(folder, index_dir=str(tmp_path / "index")) as again:
        assert again.search("backoff delay").hits[0].path == "retry.py"


def test_another_process_that_indexes_is_not_in_the_way(local_client: LocalSatchel, folder: Path) -> None:
    local_client.index()
    local_client.auto_index.busy_wait_s = 0.1
    (folder / "tide.py").write_text("def tide_table(harbour):\n    return harbour.moon\n")
    with entered_elsewhere(local_client.engine.store.lock):
        # Another writer is in the way: the answer has to say so.
        found = local_client.search("backoff delay")
    assert found.hits[0].path == "retry.py"
    assert any("another process" in note for note in found.notes)
    with pytest.raises(satchel.errors.IndexBusy), entered_elsewhere(local_client.engine.store.lock):
        local_client.index()


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


def test_every_caller_is_told_that_the_index_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_questions_wait_for_a_run_without_blocking_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
