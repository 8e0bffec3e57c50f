"""Talking to an MCP server: the SDK's own client from tests that are not asynchronous, and raw lines for the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, ReadResourceResult

from tests.support.waiting import HANG_SECONDS

ERAS = ("2026-07-28", "legacy")


class Talk:
    """A connected client."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self.client = client
        self.portal = portal

    def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        done = self.portal.call(self.client.call_tool, tool, arguments)
        assert isinstance(done, CallToolResult)
        return done

    def told(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured content of an answer that is no error."""
        done = self.call(tool, **arguments)
        assert not done.is_error, done.content
        assert isinstance(done.structured_content, dict)
        return done.structured_content

    def refused(self, tool: str, /, **arguments: Any) -> str:
        """The text of an answer that is an error."""
        done = self.call(tool, **arguments)
        assert done.is_error, done.content
        assert done.structured_content is None
        return texts_of(done)[0]

    def pages(self, tool: str, /, **arguments: Any) -> list[dict[str, Any]]:
        """All pages, following cursors."""
        found = [self.told(tool, **arguments)]
        while cursor := found[-1].get("next_cursor"):
            found.append(self.told(tool, **arguments, cursor=cursor))
        return found

    def read(self, uri: str) -> ReadResourceResult:
        done = self.portal.call(self.client.read_resource, uri)
        assert isinstance(done, ReadResourceResult)
        return done


def texts_of(done: CallToolResult) -> list[str]:
    return [str(getattr(block, "text")) for block in done.content]  # noqa: B009 - other blocks have none


@contextmanager
def talking(server: Any, mode: str) -> Iterator[Talk]:
    with start_blocking_portal() as portal:
        client = Client(server, mode=mode, read_timeout_seconds=HANG_SECONDS)
        with portal.wrap_async_context_manager(client) as entered:
            yield Talk(entered, portal)


def command(*arguments: str | Path, index: Path, cwd: Path | None = None, **env: str) -> StdioServerParameters:
    """How an agent starts the server."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "satchel", "mcp", *map(str, arguments)],
        env={**os.environ, "SATCHEL_INDEX_DIR": str(index), **env},
        cwd=cwd,
    )


class Raw:
    """A server process whose lines are written and read by hand."""

    def __init__(self, arguments: list[str], env: Mapping[str, str], cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            cwd=cwd,
        )
        self.lines: Queue[bytes] = Queue()
        self.errors: list[bytes] = []
        self._readers = [Thread(target=self._read), Thread(target=self._read_errors)]
        for one in self._readers:
            one.start()
        self._last = 0
        self.hello: dict[str, Any] = {}

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(b"")

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, *, notify: bool = False) -> int:
        self._last += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if not notify:
            message["id"] = self._last
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message).encode())
        return self._last

    def receive(self) -> tuple[bytes, dict[str, Any]]:
        """The next line, which must be a message, and the message."""
        line = self.lines.get(timeout=HANG_SECONDS)
        assert line, b"".join(self.errors).decode()
        return line, json.loads(line)

    def answer(self, number: int) -> tuple[bytes, dict[str, Any]]:
        """The answer to a request; what comes before it is passed over."""
        while True:
            line, message = self.receive()
            if message.get("id") == number and "method" not in message:
                return line, message

    def call(self, tool: str, **arguments: Any) -> tuple[bytes, dict[str, Any]]:
        line, message = self.answer(self.send("tools/call", {"name": tool, "arguments": arguments}))
        return line, message["result"]

    def shake_hands(self, version: str = "2025-06-18") -> None:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        _, message = self.answer(self.send("initialize", hello))
        self.send("notifications/initialized", notify=True)
        self.hello = message["result"]

    def end(self) -> int:
        """Close its stdin, and wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(HANG_SECONDS)
        for one in self._readers:
            one.join(HANG_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        return code

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ended()
