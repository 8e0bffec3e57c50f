"""The MCP server over HTTP: a real server, the SDK's own client, and several users on one workspace."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from satchel.mcp.transports import McpApp
from satchel.models.request import User
from satchel.service.client import OWNER, Caller
from satchel.service.local_client import LocalSatchel, open_local
from tests.support.mcp_talk import ERAS, Talk, talking, texts_of
from tests.support.oracle import true_count

CHINESE = "".join(f"第{i}行：工资的数目不为人知。\n" for i in range(1500))
CALLERS = {
    "ann": Caller(user=User(id="ann")),
    "bob": Caller(user=User(id="bob")),
    "key": OWNER,
    "ann-as-owner": Caller(user=User(id="ann"), is_owner=True),
}


@pytest.fixture(scope="module")
def local_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSatchel]:
    root = tmp_path_factory.mktemp("http") / "firm"
    files = {"pay/ann.md": "The salary of Ann is 5000.", "pay/bob.md": "The salary of Bob is 4000."}
    files |= {"all/handbook.md": "A salary is paid monthly.", "all/chinese.md": CHINESE}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    with open_local(root, index_dir=str(root.parent / "index"), patience=20) as opened:
        opened.index()
        with opened.engine.workspace.edit() as edit:
            edit.grant("all", "*")
            edit.grant("pay/ann.md", "ann")
            edit.grant("pay/bob.md", "bob")
        yield opened


@pytest.fixture(scope="module")
def url(local_client: LocalSatchel) -> Iterator[str]:
    with served(local_client) as found:
        yield found


@pytest.fixture(scope="module", params=ERAS)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def served(local_client: LocalSatchel, **more: int) -> Iterator[str]:
    """A server with a guard that knows some tokens, as ours does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        app = McpApp(local_client, hosts=[f"127.0.0.1:{port}"], origins=[f"http://127.0.0.1:{port}"], **more)

        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                await live(receive, send)
                return
            token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            if token in CALLERS:
                scope.setdefault("state", {})["caller"] = CALLERS[token]
            await app(scope, receive, send)

        async def live(receive: Any, send: Any) -> None:
            await receive()
            async with app.lifespan():
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})

        server = uvicorn.Server(uvicorn.Config(guarded, log_level="error", timeout_graceful_shutdown=5))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@contextmanager
def talking_as(who: str, url: str, mode: str) -> Iterator[Talk]:
    with talking(_transport(who, url), mode) as talk:
        yield talk


@asynccontextmanager
async def _transport(who: str, url: str) -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {who}"}, timeout=60) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def test_everybody_sees_what_they_may(url: str, mode: str, local_client: LocalSatchel) -> None:
    with talking_as("ann", url, mode) as ann, talking_as("bob", url, mode) as bob:
        for talk, own, other in ((ann, "ann", "bob"), (bob, "bob", "ann"), (ann, "ann", "bob")):
            told = talk.told("build_context", question="what is the salary", token_budget=2000)
            same = local_client.seen_by(CALLERS[own]).build("what is the salary", token_budget=2000)
            assert told["text"] == same.text
            assert f"pay/{own}.md" in told["text"]
            assert f"pay/{other}.md" not in json.dumps(told)
            paths = {hit["path"] for hit in talk.told("search", question="salary", top_k=50)["hits"]}
            assert f"pay/{own}.md" in paths
            assert f"pay/{other}.md" not in paths
            assert "salary" in talk.told("expand", id=f"pay/{own}.md")["text"]
            refused = talk.refused("expand", id=f"pay/{other}.md")
            assert "nothing that you may read" in refused
            assert refused.replace(f"pay/{other}.md", "x") == talk.refused("expand", id="x")
            with pytest.raises(MCPError, match="Resource not found"):
                talk.read(f"satchel://piece/pay/{other}.md")
            assert talk.read(f"satchel://piece/pay/{own}.md").contents
            assert talk.portal.call(talk.client.list_resources).resources == []


def test_only_an_owner_learns_how_much_there_is(url: str, mode: str, local_client: LocalSatchel) -> None:
    with talking_as("ann", url, mode) as ann, talking_as("key", url, mode) as key:
        theirs, ours = ann.told("status"), key.told("status")
        assert "files" not in theirs
        assert theirs["workspace"] == "firm"
        assert ours["files"] == 4
        assert ours["workspace"] == str(local_client.engine.root)
        # The workspace has several users: its key alone reads nothing.
        assert "give the user" in key.refused("search", question="salary")
    with talking_as("ann-as-owner", url, mode) as owner:
        assert "pay/bob.md" not in {hit["path"] for hit in owner.told("search", question="salary")["hits"]}


