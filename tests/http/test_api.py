"""The HTTP API as its users meet it: a real server, real requests."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from satchel.http_client import events
from satchel.models.block import Block
from satchel.models.search import Filters
from satchel.service.open_roots import open_roots
from tests.support.api import Api, files, served, serving
from tests.support.documents import pdf_of_lines
from tests.support.servers import until
from tests.support.waiting import HANG_SECONDS
from tests.support.workspaces import fill

QUESTION = "how long to wait before the next attempt"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with served(files(tmp_path / "root"), tmp_path / "index") as found:
        yield found


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Api]:
    """A workspace of several users: Ann's group reads the launch plan, Eve reads nothing."""
    root = tmp_path / "root"
    root.mkdir()
    with served(root, tmp_path / "index") as found:
        fill(found.engine)
        with found.engine.workspace.edit() as edit:
            edit.grant("launch", "group:staff")
        yield found


# -- contexts


def test_skipped_files_that_may_matter_are_in_the_notes_of_those_who_may_read_them(api: Api) -> None:
    with (api.engine.root / "customer_orders.sql").open("wb") as sparse:
        sparse.truncate(60_000_000)
    body = {"query": "customer orders"}
    note = "1 file is not indexed and may matter: customer_orders.sql (60 MB, over the limit of 50 MB)"
    for route in ("/v1/context", "/v1/search"):
        (owners,) = api.owner.post(route, json=body).json()["notes"]
        assert owners == f"{note}; `satchel index --list-skipped` lists all"
    with api.engine.workspace.edit() as edit:
        edit.grant("/", "group:staff")
        edit.grant("retry.py", "user:eve")
    assert api.ann.post("/v1/context", json=body).json()["notes"] == [note]
    assert api.eve.post("/v1/context", json=body).json()["notes"] == []


def test_a_question_gives_what_the_library_gives(api: Api) -> None:
    told = api.owner.post("/v1/context", json={"query": QUESTION, "token_budget": 400}).json()
    built = api.local_client.build(QUESTION, token_budget=400)
    want = json.loads(json.dumps(built.to_dict()))
    assert told["statistics"].pop("build_ms") > 0
    del want["statistics"]["build_ms"]
    assert told == want
    assert told["kind"] == "chunks"
    assert told["tokens"] <= 400


def test_the_text_alone_can_be_had(api: Api) -> None:
    body = {"query": QUESTION, "token_budget": 400}
    answer = api.owner.post("/v1/context", json=body, headers={"Accept": "text/plain"})
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == api.local_client.build(QUESTION, token_budget=400).text
    assert int(answer.headers["x-tokens"]) <= 400


def test_the_specifications_spelling_is_understood(api: Api) -> None:
    told = api.owner.post("/v1/context", json={"query": QUESTION, "tokenBudget": 300, "includeSources": True}).json()
    assert told["budget"] == 300
    assert "Sources" in told["text"]
    both = api.owner.post("/v1/context", json={"query": QUESTION, "tokenBudget": 300, "token_budget": 200})
    assert both.status_code == 422


def test_a_request_gives_a_payload(shared: Api) -> None:
    body: dict[str, Any] = {
        "query": "what is left for the hall?",
        "user": {"id": "ann", "groups": ["staff"]},
        "type": "chat",
        "focus": {"pageId": "launch"},
        "conversationHistory": [{"role": "user", "content": "We spoke about the hall."}],
        "tokenBudget": {"total": 2000, "focus": 900},
        "hints": {"prioritizeTypes": ["todo"], "maxDepth": 3},
        "systemPrompt": "Be brief.",
    }
    told = shared.owner.post("/v1/context", json=body).json()
    assert told["kind"] == "workspace"
    assert 0 < told["tokens"] <= told["budget"] == 2000
    assert {section["name"] for section in told["sections"]} >= {"focus", "semantic", "history", "system"}
    assert [source["number"] for source in told["sources"]] == list(range(1, len(told["sources"]) + 1))
    assert told["sources"][0]["section"] == "focus"
    assert {source["section"] for source in told["sources"]} <= {section["name"] for section in told["sections"]}
    assert "We spoke about the hall." in told["text"]
    assert len(told["spans"]) == len(told["sources"]), "messages of the conversation have no number to cite"


