"""The server itself: connections that are slow, many or broken, and its beginning and end."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from satchel.errors import InvalidOption, WorkspaceMissing
from satchel.http import server as http_server
from satchel.http.guard.observability import RequestLog
from satchel.http.guard.request_checks import HttpLimits
from satchel.http.server import GuardedConnection, Server, bind
from tests.support.servers import (
    BEARER,
    SMALL,
    TOKEN,
    Process,
    Running,
    Seen,
    connect,
    demo,
    drip,
    guarding,
    head_of,
    in_a_process,
    parsed,
    raw,
    read_all,
    running,
    running_on,
)
from tests.support.waiting import HANG_SECONDS, wait_for


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with guarding(demo) as found:
        yield found


@pytest.fixture(scope="module")
def impatient() -> Iterator[Running]:
    with guarding(demo, limits=replace(SMALL, header_seconds=0.2)) as found:
        yield found


def set_limits(server: Running, **limits: Any) -> None:
    """Change what the connections of a running server are held to."""
    held: Any = server.server.config.http_protocol_class
    held.limits = replace(held.limits, **limits)


class FakeTransport(asyncio.Transport):
    """A connection whose client reads what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.written = b""
        self.aborted = self.closed = False

    def get_write_buffer_size(self) -> int:
        return self.held

    def is_closing(self) -> bool:
        return self.aborted or self.closed

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True

    def write(self, data: Any) -> None:
        self.written += data

    def write_eof(self) -> None:
        pass


@contextmanager
def connection(limits: HttpLimits) -> Iterator[tuple[GuardedConnection, FakeTransport]]:
    """A connection without a socket, whose time is what the test says."""
    loop = asyncio.new_event_loop()
    made = http_server.connection_class(limits, lambda _status, _code: None)
    protocol, transport = made(uvicorn.Config(demo), uvicorn.server.ServerState(), {}, loop), FakeTransport()
    protocol.connection_made(transport)
    try:
        yield protocol, transport
    finally:
        loop.close()


def closes(client: socket.socket) -> bytes:
    """What a client gets before its connection ends; a reset counts as an end."""
    try:
        return read_all(client)
    except ConnectionResetError:
        return b""


