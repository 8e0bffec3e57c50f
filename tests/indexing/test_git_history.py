"""Git's history as activity: what is read of a repository, and what is skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from satchel import open_engine
from satchel.doctor.finding import State
from satchel.doctor.workspace_checks import check_git
from satchel.indexing import git_history
from satchel.indexing.child_process import ChildProcess
from satchel.indexing.git_history import History, UnreadableHistory, head_of, read_history
from satchel.models.search import Filters
from tests.support.repository import ANN, Repository
from tests.support.waiting import wait_for

Commit = Callable[..., pygit2.Oid]


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def repository(made: Repository) -> pygit2.Repository:
    return made.git


@pytest.fixture
def commit(made: Repository) -> Commit:
    return made.commit


def touched(folder: Path, most_commits: int = 100) -> list[tuple[str, str]]:
    return [(act.block, act.detail) for act in history_of(folder, most_commits).activities]


def history_of(folder: Path, most_commits: int = 100) -> History:
    return read_history(folder, head_of(folder), most_commits=most_commits)


def test_only_files_below_the_folder_count_and_their_paths_start_there(
    repository: pygit2.Repository, commit: Commit
) -> None:
    commit("Begin", {"src/a.py": "1", "srcs/b.py": "1", "c.py": "1"})
    last = commit("Change both", {"src/a.py": "2", "c.py": "2"})
    folder = Path(repository.workdir, "src")
    assert touched(folder) == [("a.py", "Change both"), ("a.py", "Begin")]
    assert head_of(folder) == history_of(folder).head == str(last)


def test_older_commits_than_asked_for_are_left_out_with_a_note(repository: pygit2.Repository, commit: Commit) -> None:
    for number in range(4):
        commit(f"Change {number}", {"a.py": str(number)})
    folder = Path(repository.workdir)
    history = history_of(folder, 3)
    assert [act.detail for act in history.activities] == ["Change 3", "Change 2", "Change 1"]
    assert history.note == "only the last 3 commits of the git history were read"
    assert history_of(folder, 4).note == ""


def test_a_merge_counts_for_no_file_but_what_it_merged_does(repository: pygit2.Repository, commit: Commit) -> None:
    base = commit("Begin", {"a.py": "1"})
    side = commit("On the side", {"b.py": "1"}, [base], branch="refs/heads/side")
    main = commit("On main", {"c.py": "1"}, [base])
    commit("Merge the side", {"d.py": "by the merge"}, [main, side])
    subjects = {detail for _, detail in touched(Path(repository.workdir))}
    assert subjects == {"Begin", "On the side", "On main"}


@pytest.mark.parametrize(("files", "counts"), [(300, True), (301, False)])
def test_a_commit_of_more_than_300_files_says_nothing_about_one(
    repository: pygit2.Repository, commit: Commit, files: int, counts: bool
) -> None:
    commit("Sweep", {f"{number}.py": "" for number in range(files)})
    assert bool(touched(Path(repository.workdir))) is counts


def test_a_commit_of_an_impossible_time_is_passed_over(repository: pygit2.Repository, commit: Commit) -> None:
    before = commit("Before", {"a.py": "1"})
    commit("Template", {"a.py": "2"})
    # Written by hand: libgit2 cuts a time to 32 bits when it makes a commit, and reads 64 bits of another's.
    template = repository.odb.read(repository.head.target)[1]
    forged = template.replace(b"Template", b"In the year 300,000").replace(b"> 1700000000", b"> 9400000000000")
    middle = repository.odb.write(pygit2.enums.ObjectType.COMMIT, forged)
    repository.set_head(middle)
    commit("After", {"a.py": "3"})
    assert repository[middle].commit_time == 9_400_000_000_000
    assert repository[middle].parent_ids == [before]
    assert touched(Path(repository.workdir)) == [("a.py", "After"), ("a.py", "Before")]


def test_history_ends_where_the_objects_of_the_repository_end(repository: pygit2.Repository, commit: Commit) -> None:
    first = str(commit("Begin", {"a.py": "1"}))
    commit("Change", {"a.py": "2"})
    commit("Change again", {"a.py": "3"})
    Path(repository.path, "objects", first[:2], first[2:]).unlink()
    assert touched(Path(repository.workdir)) == [("a.py", "Change again")]
    assert "an older one is missing or damaged" in history_of(Path(repository.workdir)).note


@pytest.mark.parametrize("make", ["nothing", "unborn", "bare"])
def test_without_a_commit_there_is_no_history(make: str, tmp_path: Path) -> None:
    if make != "nothing":
        pygit2.init_repository(str(tmp_path), bare=make == "bare")
    assert head_of(tmp_path) == ""


def test_head_is_found_wherever_git_stores_it(repository: pygit2.Repository, commit: Commit, tmp_path: Path) -> None:
    first = str(commit("Begin", {"a.py": "1"}))
    root = Path(repository.workdir)
    repository.add_worktree("other", str(tmp_path / "other"))
    last = str(commit("Change", {"a.py": "2"}))
    assert (head_of(root), head_of(tmp_path / "other")) == (last, first)
    assert [act.detail for act in history_of(tmp_path / "other").activities] == ["Begin"]
    subprocess.run(["git", "-C", str(root), "pack-refs", "--all"], check=True)
    assert not (root / ".git/refs/heads/main").exists()
    assert (head_of(root), head_of(tmp_path / "other")) == (last, first)
    (root / ".git/HEAD").write_text(f"{first}\n")
    assert head_of(root) == first
    (root / ".git/HEAD").write_text("ref: refs/heads/nowhere\n")
    assert head_of(root) == ""


HOSTILE_HEADS = {
    "nonsense": b"\xff\xfe nonsense",
    "a loop": b"ref: HEAD",
    "a path out of the repository": b"ref: ../../../etc/passwd",
    "an absolute path": b"ref: /etc/passwd",
    "too long": b"a" * 5000,
}


@pytest.mark.parametrize("what", HOSTILE_HEADS)
def test_a_hostile_head_is_refused(repository: pygit2.Repository, commit: Commit, what: str) -> None:
    commit("Begin", {"a.py": "1"})
    Path(repository.path, "HEAD").write_bytes(HOSTILE_HEADS[what])
    with pytest.raises(UnreadableHistory):
        head_of(Path(repository.workdir))


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs", "commondir"])
def test_a_pipe_in_the_place_of_a_ref_does_not_block(repository: pygit2.Repository, commit: Commit, name: str) -> None:
    commit("Begin", {"a.py": "1"})
    place = Path(repository.path, name)
    if name == "packed-refs":
        Path(repository.path, "refs/heads/main").unlink()
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with pytest.raises(UnreadableHistory, match=place.name):
        head_of(Path(repository.workdir))


def test_a_file_git_that_names_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("nonsense")
    with pytest.raises(UnreadableHistory, match="neither a folder"):
        head_of(tmp_path)
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert head_of(tmp_path) == ""


def test_a_repository_that_libgit2_cannot_open_is_unreadable(repository: pygit2.Repository, commit: Commit) -> None:
    commit("Begin", {"a.py": "1"})
    Path(repository.path, "config").write_text("[core\n nonsense")
    with pytest.raises(UnreadableHistory, match="config"):
        history_of(Path(repository.workdir))


def test_a_damaged_tree_costs_its_commit_and_is_noted(repository: pygit2.Repository, commit: Commit) -> None:
    commit("Begin", {"a.py": "1"})
    damaged = str(repository[commit("Change", {"a.py": "2"})].tree.id)
    commit("Change b", {"b.py": "2"})
    (Path(repository.path, "objects", damaged[:2], damaged[2:])).unlink()
    history = history_of(Path(repository.workdir))
    assert {act.detail for act in history.activities} == {"Begin"}
    assert history.note == "2 of the last 3 commits of the git history cannot be read"


def test_a_shallow_clone_is_noted_and_its_first_commit_says_nothing(
    repository: pygit2.Repository, commit: Commit, tmp_path: Path
) -> None:
    for number in range(4):
        commit(f"Change {number}", {"a.py": str(number), f"{number}.py": ""})
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "2", f"file://{repository.workdir}", str(clone)], check=True)
    history = history_of(clone)
    assert {act.detail for act in history.activities} == {"Change 3"}
    assert history.note == "the git history is that of a shallow clone"


@pytest.fixture
def piped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a pipe for its configuration, which libgit2 opens and waits for."""
    root = tmp_path / "piped"
    repository = pygit2.init_repository(str(root))
    (root / "a.py").write_text("def okapi():\n    return 1\n")
    repository.index.add_all()
    repository.create_commit("HEAD", ANN, ANN, "Begin", repository.index.write_tree(), [])
    (root / ".git" / "config").unlink()
    os.mkfifo(root / ".git" / "config")
    monkeypatch.setattr(git_history, "_COMMIT_SECONDS", 0.5)
    return root


