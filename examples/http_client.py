"""Ask a Satchel server with nothing but the standard library.

    satchel serve path/to/folder               # prints the address and the token
    export SATCHEL_TOKEN=satchel_…
    python examples/http_client.py "where is the retry backoff computed" http://127.0.0.1:8420

Prints the context, then what the server says to an answer that cites a source and one that does not exist.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The server's answer. What it refuses is raised as an HTTPError whose body is a problem (RFC 9457)."""
    headers = {"Authorization": f"Bearer {os.environ.get('SATCHEL_TOKEN', '')}", "Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=60) as answer:
        result: dict[str, Any] = json.load(answer)
        return result


def main() -> int:
    """Print a context and its sources, and have an answer checked against it."""
    question, url = sys.argv[1:3]
    try:
        context = post(f"{url}/v1/context", {"query": question, "token_budget": 1000})
        report = post(
            f"{url}/v1/verify", {"answer": "It is doubled each time [1], as is well known [99].", "context": context}
        )
    except HTTPError as refused:
        with refused:
            problem = json.load(refused)
        print(f"{problem['code']}: {problem['detail']}", file=sys.stderr)
        return 1
    except URLError as unreachable:
        print(f"{url}: {unreachable.reason}; is `satchel serve` running?", file=sys.stderr)
        return 1
    print(context["text"])
    print("-" * 8)
    for found in report["findings"]:
        print(f"{found['problem']}: {found['text']}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())