def test_chunks_are_assembled(api: Api) -> None:
    chunks = [
        {"content": "def f():\n    return 1", "file_path": "a.py", "start_line": 1, "end_line": 2, "relevance": 0.9},
        {"content": "nothing to do with it", "file_path": "b.py", "relevance": 0.2},
    ]
    body = {"chunks": chunks, "query": "f", "options": {"max_tokens": 200, "include_citations": True}}
    told = api.owner.post("/v1/context", json=body).json()
    assert [source["path"] for source in told["sources"]] == ["a.py"]
    assert [entry["fate"] for entry in told["ledger"]] == ["kept", "dropped"]
    wrong = api.owner.post("/v1/context", json={"chunks": [{"text": 3}]})
    assert wrong.status_code == 422
    assert wrong.json()["code"] == "invalid-hit"
    assert "chunks[0]" in wrong.json()["detail"]


def test_a_search_an_expansion_and_a_check(api: Api) -> None:
    found = api.owner.post("/v1/search", json={"query": QUESTION, "top_k": 3}).json()
    assert found["hits"][0]["path"] == "retry.py"
    whole = api.owner.post("/v1/expand", json={"id": found["hits"][0]["id"], "lines": 1}).json()
    assert whole["text"]
    assert not whole["stale"]
    context = api.owner.post("/v1/context", json={"query": QUESTION}).json()
    report = api.owner.post("/v1/verify", json={"answer": "It doubles [1]. No [77].", "context": context}).json()
    assert not report["ok"]
    assert report["cited"] == [1]
    given = {"answer": "It doubles [1].", "sources": [{"number": 1, "text": "doubles"}]}
    assert api.owner.post("/v1/verify", json=given).json()["ok"]
    assert api.owner.post("/v1/verify", json={"answer": "x"}).status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/context", {"query": ""}, 422, "invalid-request"),
        ("/v1/context", {"query": "  "}, 422, "invalid-option"),
        ("/v1/context", {}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "token_budget": 0}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "token_budget": "100"}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "token_budget": True}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "format": "html"}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "bogus": 1}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "model": "/etc/passwd"}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "model": "../../tokenizer.json"}, 422, "invalid-request"),
        ("/v1/context", {"query": QUESTION, "model": "no-such-model"}, 422, "unknown-tokenizer"),
        ("/v1/context", {"chunks": [], "options": {"tokenizer": "/etc/tokenizer.json"}}, 422, "invalid-request"),
        ("/v1/context", {"chunks": [], "options": {"workspace_path": "/etc"}}, 422, "invalid-request"),
        ("/v1/context", {"query": "x", "focus": "nowhere"}, 404, "unknown-block"),
        ("/v1/context", {"query": "x", "since": "yesterday"}, 422, "invalid-option"),
        ("/v1/context", [], 422, "invalid-request"),
        ("/v1/expand", {"id": "../../etc/passwd"}, 404, "unknown-block"),
        ("/v1/expand", {"id": "/etc/passwd"}, 404, "unknown-block"),
        ("/v1/expand", {"id": "retry.py\u0000"}, 404, "unknown-block"),
        ("/v1/expand", {"id": "retry.py", "lines": -1}, 422, "invalid-request"),
        ("/v1/search", {"query": "x", "top_k": 10**9}, 422, "invalid-request"),
        ("/v1/search", {"query": "x", "include": "*.py"}, 422, "invalid-request"),
        ("/v1/verify", {"answer": "x", "context": {"sources": 3}}, 422, "invalid-option"),
    ],
    ids=lambda value: ascii(value)[:60],
)  # fmt: skip
def test_bad_input_is_a_problem_with_a_code(api: Api, path: str, body: Any, status: int, code: str) -> None:
    answer = api.owner.post(path, json=body)
    told = answer.json()
    assert (answer.status_code, told["code"]) == (status, code), told
    assert answer.headers["content-type"] == "application/problem+json"
    assert told["status"] == status
    assert told["detail"]
    assert told["title"]
    assert told["request_id"] == answer.headers["x-request-id"]


