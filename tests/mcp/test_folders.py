"""Which folders a tool may search: those of the command line, the client's roots, and what the user allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ListRootsResult, Root

from satchel.errors import InvalidOption
from satchel.mcp.folders import OneFolder, ServedFolders
from tests.support.mcp_talk import Talk, command
from tests.support.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from satchel.service.local_client import LocalSatchel


def project(folder: Path, name: str, word: str) -> Path:
    root = folder / name
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text(f"def {word}_delay():\n    return '{word} waits twice as long'\n")
    (root / "top.md").write_text(f"# {word}\n\nThe {word} delay of everything.\n")
    return root


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    project(work, "one", "retry")
    (project(work, "two", "cache") / ".git").mkdir()
    project(tmp_path, "outside", "secret")
    return work


@pytest.fixture
def served(work: Path, tmp_path: Path) -> Iterator[ServedFolders]:
    settings = {"index_dir": str(tmp_path / "index")}
    folders = ServedFolders((str(work / "one"),), allowed=(str(work),), settings=settings)
    yield folders
    folders.close(10)


def found(folders: ServedFolders, path: str, *roots: Path) -> tuple[str, str]:
    """The root that is searched for a path, and the folder inside it."""
    place = folders.at(path, roots)
    return Path(place.client.status().workspace).name, place.within


def test_a_path_is_searched_in_the_index_of_its_root(served: ServedFolders, work: Path) -> None:
    assert found(served, "") == ("one", "")
    assert found(served, "src") == ("one", "src")
    assert found(served, str(work / "one")) == ("one", "")
    assert found(served, str(work / "two" / "src")) == ("two", "src")
    assert served.at("", ()).client is served.at("src", ()).client


def test_a_path_outside_is_refused_and_says_how_to_allow_it(served: ServedFolders, work: Path, tmp_path: Path) -> None:
    (work / "one" / "out").symlink_to(tmp_path / "outside")
    for path in ("../../outside", str(tmp_path / "outside"), "out", "/"):
        with pytest.raises(InvalidOption, match="satchel mcp --allow FOLDER"):
            served.at(path, ())
    assert found(served, str(tmp_path / "outside"), tmp_path / "outside") == ("outside", "")


def test_a_path_that_is_no_folder_is_told_so(served: ServedFolders) -> None:
    with pytest.raises(InvalidOption, match="is a file"):
        served.at("top.md", ())
    for path in ("nowhere", "a\0b", "~nobody-at-all/x"):
        with pytest.raises(InvalidOption, match="is no folder"):
            served.at(path, ())


def test_the_home_folder_is_not_searched_though_it_is_a_root(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work))
    monkeypatch.chdir(work)
    folders = ServedFolders((".",), settings={"index_dir": str(tmp_path / "index")})
    with pytest.raises(InvalidOption, match="give the folder to search as `path`"):
        folders.at("", ())
    with pytest.raises(InvalidOption, match="outside the folders"):
        folders.at(str(work / "one"), [work])
    assert found(folders, "", work / "one") == ("one", "")
    folders.close(10)


def test_few_folders_are_open_at_once(work: Path, tmp_path: Path) -> None:
    folders = ServedFolders((".",), allowed=(str(work),), settings={"index_dir": str(tmp_path / "index")})
    for number in range(12):
        root = project(work, f"p{number}", "word")
        (root / ".git").mkdir()
        assert found(folders, str(root)) == (f"p{number}", "")
    assert len(folders._opened) == 8
    folders.close(10)


@pytest.mark.parametrize("path", ["/etc", "..", "a/../../b"])
def test_over_http_a_path_is_a_folder_of_the_workspace(path: str) -> None:
    one = OneFolder(cast("LocalSatchel", None))  # only the path is looked at
    assert one.at("src/./x/", ()).within == "src/x"
    assert one.at(".", ()).within == ""
    with pytest.raises(InvalidOption, match="relative to its root"):
        one.at(path, ())


def test_the_roots_of_a_client_are_searched_and_followed(work: Path, tmp_path: Path) -> None:
    roots = [work / "one"]

    async def listed(context: ClientRequestContext) -> ListRootsResult:
        del context
        return ListRootsResult(roots=[Root(uri=root.as_uri()) for root in roots])  # type: ignore[arg-type]

    home = tmp_path / "home"
    home.mkdir()
    server = command(index=tmp_path / "index", cwd=home, HOME=str(home))
    with start_blocking_portal() as portal:
        client = Client(server, mode="legacy", read_timeout_seconds=HANG_SECONDS, list_roots_callback=listed)
        with portal.wrap_async_context_manager(client) as entered:
            talk = Talk(entered, portal)
            assert "retry_delay" in talk.told("build_context", question="how long is the delay?")["text"]
            told = talk.told("build_context", question="how long is the delay?", path=str(work / "one" / "src"))
            assert told["sources"] == ["src/a.py:1-2"]
            expanded = talk.told("expand", id="src/a.py:1-2", path=str(work / "one" / "src"))
            assert expanded["text"].startswith("def retry_delay")
            assert "outside the folders" in talk.refused("search", question="cache", path=str(work / "two"))
            roots.append(work / "two")
            with pytest.warns(MCPDeprecationWarning):
                portal.call(entered.send_roots_list_changed)
            hits = talk.told("search", question="cache delay", path=str(work / "two"))["hits"]
            assert {hit["path"] for hit in hits} == {"src/a.py", "top.md"}
            assert talk.told("status", path=str(work / "two"))["files"] == 2


def test_a_client_without_roots_names_folders_that_the_user_allowed(work: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    server = command("--allow", work, index=tmp_path / "index", cwd=home, HOME=str(home))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as entered:
        talk = Talk(entered, portal)
        assert "give the folder to search as `path`" in talk.refused("search", question="cache")
        assert talk.told("search", question="cache delay", path=str(work / "two"))["hits"]
