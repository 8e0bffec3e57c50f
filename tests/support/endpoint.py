"""A real endpoint on the loopback interface that answers as it is told to."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from tests.support.waiting import HANG_SECONDS

Body = bytes | Callable[[dict[str, Any]], bytes]


@dataclass
class Answer:
    """What the endpoint does; all of it is sent as it stands. Without a body, the endpoint's usual answer is."""

    status: int = 200
    body: Body | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    hangs_up: bool = False
    """The connection is closed before the first byte of an answer."""
    announced: int | None = None
    parts: Sequence[bytes] | None = None
    """Sent one by one, each in a chunk of its own, instead of a body."""
    breaks_off: bool = False
    """After its parts the connection is cut."""
    falls_silent: bool = False
    """After its parts it says nothing more, and hangs on."""


class Endpoint(ThreadingHTTPServer):
    """Speaks a protocol, `usual` being its answer to what was asked; `answers` are given first, in order."""

    daemon_threads = True

    def __init__(self, usual: Callable[[dict[str, Any]], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.usual = usual
        self.answers: deque[Answer] = deque()
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.closing = Event()
        self.left = Event()
        """Whoever asked has gone before the end."""

    @property
    def sizes(self) -> list[int]:
        return [len(body["input"]) for body in self.bodies]


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(asked)
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers.get("Authorization"))
        answer = self.server.answers.popleft() if self.server.answers else Answer()
        if answer.hangs_up:
            self.close_connection = True
            return
        if answer.hang:
            self.server.closing.wait()
            return
        if answer.parts is not None:
            self.send_parts(answer, answer.parts)
            return
        body = self.server.usual if answer.body is None else answer.body
        data = body(asked) if callable(body) else body
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if answer.announced is None else answer.announced))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            """Whoever asked has heard enough."""

    def send_parts(self, answer: Answer, parts: Sequence[bytes]) -> None:
        self.send_response(answer.status)
        for name, value in {"Content-Type": "text/event-stream", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for part in parts:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            if answer.falls_silent:
                self.server.closing.wait()
            elif not answer.breaks_off:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.server.left.set()

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""


@contextmanager
def serving(usual: Callable[[dict[str, Any]], bytes]) -> Iterator[Endpoint]:
    """The endpoint for as long as it is needed."""
    server = Endpoint(usual)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()