def test_a_repository_that_never_answers_costs_the_history_and_is_noted_once(piped: Path, tmp_path: Path) -> None:
    with open_engine(piped, index_dir=str(tmp_path / "index")) as engine:
        report = engine.index()
        assert report.notes == ["the git history was not read: its repository took longer than 0.5 s to read"]
        assert report.read == 1
        assert engine.index().notes == []
        # A file that was read in the clock's tick in which it was written is looked at again.
        assert wait_for(lambda: engine.index() and engine.is_current(engine.changes()), "a current index")
        assert engine.search("okapi").hits
    (found,) = check_git(piped)
    assert found.state is State.PROBLEM
    assert "took longer" in found.detail


def test_no_child_is_started_while_head_stays(
    repository: pygit2.Repository, commit: Commit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit("Begin", {"a.py": "1"})
    root = Path(repository.workdir)
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        (act,) = engine.store.activity(Filters())
        assert act.detail == "Begin"
        with monkeypatch.context() as patch:
            patch.setattr(ChildProcess, "_spawn", lambda _: pytest.fail("a child was started"))
            engine.index()
        assert engine.is_current(engine.changes())
        # The files stay as they are.
        repository.create_commit("HEAD", ANN, ANN, "Say more", repository[act.reference].tree_id, [act.reference])
        assert not engine.is_current(engine.changes())
        engine.index()
        assert engine.is_current(engine.changes())
        assert engine.store.history_head() == str(repository.head.target)
        (root / ".git" / "HEAD").unlink()
        engine.index()
        assert engine.store.activity(Filters()) == []