# -- what is no request


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            id="both-lengths",
        ),
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            400,
            id="two-lengths",
        ),
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5, 6\r\n\r\nhello!", 400, id="two-lengths-in-one"
        ),
        pytest.param(b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n", 400, id="negative-length"),
        pytest.param(b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: +5\r\n\r\nhello", 400, id="signed-length"),
        pytest.param(b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0x5\r\n\r\nhello", 400, id="hex-length"),
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", 400, id="endless-length"
        ),
        pytest.param(b"POST /x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, id="coding"),
        pytest.param(b"POST /x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n", 501, id="odd-coding"),
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding : chunked\r\n\r\n", 400, id="space-before-colon"
        ),
        pytest.param(
            b"POST /x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            501,
            id="coding-twice",
        ),
        pytest.param(b"GET /x HTTP/1.1\r\nHost: {host}\r\nX: a\x00b\r\n\r\n", 400, id="nul-in-header"),
        pytest.param(b"GET /x HTTP/1.1\r\nHost: {host}\r\nX: a\rb\r\n\r\n", 400, id="bare-cr"),
        pytest.param(b"GET /x y HTTP/1.1\r\nHost: {host}\r\n\r\n", 400, id="space-in-target"),
        pytest.param(b"GET /\xc3\xa9 HTTP/1.1\r\nHost: {host}\r\n\r\n", 400, id="raw-utf8-target"),
        pytest.param(b"GET /x\r\n\r\n", 400, id="http-0.9"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, id="tls"),
        pytest.param(b"\xff" * 100_000, None, id="noise"),
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(
    server: Running, request_bytes: bytes, status: int | None
) -> None:
    answer = raw(server.port, request_bytes.replace(b"{host}", server.host.encode()))
    found, headers, body = answer
    assert found == status if status else 400 <= found < 502
    assert headers["connection"] == "close"
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-content-type-options"] == "nosniff"
    assert json.loads(body)["status"] == found
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_a_length_beside_chunks_does_not_smuggle_a_request(server: Running) -> None:
    asked = head_of(
        server.port,
        "POST",
        "/x",
        Content_Type="application/json",
        Content_Length="4",
        Transfer_Encoding="chunked",
        Connection="keep-alive",
    )
    smuggled = head_of(server.port, "GET", "/smuggled")
    with connect(server.port) as client:
        client.sendall(asked + b"2\r\n{}\r\n0\r\n\r\n" + smuggled)
        got = closes(client)
    assert parsed(got)[0] == 400
    assert got.count(b"HTTP/1.1 ") == 1


def test_broken_chunks_end_the_request(server: Running) -> None:
    asked = head_of(server.port, "POST", "/x", Content_Type="application/json", Transfer_Encoding="chunked")
    with connect(server.port) as client:
        client.sendall(asked + b"2\r\n{}\r\nzz\r\n")
        status, _, body = parsed(closes(client))
    assert status == 400
    assert json.loads(body)["code"] == "bad-request"
    with connect(server.port) as client:
        client.sendall(asked.replace(b"/x", b"/v1/documents/a").replace(b"POST", b"PUT") + b"3\r\n{ }\r\n")
        wait_for(lambda: Seen.bytes_uploaded == 3, "the first chunk")
        client.sendall(b"zz\r\n")
        assert parsed(closes(client))[0] == 400


def test_requests_may_follow_each_other_without_waiting(server: Running) -> None:
    ask = head_of(server.port, path="/x", Connection="keep-alive")
    with connect(server.port) as client:
        client.sendall(ask * 20 + head_of(server.port, path="/x"))
        assert closes(client).count(b"HTTP/1.1 200 ") == 21


def test_an_upgrade_is_not_taken(server: Running) -> None:
    asked = head_of(
        server.port,
        path="/x",
        Connection="Upgrade",
        Upgrade="websocket",
        Sec_WebSocket_Key="x",
        Sec_WebSocket_Version="13",
    )
    with connect(server.port) as client:
        client.sendall(asked)
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_addresses_that_a_proxy_would_tell_are_not_believed() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append((scope["client"][0], scope["scheme"]))
            await demo(scope, receive, send)

    with guarding(app) as server:
        told = {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https", "Forwarded": "for=10.0.0.1"}
        assert httpx.get(f"{server.url}/x", headers=BEARER | told).status_code == 200
    assert seen == [("127.0.0.1", "http")]


# -- slow clients


@pytest.mark.parametrize("beginning", [b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: "])
def test_a_client_that_does_not_finish_its_head_is_dropped(impatient: Running, beginning: bytes) -> None:
    with connect(impatient.port) as client:
        client.sendall(beginning)
        got = closes(client)
    assert not got if not beginning else parsed(got)[0] == 408


def test_a_client_that_drips_its_head_is_dropped(impatient: Running) -> None:
    with connect(impatient.port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert parsed(drip(client, b"x"))[0] == 408


def test_a_second_request_that_drips_is_dropped() -> None:
    with guarding(demo) as server, connect(server.port) as client:
        client.sendall(head_of(server.port, path="/x", Connection="keep-alive"))
        got = b""
        while not got.endswith(b'"path": "/x"}'):
            got += client.recv(10_000)
        client.sendall(b"GET ")
        set_limits(server, header_seconds=0.2)
        assert parsed(closes(client))[0] == 408


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\n"])
def test_a_head_has_its_time_and_no_more(beginning: bytes) -> None:
    with connection(HttpLimits(header_seconds=10)) as (protocol, transport):
        if beginning:
            protocol.data_received(beginning)
        began = protocol._waiting_since
        protocol.check(began + 9.9)
        assert not transport.closed
        assert transport.written == b""
        protocol.check(began + 10)
        assert (transport.closed, transport.written[:12]) == ((False, b"HTTP/1.1 408") if beginning else (True, b""))


def test_an_idle_connection_is_closed_quietly() -> None:
    with guarding(demo, limits=replace(SMALL, idle_seconds=1)) as server, connect(server.port) as client:
        client.sendall(head_of(server.port, path="/x", Connection="keep-alive"))
        assert closes(client).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("path", ["/large", "/pour"])
def test_a_client_that_does_not_read_is_cut_off(path: str) -> None:
    ended = Seen.streams_ended
    with guarding(demo, limits=replace(SMALL, stalled_seconds=0.2)) as server:
        with connect(server.port) as client:
            client.sendall(head_of(server.port, path=path))
            line = wait_for(
                lambda: next((one for one in server.lines if one.get("code") == "client-stalled"), {}),
                "the client to be cut off",
            )
            assert line["event"] == "refused"
            assert len(closes(client)) < 30_000_000
        wait_for(lambda: Seen.streams_ended == ended + (path == "/pour"), "the stream's end")
        wait_for(lambda: not server.server.server_state.connections, "the connection's end")


def test_a_client_that_reads_slowly_but_steadily_gets_all() -> None:
    limits = HttpLimits(stalled_seconds=10, download_rate=1_000, header_seconds=10_000)
    with connection(limits) as (protocol, transport):
        began = protocol._waiting_since
        transport.held = 1_000_000
        for second in range(500):
            protocol.check(began + second)
            transport.held -= 1_000
        assert not transport.aborted
        for second in range(500, 520):
            protocol.check(began + second)
            transport.held -= 900
        assert transport.aborted


def test_slow_clients_do_not_keep_others_waiting() -> None:
    # None of the slow ones is dropped before the others were answered: a server that waited for them would hang.
    with guarding(demo) as server, ExitStack() as stack:
        slow = [stack.enter_context(connect(server.port)) for _ in range(300)]
        for one in slow:
            one.sendall(b"POST /x HTTP/1.1\r\n")
        with httpx.Client(base_url=server.url, headers=BEARER) as client:
            assert {client.get("/x").status_code for _ in range(20)} == {200}
            assert len(server.server.server_state.connections) == 301
        set_limits(server, header_seconds=0.2)
        wait_for(lambda: not server.server.server_state.connections, "the slow clients' end")
        assert all(parsed(closes(one))[0] == 408 for one in slow)


# -- many clients


def test_when_there_is_no_room_the_longest_waiting_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_SETTLED_SECONDS", HANG_SECONDS)
    limits = replace(SMALL, connections=10)
    with guarding(demo, limits=limits) as server, ExitStack() as stack:
        waiting = [stack.enter_context(connect(server.port)) for _ in range(10)]
        wait_for(lambda: len(server.server.server_state.connections) == 10, "ten connections")
        sent_away = raw(server.port, head_of(server.port, path="/x"))
        assert sent_away[0] == 503
        assert json.loads(sent_away[2])["code"] == "server-busy"
        wait_for(lambda: len(server.server.server_state.connections) == 10, "the one sent away to be gone")
        monkeypatch.setattr(http_server, "_SETTLED_SECONDS", 0.0)
        assert raw(server.port, head_of(server.port, path="/x"))[0] == 200
        assert closes(waiting[0]) == b""
        waiting[1].sendall(head_of(server.port, path="/x"))
        assert parsed(closes(waiting[1]))[0] == 200


async def ask_at_once(port: int, count: int) -> list[bytes]:
    """The first line of each answer, or what happened instead."""
    started = asyncio.Event()

    async def one() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await started.wait()
            writer.write(head_of(port, path="/x"))
            return (await asyncio.wait_for(reader.read(), HANG_SECONDS)).partition(b"\r\n")[0]
        finally:
            writer.close()

    asked = [asyncio.create_task(one()) for _ in range(count)]
    await asyncio.sleep(0)
    started.set()
    return await asyncio.gather(*asked)


def test_a_thousand_clients_at_once_do_no_harm() -> None:
    with in_a_process(header_seconds=HANG_SECONDS, connections=900, linger_seconds=0.5) as process:
        asyncio.run(ask_at_once(process.port, 50))
        before = process.resident_kb()
        for _ in range(2):
            answers = asyncio.run(ask_at_once(process.port, 1_000))
            assert set(answers) <= {b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable", b""}
            assert answers.count(b"HTTP/1.1 200 OK") >= 800
        assert httpx.get(f"{process.url}/x", headers=BEARER).status_code == 200
        wait_for(lambda: open_sockets(process) <= 2, "the clients' connections to be gone")
        assert process.resident_kb() - before < 60_000


def open_sockets(process: Process) -> int:
    """How many connections the process has, besides the socket that listens."""
    from pathlib import Path

    found = 0
    for entry in Path(f"/proc/{process.popen.pid}/fd").iterdir():
        try:
            found += entry.readlink().name.startswith("socket:")
        except OSError:
            continue
    return found - 1


# -- beginning


def test_it_listens_on_this_machine_only() -> None:
    for host in ("0.0.0.0", "::", "10.1.2.3", "192.0.2.1"):
        with pytest.raises(InvalidOption, match="a loopback address"):
            bind(host)
    for host in ("127.0.0.1", "127.0.0.2", "localhost"):
        listener = bind(host)
        listener.socket.close()
        assert listener.host.startswith("127.")
    with pytest.raises(InvalidOption, match="cannot be resolved"):
        bind("no-such-name.invalid")
    for odd in ("", "a" * 300, "127.0.0.1\0x"):
        with pytest.raises(InvalidOption):
            bind(odd)


def test_with_keys_it_listens_where_it_is_told() -> None:
    listener = bind("0.0.0.0", 0, keys_are_given=True)
    listener.socket.close()
    assert listener.url == f"http://127.0.0.1:{listener.port}"
    assert listener.hosts == {f"127.0.0.1:{listener.port}", f"localhost:{listener.port}"}
    with pytest.raises(InvalidOption, match="cannot listen on this address"):
        bind("192.0.2.1", 0, keys_are_given=True)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_it_can_listen_at_the_newer_loopback() -> None:
    try:
        listener = bind("::1")
    except InvalidOption:
        pytest.skip("no IPv6 here")
    listener.socket.close()
    assert listener.url == f"http://[::1]:{listener.port}"
    assert f"http://[::1]:{listener.port}" in listener.origins


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidOption, match="is in use") as caught:
            bind("127.0.0.1", port)
        assert caught.value.field == "port"
        assert caught.value.value == port
    for wrong in (-1, 65_536):
        with pytest.raises(InvalidOption, match="from 0 to 65535"):
            bind("127.0.0.1", wrong)


def test_a_log_level_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOption, match="debug, info, warning, error"):
        RequestLog(level="loud")


def test_an_application_that_does_not_start_says_why() -> None:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        if app.title:
            raise WorkspaceMissing("root", "/nowhere", "is not a folder")
        yield

    with pytest.raises(WorkspaceMissing, match="not a folder"), running_on(lambda _: FastAPI(lifespan=lifespan)):
        pytest.fail("it started")


def test_an_application_lives_as_long_as_the_server() -> None:
    lived: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> Any:
        lived.append("began")
        yield
        lived.append("ended")

    with running(FastAPI(lifespan=lifespan)) as url:
        assert httpx.get(f"{url}/health").status_code == 404
        assert lived == ["began"]
    assert lived == ["began", "ended"]


def test_the_port_is_free_after_the_end() -> None:
    with running(demo) as url:
        port = int(url.rpartition(":")[2])
        assert httpx.get(f"{url}/x", headers=BEARER).status_code == 200
    listener = bind("127.0.0.1", port)
    listener.socket.close()


# -- end


def test_it_finishes_what_it_works_on_and_takes_no_more() -> None:
    Seen.released.clear()
    with guarding(demo, limits=replace(SMALL, stop_seconds=HANG_SECONDS)) as server, ThreadPoolExecutor() as pool:
        idle = connect(server.port)
        asked = pool.submit(httpx.get, f"{server.url}/wait", headers=BEARER)
        wait_for(lambda: "satchel_http_in_work 1.0" in server.metrics.render().decode(), "the request to be in work")
        server.server.stop()
        wait_for(lambda: refuses(server.port), "the server to take no more")
        assert not asked.done()
        Seen.released.set()
        answer = asked.result(HANG_SECONDS)
        assert (answer.status_code, answer.json()) == (200, "finished")
        with idle:
            assert closes(idle) == b""
    assert server.lines[-1]["event"] == "stop"
    assert server.lines[-1]["finished_all"] is True


def refuses(port: int) -> bool:
    try:
        connect(port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_streams_end_when_the_server_does() -> None:
    # It would wait for a request in work for longer than a test may take: a stream is not waited for.
    limits = replace(SMALL, stop_seconds=10 * HANG_SECONDS)
    with guarding(demo, limits=limits) as server, httpx.Client(base_url=server.url) as client:
        ended = Seen.streams_ended
        with client.stream("GET", "/stream", headers=BEARER) as answer:
            parts = answer.iter_raw()
            next(parts)
            server.server.stop()
            with pytest.raises(httpx.RemoteProtocolError):
                list(parts)
        wait_for(lambda: Seen.streams_ended == ended + 1, "the stream's end")
        wait_for(lambda: server.lines[-1]["event"] == "stop", "the server's end")


def test_work_that_does_not_end_is_left_behind() -> None:
    Seen.released.clear()
    limits = replace(SMALL, stop_seconds=0.3)
    try:
        with guarding(demo, limits=limits) as server, connect(server.port) as client:
            client.sendall(head_of(server.port, path="/thread"))
            wait_for(
                lambda: "satchel_http_in_work 1.0" in server.metrics.render().decode(), "the request to be in work"
            )
            server.server.stop()
            status, _, body = parsed(closes(client))
            assert status == 503
            assert json.loads(body)["code"] == "server-stopping"
            wait_for(lambda: server.lines[-1]["event"] == "stop", "the server's end")
            assert server.lines[-1]["finished_all"] is False
    finally:
        Seen.released.set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_well(number: int) -> None:
    with in_a_process(stop_seconds=HANG_SECONDS) as process:
        with connect(process.port) as idle, connect(process.port) as streaming:
            streaming.sendall(head_of(process.port, path="/stream"))
            assert streaming.recv(10_000)
            asked = connect(process.port)
            asked.sendall(head_of(process.port, path="/wait"))
            process.wait_for("/wait")
            process.interrupt(number)
            wait_for(lambda: refuses(process.port), "the server to take no more")
            process.release()
            with asked:
                assert parsed(closes(asked))[0] == 200
            assert closes(idle) == b""
        code, errors = process.ended()
        assert code == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    assert [lines[0]["event"], lines[-1]["event"]] == ["start", "stop"]
    assert "Traceback" not in errors


def test_a_second_signal_ends_it_at_once() -> None:
    # After the first it would wait for the request in work for longer than a test may take.
    with in_a_process(stop_seconds=10 * HANG_SECONDS) as process, connect(process.port) as client:
        client.sendall(head_of(process.port, path="/thread"))
        process.wait_for("/thread")
        process.interrupt()
        wait_for(lambda: refuses(process.port), "the server to take no more")
        assert process.popen.poll() is None
        process.interrupt()
        code, errors = process.ended()
        assert code == 130
    assert "Traceback" not in errors


def test_a_thread_that_hangs_does_not_keep_the_process() -> None:
    with in_a_process(stop_seconds=0.3) as process, connect(process.port) as client:
        client.sendall(head_of(process.port, path="/thread"))
        process.wait_for("/thread")
        process.interrupt(signal.SIGTERM)
        code, errors = process.ended()
        assert code == 0
    assert "Traceback" not in errors
    assert TOKEN not in errors


def test_a_server_can_be_stopped_before_it_was_asked_anything() -> None:
    listener = bind()
    stopped = Server(demo, listener, limits=SMALL, log=RequestLog(level="error"), ready=lambda _: stopped.stop())
    assert stopped.serve_until_stopped() is True