def test_a_budget_that_cannot_be_met_is_a_problem(shared: Api) -> None:
    answer = shared.owner.post("/v1/context", json={"query": "x " * 300, "user": "ann", "token_budget": 50})
    assert answer.status_code == 422
    assert answer.json()["code"] == "budget-cannot-be-met"


def test_what_there_is_not_is_a_problem_too(api: Api) -> None:
    assert api.owner.get("/v1/nothing").json()["code"] == "not-found"
    assert api.owner.get("/v1/context").json()["code"] == "method-not-allowed"


# -- who may read what


def test_nobody_sees_what_they_may_not_read(shared: Api) -> None:
    question = {"query": "book the hall for the launch event"}
    seen = shared.ann.post("/v1/context", json=question).json()
    hidden = shared.eve.post("/v1/context", json=question).json()
    assert "Book the hall" in seen["text"]
    assert "book" in {entry["id"] for entry in seen["ledger"]}
    assert not hidden["sources"]
    assert not hidden["ledger"]
    assert shared.ann.post("/v1/search", json=question).json()["hits"]
    assert not shared.eve.post("/v1/search", json=question).json()["hits"]
    for path, body in (("/v1/expand", {"id": "book"}), ("/v1/activity", {"block": "book"})):
        there = shared.eve.post(path, json=body)
        nowhere = shared.eve.post(path, json=dict.fromkeys(body, "no-such-block"))
        same = [{**one.json(), "request_id": "", "block_id": ""} for one in (there, nowhere)]
        assert there.status_code == 404
        assert same[0] == same[1]
    assert shared.ann.get("/v1/blocks/book").json()["block"]["parent"] == "tasks"
    assert shared.eve.get("/v1/blocks/book").status_code == 404


def test_a_user_asks_for_themselves_alone(shared: Api) -> None:
    for path, body in (
        ("/v1/context", {"query": "x", "user": "ann"}),
        ("/v1/search", {"query": "x", "user": {"id": "eve", "groups": ["staff"]}}),
        ("/v1/expand", {"id": "book", "user": "ann"}),
        ("/v1/activity", {"block": "book", "user": "ann"}),
    ):
        answer = shared.eve.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed"), path
    assert shared.eve.get("/v1/blocks/book", params={"user": "ann"}).status_code == 403
    assert shared.eve.get("/v1/documents", params={"user": "ann"}).status_code == 403
    assert shared.eve.get("/v1/pages", params={"document": "a", "page": 1, "user": "ann"}).status_code == 403
    said = shared.owner.post("/v1/context", json={"query": "book the hall"})
    assert (said.status_code, said.json()["field"]) == (422, "user")


