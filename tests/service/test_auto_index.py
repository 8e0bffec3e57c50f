"""Refreshing the index before an answer: what a question waits for, what it sees, and what it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satchel
from satchel.errors import IndexBusy, IndexNotReady
from satchel.indexing import first_run
from satchel.models.files import _CLOCK_TICK_NS
from satchel.service.auto_index import AutoIndex, Fresh, IndexState
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
        with pytest.raises(IndexNotReady):
            opened.search("backoff delay")
        opened.index()
        assert opened.search("backoff delay").hits[0].path == "retry.py"


@contextmanager
def first_run_held(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> Iterator[tuple[LocalSatchel, threading.Event]]:
    """A client of a folder whose first index run stops after its first small batch, until the event is set."""
    go_on = threading.Event()
    committed = first_run.FirstRunLayout.committed

    def hold(layout: first_run.FirstRunLayout, done: int) -> None:
        committed(layout, done)
        assert go_on.wait(HANG_SECONDS)

    for i in range(40):
        (folder / f"harbour{i}.py").write_text(f"def harbour_{i}():\n    return {i}\n" * 20)
    monkeypatch.setattr(first_run, "FIRST_BATCH_FILES", 4)
    monkeypatch.setattr(first_run.FirstRunLayout, "committed", hold)
    with open_local(folder, index_dir=str(tmp_path / "index"), **settings) as opened:
        try:
            yield opened, go_on
        finally:
            go_on.set()


def test_a_first_run_is_searchable_while_it_goes_on_and_says_how_far_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The run would not end within the patience, so the question does not wait for its end.
    with first_run_held(folder, tmp_path, monkeypatch, patience=HANG_SECONDS) as (opened, go_on):
        monkeypatch.setattr(first_run.FirstRun, "seconds_left", 3_600.0)
        found = opened.search("how does retry.py compute the backoff delay")
        assert found.hits[0].path == "retry.py"
        assert found.notes[0] == "4 of 43 files are indexed, the rest in about 3,600 s; this answer uses only these"
        built = opened.build("how does retry.py compute the backoff delay")
        assert built.sources[0].path == "retry.py"
        assert "4 of 43 files are indexed" in built.notes[0]
        impatient = replace(opened, patience=0.0)
        with pytest.raises(IndexNotReady) as raised:
            impatient.build("tide table of the moon")
        assert (raised.value.done, raised.value.of, raised.value.seconds_left) == (4, 43, 3_600)
        with pytest.raises(IndexNotReady, match="4 of 43 files"):
            impatient.search("tide table of the moon")
        go_on.set()
        whole = replace(opened, patience=float("inf"))
        assert not whole.search("harbour_39").notes
        assert whole.search("harbour_39").hits[0].path == "harbour39.py"


def test_a_weak_answer_waits_for_more_of_the_first_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with first_run_held(folder, tmp_path, monkeypatch, patience=HANG_SECONDS) as (opened, go_on):
        monkeypatch.setattr(first_run.FirstRun, "seconds_left", 3_600.0)
        answering = opened.auto_index.not_ready

        def answered() -> IndexNotReady | None:
            go_on.set()  # the first part is searched now
            return answering()

        monkeypatch.setattr(AutoIndex, "not_ready", lambda _: answered())
        # Read in the second batch, since nothing in its path is in the question.
        (folder / "harbour10_a.py").write_text("def tide_table(moon):\n    return moon.phase\n")
        assert opened.search("tide table of the moon").hits[0].path == "harbour10_a.py"


def test_another_process_sees_how_far_a_first_run_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with first_run_held(folder, tmp_path, monkeypatch, patience=HANG_SECONDS) as (opened, _):
        monkeypatch.setattr(first_run.FirstRun, "seconds_left", 3_600.0)
        opened.search("retry.py")
        with open_local(folder, index_dir=str(tmp_path / "index"), patience=HANG_SECONDS) as other:
            found = other.search("retry.py backoff delay")
            assert found.hits[0].path == "retry.py"
            assert any("4 of 43 files are indexed" in note for note in found.notes)


def test_an_interrupted_first_run_is_continued_and_then_complete(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with first_run_held(folder, tmp_path, monkeypatch, patience=HANG_SECONDS) as (opened, go_on):
        monkeypatch.setattr(first_run.FirstRun, "seconds_left", 3_600.0)
        opened.search("retry.py")
        opened.auto_index._stopping.set()
        go_on.set()
        opened.auto_index.close()
    with open_local(folder, index_dir=str(tmp_path / "index")) as again:
        assert again.engine.first_run is not None
        assert not again.search("harbour_39").notes
        assert again.engine.first_run is None


TREE = st.dictionaries(
    st.sampled_from(["a", "b/a", "b/b", "tests/a", "vendor/a", "c/d/e"]).map("{}.py".format)
    | st.sampled_from(["docs/a.md", "b/readme.md", "notes.txt"]),
    st.lists(st.sampled_from(["def retry():\n    pass\n", "class Socket:\n    x = 1\n", "# backoff\n"]), min_size=1),
    min_size=2,
)


@settings(max_examples=8, deadline=None)
@given(TREE, st.sampled_from(["retry in b/a.py", "where is the socket", ""]), st.integers(1, 3))
def test_law_a_first_run_ends_in_the_same_answers_whatever_was_read_first(
    tree: dict[str, list[str]], question: str, batch: int
) -> None:
    answers = []
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        root = Path(place) / "root"
        for path, parts in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("".join(parts))
        for number, first in ((0, ""), (1, question)):
            if number:
                patch.setattr(first_run, "FIRST_BATCH_FILES", batch)
                patch.setattr("satchel.indexing.indexer._COMMIT_AT_FILES", batch)
            with open_local(root, index_dir=str(Path(place) / str(number))) as opened:
                opened.engine.index(waiting_question=first)
                answers.append([opened.build(asked).text for asked in ("retry", "where is the socket", "backoff")])
                answers[-1] += [hit.id for hit in opened.search("retry of a socket with backoff").hits]
    assert answers[0] == answers[1]


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
    with pytest.raises(IndexNotReady):
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

    def noted(index: AutoIndex, asked: float, fresh: Fresh = None) -> bool:
        waiting.add(asked)
        return is_current(index, asked, fresh)

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
