"""Ask Satchel's MCP server as an agent does, with the client of the MCP SDK.

    pip install '.[mcp]'
    python examples/mcp_client.py "where is the retry backoff computed" path/to/folder
    SATCHEL_TOKEN=satchel_… python examples/mcp_client.py "…" http://127.0.0.1:8420/mcp

With a folder the server is started as an agent would start it, and ends with this program.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def over_http(url: str, token: str) -> AsyncIterator[Any]:
    """The way to a server that is running; it wants the token with every request."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def over_stdio(folder: str) -> StdioServerParameters:
    """The command that agents start. The SDK passes on little of the environment, so say what is needed."""
    return StdioServerParameters(command=sys.executable, args=["-m", "satchel", "mcp", folder], env=dict(os.environ))


async def ask(question: str, where: str) -> int:
    """Print a context, and the exact text behind its first source."""
    is_url = where.startswith(("http://", "https://"))
    server = over_http(where, os.environ.get("SATCHEL_TOKEN", "")) if is_url else over_stdio(where)
    async with Client(server) as client:
        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools))
        built = await client.call_tool("build_context", {"question": question, "token_budget": 1000})
        if built.is_error or built.structured_content is None:
            print(built.content, file=sys.stderr)
            return 1
        print(built.structured_content["text"])
        for source in built.structured_content["sources"][:1]:
            whole = await client.call_tool("expand", {"id": source, "lines": 3})
            print("-" * 8, source, "and three lines around it")
            print((whole.structured_content or {})["text"])
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(asyncio.run(ask(*sys.argv[1:3])))
