"""Real servers on the loopback interface, in a thread or in a process of their own, and raw clients for them."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Event, Thread
from typing import Any, ClassVar

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from satchel.errors import InvalidOption
from satchel.http.guard.credentials import Keyring
from satchel.http.guard.middleware import Guard
from satchel.http.guard.observability import Metrics, RequestLog
from satchel.http.guard.request_checks import HttpLimits
from satchel.http.server import Listener, Server, bind
from satchel.service.client import OWNER
from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS, wait_for, wait_for_async

TOKEN = "satchel_a-token-for-tests-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SMALL = HttpLimits(
    body_bytes=10_000,
    upload_bytes=200_000,
    header_bytes=4_096,
    url_bytes=1_000,
    header_seconds=HANG_SECONDS,
    idle_seconds=HANG_SECONDS,
    body_seconds=HANG_SECONDS,
    upload_rate=100_000,
    stalled_seconds=HANG_SECONDS,
    request_seconds=HANG_SECONDS,
    stop_seconds=1,
    linger_seconds=0.3,
    linger_bytes=50_000,
)
"""Little of everything but time: a test of a time-out shortens that one, and no slow machine runs into the others."""


@dataclass
class Running:
    """A server that runs, and what it has to do with."""

    url: str
    listener: Listener
    server: Server
    written: StringIO
    keys: Keyring
    metrics: Metrics

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What the server has logged."""
        return [json.loads(line) for line in self.written.getvalue().splitlines()]

    def requests(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == "request"]

    def last_request(self, **wanted: Any) -> dict[str, Any]:
        """The last logged request that has these fields, once it is there."""
        return wait_for(
            lambda: next((one for one in reversed(self.requests()) if wanted.items() <= one.items()), None),
            f"a logged request with {wanted}",
        )


@contextmanager
def running_on(
    make: Callable[[Listener], ASGIApp],
    *,
    limits: HttpLimits = SMALL,
    keys: Keyring | None = None,
    written: StringIO | None = None,
    metrics: Metrics | None = None,
) -> Iterator[Running]:
    """A server for the application that is made for its address, in a thread."""
    listener = bind("127.0.0.1", 0)
    written = StringIO() if written is None else written
    metrics = metrics or Metrics()
    log = RequestLog(written, "debug")
    ready = Event()
    failed: list[BaseException] = []
    server = Server(make(listener), listener, limits=limits, log=log, metrics=metrics, ready=lambda _: ready.set())

    def run() -> None:
        try:
            server.serve_until_stopped()
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = Thread(target=run)
    thread.start()
    try:
        assert ready.wait(HANG_SECONDS)
        if failed:
            raise failed[0]
        yield Running(listener.url, listener, server, written, keys or Keyring.single(TOKEN), metrics)
    finally:
        server.stop()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()


@contextmanager
def guarding(
    app: ASGIApp, *, limits: HttpLimits = SMALL, keys: Keyring | None = None, **options: Any
) -> Iterator[Running]:
    """The application behind a guard, with its log and metrics."""
    keys = keys or Keyring.single(TOKEN)
    written = StringIO()
    metrics = Metrics()

    def make(listener: Listener) -> ASGIApp:
        given = {"hosts": listener.hosts, "origins": listener.origins, **options}
        return Guard(app, keys=keys, limits=limits, log=RequestLog(written, "debug"), metrics=metrics, **given)

    with running_on(make, limits=limits, keys=keys, written=written, metrics=metrics) as found:
        yield found


@contextmanager
def running(app: ASGIApp, **options: Any) -> Iterator[str]:
    """The application behind a guard with `TOKEN` as its owner's; yields the base URL."""
    with guarding(app, **{"limits": HttpLimits(), **options}) as found:
        yield found.url


# -- in a process of its own


@dataclass
class Process:
    """A server in a process of its own."""

    url: str
    popen: subprocess.Popen[str]
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def resident_kb(self) -> int:
        status = Path(f"/proc/{self.popen.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.popen.send_signal(number)

    def wait_for(self, path: str) -> None:
        """Until the application has been asked for a path."""
        wait_for(lambda: path in httpx.get(f"{self.url}/asked", headers=BEARER).json(), f"a request for {path}")

    def release(self) -> None:
        """Let the application answer `/wait`; a signal arrives even where no connection is taken any more."""
        self.popen.send_signal(signal.SIGUSR1)

    def ended(self) -> tuple[int, str]:
        """How the process ended, and what it logged."""
        return self.popen.wait(HANG_SECONDS), self.log.read_text()


@contextmanager
def in_a_process(**limits: Any) -> Iterator[Process]:
    """`demo` behind a guard, in a process; it is killed if it does not end by itself."""
    command = [sys.executable, "-m", "tests.support.servers", json.dumps(limits)]
    with (
        NamedTemporaryFile() as log,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as popen,
    ):
        try:
            assert popen.stdout is not None
            yield Process(popen.stdout.readline().strip(), popen, Path(log.name))
        finally:
            if popen.poll() is None:
                popen.kill()


def main() -> None:
    signal.signal(signal.SIGUSR1, lambda *_: Seen.released.set())
    limits = HttpLimits(**json.loads(sys.argv[1]))
    listener = bind("127.0.0.1", 0)
    log = RequestLog(level="info")
    guard = Guard(
        demo,
        keys=Keyring.single(TOKEN),
        hosts=listener.hosts,
        origins=listener.origins,
        limits=limits,
        log=log,
    )

    def ready(url: str) -> None:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()

    if not Server(guard, listener, limits=limits, log=log, ready=ready).serve_until_stopped():
        os._exit(0)


# -- raw clients


def until(condition: Callable[[], Any]) -> Any:
    """What the condition gives, once it gives something."""
    return wait_for(condition, "the server")


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), HANG_SECONDS)


