"""The one JSON of a context: the same keys whatever was asked, and wherever it was asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import satchel
from satchel.models.context import Context, ContextKind
from satchel.service.question import ResearchOptions, ResearchQuestion
from tests.support.api import Api, files, served
from tests.support.documents import pdf_of_lines
from tests.support.servers import TOKEN
from tests.support.waiting import HANG_SECONDS

QUESTION = "how long to wait before the next attempt"
SOURCE_KEYS = {
    *("number", "id", "name", "type", "path", "line", "end_line", "page"),
    *("relevance", "section", "text", "elided"),
}
KINDS = list(ContextKind)
COMMANDS = {
    ContextKind.CHUNKS: ("build", QUESTION),
    ContextKind.WORKSPACE: ("build", QUESTION, "--type", "search"),
    ContextKind.RESEARCH: ("research", QUESTION, "-b", "400"),
}
BODIES: dict[ContextKind, dict[str, Any]] = {
    ContextKind.CHUNKS: {"query": QUESTION},
    ContextKind.WORKSPACE: {
        "query": QUESTION,
        "type": "chat",
        "conversation_history": [{"role": "user", "content": "We spoke about waiting."}],
    },
    ContextKind.RESEARCH: {"query": QUESTION, "token_budget": 400},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A folder of code, prose and a document."""
    folder = tmp_path_factory.mktemp("shape")
    root = files(folder / "root")
    (root / "waiting.pdf").write_bytes(pdf_of_lines([["The next attempt waits twice as long."], ["Then it gives up."]]))
    with served(root, folder / "index") as found:
        yield found


def context_of(api: Api, kind: ContextKind) -> Context:
    if kind is ContextKind.RESEARCH:
        return api.local_client.research(ResearchQuestion(query=QUESTION, token_budget=400))
    return (
        api.local_client.build(QUESTION, type="search")
        if kind is ContextKind.WORKSPACE
        else api.local_client.build(QUESTION)
    )


def printed(api: Api, kind: ContextKind) -> dict[str, Any]:
    arguments = [
        *COMMANDS[kind],
        str(api.engine.root),
        "--json",
        "-q",
        "--index-dir",
        str(api.engine.root.parent / "index"),
    ]
    command = [sys.executable, "-m", "satchel", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def check_shape(values: dict[str, Any], kind: ContextKind) -> None:
    """What holds for the JSON of every context."""
    assert values["kind"] == kind
    assert 0 < values["tokens"] <= values["budget"]
    assert values["sources"]
    assert all(set(source) == SOURCE_KEYS for source in values["sources"])
    assert [source["number"] for source in values["sources"]] == list(range(1, len(values["sources"]) + 1))
    names = {section["name"] for section in values["sections"]}
    assert all(set(section) == {"name", "title", "tokens"} for section in values["sections"])
    for source, (start, end) in zip(values["sources"], values["spans"], strict=True):
        assert source["text"].strip().split("\n")[0] in values["text"][start:end]
        assert source["section"] in names or not names
    assert {entry["number"] for entry in values["ledger"] if entry["number"]} == {*range(1, len(values["sources"]) + 1)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_same_keys_in_the_library_and_on_the_command_line(api: Api, kind: ContextKind) -> None:
    here, there = context_of(api, kind).to_dict(), printed(api, kind)
    for values in (here, there):
        check_shape(values, kind)
        assert set(values) == set(Context().to_dict())
        assert set(values["statistics"]) == set(Context().to_dict()["statistics"])
    assert there["text"] == here["text"]
    assert there["sources"] == json.loads(json.dumps(here["sources"]))


@pytest.mark.parametrize("kind", list(BODIES))
def test_every_kind_has_the_same_keys_over_http(api: Api, kind: ContextKind) -> None:
    route = "/v1/research" if kind is ContextKind.RESEARCH else "/v1/context"
    values = api.owner.post(route, json=BODIES[kind]).json()
    check_shape(values, kind)
    assert set(values) == set(Context().to_dict())
    assert set(values["statistics"]) == set(Context().to_dict()["statistics"])


def test_every_client_finds_the_same_pages(api: Api) -> None:
    options: ResearchOptions = {"num_results": 1, "by": "text", "token_budget": 400}
    here = api.local_client.research(QUESTION, **options)

    async def asked() -> Context:
        async with satchel.open_async(api.url, token=TOKEN) as client:
            return await client.research(QUESTION, **options)

    with satchel.open(api.url, token=TOKEN) as remote:
        there = remote.research(QUESTION, **options)
    assert there.text == here.text == asyncio.run(asked()).text
    assert len(there.sources) == len(here.sources) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_context_is_read_back_from_its_json(api: Api, kind: ContextKind) -> None:
    context = context_of(api, kind)
    values = json.loads(json.dumps(context.to_dict()))
    assert Context.from_dict(values).to_dict() == context.to_dict() == values
    assert Context.from_dict(values).citable_sources() == context.citable_sources()


def test_the_specifications_shape_of_chunks_is_s0s(api: Api) -> None:
    body = BODIES[ContextKind.CHUNKS]
    plain = api.owner.post("/v1/context", json=body).json()
    values = api.owner.post("/v1/context", params={"shape": "specification"}, json=body).json()
    assert (values["context"], values["estimated_tokens"]) == (plain["text"], plain["tokens"])
    assert values["chunks_included"] == len(values["sources"]) == len(plain["sources"])
    assert values["files_included"] == list(dict.fromkeys(source["path"] for source in plain["sources"]))
    assert [source["entity_id"] for source in values["sources"]] == [source["id"] for source in plain["sources"]]
    assert "kind" not in values


def test_the_specifications_shape_of_a_workspace_is_s4s(api: Api) -> None:
    body = BODIES[ContextKind.WORKSPACE]
    plain = api.owner.post("/v1/context", json=body).json()
    values = api.owner.post("/v1/context", params={"shape": "specification"}, json=body).json()
    assert set(values) == {"sections", "metadata", "serialized"}
    assert (values["serialized"], values["metadata"]["totalTokens"]) == (plain["text"], plain["tokens"])
    assert values["metadata"]["blocksIncluded"] == len(plain["sources"])
    assert [section["type"] for section in values["sections"]] == [section["name"] for section in plain["sections"]]
    items = {section["type"]: section["items"] for section in values["sections"]}
    assert [item["content"] for item in items.pop("history")] == ["user: We spoke about waiting."]
    blocks = [item["blockId"] for section in items.values() for item in section]
    assert blocks == [source["id"] for source in plain["sources"]]


def test_an_unknown_shape_is_refused(api: Api) -> None:
    answer = api.owner.post("/v1/context", params={"shape": "round"}, json=BODIES[ContextKind.CHUNKS])
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
