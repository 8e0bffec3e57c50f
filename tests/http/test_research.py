"""S3's research API: the ask route over real documents, with a model behind a real endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.http_client import Event, events
from satchel.research.builder import RESEARCH_SYSTEM_PROMPT
from tests.integrations.test_language_model import END, completion_of, said
from tests.support.api import Api, client, files, served
from tests.support.documents import pdf_of_lines
from tests.support.endpoint import Answer, Endpoint, serving
from tests.support.servers import TOKEN
from tests.support.waiting import wait_for

PAGES = [
    ["The harbour of Elsinore was dredged in 1901.", "The work took eleven months."],
    ["Cranes came from Hamburg.", "They lifted four tons each."],
    ["The lighthouse keeper was called Holm."],
]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with serving(lambda _: completion_of("It was dredged in 1901 [1].")) as server:
        monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL", "openai:tiny")
        monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL_URL", server.url)
        monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL_KEY", "a-key")
        yield server


@pytest.fixture
def api(tmp_path: Path, endpoint: Endpoint) -> Iterator[Api]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "harbour.pdf").write_bytes(pdf_of_lines(PAGES))
    for i in range(12):
        (root / f"other{i}.pdf").write_bytes(pdf_of_lines([[f"The harbour of town {i} was dredged, too."]]))
    with served(root, tmp_path / "index") as found:
        yield found


@pytest.mark.requirement("S3.api.ask-route", "S3.api.ask-model-call", "S3.api.ask-response")
def test_a_question_is_answered_from_the_pages_with_its_sources(api: Api, endpoint: Endpoint) -> None:
    answer = api.owner.post("/api/research/ask", json={"query": "When was the harbour of Elsinore dredged?"})
    told = answer.json()
    assert answer.status_code == 200, told
    assert told["answer"] == "It was dredged in 1901 [1]."
    assert told["truncated"] is False
    assert len(told["sources"]) == 10
    assert (told["sources"][0]["filename"], told["sources"][0]["page"]) == ("harbour.pdf", 1)
    assert told["report"]["ok"]
    (asked,) = endpoint.bodies
    system, user = (message["content"] for message in asked["messages"])
    assert RESEARCH_SYSTEM_PROMPT in system
    assert "[Document 1: harbour.pdf, Page 1]" in user
    assert user.rstrip().endswith("When was the harbour of Elsinore dredged?")
    from satchel import counter_for

    context = user[user.index("[Document 1:") :].partition("\n</context-")[0]
    assert told["total_tokens"] == counter_for("gpt-4o").count(context)


def test_fewer_results_and_a_smaller_budget(api: Api) -> None:
    asked = {"query": "When was the harbour dredged?", "num_results": 3}
    assert len(api.owner.post("/api/research/ask", json=asked).json()["sources"]) == 3
    small = api.owner.post("/api/research/ask", json={**asked, "max_tokens": 60}).json()
    assert small["truncated"] is True
    assert small["total_tokens"] <= 60


def heard(api: Api, body: dict[str, object], **headers: str) -> list[Event]:
    with api.owner.stream("POST", "/api/research/ask", json=body, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(events(answer.iter_raw()))


def test_an_answer_can_be_heard_as_it_comes(api: Api, endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(parts=[*said("It was dredged", " in 1901 [1", "]."), *END])] * 2
    for told in (
        heard(api, {"query": "When was it dredged?", "stream": True}),
        heard(api, {"query": "When was it dredged?"}, Accept="text/event-stream"),
    ):
        assert [one.kind for one in told] == ["context", "piece", "piece", "piece", "done"]
        first, last = json.loads(told[0].data), json.loads(told[-1].data)
        assert first["sources"] == last["sources"]
        assert first["total_tokens"] == last["total_tokens"]
        pieces = "".join(json.loads(one.data)["text"] for one in told[1:-1])
        assert pieces == last["answer"] == "It was dredged in 1901 [1]."


def test_an_answer_that_breaks_off_is_a_problem(api: Api, endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(parts=said("It was"), breaks_off=True)]
    told = heard(api, {"query": "When was it dredged?", "stream": True})
    assert [one.kind for one in told] == ["context", "piece", "problem"]
    assert json.loads(told[-1].data)["code"] == "language-model-unavailable"


def test_a_client_that_goes_lets_the_model_go(api: Api, endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(parts=said("It was"), falls_silent=True)]
    with (
        client(api.url, TOKEN) as impatient,
        impatient.stream("POST", "/api/research/ask", json={"query": "When was it dredged?", "stream": True}) as answer,
    ):
        for event in events(answer.iter_raw()):
            if event.kind == "piece":
                break
    assert api.owner.get("/v1/status").status_code == 200


def test_without_a_model_or_with_one_that_fails_it_is_a_problem(
    api: Api, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.answers += [Answer(status=401, body=b"{}")]
    refused = api.owner.post("/api/research/ask", json={"query": "When was it dredged?"})
    assert (refused.status_code, refused.json()["code"]) == (503, "language-model-unavailable")
    assert "a-key" not in refused.text
    monkeypatch.delenv("SATCHEL_LANGUAGE_MODEL")
    with served(api.engine.root, tmp_path / "index2") as without:
        none = without.owner.post("/api/research/ask", json={"query": "When was it dredged?"})
        assert (none.status_code, none.json()["code"]) == (503, "language-model-unavailable")
        assert "SATCHEL_LANGUAGE_MODEL" in none.json()["detail"]


def test_nothing_to_answer_from_is_said_without_asking(tmp_path: Path, endpoint: Endpoint) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    with served(root, tmp_path / "index") as api:
        told = api.owner.post("/api/research/ask", json={"query": "When was it dredged?"}).json()
        assert told["sources"] == []
        assert "No results" in told["answer"]
        assert heard(api, {"query": "When was it dredged?", "stream": True})[-1].kind == "done"
    assert not endpoint.bodies


def test_a_user_is_answered_from_what_they_may_read(api: Api, endpoint: Endpoint) -> None:
    from satchel import Grant

    api.owner.post("/v1/index", json={})
    with api.engine.workspace.edit() as edit:
        edit.add(Grant(block="harbour.pdf", principal="group:staff", is_path=True))
    told = api.ann.post("/api/research/ask", json={"query": "When was the harbour dredged?"}).json()
    assert {source["filename"] for source in told["sources"]} == {"harbour.pdf"}
    assert api.eve.post("/api/research/ask", json={"query": "When was the harbour dredged?"}).json()["sources"] == []
    assert api.eve.post("/api/research/ask", json={"query": "x", "user": "ann"}).status_code == 403
    assert len(endpoint.bodies) == 1
    wait_for(lambda: api.owner.get("/health").status_code == 200, "the server's health")


def test_an_error_in_a_stream_is_a_problem_without_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL", "openai:tiny")
    monkeypatch.setenv("SATCHEL_LANGUAGE_MODEL_URL", "http://127.0.0.1:9/v1")
    with served(files(tmp_path / "root"), tmp_path / "index") as api:

        def broken(*_: object) -> None:
            raise RuntimeError("a secret of the index")

        monkeypatch.setattr("satchel.http.routes.questions.streamed_from", broken)
        body = {"query": "how long to wait before the next attempt", "stream": True}
        with api.owner.stream("POST", "/api/research/ask", json=body) as answer:
            heard = list(events(answer.iter_raw()))
    assert heard[-1].kind == "problem"
    assert json.loads(heard[-1].data)["code"] == "internal-error"
    assert "secret" not in capfd.readouterr().err


def test_any_question_is_answered_and_checked(api: Api, endpoint: Endpoint) -> None:
    told = api.owner.post("/v1/ask", json={"query": "When was the harbour of Elsinore dredged?"}).json()
    assert told["answer"] == "It was dredged in 1901 [1]."
    assert told["sources"][0]["path"] == "harbour.pdf"
    assert [claim["verdict"] for claim in told["report"]["claims"]] == ["supported"]
    endpoint.answers += [Answer(parts=[*said("It was dredged", " in 1902 [1", "]."), *END])]
    body = {"query": "When was the harbour of Elsinore dredged?"}
    with api.owner.stream("POST", "/v1/ask", json=body, headers={"Accept": "text/event-stream"}) as answer:
        heard_events = list(events(answer.iter_raw()))
    assert [one.kind for one in heard_events] == ["context", "piece", "piece", "piece", "done"]
    (claim,) = json.loads(heard_events[-1].data)["report"]["claims"]
    assert (claim["verdict"], claim["reason"]) == ("contradicted", "1902: the source says 1901")
    before = len(endpoint.bodies)
    told = api.owner.post("/v1/ask", json={"query": "zebra quux", "include": ["nothing/**"]}).json()
    assert told["report"] is None
    assert len(endpoint.bodies) == before