def read_all(client: socket.socket) -> bytes:
    """Everything until the server closes."""
    parts = []
    while part := client.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def drip(client: socket.socket, drop: bytes) -> bytes:
    """Send the same little thing again and again until the server says something; what it says first."""

    def heard() -> bytes:
        client.sendall(drop)
        return client.recv(65_536) if select.select([client], [], [], 0.05)[0] else b""

    return wait_for(heard, "the server to end a client that drips")


def raw(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes as they are, and read one answer until the server closes."""
    with connect(port) as client:
        client.sendall(request)
        return parsed(read_all(client))


def parsed(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """The first answer's status, headers and what follows them."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split(" ")[1]), headers, body


def head_of(port: int, method: str = "GET", path: str = "/open", *, host: str | None = None, **headers: str) -> bytes:
    """A request's head, with the token, that asks for the connection to be closed."""
    lines = {
        "Host": host if host is not None else f"127.0.0.1:{port}",
        "Authorization": f"Bearer {TOKEN}",
        "Connection": "close",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    told = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{told}\r\n".encode("latin-1")


# -- an application that does what it is told


class Seen:
    """What the demonstration has been given."""

    asked: ClassVar[list[str]] = []
    bytes_uploaded = 0
    streams_ended = 0
    released = Event()


async def demo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers according to the path's last part."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    Seen.asked.append(scope["path"])
    work = _WORK.get(scope["path"].rpartition("/")[2], _echo)
    if scope["path"].startswith("/v1/documents/"):
        work = _upload
    await work(scope, receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    for kind in ("startup", "shutdown"):
        assert (await receive())["type"] == f"lifespan.{kind}"
        await send({"type": f"lifespan.{kind}.complete"})


async def _body(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def answer(send: Send, body: bytes, status: int = 200, kind: bytes = b"application/json") -> None:
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    caller = scope["state"]["caller"]
    who = "nobody" if caller is None else caller.user.id if caller.user else "owner"
    body = await _body(receive)
    told = {"caller": who, "owner": caller == OWNER, "body": body.decode(), "path": scope["path"]}
    await answer(send, json.dumps(told).encode())


async def _asked(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, json.dumps(Seen.asked).encode())


async def _upload(scope: Scope, receive: Receive, send: Send) -> None:
    Seen.bytes_uploaded = 0
    if scope["path"].endswith("/unread"):
        await answer(send, b"{}", 409)
        return
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        Seen.bytes_uploaded += len(message.get("body", b""))
        more = message.get("more_body", False)
    await answer(send, b'{"bytes":%d}' % Seen.bytes_uploaded)


async def _page(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"<!doctype html><title>x</title>", kind=b"text/html; charset=utf-8")


async def _script(scope: Scope, receive: Receive, send: Send) -> None:
    headers = [(b"content-length", b"0"), (b"cache-control", b"max-age=60"), (b"access-control-allow-origin", b"*")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _large(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"x" * 30_000_000, kind=b"text/plain")


async def _hang(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


async def _thread(scope: Scope, receive: Receive, send: Send) -> None:
    import anyio

    await anyio.to_thread.run_sync(Seen.released.wait)
    await answer(send, b"{}")


async def _wait(scope: Scope, receive: Receive, send: Send) -> None:
    await wait_for_async(Seen.released.is_set, "the test to release the answer")
    await answer(send, b'"finished"')


async def _stream(scope: Scope, receive: Receive, send: Send) -> None:
    """A stream without end, as starlette's are: one task sends, the other listens for the client to go."""

    async def gone() -> None:
        message: Message = {"type": ""}
        while message["type"] != "http.disconnect":
            message = await receive()

    listening = asyncio.create_task(gone())
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    try:
        while not listening.done():
            await send({"type": "http.response.body", "body": b"data: x\n\n", "more_body": True})
            await asyncio.wait([listening], timeout=0.02)
    finally:
        listening.cancel()
        Seen.streams_ended += 1


async def _pour(scope: Scope, receive: Receive, send: Send) -> None:
    """A stream that never listens whether its client is there."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    try:
        while True:
            await send({"type": "http.response.body", "body": b"x" * 10_000, "more_body": True})
            await asyncio.sleep(0)
    finally:
        Seen.streams_ended += 1


async def _fail(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("a secret of the index: " + scope["query_string"].decode())


async def _fail_late(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("a secret of the index")


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    raise InvalidOption("top_k", 0, "must be at least 1")


_WORK: dict[str, Callable[[Scope, Receive, Send], Any]] = {
    "": _page,
    "asked": _asked,
    "script.js": _script,
    "large": _large,
    "hang": _hang,
    "thread": _thread,
    "wait": _wait,
    "stream": _stream,
    "pour": _pour,
    "fail": _fail,
    "fail-late": _fail_late,
    "refuse": _refuse,
}

if __name__ == "__main__":
    main()
