"""The front door: questions, answers, index runs and uploads, as every surface uses them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

import satchel
from satchel import ContextHints, Question, User
from satchel.errors import InvalidOption, NotAllowed
from satchel.models.context import Context
from satchel.models.files import _CLOCK_TICK_NS
from satchel.models.search import Expansion
from satchel.service.auto_index import IndexState
from satchel.service.client import (
    OWNER,
    Caller,
    record_from_dict,
    search_from_dict,
    search_to_dict,
)
from satchel.service.local_client import LocalSatchel, client_of, open_local
from satchel.service.question import QuestionOptions
from satchel.service.uploads import Upload, checked_name, remove
from tests.test_engine import CLIENT, GUIDE, RETRY
from tests.threads import entered_elsewhere
from tests.waiting import wait_for
from tests.workspaces import engine_in, fill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    for name, text in (("retry.py", RETRY), ("client.py", CLIENT), ("guide.md", GUIDE)):
        (root / name).write_text(text)
    return root


@pytest.fixture
def local_client(folder: Path, tmp_path: Path) -> Iterator[LocalSatchel]:
    with open_local(folder, index_dir=str(tmp_path / "index")) as opened:
        yield opened


# -- questions


def test_what_can_be_said_by_name_is_what_a_question_has() -> None:
    assert set(QuestionOptions.__annotations__) == {one.name for one in fields(Question)} - {"query"}


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"query": "  "}, "query"),
        ({"query": 3}, "query"),
        ({"token_budget": 0}, "token_budget"),
        ({"token_budget": "many"}, "token_budget"),
        ({"top_k": 0}, "top_k"),
        ({"format": "html"}, "format"),
        ({"truncation": "middle"}, "truncation"),
        ({"min_relevance": 1.5}, "min_relevance"),
        ({"min_relevance": "high"}, "min_relevance"),
        ({"include": "*.py"}, "include"),
        ({"expand": "some"}, "expand"),
        ({"user": 3}, "user"),
        ({"user": ""}, "user.id"),
        ({"expand": True}, "expand"),
        ({"expand": -1}, "expand"),
        ({"expand": 10**9}, "expand"),
    ],
    ids=str,
)
def test_a_question_that_cannot_be_right_says_what_is_wrong(told: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidOption) as error:
        Question(**{"query": "where", **told})  # type: ignore[arg-type]
    assert error.value.field == field


def test_a_word_that_no_question_knows_is_refused(local_client: LocalSatchel) -> None:
    with pytest.raises(InvalidOption, match="no such option"):
        local_client.build("where", tokens=3)  # type: ignore[call-arg]


def test_filters_are_refused_where_a_workspace_is_asked(local_client: LocalSatchel) -> None:
    with pytest.raises(InvalidOption, match="does not apply to the context of a workspace"):
        local_client.build("where", user=User(id="ann"), type="chat", include=("*.py",))


def test_a_user_may_filter_files(local_client: LocalSatchel) -> None:
    found = local_client.build("how long to wait before the next attempt", user="ann", include=("retry.py",))
    assert isinstance(found, satchel.ContextBuildResult)
    assert {source.path for source in found.sources} == {"retry.py"}
    assert isinstance(local_client.build("how long to wait", user="ann"), satchel.ContextPayload)


def test_what_is_said_with_a_question_wins_over_the_settings(folder: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    with open_local(folder, index_dir=index, token_budget=300, format="xml", exclude=("guide.md",)) as opened:
        set_once = opened.build("how long to wait before the next attempt")
        assert set_once.text.startswith("<")
        assert set_once.tokens <= 300
        assert "guide.md" not in {source.path for source in set_once.sources}
        said = opened.build("how long to wait before the next attempt", format="json", token_budget=200)
        assert json.loads(said.text)
        assert said.tokens <= 200


def test_a_question_may_change_how_a_workspace_is_searched(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        fill(engine)
        opened = client_of(engine, satchel.Settings())
        many = opened.build("the hall for the launch event", min_relevance=0.0)
        none = opened.build("the hall for the launch event", min_relevance=1.0)
    assert isinstance(many, satchel.ContextPayload)
    assert isinstance(none, satchel.ContextPayload)
    found, lost = many.section("semantic"), none.section("semantic")
    assert found is not None
    assert found.items
    assert lost is not None
    assert not lost.items


# -- who asks


def test_only_an_owner_asks_for_others() -> None:
    ann = Caller(user=User(id="ann", groups=("staff",)))
    assert OWNER.asking(User(id="bob")) == User(id="bob")
    assert ann.asking(None) == ann.user
    with pytest.raises(NotAllowed):
        ann.asking(User(id="bob"))
    with pytest.raises(NotAllowed):
        ann.asking(User(id="ann", groups=("board",)))
    asked = ann.asking(User(id="ann", pinned=("launch",)))
    assert asked is not None
    assert asked.groups == ("staff",)
    assert asked.pinned == ("launch",)
    with pytest.raises(NotAllowed):
        ann.must_be_owner("index")


def test_a_caller_is_somebody() -> None:
    with pytest.raises(InvalidOption):
        Caller()


def test_each_caller_sees_their_own(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        fill(engine)
        with engine.workspace.edit() as edit:
            edit.grant("launch", "user:ann")
        opened = client_of(engine, satchel.Settings())
        ann, eve = (opened.seen_by(Caller(user=User(id=name))) for name in ("ann", "eve"))
        assert "hall" in ann.build("book the hall").text.partition("User Query")[0]
        assert not eve.build("book the hall").sources
        assert ann.search("book the hall").hits
        assert not eve.search("book the hall").hits
        assert ann.expand("book").text
        with pytest.raises(satchel.errors.UnknownBlock):
            eve.expand("book")
        with pytest.raises(InvalidOption, match="give the user"):
            opened.build("book the hall")
        with pytest.raises(NotAllowed):
            ann.index()
        (tmp_path / "root" / "new.py").write_text("x = 1\n")
        opened.auto_index.busy_wait_s = 0.1
        with entered_elsewhere(engine.store.lock):
            opened.search("book the hall", user="ann")
            assert "process" in opened.status().state
            assert "process" not in ann.status().state
        assert ann.status().blocks is None
        assert opened.status().blocks


# -- the index


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


# -- results over a wire


@pytest.mark.parametrize("form", ["markdown", "plain", "xml", "json"])
def test_a_result_survives_the_wire(local_client: LocalSatchel, form: str) -> None:
    built = local_client.build("how long to wait", format=form, token_budget=400, include_sources=True)
    back = Context.from_dict(json.loads(json.dumps(built.to_dict())))
    assert back.to_dict() == built.to_dict()
    assert satchel.verify("As it says [1] and [99].", back) == satchel.verify("As it says [1] and [99].", built)


@pytest.mark.parametrize("form", ["markdown", "plain", "xml", "json"])
def test_a_payload_survives_the_wire_and_says_where_its_sources_stand(tmp_path: Path, form: str) -> None:
    with engine_in(tmp_path) as engine:
        fill(engine)
        opened = client_of(engine, satchel.Settings())
        told = ContextHints(include_blocks=("goal",))
        built = opened.build("book the hall", focus="book", hints=told, system_prompt="Be brief.", format=form)
        short = opened.build("book the hall", focus="launch", token_budget=320, format=form)
    for one in (built, short):
        assert isinstance(one, satchel.ContextPayload)
        back = Context.from_dict(json.loads(json.dumps(one.to_dict())))
        assert back.to_dict() == one.to_dict()
        for (start, end), source in zip(one.spans, one.sources, strict=True):
            assert source.text.split("\n")[0].strip()[:10] in one.text[start:end]
        assert sorted(one.spans) == list(one.spans)
    assert [source.number for source in built.sources] == list(range(1, len(built.sources) + 1))


def test_hits_and_expansions_survive_the_wire(local_client: LocalSatchel) -> None:
    found = local_client.search("backoff delay")
    assert search_from_dict(json.loads(json.dumps(search_to_dict(found)))) == replace(found, cached=False)
    whole = local_client.expand(found.hits[0].id, lines=2)
    assert record_from_dict(Expansion, json.loads(json.dumps(asdict(whole)))) == whole


# -- open


def test_open_gives_a_workspace_to_ask(folder: Path, tmp_path: Path) -> None:
    with satchel.open(folder, index_dir=str(tmp_path / "index")) as opened:
        context = opened.build("how long to wait before the next attempt", token_budget=500)
        assert "def delay" in context.text
        assert context.tokens <= 500
        assert opened.verify("It doubles [1].", context).cited == (1,)
        assert opened.status().files == 3


def test_open_async_is_the_same_for_those_who_wait(folder: Path, tmp_path: Path) -> None:
    async def ask() -> tuple[str, str, int]:
        async with satchel.open_async(folder, index_dir=str(tmp_path / "index")) as opened:
            context = await opened.build("how long to wait", token_budget=500)
            hits = (await opened.search("how long to wait")).hits
            text = (await opened.expand(hits[0].id)).text
            report = await opened.verify("It doubles [1].", context)
            assert report.cited == (1,)
            assert (await opened.status()).files == 3
            return context.text, text, (await opened.index()).read

    text, whole, read = asyncio.run(ask())
    with satchel.open(folder, index_dir=str(tmp_path / "index")) as opened:
        assert opened.build("how long to wait", token_budget=500).text == text
    assert whole
    assert read == 0


def test_open_says_what_cannot_be(folder: Path) -> None:
    with pytest.raises(satchel.errors.WorkspaceMissing):
        satchel.open(folder / "nowhere")
    with pytest.raises(InvalidOption, match="needs no token"):
        satchel.open(folder, token="x" * 20)
    with pytest.raises(InvalidOption, match="are settings of the server"):
        satchel.open("http://127.0.0.1:1", token_budget=3)
    with pytest.raises(InvalidOption, match="must not contain a user or a password") as caught:
        satchel.open("http://user:secret@127.0.0.1:1")
    assert "secret" not in str(caught.value)
    with pytest.raises(satchel.errors.ServerUnavailable, match="satchel serve"):
        satchel.open("http://127.0.0.1:1").status()


def test_asking_without_a_language_model_says_how_to_set_one(local_client: LocalSatchel) -> None:
    with pytest.raises(satchel.errors.LanguageModelUnavailable, match="SATCHEL_LANGUAGE_MODEL"):
        local_client.ask("what is a backoff?")


# -- uploads


@pytest.mark.parametrize(
    "name",
    ["../a.pdf", "a/../b.pdf", "/etc/x", "a//b", ".env", "a/.git/x", "", "a\0b", "a\\b", "con", "COM1.txt", "a ", "a.",
     "x" * 200, "a/" * 9 + "b", "a\nb", "\u202ea.pdf", "-rf"],
    ids=ascii,
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(satchel.errors.InvalidInput):
        checked_name(name)


def test_an_upload_is_whole_or_not_there(tmp_path: Path) -> None:
    with Upload(tmp_path, "reports/größe 2026.pdf") as upload:
        upload.write(b"abc")
        upload.write(b"def")
        upload.keep()
    place = tmp_path / "uploads/reports/größe 2026.pdf"
    assert place.read_bytes() == b"abcdef"
    with Upload(tmp_path, "reports/größe 2026.pdf") as upload:
        upload.write(b"half")
    assert place.read_bytes() == b"abcdef"
    assert os.listdir(place.parent) == ["größe 2026.pdf"]
    assert remove(tmp_path, "reports/größe 2026.pdf")
    assert not place.exists()
    assert not remove(tmp_path, "reports/größe 2026.pdf")
    assert not remove(tmp_path, "nowhere/a.pdf")


def test_an_upload_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.pdf").write_bytes(b"kept")
    root = tmp_path / "root"
    (root / "uploads").mkdir(parents=True)
    (root / "uploads/there").symlink_to(outside)
    (root / "uploads/a.pdf").symlink_to(outside / "a.pdf")
    for name in ("there/a.pdf", "a.pdf", "there/new.pdf"):
        with pytest.raises(satchel.errors.InvalidInput):
            Upload(root, name)
        assert not remove(root, name)
    assert (outside / "a.pdf").read_bytes() == b"kept"
    assert os.listdir(outside) == ["a.pdf"]