def test_a_cursor_of_another_user_gives_nothing_of_theirs(local_client: LocalSatchel) -> None:
    asked: dict[str, Any] = {"question": "salary 工资", "top_k": 50}
    with (
        served(local_client, max_result_chars=20_000) as url,
        talking_as("ann", url, ERAS[0]) as ann,
        talking_as("bob", url, ERAS[0]) as bob,
    ):
        first = ann.told("search", **asked)
        taken = bob.told("search", **asked, cursor=first["next_cursor"])
        assert taken["restarted"] is True
        assert taken["hits"] == bob.told("search", **asked)["hits"]
        assert "pay/ann.md" not in {hit["path"] for page in bob.pages("search", **asked) for hit in page["hits"]}


def test_pages_fit_as_they_are_sent(url: str, local_client: LocalSatchel) -> None:
    whole = local_client.seen_by(CALLERS["ann"]).expand("all/chinese.md").text
    versions = {
        "2026-07-28": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
        "2025-11-25": {},
    }
    for version, meta in versions.items():
        joined, cursor = "", None
        while True:
            arguments = {"id": "all/chinese.md"} | ({"cursor": cursor} if cursor else {})
            params = {"name": "expand", "arguments": arguments, "_meta": meta}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            done = post(url, body, {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "expand"})
            assert done.status_code == 200, done.text
            assert done.headers["cache-control"] == "no-store"
            sent = done.text
            if done.headers["content-type"].startswith("text/event-stream"):
                sent = next(line for line in sent.splitlines() if line.startswith("data: {")).removeprefix("data: ")
            assert len(sent) < 48_000
            assert true_count(sent, "o200k_base") < 24_000
            told = json.loads(sent)["result"]["structuredContent"]
            joined += told["text"]
            cursor = told.get("next_cursor")
            if not cursor:
                break
        assert joined == whole


def test_who_is_not_known_is_not_let_in(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert post(url, body, {"Authorization": "Bearer nobody"}).status_code == 401
    assert post(url, body, {"Authorization": ""}).status_code == 401


def test_hosts_origins_and_methods_are_checked(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for version in ("2026-07-28", "2025-06-18"):
        headers = {"MCP-Protocol-Version": version}
        assert post(url, body, {**headers, "Host": "evil.example"}).status_code == 421
        assert post(url, body, {**headers, "Origin": "http://evil.example"}).status_code == 403
        assert post(url, body, {**headers, "Content-Type": "text/plain"}).status_code == 400
    assert post(url, {**body, "method": "x" * 300_000}).status_code == 413
    with httpx2.Client() as http:
        for method in ("GET", "DELETE", "PUT"):
            assert http.request(method, url, headers={"Authorization": "Bearer ann"}).status_code == 405


def test_progress_comes_while_a_first_index_run_is_waited_for(tmp_path: Path, mode: str) -> None:
    (tmp_path / "work").mkdir()
    for i in range(300):
        (tmp_path / "work" / f"part_{i}.py").write_text(f"def step_{i}() -> int:\n    return {i}\n" * 20)
    told: list[tuple[float, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    with (
        open_local(tmp_path / "work", index_dir=str(tmp_path / "index"), patience=60) as local_client,
        served(local_client) as url,
        talking_as("key", url, mode) as talk,
    ):
        call = partial(talk.client.call_tool, "search", {"question": "step 7"}, progress_callback=report)
        done = talk.portal.call(call)
        assert isinstance(done, CallToolResult)
        assert "step_" in texts_of(done)[0]
    assert told
    assert [one for one, _ in told] == sorted({one for one, _ in told})
    assert "of 300 files" in str(told[-1][1])


def test_a_client_that_leaves_in_the_middle_harms_nobody(url: str) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"question": "salary"}},
    }
    data = json.dumps(body).encode()
    host = url.removeprefix("http://").partition("/")[0]
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer ann\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    name, _, port = host.partition(":")
    for cut in (len(data), len(data) // 2, 0):
        with socket.create_connection((name, int(port))) as one:
            one.sendall(head.encode() + data[:cut])
    assert post(url, body, {"MCP-Protocol-Version": "2025-11-25"}).status_code == 200


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
    usual = {
        "Authorization": "Bearer ann",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    with httpx2.Client(timeout=60) as http:
        return http.post(url, content=json.dumps(body).encode(), headers={**usual, **(headers or {})})
