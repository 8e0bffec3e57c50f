"""The ways in: what HTTP adds to a question, what many clients do to it, and what the page weighs.

`python benchmarks/surfaces_bench.py` measures this part alone and puts it into docs/benchmarks.md.

The server, the clients and the library each run in a process of their own. What HTTP adds is the difference of the
medians of ten clients of the server and ten threads of the library, in alternating rounds over the same index.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import put_section  # noqa: E402
from satchel.service.local_client import open_local  # noqa: E402

HEADING = "## The ways in"
TOKEN = "satchel_benchmark-0123456789-0123456789"
QUESTIONS = (
    "where is the token budget kept",
    "how is a citation checked against its source",
    "who may read a block",
    "how are hidden characters made visible",
    "how is a document read in a child process",
    "what happens when the index is damaged",
    "where are ignore files read",
    "how is the retry of an endpoint done",
)
CLIENTS, REQUESTS, ROUNDS = 10, 400, 7
MANY_CLIENTS, MANY_REQUESTS = 50, 2_000
TARGET_MS = 5.0


def page() -> str:
    """The part of docs/benchmarks.md that is about the ways in."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        index = f"{folder}/index"
        with open_local(ROOT, index_dir=index) as bag:
            bag.index()
        with serving(index) as url:
            pairs = [(library(index, CLIENTS), over_http(url, CLIENTS)) for _ in range(ROUNDS)]
            alone = [(library(index, 1), over_http(url, 1)) for _ in range(3)]
        users = many_users(folder)
    added = [(http - direct) * 1000 for direct, http in pairs]
    added_alone = [(http - direct) * 1000 for direct, http in alone]
    rows = [
        "| what | measured | target | met |",
        "|---|--:|--:|---|",
        f"| HTTP adds to a question, p50, {CLIENTS} clients at once (median of {ROUNDS} rounds, ms) "
        f"| {statistics.median(added):.1f} ({min(added):.1f} to {max(added):.1f}) | < {TARGET_MS:.0f} "
        f"| {met(statistics.median(added) < TARGET_MS)} |",
        f"| the same question in the library, p50, {CLIENTS} threads (ms) "
        f"| {statistics.median(direct for direct, _ in pairs) * 1000:.1f} | | |",
        f"| HTTP adds to a question, p50, one client (median of 3 rounds, ms) "
        f"| {statistics.median(added_alone):.1f} ({min(added_alone):.1f} to {max(added_alone):.1f}) | | |",
        f"| {MANY_REQUESTS:,} requests by {MANY_CLIENTS} clients, two users: errors | {users['errors']} | 0 "
        f"| {met(not users['errors'])} |",
        f"| … wrong user's data | {users['wrong']} | 0 | {met(not users['wrong'])} |",
        f"| … p99 ÷ p50 | {users['p99'] / users['p50']:.1f} | < 10 | {met(users['p99'] < 10 * users['p50'])} |",
        f"| … p50 (ms) | {users['p50'] * 1000:.0f} | | |",
        *page_rows(),
    ]
    return "\n".join(
        [
            HEADING,
            "",
            f"`python benchmarks/surfaces_bench.py`; two shared cores, load {load:.1f} when it began. Ten clients keep the server",
            "busy without a pause; the server answers as many questions at once as there are cores, where the library's ten",
            "threads take turns, so part of what HTTP costs is hidden there. One client alone shows it.",
            "",
            *rows,
            "",
        ]
    )


def met(is_met: bool) -> str:
    return "yes" if is_met else "NO"


@contextmanager
def serving(index: str, root: Path = ROOT, *flags: str, **environ: str) -> Iterator[str]:
    """`satchel serve`, as a user starts it."""
    command = [sys.executable, "-m", "satchel", "serve", str(root), "--port", "0", "--index-dir", index, *flags]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "SATCHEL_TOKEN": TOKEN, **environ}
    ) as popen:
        try:
            assert popen.stderr is not None
            for line in popen.stderr:
                if found := re.search(r"at (http://\S+)", line):
                    threading.Thread(target=popen.stderr.read, daemon=True).start()
                    yield found.group(1)
                    break
        finally:
            popen.terminate()
            popen.wait(20)


