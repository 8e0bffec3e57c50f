"""The client of a workspace: questions, who asks, and answers over a wire, as every surface uses them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

import satchel
from satchel import Block, ContextHints, Question, User
from satchel.errors import InvalidOption, NotAllowed
from satchel.models.context import Context
from satchel.models.search import Expansion
from satchel.service.client import (
    OWNER,
    Caller,
    record_from_dict,
    search_from_dict,
    search_to_dict,
)
from satchel.service.local_client import LocalSatchel, client_of, open_local
from satchel.service.question import QuestionOptions
from tests.support.threads import entered_elsewhere
from tests.support.workspaces import engine_in, fill

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


def test_a_user_is_told_a_generation_that_does_not_count_edits_of_what_they_may_not_read(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        fill(engine)
        with engine.workspace.edit() as edit:
            edit.grant("launch", "user:ann")
        opened = client_of(engine, satchel.Settings())
        ann = opened.seen_by(Caller(user=User(id="ann")))
        before, all_before = ann.status().generation, opened.status().generation
        with engine.workspace.edit() as edit:
            edit.put(Block(id="unseen", type="page", title="Not for Ann"))
        assert ann.status().generation == ann.search("book the hall").generation == before
        assert opened.status().generation == all_before + 1


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
