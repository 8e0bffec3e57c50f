"""What a change reaches: callers, overriders, tests, companions in the history, owners; each with why."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import satchel
from satchel.errors import InvalidOption
from satchel.models.access import Grant
from satchel.models.context import Context
from satchel.models.request import User
from satchel.service.local_client import LocalSatchel, open_local
from tests.support.command_line import satchel as run_satchel
from tests.support.postgres import workspace_url
from tests.support.repository import Repository

RETRY = (
    "class Backoff:\n    def delay(self, n):\n        return 2 ** n\n\n\ndef pause(n):\n    return Backoff().delay(n)\n"
)
CHANGED = RETRY.replace("def pause(n):\n    return", "def pause(n, most=9):\n    return min(most, n) and")
SLOW = "from shop.retry import Backoff\n\n\nclass Slow(Backoff):\n    def delay(self, n):\n        return 9\n"
FILES = {
    "shop/retry.py": RETRY,
    "shop/client.py": "from shop.retry import pause\n\n\ndef fetch(url):\n    pause(3)\n    return url\n",
    "shop/slow.py": SLOW,
    "shop/other.py": "def pause_music(song):\n    return song\n",
    "tests/test_client.py": "from shop.client import fetch\n\n\ndef test_fetch():\n    assert fetch('a')\n",
    "tests/test_retry.py": "from shop.retry import pause\n\n\ndef test_pause():\n    assert pause(1)\n",
    "docs/retry.md": "# Retry\n\nThe function pause() waits longer each time.\n",
    "settings.toml": "[retry]\nmost = 9\n",
    "CODEOWNERS": "* @everyone\n/shop/ @shop-team  # and nobody else\n/shop/slow.py nobody\n",
}  # fmt: skip
TRACE = (
    'Traceback (most recent call last):\n  File "/srv/app/tests/test_client.py", line 5, in test_fetch\n'
    '  File "/srv/app/shop/client.py", line 5, in fetch\n    pause(3)\n'
    '  File "/srv/app/shop/retry.py", line 7, in pause\nTypeError: no\n'
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("impact") / "work")
    made.commit("Begin", FILES)
    for number in range(4):  # the settings usually change with the code
        made.commit("Tune", {"shop/retry.py": f"{RETRY}# {number}\n", "settings.toml": f"[retry]\nmost = {number}\n"})
    made.commit("Settle", {"shop/retry.py": RETRY})
    made.write({"shop/retry.py": CHANGED})
    return made


@pytest.fixture(scope="module", params=["folder", "postgres"])
def client(
    request: pytest.FixtureRequest, made: Repository, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalSatchel]:
    index = tmp_path_factory.mktemp("index")
    store = workspace_url(request.getfixturevalue("postgres"), "impact") if request.param == "postgres" else ""
    with open_local(made.folder, index_dir=str(index), store=store) as opened:
        opened.index()
        yield opened


def reasons(context: Context) -> dict[str, set[str]]:
    """What speaks for each file of a context."""
    found: dict[str, set[str]] = {}
    for entry in context.ledger:
        found.setdefault(entry.id.partition(":")[0], set()).update(entry.signals)
    return found


def test_a_revision_shows_what_its_changes_reach_each_with_why(client: LocalSatchel) -> None:
    context = client.build("", diff="HEAD")
    found = reasons(context)
    assert "calls pause" in found["shop/client.py"]
    assert {"tests pause", "tests of retry.py"} <= found["tests/test_retry.py"]
    assert "tests its caller fetch" in found["tests/test_client.py"]
    assert "describes pause" in found["docs/retry.md"]
    assert any(why.startswith("changed in 5 of 6 commits of retry.py") for why in found["settings.toml"])
    # Of the class nothing is changed: its heir is at most alike.
    assert found.get("shop/slow.py", set()) <= {"resembles the change"}
    assert "calls pause" in context.text
    assert context.text.rstrip().endswith("Owners (CODEOWNERS): shop/retry.py: @shop-team")
    assert context.tokens <= 4000


def test_a_changed_method_reaches_what_overrides_it(client: LocalSatchel) -> None:
    diff = diff_of(CHANGED.replace("2 **", "3 **"), CHANGED)
    found = reasons(client.build("what else?", diff=diff))
    assert "overrides Backoff.delay" in found["shop/slow.py"]


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_diff_is_read_before_and_after_it_is_applied(client: LocalSatchel, is_applied: bool) -> None:
    diff = diff_of(CHANGED, RETRY) if not is_applied else diff_of(RETRY, CHANGED)
    assert "calls pause" in reasons(client.build("", diff=diff))["shop/client.py"]


def diff_of(before: str, after: str) -> str:
    names = ("a/shop/retry.py", "b/shop/retry.py")
    return "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""))


def test_a_stack_trace_shows_its_frames_and_who_calls_them(client: LocalSatchel) -> None:
    context = client.build("", trace=TRACE)
    first = context.sources[0]
    assert (first.path, "in the stack trace" in context.text) == ("shop/retry.py", True)
    assert "in the stack trace" in reasons(context)["shop/client.py"]


def test_a_review_comment_shows_the_place_that_it_names(client: LocalSatchel) -> None:
    context = client.build(
        "", trace="shop/slow.py:6 why nine? See https://git.example/shop/shop/blob/main/shop/other.py#L2"
    )
    assert {"shop/slow.py", "shop/other.py"} <= {source.path for source in context.sources}


def test_a_change_outside_the_index_is_said(client: LocalSatchel) -> None:
    context = client.build("", diff="--- a/away.py\n+++ b/away.py\n@@ -1 +1 @@\n-a\n+b\n")
    assert "not in the index, so nothing follows from its change: away.py" in context.notes


def test_a_long_diff_is_followed_in_part(client: LocalSatchel) -> None:
    hunk = "--- a/shop/retry.py\n+++ b/shop/retry.py\n@@ -1 +1 @@\n-a\n+b\n"
    context = client.build("", diff=hunk * 2_100)
    assert "the diff is long: only its first 2,000 hunks are followed" in context.notes


def test_the_budget_holds_and_a_session_is_not_shown_twice(client: LocalSatchel) -> None:
    assert client.build("", diff="HEAD", token_budget=120).tokens <= 120
    first = client.build("", diff="HEAD", session="one")
    again = client.build("", diff="HEAD", session="one")
    assert again.tokens < first.tokens


@pytest.mark.parametrize("revision", ["nowhere", "HEAD~99", "../..", "HEAD..nowhere", "-- x"])
def test_a_revision_that_is_none_is_refused(client: LocalSatchel, revision: str) -> None:
    with pytest.raises(InvalidOption, match=r"is no revision of the folder's repository; give HEAD"):
        client.build("", diff=revision)


def test_a_revision_without_a_change_says_so(client: LocalSatchel) -> None:
    with pytest.raises(InvalidOption, match="has no change"):
        client.build("", diff="HEAD..HEAD")


def test_between_two_revisions_the_working_tree_does_not_count(client: LocalSatchel) -> None:
    found = reasons(client.build("", diff="HEAD~2..HEAD~1"))  # the settings, and a remark at the end of the code
    assert "changed here" in found["settings.toml"]
    assert "calls pause" not in found.get("shop/client.py", ())


def test_a_user_is_shown_nothing_that_they_may_not_read(made: Repository, tmp_path: Path) -> None:
    with open_local(made.folder, index_dir=str(tmp_path)) as client:
        client.index()
        with client.workspace.edit() as edit:
            edit.add(Grant(block="shop/retry.py", principal="user:ann"))
            edit.add(Grant(block="shop/slow.py", principal="user:ann"))
        ann = User(id="ann")
        diff = diff_of(RETRY, CHANGED)
        context = client.build("what else?", diff=diff, user=ann, include=("**",))
        assert {entry.id.partition(":")[0] for entry in context.ledger} <= {"shop/retry.py", "shop/slow.py"}
        assert "Owners" not in context.text
        with pytest.raises(InvalidOption, match="only the owner may name"):
            client.build("what else?", diff="HEAD", user=ann, include=("**",))


def test_the_command_line_takes_a_revision_a_diff_and_a_trace(made: Repository) -> None:
    plain = run_satchel("build", "--diff", ".", "-q", folder=made.folder)
    assert "calls pause" in plain.stdout, plain.stderr
    long = run_satchel("build", "which tests? " * 500, "--diff", "HEAD", "-q", folder=made.folder)
    assert "pause" in long.stdout, long.stderr
    named = run_satchel("build", "which tests?", "--diff", "HEAD", "--json", "-q", folder=made.folder)
    assert json.loads(named.stdout)["sources"]
    ran = subprocess.run(
        [sys.executable, "-m", "satchel", "explain", "--diff", "-", "-q"], input=diff_of(RETRY, CHANGED),
        cwd=made.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "calls pause" in ran.stdout, ran.stderr
    (made.folder.parent / "trace.txt").write_text(TRACE)
    traced = run_satchel("build", "--trace", "../trace.txt", ".", "-q", folder=made.folder)
    assert "in the stack trace" in traced.stdout, traced.stderr
    lost = run_satchel("build", "--trace", "missing.txt", folder=made.folder)
    assert lost.returncode == 2
    assert "missing.txt cannot be read" in lost.stderr
    assert "Missing argument 'QUESTION'" in run_satchel("build", folder=made.folder).stderr


def test_a_folder_without_a_repository_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    client = satchel.open(tmp_path, index_dir=str(tmp_path / "index"))
    with client, pytest.raises(InvalidOption, match="needs a git repository"):
        client.build("", diff="HEAD")