def timed(clients: int, requests: int, make: Callable[[], Callable[[int], Any]]) -> list[float]:
    """The seconds of each request, by so many clients at once."""
    left = iter(range(requests))
    lock, taken = threading.Lock(), []

    def run() -> None:
        ask = make()
        while True:
            with lock:
                i = next(left, None)
            if i is None:
                return
            began = time.perf_counter()
            ask(i)
            taken.append(time.perf_counter() - began)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def poster(url: str, token: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A client that keeps its connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(body: dict[str, Any]) -> dict[str, Any]:
        connection.request("POST", "/v1/context", json.dumps(body), headers)
        answer = connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(told)
        return told

    return post


def question(i: int) -> str:
    return f"{QUESTIONS[i % len(QUESTIONS)]} {i // len(QUESTIONS) % 7}"


def over_http(url: str, clients: int) -> float:
    def make() -> Callable[[int], Any]:
        post = poster(url, TOKEN)
        return lambda i: post({"query": question(i), "token_budget": 2000})

    timed(clients, CLIENTS * 4, make)
    return statistics.median(timed(clients, REQUESTS, make))


def library(index: str, clients: int) -> float:
    """The same questions in threads of another process."""
    done = subprocess.run(
        [sys.executable, __file__, "--library", index, str(clients)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def library_here(index: str, clients: int) -> float:
    with open_local(ROOT, index_dir=index, every=2.0, patience=20.0) as bag:

        def make() -> Callable[[int], Any]:
            return lambda i: bag.build(question(i), token_budget=2000).to_dict()

        timed(clients, CLIENTS * 4, make)
        return statistics.median(timed(clients, REQUESTS, make))


def many_users(folder: str) -> dict[str, Any]:
    """Fifty clients, half of them Ann's and half Bob's, each of whom may read one half of the files."""
    from satchel import Grant
    from satchel.http.guard.credentials import entry_for

    root, index = Path(folder) / "users", f"{folder}/users-index"
    tokens = {name: f"satchel_{name}-0123456789-0123456789" for name in ("ann", "bob")}
    for name in tokens:
        (root / name).mkdir(parents=True)
        for i in range(40):
            text = f'def harbour_{i}():\n    """The {name} harbour {i}, its cranes and quays."""\n    return {i}\n'
            (root / name / f"m{i}.py").write_text(text)
    with open_local(root, index_dir=index) as bag:
        bag.index()
        with bag.engine.workspace.edit() as edit:
            for name in tokens:
                edit.add(Grant(block=f"{name}/", principal=f"user:{name}", is_path=True))
    keys = Path(folder) / "keys.toml"
    keys.write_text("\n".join(entry_for(token, name) for name, token in tokens.items()))
    keys.chmod(0o600)
    wrong, errors, turn = [], [], iter(range(MANY_CLIENTS))
    with serving(index, root, "--keys", str(keys)) as url:

        def make() -> Callable[[int], Any]:
            name = ("ann", "bob")[next(turn, 0) % 2]
            post = poster(url, tokens[name])

            def ask(i: int) -> None:
                try:
                    told = post({"query": f"the cranes of harbour {i % 40}", "token_budget": 1000})
                except Exception as error:
                    errors.append(error)
                    return
                paths = {source["path"] for source in told["sources"]}
                if not paths or any(not path.startswith(f"{name}/") for path in paths):
                    wrong.append(paths)

            return ask

        taken = sorted(timed(MANY_CLIENTS, MANY_REQUESTS, make))
    return {
        "errors": len(errors),
        "wrong": len(wrong),
        "p50": taken[len(taken) // 2],
        "p99": taken[int(len(taken) * 0.99)],
    }


def page_rows() -> list[str]:
    """What the inspector weighs, and when it is painted first in a real browser."""
    web = ROOT / "src/satchel/web"
    weight = sum(one.stat().st_size for one in web.iterdir() if one.suffix in (".html", ".js", ".css", ".svg"))
    rows = [f"| the page, all files, uncompressed (kB) | {weight / 1000:.0f} | < 150 | {met(weight < 150_000)} |"]
    painted = first_paint()
    if painted is not None:
        rows.append(
            f"| its first contentful paint, folder not indexed (ms) | {painted:.0f} | < 1,000 | {met(painted < 1000)} |"
        )
    return rows


def first_paint() -> float | None:
    """Milliseconds to the first contentful paint in Debian's Chromium; the middle of five."""
    from shutil import which

    if not which("chromium"):
        return None
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, serving(f"{folder}/index") as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found = []
        for _ in range(5):
            tab = browser.new_page()
            tab.goto(url)
            tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
            found.append(tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            tab.close()
        browser.close()
    return float(statistics.median(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--library"]:
        print(library_here(sys.argv[2], int(sys.argv[3])))
    else:
        told = page()
        print(told)
        put_section(ROOT / "docs/benchmarks.md", HEADING, told)
