"""`satchel.open("http://…")`: the same questions and the same answers, over a wire."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

import satchel
from satchel import ContextHints, Focus, Question, Satchel, TokenBudget, User
from satchel.models.request import TimeRange
from satchel.service.auto_index import IndexState
from tests.support.api import ANN_TOKEN, EVE_TOKEN, Api
from tests.support.servers import TOKEN, answer, guarding
from tests.support.workspaces import fill

QUESTION = "how long to wait before the next attempt"


@pytest.fixture
def far(api: Api) -> Iterator[Satchel]:
    with satchel.open(api.url, token=TOKEN) as found:
        yield found


def test_a_server_answers_as_the_folder_does(api: Api, far: Satchel) -> None:
    near = api.local_client
    told = {"token_budget": 500, "format": "xml", "include_sources": True, "exclude": ("guide.md",)}
    here, there = near.build(QUESTION, **told), far.build(QUESTION, **told)  # type: ignore[arg-type]
    assert there.text == here.text
    assert there.sources == here.sources
    assert there.ledger == here.ledger
    assert there.to_dict().keys() == here.to_dict().keys()
    assert (there.kind, there.notes, there.spans) == (here.kind, here.notes, here.spans)
    found = far.search(QUESTION, top_k=2)
    assert found == replace(near.search(QUESTION, top_k=2), cached=False)
    assert far.expand(found.hits[0].id, lines=1) == near.expand(found.hits[0].id, lines=1)
    assert far.verify("As it says [1].", there) == near.verify("As it says [1].", here)
    assert far.status() == near.status()


def test_everything_that_can_be_said_gets_there(api: Api, far: Satchel) -> None:
    fill(api.engine)
    asked = Question(
        query="book the hall",
        user=User(id="ann", pinned=("launch",), preferred_types=("todo",)),
        type="chat",
        focus=Focus(page_id="launch"),
        token_budget=TokenBudget(total=1500, focus=700),
        hints=ContextHints(
            prioritize_types=("todo",),
            time_range=TimeRange(start="2026-01-01T00:00:00+00:00"),  # type: ignore[arg-type]
            include_blocks=("goal",),
        ),
        conversation_history=(satchel.ConversationMessage(role="user", content="We spoke of the hall."),),
        truncation="keep_start",
        system_prompt="Be brief.",
    )
    here, there = api.local_client.build(asked), far.build(asked)
    assert there.text == here.text
    assert there.to_dict()["sources"] == here.to_dict()["sources"]
    assert there.to_dict()["sections"] == here.to_dict()["sections"]
    assert there.to_dict()["spans"] == here.to_dict()["spans"]


def test_progress_comes_over_the_wire(far: Satchel) -> None:
    seen: list[IndexState] = []
    report = far.index(seen.append)
    assert report.read == 3
    assert seen[0].running
    assert far.index().read == 0
    assert far.search(QUESTION).hits


def test_errors_are_what_they_are_in_the_library(far: Satchel) -> None:
    with pytest.raises(satchel.errors.UnknownBlock, match="nowhere"):
        far.expand("nowhere")
    with pytest.raises(satchel.errors.UnknownTokenizer):
        far.build(QUESTION, model="no-such-model")
    with pytest.raises(satchel.errors.InvalidOption):
        far.build(QUESTION, format="html")
    with pytest.raises(satchel.errors.InvalidOption, match="does not apply to the context of a workspace"):
        far.build(QUESTION, user="ann", type="chat", include=("*.py",))
    with pytest.raises(satchel.errors.LanguageModelUnavailable):
        far.ask(QUESTION)


def test_a_token_says_who_asks(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(api.engine)
    with api.engine.workspace.edit() as edit:
        edit.grant("launch", "group:staff")
    monkeypatch.setenv("SATCHEL_TOKEN", ANN_TOKEN)
    with satchel.open(api.url) as ann, satchel.open(api.url, token=EVE_TOKEN) as eve:
        assert ann.search("book the hall").hits
        assert not eve.search("book the hall").hits
        with pytest.raises(satchel.errors.NotAllowed):
            eve.search("book the hall", user=User(id="ann"))
        with pytest.raises(satchel.errors.NotAllowed):
            eve.index()
    with satchel.open(api.url, token=TOKEN, user=User(id="ann", groups=("staff",))) as for_ann:
        assert for_ann.search("book the hall").hits
        assert for_ann.expand("book").text
    with (
        satchel.open(api.url, token="satchel_wrong-wrong-wrong") as nobody,
        pytest.raises(satchel.errors.ServerUnavailable, match="wrong-token"),
    ):
        nobody.status()


def test_threads_share_it_and_it_comes_back_after_the_server_closed_the_connection(api: Api, far: Satchel) -> None:
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(far.build(QUESTION).text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(texts)) == 1
    assert len(texts) == 8
    far.status()
    for connection in list(api.running.server.server_state.connections):
        connection.transport.close()
    assert far.status().files == 3


def test_async_asks_a_server_too(api: Api) -> None:
    async def ask() -> str:
        async with satchel.open_async(api.url, token=TOKEN) as far:
            return (await far.build(QUESTION)).text

    assert asyncio.run(ask()) == api.local_client.build(QUESTION).text


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[1]", b'{"kind": "chunks"}', b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_satchel_server_is_not_believed(body: bytes) -> None:
    async def other(scope: object, receive: object, send: object) -> None:
        if scope["type"] == "http":  # type: ignore[index]
            await answer(send, body)  # type: ignore[arg-type]

    with guarding(other) as running, satchel.open(running.url, token=TOKEN) as far:
        with pytest.raises(satchel.errors.ServerUnavailable):
            far.build(QUESTION)
        with pytest.raises(satchel.errors.ServerUnavailable):
            far.status()


def test_falsy_values_reach_the_server(api: Api) -> None:
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