def test_a_workspace_is_its_owners_alone_until_something_is_granted(api: Api) -> None:
    api.owner.post("/v1/index", json={})
    for answer in (
        api.ann.post("/v1/context", json={"query": QUESTION}),
        api.ann.post("/v1/search", json={"query": QUESTION}),
        api.ann.post("/v1/expand", json={"id": "retry.py"}),
        api.ann.get("/v1/blocks/retry.py"),
        api.ann.get("/v1/documents"),
        api.ann.get("/v1/pages", params={"document": "a.pdf", "page": 1}),
        api.ann.post("/v1/activity", json={"block": "retry.py"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed"), answer.request.url
    assert api.owner.post("/v1/search", json={"query": QUESTION, "user": "ann"}).json()["hits"]
    opened = {"records": [{"record": "policy", "default": "allow"}]}
    assert api.owner.post("/v1/blocks", json=opened).status_code == 200
    assert api.ann.post("/v1/search", json={"query": QUESTION}).json()["hits"]


def test_a_field_that_is_not_known_is_named(api: Api) -> None:
    for path, body in (("/v1/search", {"question": "x"}), ("/v1/context", {"query": "x", "question": "x"})):
        told = api.owner.post(path, json=body).json()
        assert any(one["field"] == "body.question" for one in told["errors"]), told


def test_only_owners_change_things(shared: Api) -> None:
    edit = {"records": [{"record": "grant", "block": "launch", "principal": "user:eve"}]}
    for answer in (
        shared.eve.post("/v1/blocks", json=edit),
        shared.eve.delete("/v1/blocks/launch"),
        shared.eve.post("/v1/index", json={}),
        shared.eve.put("/v1/documents/a.txt", content=b"x"),
        shared.eve.delete("/v1/documents/a.txt"),
        shared.eve.get("/metrics"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed"), answer.request.url
    assert shared.eve.get("/v1/status").json()["files"] is None
    assert shared.owner.get("/v1/status").json()["blocks"]


# -- blocks


def test_a_workspace_is_written_shared_and_read(api: Api) -> None:
    records: list[dict[str, Any]] = [
        {"record": "block", "id": "plan", "type": "page", "title": "Harbour plan"},
        {"record": "block", "id": "quay", "type": "todo", "parent": "plan", "content": "Dredge the quay"},
        {"record": "block", "id": "crane", "type": "todo", "parent": "plan", "content": "Grease the crane"},
        {"record": "link", "source": "quay", "target": "crane", "kind": "mentions"},
        {"record": "group", "name": "staff", "members": ["zoe"]},
        {"record": "grant", "block": "plan", "principal": "group:staff"},
        {"record": "activity", "block": "quay", "actor": "zoe", "action": "edit"},
    ]
    told = api.owner.post("/v1/blocks", json={"records": records})
    assert told.status_code == 200, told.json()
    assert told.json()["done"] == len(records)
    read = api.ann.get("/v1/blocks/quay").json()
    assert read["block"]["content"] == "Dredge the quay"
    assert [step["id"] for step in read["trail"]] == ["plan"]
    assert {one["id"] for one in api.ann.get("/v1/blocks/plan").json()["children"]} == {"quay", "crane"}
    changes: list[dict[str, Any]] = [
        {"record": "move", "id": "crane", "parent": "quay"},
        {"record": "unlink", "source": "quay"},
        {"record": "inherits", "block": "crane", "inherits": False},
        {"record": "delete", "id": "quay"},
    ]
    assert api.owner.post("/v1/blocks", json={"records": changes[:3]}).status_code == 200
    assert api.ann.get("/v1/blocks/crane").status_code == 404
    assert api.ann.post("/v1/activity", json={"block": "quay", "action": "view"}).status_code == 200
    assert api.owner.post("/v1/blocks", json={"records": changes[3:]}).status_code == 200
    assert api.ann.get("/v1/blocks/quay").status_code == 404
    revoked = {"records": [{"record": "revoke", "block": "plan", "principal": "group:staff"}]}
    assert api.owner.post("/v1/blocks", json=revoked).status_code == 200
    assert api.ann.get("/v1/blocks/plan").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"record": "block", "id": "x"},
        {"record": "block", "id": "x", "type": "no good"},
        {"record": "block", "id": "x", "type": "page", "colour": "blue"},
        {"record": "move", "id": "nowhere", "parent": None},
        {"record": "move", "id": "quay"},
        {"record": "delete", "id": "nowhere"},
        {"record": "delete"},
        {"record": "grant", "block": "quay", "principal": "team:zoe"},
        {"record": "inherits", "block": "quay", "inherits": "yes"},
        {"record": "unlink", "source": "quay", "kind": "likes"},
        {"record": "delete", "id": "quay", "really": True},
        {"record": "nonsense"},
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_a_commit_is_whole_or_not_at_all(api: Api, wrong: dict[str, Any]) -> None:
    good = {"record": "block", "id": "quay", "type": "todo", "content": "Dredge the quay"}
    answer = api.owner.post("/v1/blocks", json={"records": [good, wrong]})
    assert answer.status_code in (404, 422), answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert api.owner.get("/v1/blocks/quay").status_code == 404


def test_a_block_with_an_odd_id_is_read_and_removed(api: Api) -> None:
    odd = "a/b?c#d%2e../é\u202e\U0001f600"
    with api.engine.workspace.edit() as edit:
        edit.put(Block(id=odd, type="page", title="Odd"))
    from urllib.parse import quote

    assert api.owner.get(f"/v1/blocks/{quote(odd, safe='')}").json()["block"]["id"] == odd
    assert api.owner.delete(f"/v1/blocks/{quote(odd, safe='')}").status_code == 200
    assert api.engine.store.block(odd, Filters()) is None


# -- documents


def test_a_document_is_sent_found_seen_and_removed(api: Api) -> None:
    data = pdf_of_lines([["The harbour of Elsinore was dredged in 1901."], ["Cranes came from Hamburg."]])
    told = api.owner.put("/v1/documents/reports/harbour.pdf", content=data)
    assert told.status_code == 200, told.json()
    assert told.json() == {"path": "uploads/reports/harbour.pdf", "bytes": len(data), "indexed": True, "note": None}
    found = api.owner.post("/v1/search", json={"query": "when was the harbour dredged"}).json()
    assert (found["hits"][0]["path"], found["hits"][0]["page"]) == ("uploads/reports/harbour.pdf", 1)
    assert api.owner.get("/v1/documents").json()["uploads"] == ["uploads/reports/harbour.pdf"]
    (listed,) = api.owner.get("/v1/documents").json()["documents"]
    for name in (listed["path"], listed["doc_id"]):
        picture = api.owner.get("/v1/pages", params={"document": name, "page": 2, "thumbnail": True})
        assert picture.headers["content-type"] == "image/jpeg", picture.json()
        assert picture.content.startswith(b"\xff\xd8")
    assert api.owner.get("/v1/pages", params={"document": listed["path"], "page": 3}).status_code == 404
    assert api.owner.delete("/v1/documents/reports/harbour.pdf").json()["dropped"] == 1
    assert api.owner.delete("/v1/documents/reports/harbour.pdf").status_code == 404
    assert not api.owner.get("/v1/documents").json()["documents"]


def test_documents_have_readers(shared: Api) -> None:
    data = pdf_of_lines([["The harbour of Elsinore was dredged in 1901."]])
    sent = shared.owner.put("/v1/documents/h.pdf", content=data, params={"readers": ["group:staff"]})
    assert sent.json()["indexed"]
    question = {"query": "when was the harbour dredged"}
    assert shared.ann.post("/v1/search", json=question).json()["hits"]
    assert not shared.eve.post("/v1/search", json=question).json()["hits"]
    (listed,) = shared.ann.get("/v1/documents").json()["documents"]
    assert not shared.eve.get("/v1/documents").json()["documents"]
    for name in (listed["path"], listed["doc_id"]):
        asked = {"document": name, "page": 1}
        assert shared.ann.get("/v1/pages", params=asked).status_code == 200
        assert shared.eve.get("/v1/pages", params=asked).status_code == 404


def test_the_first_grant_is_not_made_by_an_upload(api: Api) -> None:
    answer = api.owner.put("/v1/documents/a.txt", content=b"x", params={"readers": ["group:staff"]})
    assert answer.status_code == 422
    assert api.engine.store.default_access() == "owner"


@pytest.mark.parametrize("name", ["..%2Fx.py", "%2e%2e/x.py", ".env", "a/%2e%2e/%2e%2e/x", "a%00b", "a%5Cb", "/etc/x"])
def test_documents_stay_where_they_belong(api: Api, name: str) -> None:
    answer = api.owner.put(f"/v1/documents/{name}", content=b"x")
    assert answer.status_code in (400, 404, 422), answer.json()
    there = {one.name for one in api.engine.root.rglob("*")}
    assert there <= {"retry.py", "client.py", "guide.md", "uploads"}


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "a" * 64, "zz", "/etc/passwd", "retry.py", "\u202e"])
def test_no_picture_is_of_something_else(api: Api, name: str) -> None:
    answer = api.owner.get("/v1/pages", params={"document": name, "page": 1})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-page")


# -- the index


def test_an_index_run_tells_how_far_it_is(api: Api) -> None:
    with api.owner.stream("POST", "/v1/index", json={}, headers={"Accept": "text/event-stream"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        heard = list(events(answer.iter_raw()))
    kinds = [one.kind for one in heard]
    assert kinds[0] == "progress"
    assert kinds[-1] == "done"
    assert json.loads(heard[-1].data)["read"] == 3
    assert api.owner.post("/v1/index", json={}).json()["read"] == 0
    assert api.owner.get("/v1/index").json()["running"] is False
    assert api.owner.get("/v1/status").json()["files"] == 3


def test_a_run_that_fails_is_a_problem(api: Api) -> None:
    api.local_client.auto_index.busy_wait_s = 0.1
    with api.engine.store.lock():
        answer = api.owner.post("/v1/index", json={})
        assert (answer.status_code, answer.json()["code"]) == (503, "index-busy")
        with api.owner.stream("POST", "/v1/index", json={}, headers={"Accept": "text/event-stream"}) as stream:
            heard = list(events(stream.iter_raw()))
    assert heard[-1].kind == "problem"
    assert json.loads(heard[-1].data)["code"] == "index-busy"


def test_whoever_stops_listening_does_not_stop_the_run(tmp_path: Path) -> None:
    root = files(tmp_path / "root")
    for i in range(300):
        (root / f"m{i}.py").write_text(f"def harbour_{i}():\n    return {i}\n" * 10)
    with served(root, tmp_path / "index") as api:
        with api.owner.stream("POST", "/v1/index", json={}, headers={"Accept": "text/event-stream"}) as answer:
            next(answer.iter_raw())
        assert api.owner.post("/v1/index", json={}).json()["read"] == 0
        assert api.owner.get("/v1/status").json()["files"] == 303


# -- the service


def test_health_and_metrics(api: Api) -> None:
    api.owner.post("/v1/search", json={"query": QUESTION})
    assert api.owner.get("/health", headers={"Authorization": ""}).json()["status"] == "ok"
    for path in ("/health", "/"):
        head = api.owner.head(path)
        assert (head.status_code, head.content) == (200, b"")
    told = api.owner.get("/metrics").text
    assert 'route="/v1/search"' in told
    assert QUESTION not in told


def test_the_description_has_examples_that_work(api: Api) -> None:
    described = api.owner.get("/v1/openapi.json").json()
    routes = set(described["paths"])
    assert routes == {
        "/v1/context", "/v1/ask", "/v1/search", "/v1/find", "/v1/expand", "/v1/verify", "/v1/blocks",
        "/v1/blocks/{block_id}", "/v1/activity", "/v1/documents", "/v1/documents/{path}", "/v1/pages", "/v1/status",
        "/v1/contents", "/v1/index", "/health",
        "/metrics",
        "/api/research/ask", "/v1/research",
    }  # fmt: skip
    parts = described["components"]["schemas"]
    assert parts["Problem"]["properties"]["code"]
    fill(api.engine)
    with api.engine.workspace.edit() as edit:
        edit.grant("launch", "user:ann")
    where = {"SearchBody": "/v1/search", "AssembleBody": "/v1/context", "VerifyBody": "/v1/verify"}
    where["ResearchBody"] = "/v1/research"
    for name, path in {**where, "EditBody": "/v1/blocks"}.items():
        for example in parts[name]["examples"]:
            more = {"user": "ann"} if name in ("SearchBody", "ResearchBody") else {}
            assert api.owner.post(path, json={**example, **more}).status_code == 200, name
    assert len(parts["ContextBody"]["examples"]) == 2
    assert api.owner.post("/v1/context", json=parts["ContextBody"]["examples"][1]).status_code == 200


def test_the_pages_files_are_kept_by_the_browser(api: Api) -> None:
    first = api.owner.get("/assets/main.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = api.owner.get("/assets/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for name in ("__init__.py", "nothing.js", "..%2fapp.py", "%2e%2e/app.py"):
        assert api.owner.get(f"/assets/{name}").status_code in (400, 404)


def test_an_id_that_was_made_visible_can_be_expanded(api: Api) -> None:
    (api.engine.root / "ha\u202erbour.py").write_text("def tides():\n    return 12\n")
    (told,) = api.owner.post("/v1/context", json={"query": "tides", "include": ["ha*"]}).json()["sources"]
    assert "⟦U+202E⟧" in told["id"]
    assert "return 12" in api.owner.post("/v1/expand", json={"id": told["id"]}).json()["text"]
    whole = api.owner.post("/v1/expand", json={"id": "ha⟦U+202E⟧rbour.py:1-1"})
    assert whole.json()["text"] == "def tides():"
    assert api.owner.post("/v1/expand", json={"id": "ha⟦U+202E⟧rbour"}).status_code == 404


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


def test_a_document_name_that_no_file_system_takes_is_refused(api: Api) -> None:
    name = "é" * 140
    assert api.owner.put(f"/v1/documents/{name}", content=b"x").status_code == 422
    assert api.owner.delete(f"/v1/documents/{name}").status_code == 422


@pytest.mark.parametrize("name", ["a%0Ab", "a%0A", "%0Aa", "a%0D%0Ab"])
def test_a_line_break_in_an_address_is_answered_by_its_route(api: Api, name: str) -> None:
    for answer in (api.owner.put(f"/v1/documents/{name}", content=b"x"), api.owner.delete(f"/v1/documents/{name}")):
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-input")
    for answer in (api.owner.get(f"/v1/blocks/{name}"), api.owner.delete(f"/v1/blocks/{name}")):
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown-block")


def test_only_the_owner_is_told_how_many_files_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    "body",
    [
        "{" + ",".join(f'"a{i}":0' for i in range(2_000)) + "}",
        "[" + ",".join(["{" + ",".join(f'"{i}":0' for i in range(900)) + "}"] * 200) + "]",
        "[" + "[]," * 310_000 + "[]]",
    ],
    ids=["one object", "many objects", "many lists"],
)
def test_bodies_with_too_many_values_are_refused(api: Api, body: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = api.owner.post("/v1/search", content=body.encode(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-json")


def test_bytes_that_are_not_utf8_are_shown(api: Api) -> None:
    (api.engine.root / "old.py").write_bytes(b"def caf\xe9():\n    return 1\n")
    told = api.owner.post("/v1/expand", json={"id": "old.py"}).json()
    assert told["text"].startswith("def caf⟦0xE9⟧()")


def test_a_login_link_with_many_fields_is_refused(api: Api) -> None:
    answer = api.owner.get("/login?" + "&".join(f"a{i}=1" for i in range(12)))
    assert answer.status_code == 403
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_several_folders_are_served_as_one_and_blocks_belong_to_one(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "tea.py").write_text("def boil(degrees):\n    return degrees >= 100\n")
    roots = [files(tmp_path / "root"), library]
    with open_roots(roots, index_dir=str(tmp_path / "index")) as opened, serving(opened) as (_, owner, ann, _eve):
        found = owner.post("/v1/search", json={"query": "boil degrees"}).json()
        assert found["hits"][0]["path"] == "library/tea.py"
        assert owner.post("/v1/expand", json={"id": found["hits"][0]["id"]}).status_code == 200
        assert owner.post("/v1/expand", json={"id": "tea.py"}).json()["code"] == "unknown-block"
        assert owner.get("/v1/status").json()["files"] == 4
        assert owner.get("/v1/index").json()["running"] is False
        assert owner.post("/v1/index").json()["found"] == 4
        assert ann.post("/v1/search", json={"query": "boil"}).json()["code"] == "not-allowed"
        delete = {"records": [{"record": "delete", "id": "x"}]}
        refused = [
            owner.post("/v1/blocks", json=delete),
            owner.get("/v1/documents"),
            owner.post("/v1/research", json={"query": "tea"}),
            owner.post("/v1/context", json={"query": "tea", "focus": "library/tea.py:1"}),
        ]
        for answer in refused:
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-option")
            assert "ask that folder alone" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"token_budget": "x"}, {"body.token_budget"}),
        ({"token_budget": {"total": "x"}}, {"body.token_budget", "body.token_budget.total"}),
        ({"model": 5}, {"body.model"}),
        ({"fresh": []}, {"body.fresh"}),
        ({"expand": {}}, {"body.expand"}),
    ],
)
def test_a_problem_names_the_field_and_nothing_of_the_validator(
    api: Api, body: dict[str, Any], fields: set[str]
) -> None:
    answer = api.owner.post("/v1/context", json={"query": "retry", **body})
    assert answer.status_code == 422
    assert {problem["field"] for problem in answer.json()["errors"]} == fields
    assert not re.search(r"function|0x|functools|Body\b|<", answer.text)


def test_limits_of_numbers_have_the_names_of_json_schema(api: Api) -> None:
    text = api.owner.get("/v1/openapi.json").text
    assert '"maximum"' in text
    assert not re.search(r'"(?:ge|le|gt|lt)":', text)
