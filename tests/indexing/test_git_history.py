"""Git's history as activity: what is read of a repository, and what is skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from satchel.indexing.git_history import head_of, read_history

ANN = pygit2.Signature("Ann", "ann@example.org", 1_700_000_000, 0)


@pytest.fixture
def repository(tmp_path: Path) -> pygit2.Repository:
    return pygit2.init_repository(str(tmp_path / "repository"), initial_head="main")


Commit = Callable[..., pygit2.Oid]


@pytest.fixture
def commit(repository: pygit2.Repository) -> Commit:
    """Writes files, and commits all there is."""

    def commit(
        message: str,
        files: dict[str, str],
        parents: list[pygit2.Oid] | None = None,
        branch: str = "HEAD",
    ) -> pygit2.Oid:
        for name, text in files.items():
            place = Path(repository.workdir, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        repository.index.add_all()
        repository.index.write()
        if parents is None:
            parents = [] if repository.head_is_unborn else [repository.head.target]
        return repository.create_commit(branch, ANN, ANN, message, repository.index.write_tree(), parents)

    return commit


def touched(folder: Path, most_commits: int = 100) -> list[tuple[str, str]]:
    return [(act.block, act.detail) for act in read_history(folder, most_commits=most_commits).activities]


def test_only_files_below_the_folder_count_and_their_paths_start_there(
    repository: pygit2.Repository, commit: Commit
) -> None:
    commit("Begin", {"src/a.py": "1", "srcs/b.py": "1", "c.py": "1"})
    last = commit("Change both", {"src/a.py": "2", "c.py": "2"})
    folder = Path(repository.workdir, "src")
    assert touched(folder) == [("a.py", "Change both"), ("a.py", "Begin")]
    assert head_of(folder) == read_history(folder, most_commits=1).head == str(last)


def test_older_commits_than_asked_for_are_left_out_with_a_note(repository: pygit2.Repository, commit: Commit) -> None:
    for number in range(4):
        commit(f"Change {number}", {"a.py": str(number)})
    folder = Path(repository.workdir)
    history = read_history(folder, most_commits=3)
    assert [act.detail for act in history.activities] == ["Change 3", "Change 2", "Change 1"]
    assert history.note == "only the last 3 commits of the git history were read"
    assert read_history(folder, most_commits=4).note == ""


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


@pytest.mark.parametrize("make", ["nothing", "unborn", "bare", "broken"])
def test_without_a_commit_to_read_there_is_no_history(make: str, tmp_path: Path) -> None:
    if make in {"unborn", "bare"}:
        pygit2.init_repository(str(tmp_path), bare=make == "bare")
    elif make == "broken":
        (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert read_history(tmp_path, most_commits=9) == ("", (), "no git history")
    assert head_of(tmp_path) == ""
