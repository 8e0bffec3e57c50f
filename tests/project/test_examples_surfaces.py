"""The clients in `examples`, run as their first lines say, against a real server and a real process on stdio."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS, killed_at_the_end, wait_for

TOKEN = "a-token-for-the-examples-0123456789"
QUESTION = "how long is the pause before the next attempt"

FILES = {
    "src/retry.py": "def backoff(attempt):\n    # The pause before the next attempt doubles each time.\n"
    "    return min(60.0, 0.5 * 2**attempt)\n",
    "src/server.py": 'PORT = 8080\n\n\ndef listen(port=PORT):\n    """Open the socket that ships talk to."""\n'
    "    return port\n",
    "docs/harbour.md": "# Harbour\n\nShips are listed by the day they arrive.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples") / "harbour"
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
    own = {"SATCHEL_INDEX_DIR": str(folder.parent / "index"), "SATCHEL_CONFIG": str(folder.parent / "none.toml")}
    return usual | own | {"SATCHEL_TOKEN": TOKEN, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


@pytest.fixture(scope="module")
def url(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a server that `satchel serve` runs until the last test is done."""
    log = folder.parent / "serve.log"
    command = [sys.executable, "-m", "satchel", "serve", str(folder), "--port", "0"]
    with log.open("wb") as out, killed_at_the_end(command, env=environment, stdout=out, stderr=out) as popen:
        found = wait_for(lambda: re.search(r"at (http://127\.0\.0\.1:\d+)", log.read_text()), "the server's address")
        yield str(found.group(1))
        popen.terminate()
        assert popen.wait(HANG_SECONDS) == 0


def run(environment: dict[str, str], name: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "examples" / name, *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def run_each(environment: dict[str, str], name: str, *calls: tuple[str, ...]) -> list[str]:
    """What the program prints for each call, all of them at once."""
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda args: run(environment, name, *args), calls))
    assert [one.returncode for one in done] == [0] * len(calls), [one.stderr for one in done]
    return [one.stdout for one in done]


def test_the_http_client_prints_a_context_and_what_does_not_hold(url: str, environment: dict[str, str]) -> None:
    done = run(environment, "http_client.py", QUESTION, url)
    assert done.returncode == 0, done.stderr
    text, _, findings = done.stdout.partition("\n--------\n")
    assert text.startswith("### [1] src/retry.py · backoff (lines 1-3)\n")
    assert "return min(60.0, 0.5 * 2**attempt)" in text
    assert findings == "unknown-number: [99]\n"


def test_the_http_client_says_what_the_server_refused(url: str, environment: dict[str, str]) -> None:
    done = run({**environment, "SATCHEL_TOKEN": "not-the-token-0123456789"}, "http_client.py", QUESTION, url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "wrong-token: The server does not know this token.\n"


def test_the_mcp_client_prints_a_context_and_a_source(folder: Path, url: str, environment: dict[str, str]) -> None:
    by_stdio, by_http = run_each(environment, "mcp_client.py", (QUESTION, str(folder)), (QUESTION, f"{url}/mcp"))
    assert by_stdio == by_http
    first, _, rest = by_stdio.partition("\n")
    assert first == "tools: build_context, search, find, expand, status"
    text, _, source = rest.partition("\n-------- ")
    assert text.startswith("### [1] src/retry.py · backoff (lines 1-3)\n")
    assert source.startswith("src/retry.py:")
    assert "# The pause before the next attempt doubles each time." in source


def test_the_asynchronous_client_answers_several_questions(folder: Path, url: str, environment: dict[str, str]) -> None:
    questions = (QUESTION, "which port does the server listen on")
    of_the_folder, of_the_server = run_each(
        environment, "async_client.py", (str(folder), *questions), (url, *questions)
    )
    assert of_the_folder == of_the_server
    first, second = of_the_folder.splitlines()
    assert re.match(rf"{QUESTION}: \d+ tokens from \[1\] src/retry\.py:", first)
    assert re.match(r"which port does the server listen on: \d+ tokens from \[1\] src/server\.py:", second)


def test_the_asynchronous_client_says_what_is_wrong_in_one_line(folder: Path, environment: dict[str, str]) -> None:
    done = run(environment, "async_client.py", folder / "nowhere", QUESTION)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(": the folder does not exist\n")
    assert "Traceback" not in done.stderr
