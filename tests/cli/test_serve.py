"""`satchel serve` and `satchel token` as a user runs them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.api import client, files
from tests.support.waiting import HANG_SECONDS, wait_for


@dataclass
class Served:
    """A server that `satchel serve` runs, and what it said."""

    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()

    def told(self, pattern: str) -> str:
        found = wait_for(lambda: re.search(pattern, self.said), f"a line like {pattern}")
        return str(found.group(1))


def environment(folder: Path, **more: str) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
    own = {"SATCHEL_INDEX_DIR": str(folder / "index"), "SATCHEL_CONFIG": str(folder / "none.toml")}
    return usual | own | more


@contextmanager
def serve(folder: Path, *flags: str, **environ: str) -> Iterator[Served]:
    log = folder / "serve.log"
    command = [sys.executable, "-m", "satchel", "serve", str(folder / "root"), "--port", "0", *flags]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command, env=environment(folder, **environ), stdout=out, stderr=out, start_new_session=True
        ) as popen,
    ):
        try:
            yield Served(popen, log)
        finally:
            if popen.poll() is None:
                popen.kill()


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "satchel", *args]
    return subprocess.run(
        command, env=environment(folder), capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files(tmp_path / "root")
    return tmp_path


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_a_folder_is_served_until_it_is_stopped(folder: Path, stop: signal.Signals) -> None:
    with serve(folder) as up:
        url, token = up.told(r"at (http://127\.0\.0\.1:\d+)"), up.told(r"token +(satchel_\S+)")
        link = up.told(r"inspector +(\S+)")
        with client(url, token) as owner:
            found = owner.post("/v1/search", json={"query": "how long to wait before the next attempt"}).json()
            assert found["hits"][0]["path"] == "retry.py"
        with httpx.Client(trust_env=False, base_url=url) as browser:
            arrived = browser.get(link)
            assert arrived.status_code == 303
            assert browser.get("/").headers["content-type"] == "text/html; charset=utf-8"
            assert browser.get("/v1/status").json()["files"] == 3
            assert httpx.get(link, trust_env=False).status_code != 303
        up.popen.send_signal(stop)
        assert up.popen.wait(HANG_SECONDS) == 0
        assert "Traceback" not in up.said
        assert up.said.rstrip().endswith("satchel: stopped")


def test_the_token_may_be_given_and_is_not_printed_then(folder: Path) -> None:
    with serve(folder, SATCHEL_TOKEN="a-token-of-my-own-0123456789") as up:
        url = up.told(r"at (http://127\.0\.0\.1:\d+)")
        with client(url, "a-token-of-my-own-0123456789") as owner:
            assert owner.get("/v1/status").status_code == 200
        assert "a-token-of-my-own" not in up.said


def test_keys_let_others_in(folder: Path) -> None:
    keys = folder / "keys.toml"
    ann = run(folder, "token", "ann", "--group", "staff", "--keys", str(keys))
    boss = run(folder, "token", "--owner", "--keys", str(keys))
    assert ann.returncode == boss.returncode == 0, ann.stderr + boss.stderr
    assert keys.stat().st_mode & 0o777 == 0o600
    assert ann.stdout.strip() not in keys.read_text()
    with serve(folder, "--keys", str(keys)) as up:
        url = up.told(r"at (http://127\.0\.0\.1:\d+)")
        up.told("(users' tokens will be refused)")
        with client(url, boss.stdout.strip()) as owner, client(url, ann.stdout.strip()) as reader:
            grant = {"record": "grant", "block": "retry.py", "principal": "group:staff", "is_path": True}
            assert owner.post("/v1/index", json={}).status_code == 200
            assert owner.post("/v1/blocks", json={"records": [grant]}).status_code == 200
            hits = reader.post("/v1/search", json={"query": "retry backoff client fetch"}).json()["hits"]
            assert {hit["path"] for hit in hits} == {"retry.py"}
        assert "satchel: token" not in up.said


def test_it_listens_nowhere_else_without_keys(folder: Path) -> None:
    done = run(folder, "serve", str(folder / "root"), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "--keys" in done.stderr


def test_what_is_wrong_is_said_before_anything_is_served(folder: Path) -> None:
    assert run(folder, "serve", str(folder / "nowhere")).returncode == 2
    broken = folder / "keys.toml"
    broken.write_text("[[token]]\nuser = 3\n")
    assert run(folder, "serve", str(folder / "root"), "--keys", str(broken)).returncode == 2
    assert run(folder, "token").returncode == 2
    short = subprocess.run(
        [sys.executable, "-m", "satchel", "serve", str(folder / "root")],
        env=environment(folder, SATCHEL_TOKEN="short"),
        capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip
    assert short.returncode == 2
    assert "SATCHEL_TOKEN" in short.stderr
    assert run(folder, "token", "zoe", "--keys", str(broken)).returncode == 2
    assert broken.read_text() == "[[token]]\nuser = 3\n"
    shown = run(folder, "token", "zoe")
    assert shown.stdout.startswith("satchel_")
    assert 'user = "zoe"' in shown.stderr


def test_a_port_that_is_taken_is_said(folder: Path) -> None:
    with serve(folder) as up:
        port = up.told(r"at http://127\.0\.0\.1:(\d+)")
        done = run(folder, "serve", str(folder / "root"), "--port", port)
    assert done.returncode == 2
    assert port in done.stderr
    assert "Traceback" not in done.stderr
