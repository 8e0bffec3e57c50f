"""Finding symbols and exact text: definitions, references, implementations, outlines, strings and patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satchel
from satchel import Satchel
from satchel.cli.exits import Exit
from satchel.errors import InvalidOption
from satchel.models.find import FindKind, Found, Match
from satchel.retrieval.find import find
from satchel.service.client import Caller
from satchel.service.local_client import LocalSatchel, open_local
from tests.support.command_line import satchel as run_satchel
from tests.support.postgres import workspace_url

RETRY = """class Backoff:
    def delay(self, n):
        return 2 ** n


def pause(n):
    return Backoff().delay(n)
"""
CLIENT = """from shop.retry import Backoff


class Jitter(Backoff):
    def delay(self, n):
        return 1


class Slow(Jitter):
    pass


def fetch():
    # no delay here
    return Jitter().delay(3)
"""
FILES = {
    "shop/retry.py": RETRY,
    "shop/client.py": CLIENT,
    "shop/other.py": "def show(delay):\n    return delay\n",
    "docs/retry.md": "# Retry\n\nThe delay of Backoff doubles. delayed is another word.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("find") / "work"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module", params=["folder", "postgres"])
def client(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalSatchel]:
    index = tmp_path_factory.mktemp("index")
    store = workspace_url(request.getfixturevalue("postgres"), "find") if request.param == "postgres" else ""
    with open_local(folder, index_dir=str(index), store=store) as opened:
        opened.index()
        yield opened


def places(found: Found) -> list[tuple[str, int, str]]:
    return [(match.path, match.line, match.kind) for match in found.matches]


def test_a_definition_is_found_by_its_name_and_its_owner(client: LocalSatchel) -> None:
    assert [match.id for match in client.find("delay").matches] == [
        "shop/client.py#Jitter.delay",
        "shop/retry.py#Backoff.delay",
    ]
    (own,) = client.find("Backoff.delay").matches
    assert (own.path, own.line, own.end_line, own.kind) == ("shop/retry.py", 2, 3, "method")
    assert client.expand(own.id).text.startswith("    def delay(self, n)")
    assert client.find("Backoff::delay()").matches == (own,)
    assert client.find("nowhere").matches == ()


def test_references_are_certain_or_by_name(client: LocalSatchel) -> None:
    found = client.find("Backoff", "references")
    assert [(match.path, match.line, match.is_certain) for match in found.matches] == [
        ("shop/client.py", 1, True),
        ("shop/client.py", 4, True),
        ("shop/retry.py", 7, True),
        ("docs/retry.md", 3, False),
    ]
    assert [match.kind for match in found.matches] == ["imports", "inherits", "calls", "names"]
    delays = client.find("Backoff.delay", FindKind.REFERENCES)
    assert [(match.path, match.line) for match in delays.matches if match.is_certain] == [("shop/retry.py", 7)]
    assert ("docs/retry.md", 3, "names") in places(delays)
    assert "delayed" not in {match.text for match in delays.matches}


def test_implementations_are_found_level_by_level(client: LocalSatchel) -> None:
    assert [match.name for match in client.find("Backoff", "implementations").matches] == ["Jitter", "Slow"]
    assert [match.id for match in client.find("Backoff.delay", "implementations").matches] == [
        "shop/client.py#Jitter.delay"
    ]


def test_an_outline_is_of_a_file_or_a_folder(client: LocalSatchel) -> None:
    assert [match.name for match in client.find("shop/retry.py", "outline").matches] == [
        "Backoff",
        "Backoff.delay",
        "pause",
    ]
    assert [(match.path, match.text) for match in client.find("shop/", "outline").matches] == [
        ("shop/client.py", "Jitter, Slow, fetch"),
        ("shop/other.py", "show"),
        ("shop/retry.py", "Backoff, pause"),
    ]
    assert len(client.find(".", "outline").matches) == len(FILES)


def test_texts_and_patterns_are_found_line_by_line(client: LocalSatchel) -> None:
    assert places(client.find("2 ** n", "text")) == [("shop/retry.py", 3, "text")]
    assert places(client.find(r"^class \w+\(", "pattern")) == [
        ("shop/client.py", 4, "text"),
        ("shop/client.py", 9, "text"),
    ]
    found = client.find("n", "text", limit=2, exclude=["docs/**"])
    assert (len(found.matches), found.total > 2) == (2, True)
    assert {match.path for match in client.find("delay", "text", include=["docs/*"]).matches} == {"docs/retry.md"}


@pytest.mark.parametrize(
    ("what", "kind", "problem"),
    [
        ("x", "usage", "must be one of definition"),
        (" ", "definition", "must not be empty"),
        ("x" * 501, "text", "at most 500"),
        ("(", "pattern", "is no regular expression of RE2"),
        (r"(a)\1", "pattern", "is no regular expression of RE2"),
    ],
)
def test_what_cannot_be_looked_for_is_told(client: LocalSatchel, what: str, kind: str, problem: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(problem)):
        client.find(what, kind)


def test_nobody_finds_what_they_may_not_read(folder: Path, tmp_path: Path) -> None:
    with open_local(folder, index_dir=str(tmp_path / "index")) as opened:
        opened.index()
        with opened.engine.workspace.edit() as edit:
            edit.grant("docs", "ann")
        ann = opened.seen_by(Caller(user=satchel.User(id="ann")))
        for what, kind in (("delay", "definition"), ("Backoff", "implementations"), ("shop", "outline")):
            assert ann.find(what, kind).total == 0
        assert {match.path for match in ann.find("delay", "references").matches} == {"docs/retry.md"}
        assert opened.seen_by(Caller(user=satchel.User(id="eve"))).find("e", "text").total == 0


def test_several_roots_are_searched_as_one(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "library"
    other.mkdir()
    (other / "base.py").write_text("class Backoff:\n    pass\n")
    with satchel.open([folder, other], index_dir=str(tmp_path / "index")) as client:
        paths = {match.path for match in client.find("Backoff").matches}
        assert paths == {"work/shop/retry.py", "library/base.py"}
        assert client.find("library/base.py", "outline").matches[0].id == "library/base.py#Backoff"


def test_a_server_and_the_command_line_find_the_same(folder: Path, tmp_path: Path) -> None:
    environment = {"SATCHEL_INDEX_DIR": str(tmp_path / "index")}
    done = run_satchel("find", "Backoff", "-K", "references", "--json", folder=folder, env=environment)
    told = json.loads(done.stdout)
    with satchel.open(folder, index_dir=str(tmp_path / "index")) as client:
        found = client.find("Backoff", "references")
    assert Found.from_dict(told) == found
    assert told == found.to_dict()
    shown = run_satchel("find", "Backoff", "-K", "references", folder=folder, env=environment).stdout
    assert "shop/client.py\n            1  imports: from shop.retry import Backoff\n" in shown
    assert "  names (by name): The delay of Backoff doubles." in shown
    little = run_satchel("find", "e", "-K", "text", "-b", "60", folder=folder, env=environment).stdout
    assert re.search(r"… \d+ more$", little)
    assert run_satchel("find", "nope", folder=folder, env=environment).returncode == Exit.NOTHING_FOUND


class Texts:
    """A store of one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def texts(self, _: object) -> Iterator[tuple[str, str | None, str]]:
        yield "a.py", "python", self.text

    def definitions(self, *_: object) -> list[object]:
        return []

    mentions_of = outline_of = definitions


@settings(max_examples=200, deadline=None)
@given(st.text("ab _(\n", max_size=60), st.text("ab _", min_size=1, max_size=4).filter(str.strip))
def test_law_references_are_the_lines_with_the_word(text: str, word: str) -> None:
    name = word.strip()
    found = find(Texts(text), name, "references", satchel_filters())  # type: ignore[arg-type]
    expected = [
        number
        for number, line in enumerate(text.split("\n"), start=1)
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line)
    ]
    assert [match.line for match in found.matches] == expected


@given(st.lists(st.text("ab\n", max_size=9), max_size=9), st.integers(20, 200))
def test_law_the_text_is_within_its_budget(lines: list[str], budget: int) -> None:
    matches = tuple(
        Match(path=f"p{n // 3}", line=n + 1, end_line=n + 1, kind="text", text=line) for n, line in enumerate(lines)
    )
    found = Found(what="x", kind=FindKind.TEXT, matches=matches, total=len(matches) + 5)
    assert len(found.to_text(len, budget)) <= budget


def satchel_filters() -> object:
    from satchel.models.search import Filters

    return Filters()


def test_every_client_has_it() -> None:
    assert Satchel.find.__doc__
