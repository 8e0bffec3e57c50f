"""The MCP server: how soon it answers, what its tools cost to list, and what a call takes.

`python benchmarks/mcp_bench.py` measures and prints; with `--write` it also puts the figures into docs/benchmarks.md.
Start-up is measured from the start of the process, beside bare imports in the same rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import put_section  # noqa: E402
from satchel import counter_for  # noqa: E402

HEADING = "## The MCP server"
ROUNDS = 9
CALLS = 40
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
BARE_SERVER = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
import mcp_types as t
async def listed(ctx, params):
    return t.ListToolsResult(tools=[t.Tool(name=n, description=n, input_schema={"type": "object"}) for n in "abcd"])
async def called(ctx, params):
    return t.CallToolResult(content=[])
async def main():
    server = Server("bare", version="1", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (r, w):
        await server.run(r, w, server.create_initialization_options())
anyio.run(main)
"""


class Client:
    """A client that adds nothing to what is measured."""

    def __init__(self, command: list[str], index: Path) -> None:
        self.begun = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SATCHEL_INDEX_DIR": str(index)},
        )
        self._last = 0
        self.pid = self._process.pid

    def ask(self, method: str, params: Any = None) -> bytes:
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}})
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def call(self, tool: str, **arguments: Any) -> bytes:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def listed(self) -> float:
        """Seconds from the start of the process to the list of tools."""
        self.ask("initialize", HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list")
        return time.perf_counter() - self.begun

    def end(self) -> float:
        """Seconds from the end of its stdin to the end of the process."""
        begun = time.perf_counter()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        return time.perf_counter() - begun

    def _write(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def page() -> str:
    """The section."""
    with tempfile.TemporaryDirectory() as name:
        index = Path(name)
        satchel = [sys.executable, "-m", "satchel", "mcp", str(ROOT / "src")]
        starts = start_ups(satchel, index)
        first = first_calls(satchel, index)
        steady, listed = steady_calls(satchel, index)
    ours = starts["satchel mcp: tools/list"]
    rows = [f"| {name} | {spent * 1000:,.0f} | {ours / spent:.2f} |" for name, spent in starts.items()]
    calls = [f"| {name} | {spent * 1000:,.1f} |" for name, spent in {**first, **steady}.items()]
    return "\n".join(
        [
            HEADING,
            "",
            "From the start of a process to what is named; the quietest of "
            f"{ROUNDS} rounds, in each of which all were started. Ratio: `satchel mcp` ÷ this.",
            "",
            "| | ms | ratio |",
            "|---|--:|--:|",
            *rows,
            "",
            f"tools/list is {listed:,} tokens (o200k) as it is sent; limit 1,500: {'yes' if listed < 1500 else 'NO'}. "
            f"Answered in less than a second: {'yes' if ours < 1 else 'NO'}.",
            "",
            f"Calls over stdio, on this repository's `src` (median of {CALLS}, except the first):",
            "",
            "| | ms |",
            "|---|--:|",
            *calls,
            "",
        ]
    )


def start_ups(satchel: list[str], index: Path) -> dict[str, float]:
    python = sys.executable
    works: dict[str, Callable[[], float]] = {
        "satchel mcp: tools/list": lambda: _started(satchel, index),
        "a bare server of the SDK, four tools: tools/list": lambda: _started([python, "-c", BARE_SERVER], index),
        'python -c "import mcp.server"': lambda: _ran([python, "-c", "import mcp.server"]),
        'python -c "import mcp_types"': lambda: _ran([python, "-c", "import mcp_types"]),
        'python -c "import numpy"': lambda: _ran([python, "-c", "import numpy"]),
        'python -c "pass"': lambda: _ran([python, "-c", "pass"]),
    }
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            spent[name].append(work())
    return {name: min(found) for name, found in spent.items()}


def first_calls(satchel: list[str], index: Path) -> dict[str, float]:
    """The first question of all, which waits for the index; and the first in a new process."""
    found = {}
    for name in (
        "first build_context, index made meanwhile",
        "first build_context of a process, right after tools/list",
    ):
        client = Client(satchel, index)
        client.listed()
        begun = time.perf_counter()
        client.call("build_context", question="how are tokens counted")
        found[name] = time.perf_counter() - begun
        client.end()
    return found


def steady_calls(satchel: list[str], index: Path) -> tuple[dict[str, float], int]:
    client = Client(satchel, index)
    client.listed()
    tokens = counter_for("gpt-4o").count(client.ask("tools/list").decode())
    client.call("status")
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "build_context, 4,000 tokens, another question each time": ("build_context", {}),
        "search, another question each time": ("search", {}),
        "expand a file": ("expand", {"id": "satchel/service/engine.py"}),
        "status": ("status", {}),
    }
    found = {}
    for name, (tool, arguments) in asked.items():
        spent = []
        for i in range(CALLS):
            said = arguments if arguments or tool == "status" else {"question": f"where is number {i} of tokens cut"}
            begun = time.perf_counter()
            client.call(tool, **said)
            spent.append(time.perf_counter() - begun)
        found[name] = statistics.median(spent)
    found["end of stdin to end of process"] = client.end()
    return found, tokens


def _started(command: list[str], index: Path) -> float:
    client = Client(command, index)
    try:
        return client.listed()
    finally:
        client.end()


def _ran(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begun


def main() -> None:
    measured = page()
    print(measured)
    if "--write" in sys.argv:
        put_section(ROOT / "docs" / "benchmarks.md", HEADING, measured)


if __name__ == "__main__":
    main()
