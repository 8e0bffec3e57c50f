"""Several folders and packages in one question: one ranking, one numbering, and the access of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel import Block, ContextHints, Grant, User
from satchel.errors import EmbedderMismatch, InvalidOption, NotAllowed, UnknownBlock
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.access import DefaultAccess
from satchel.models.block import Policy
from satchel.service.auto_index import IndexState
from satchel.service.client import Caller
from satchel.service.local_client import LocalSatchel
from satchel.service.maintenance import remove_index
from satchel.service.open_roots import open_roots
from satchel.service.several_roots import SeveralRoots
from tests.support.packages import install_python
from tests.support.sample_project import CLIENT, GUIDE, RETRY

TEA = '''"""Tea."""


class Kettle:
    """Boils water."""

    def boil(self, degrees: int) -> bool:
        """Heat the water until the kettle whistles."""
        return degrees >= 100
'''


@pytest.fixture
def service(tmp_path: Path) -> Path:
    root = tmp_path / "service"
    root.mkdir()
    (root / "client.py").write_text(CLIENT)
    (root / "guide.md").write_text(GUIDE)
    return root


@pytest.fixture
def library(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    (root / "src").mkdir(parents=True)
    (root / "src" / "retry.py").write_text(RETRY)
    (root / "src" / "tea.py").write_text(TEA)
    return root


@pytest.fixture
def index(tmp_path: Path) -> str:
    return str(tmp_path / "index")


def opened(*folders: Path, index: str, **how: Any) -> SeveralRoots:
    client = open_roots(folders, index_dir=index, **how)
    assert isinstance(client, SeveralRoots)
    return client


@pytest.fixture
def both(service: Path, library: Path, index: str) -> Iterator[SeveralRoots]:
    with opened(service, library, index=index) as client:
        yield client


QUESTION = "how long to wait before the next attempt"


def test_one_context_numbers_the_sources_of_all_folders(both: SeveralRoots) -> None:
    built = both.build("fetch a page, and how long to wait before the next attempt", token_budget=600)
    paths = {source.path for source in built.sources}
    assert {"library/src/retry.py", "service/client.py"} <= paths
    assert [source.number for source in built.sources] == list(range(1, len(built.sources) + 1))
    assert built.tokens <= 600
    assert all(entry.id.startswith(("library/", "service/")) for entry in built.ledger)


def test_the_order_of_the_folders_changes_nothing(service: Path, library: Path, index: str) -> None:
    with opened(service, library, index=index) as one, opened(library, service, index=index) as other:
        assert one.build(QUESTION).text == other.build(QUESTION).text
        assert one.search(QUESTION).hits == other.search(QUESTION).hits


def test_the_same_question_gives_the_same_bytes_and_comes_from_the_cache(both: SeveralRoots) -> None:
    first, again = both.search(QUESTION), both.search(QUESTION)
    assert first.hits == again.hits
    assert again.cached


def test_the_best_of_all_comes_first_whatever_root_it_is_in(both: SeveralRoots) -> None:
    assert both.search(QUESTION).hits[0].path == "library/src/retry.py"
    assert both.search("parse headers of a page").hits[0].path == "service/client.py"


def test_words_are_as_rare_as_in_all_roots(tmp_path: Path, index: str) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for folder in (small, large):
        folder.mkdir()
    (small / "file.py").write_text("def read_file(name):\n    return open(name)\n")
    (large / "kettle.py").write_text(TEA.replace("Boils water.", "Boils water, and reads how hot it is from a file."))
    for number in range(8):
        (large / f"part{number}.py").write_text(f"def part{number}(file):\n    return file.read({number})\n")
    with opened(small, large, index=index) as client:
        assert client.search("read the degrees of the kettle").hits[0].path == "large/kettle.py"


def test_ids_are_expanded_in_their_root(both: SeveralRoots) -> None:
    for hit in both.search(QUESTION).hits:
        found = both.expand(hit.id)
        assert (found.id, found.path, found.text) == (hit.id, hit.path, hit.content)
    assert both.expand("library/src/retry.py#Backoff.delay").path == "library/src/retry.py"


def test_an_id_without_its_label_is_unknown_and_the_error_names_the_right_one(both: SeveralRoots) -> None:
    with pytest.raises(UnknownBlock) as error:
        both.expand("src/retry.py:1-3")
    assert error.value.near == ("library/src/retry.py:1-3",)
    with pytest.raises(UnknownBlock) as error:
        both.expand("library/src/retry.py#dela")
    assert error.value.near == ("library/src/retry.py#Backoff.delay",)
    with pytest.raises(UnknownBlock):
        both.expand("nowhere/x.py")


def test_the_symbol_or_the_lines_around_a_piece_come_from_its_root(both: SeveralRoots) -> None:
    assert "class Backoff" in both.build(QUESTION, expand="symbol", top_k=1).text
    assert "import random" in both.build(QUESTION, expand=20, top_k=1).text


def test_globs_are_for_all_roots_or_with_a_label_for_one(both: SeveralRoots) -> None:
    def paths(**filters: Any) -> set[str]:
        return {hit.path for hit in both.search("retry a page with tea", top_k=20, **filters).hits}

    assert paths(include=["*.md"]) == {"service/guide.md"}
    assert paths(include=["library/**"]) == {"library/src/retry.py", "library/src/tea.py"}
    assert paths(include=["library/src/t*"]) == {"library/src/tea.py"}
    assert paths(include=["lib*/"]) == {"library/src/retry.py", "library/src/tea.py"}
    assert paths(include=["**/src/*.py"]) == {"library/src/retry.py", "library/src/tea.py"}
    assert paths(exclude=["library/src/tea.py", "*.md"]) == {"library/src/retry.py", "service/client.py"}


def test_each_root_keeps_its_own_settings(service: Path, library: Path, index: str) -> None:
    (library / "satchel.toml").write_text('exclude = ["tea.py"]\n')
    (service / "satchel.toml").write_text("token_budget = 300\n")
    with opened(service, library, index=index) as client:
        assert "library/src/tea.py" not in {hit.path for hit in client.search("kettle whistles", top_k=20).hits}
        assert client.build(QUESTION).budget == 300
    with opened(library, service, index=index) as client:
        assert client.build(QUESTION).budget == 4000


def test_a_changed_file_is_read_again_before_it_is_shown(both: SeveralRoots, library: Path) -> None:
    file = library / "src" / "retry.py"
    both.search(QUESTION)
    file.write_text("# first\n" + RETRY)
    assert both.search(QUESTION).hits[0].content.startswith("# first")
    file.write_text("# second\n# line\n" + RETRY)
    quick = replace(both, quick=True).search(QUESTION)
    assert quick.notes[0] == "library/src/retry.py has changed since it was indexed"
    assert (quick.hits[0].path, quick.hits[0].reanchored) == ("library/src/retry.py", True)
    file.unlink()
    gone = replace(both, quick=True).search(QUESTION)
    assert gone.notes[0] == "library/src/retry.py is missing"
    assert "library/src/retry.py" not in {hit.path for hit in gone.hits}


def test_sufficiency_is_that_of_all_roots(both: SeveralRoots) -> None:
    built = both.build("how are telescopes polished on mount ararat", min_sufficiency=0.9)
    assert built.sufficiency is not None
    assert "telescopes" in " ".join(built.sufficiency.reasons)
    assert built.text.startswith("Note: nothing here seems to answer")
    one_root_knows = both.build("degrees of the kettle", min_sufficiency=0.0).sufficiency
    assert one_root_knows is not None
    assert not any("nothing here mentions" in reason for reason in one_root_knows.reasons)


def test_notes_name_their_root(service: Path, library: Path, index: str) -> None:
    (library / "orders.py").write_text("orders = 1\n" * 1000)
    with opened(service, library, service, index=index, max_file_bytes=2000) as client:
        notes = client.build("the orders").notes
        assert any(note.startswith("library: 1 file is not indexed and may matter: orders.py") for note in notes)
        assert f"{service} is given twice" in notes
        assert f"{service} is given twice" in client.search("orders").notes


# -- access


def share(folder: Path, index: str, *grants: Grant) -> None:
    with satchel.open_engine(folder, index_dir=index) as engine:
        engine.index()
        with engine.workspace.edit() as edit:
            edit.add(Policy(default=DefaultAccess.DENY))
            for grant in grants:
                edit.add(grant)


def test_a_user_sees_the_roots_and_files_that_they_may_read(service: Path, library: Path, index: str) -> None:
    share(library, index, Grant(block="src/tea.py", principal="user:ann", is_path=True))
    with opened(service, library, index=index) as client:
        ann = client.seen_by(Caller(user=User(id="ann")))
        assert {hit.path for hit in ann.search(f"{QUESTION} kettle", top_k=20).hits} == {"library/src/tea.py"}
        assert "service" not in str(ann.build("kettle").to_dict())
        assert ann.status().workspace == "library"
        assert ann.file_paths() == []
        for hidden in ("service/client.py", "library/src/retry.py", "client.py"):
            with pytest.raises(UnknownBlock) as error:
                ann.expand(hidden)
            assert not error.value.near
        eve = client.seen_by(Caller(user=User(id="eve")))
        assert not eve.search(QUESTION).hits
        with pytest.raises(NotAllowed):
            eve.index()


def test_a_user_without_access_to_any_root_is_refused(both: SeveralRoots) -> None:
    eve = both.seen_by(Caller(user=User(id="eve")))
    for ask in (eve.search, eve.build, eve.expand):
        with pytest.raises(NotAllowed):
            ask("retry.py")
    assert both.is_owners_alone


def test_an_owner_asks_as_a_user_and_sees_all_alone(service: Path, library: Path, index: str) -> None:
    share(library, index, Grant(block="src/tea.py", principal="user:ann", is_path=True))
    with opened(service, library, index=index) as client:
        found = {hit.path for hit in client.search(f"{QUESTION} kettle", top_k=20, user=User(id="ann")).hits}
        assert "library/src/retry.py" not in found
        assert "library/src/tea.py" in found


def test_notes_on_indexes_say_nothing_of_roots_to_users(service: Path, library: Path, index: str) -> None:
    share(library, index, Grant(block="src/tea.py", principal="user:ann", is_path=True))
    with opened(service, library, index=index) as client:
        ann = replace(client.seen_by(Caller(user=User(id="ann"))), index_notes=("service: secret state",))
        assert ann.search("kettle").notes == ("the index is not up to date; this answer uses the data indexed so far",)


# -- workspaces


def put_page(folder: Path, index: str) -> None:
    with satchel.open_engine(folder, index_dir=index) as engine, engine.workspace.edit() as edit:
        edit.put(Block(id="brew", type="page", title="Brewing tea", content="Wait for the kettle to whistle twice."))


def test_blocks_are_found_like_pieces_of_files(service: Path, library: Path, index: str) -> None:
    put_page(library, index)
    with opened(service, library, index=index) as client:
        built = client.build("brewing tea, whistle twice")
        assert built.sources[0].id == "library/brew"
        assert built.text.startswith("### [1] library/Brewing tea")
        assert "whistle twice" in built.text
        assert "whistle twice" in client.expand("library/brew").text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("focus", "library/src/tea.py:3"),
        ("type", "chat"),
        ("hints", ContextHints(max_depth=1)),
        ("system_prompt", "Be brief."),
    ],
)
def test_options_of_a_workspace_context_are_refused(both: SeveralRoots, name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match="ask that folder alone") as error:
        both.build(QUESTION, **{name: value})
    assert error.value.field == name


def test_what_belongs_to_one_folder_says_so(both: SeveralRoots) -> None:
    for ask in (lambda: both.research("tea"), lambda: both.ask("tea"), both.library, both.filters, lambda: both.engine):
        with pytest.raises(InvalidOption, match="library, service"):
            ask()


# -- packages


@pytest.fixture
def project(service: Path) -> Path:
    install_python(service / ".venv", "tiny", "1.2", {"tiny/__init__.py": "", "tiny/tea.py": TEA}, readme="# Tiny\n")
    return service


def test_a_package_is_asked_with_the_folder_whose_paths_stay_plain(project: Path, index: str) -> None:
    with opened(project, index=index, with_packages=["tiny"]) as client:
        assert client.search("heat the water").hits[0].path == "tiny@1.2/tiny/tea.py"
        assert client.search("parse headers").hits[0].path == "client.py"
        assert client.expand("client.py:1-2").path == "client.py"
        assert "whistles" in client.expand("tiny@1.2/tiny/tea.py#Kettle").text
        assert client.disk_path("client.py") == project / "client.py"
        assert client.disk_path("tiny@1.2/README.md").read_text() == "# Tiny\n"
        with pytest.raises(UnknownBlock) as error:
            client.expand("tiny/tea.py")
        assert error.value.near == ("tiny@1.2/tiny/tea.py",)


def test_a_projects_settings_name_its_packages(project: Path, index: str) -> None:
    (project / "satchel.toml").write_text('with = ["tiny"]\nexclude = ["*.py"]\n')
    with satchel.open(project, index_dir=index) as client:
        assert {hit.path for hit in client.search("kettle or retry", top_k=20).hits} >= {"tiny@1.2/tiny/tea.py"}
        assert not (project / "satchel-packages").exists()


def test_clearing_all_indexes_removes_the_copies_of_packages(project: Path, index: str) -> None:
    with opened(project, index=index, with_packages=["tiny"]) as client:
        client.index()
        copy = client.disk_path("tiny@1.2/README.md")
    remove_index(str(project), {"index_dir": index})
    assert copy.exists()
    removed, _ = remove_index(str(project), {"index_dir": index}, every=True)
    assert len(removed) == 1
    assert not copy.exists()


def test_a_package_is_indexed_once_for_all_projects(project: Path, library: Path, index: str) -> None:
    install_python(library / ".venv", "tiny", "1.2", {"tiny/__init__.py": "", "tiny/tea.py": TEA}, readme="# Tiny\n")
    said: list[str] = []
    for folder in (project, library):
        with opened(folder, index=index, with_packages=["tiny"]) as client:
            replace(client, report=lambda sentence, _: said.append(sentence)).search("kettle")
    assert len([sentence for sentence in said if sentence.startswith("tiny@1.2: indexed")]) == 1
    with opened(project, library, index=index, with_packages=["tiny"]) as client:
        assert client.status().workspace.count("tiny@1.2") == 1


def test_a_workspace_context_is_the_folders_alone_with_a_note(project: Path, index: str) -> None:
    with opened(project, index=index, with_packages=["tiny"]) as client:
        built = client.build("who calls this?", focus="client.py:4")
        assert "tiny@1.2 is not searched with focus" in built.notes
        assert client.filters().readers is None
        assert client.engine.root == project
        assert client.is_for_workspace(satchel.Question(query="x", focus="client.py:4"))
        assert not client.research("tea").sources


def test_a_package_that_is_not_installed_is_an_error(project: Path, index: str) -> None:
    with pytest.raises(InvalidOption, match=r"is not installed in .*install it there"):
        open_roots([project], index_dir=index, with_packages=["absent"])


# -- opening


def test_one_folder_is_opened_as_ever(service: Path, index: str) -> None:
    for paths in ([service], [service, service]):
        with open_roots(paths, index_dir=index) as client:
            assert isinstance(client, LocalSatchel)
            client.index()
            assert client.file_paths() == ["client.py", "guide.md"]


def test_lists_are_opened_by_the_library(service: Path, library: Path, index: str) -> None:
    with satchel.open([service, library], index_dir=index) as client:
        want = client.build(QUESTION).text

    async def ask() -> str:
        async with satchel.open_async([service, library], index_dir=index) as client:
            return (await client.build(QUESTION)).text

    assert asyncio.run(ask()) == want
    with satchel.open([service], index_dir=index) as client:
        assert isinstance(client, LocalSatchel)
    with satchel.open(["http://127.0.0.1:1"]) as remote:
        assert type(remote).__name__ == "RemoteSatchel"


def test_folders_are_not_stored_in_one_workspace_of_a_database(service: Path, library: Path) -> None:
    with pytest.raises(InvalidOption, match="one workspace for several folders"):
        open_roots([service, library], store="postgresql://ann@127.0.0.1:1/db?workspace=all")


def test_indexes_of_different_models_are_not_compared(service: Path, library: Path, index: str) -> None:
    class Other(StaticEmbedder):
        name = "another"

    with satchel.open_engine(library, index_dir=index, embedder=Other()) as engine:
        engine.index()
    with opened(service, library, index=index) as client, pytest.raises(EmbedderMismatch):
        client.search(QUESTION)


# -- the indexes


def test_status_and_index_add_up(both: SeveralRoots, service: Path, library: Path) -> None:
    assert both.status().state in ("library: not indexed yet", "service: not indexed yet")
    done = both.index()
    assert (done.found, done.read) == (4, 4)
    status = both.status()
    assert (status.files, status.state, status.indexing) == (4, "up to date", False)
    assert status.workspace == f"{library}, {service}"
    assert status.generation == done.generation
    assert both.file_paths() == ["library/src/retry.py", "library/src/tea.py", "service/client.py", "service/guide.md"]
    assert both.unread_files() == 0
    assert both.disk_path("library/src/tea.py") == library / "src" / "tea.py"
    assert both.disk_path("nowhere/x.py") == service / "nowhere/x.py"


def test_the_schedulers_are_one(service: Path, library: Path, index: str) -> None:
    with opened(service, library, index=index, every=3600.0, patience=60.0) as client:
        joint = client.auto_index
        states: list[IndexState] = []
        assert joint.refresh(patience=60.0, watch=states.append) == ()
        assert states
        assert joint.has_looked
        assert joint.is_current(0.0)
        assert joint.state == IndexState(runs=1)
        assert joint.notes() == ()
        assert client.search(QUESTION).hits


def test_a_problem_of_one_root_is_said_with_its_name(both: SeveralRoots, library: Path) -> None:
    both.index()
    (library / "src" / "tea.py").unlink()
    (library / "src" / "retry.py").unlink()
    (library / "src").rmdir()
    library.rmdir()
    joint = both.auto_index
    notes = joint.refresh(patience=60.0)
    assert notes[0].startswith("library: the index could not be refreshed")
    assert joint.state.problem.startswith("library: ")
