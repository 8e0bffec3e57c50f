"""Watching a folder: an unchanged one is not walked again, and a change is never missed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from satchel.errors import InvalidOption, WorkspaceMissing
from satchel.indexing.changes import Changes
from satchel.service import watching
from satchel.service.local_client import LocalSatchel, open_local
from satchel.service.question import Question
from satchel.service.watching import CannotWatch, FolderWatch

TIDE = "def tide_table(harbour):\n    return harbour.moon\n"


class Looks:
    """Counts how often the folder is walked."""

    def __init__(self, client: LocalSatchel, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._changes = client.engine.changes
        patch.setattr(client.engine, "changes", self._look)

    def _look(self) -> Changes:
        self.count += 1
        return self._changes()

    def during(self, client: LocalSatchel, question: str = "backoff delay", **options: object) -> int:
        """How often one question makes the client walk."""
        before = self.count
        client.search(question, **options)  # type: ignore[arg-type]
        return self.count - before


@pytest.fixture
def looks(local_client: LocalSatchel, monkeypatch: pytest.MonkeyPatch) -> Looks:
    """A client that watches its folder, since it has answered two questions."""
    counted = Looks(local_client, monkeypatch)
    assert counted.during(local_client) == 1
    assert local_client.auto_index._looks._watch is None  # one question needs no watch
    settle(local_client, counted)
    return counted


def settle(client: LocalSatchel, looks: Looks) -> None:
    """Ask until a question walks no more: files written just now are read once more."""
    for _ in range(50):
        if not looks.during(client):
            return
    raise AssertionError("every question walks the folder")


def test_an_unchanged_folder_is_not_walked_again(local_client: LocalSatchel, looks: Looks) -> None:
    assert [looks.during(local_client, f"backoff {i}") for i in range(5)] == [0] * 5
    assert looks.during(local_client, fresh="now") == 1


def test_what_was_written_just_before_a_question_is_found(
    local_client: LocalSatchel, looks: Looks, folder: Path
) -> None:
    (folder / "tide.py").write_text(TIDE)
    assert local_client.search("tide table of a harbour").hits[0].path == "tide.py"
    (folder / "tide.py").unlink()
    assert all(hit.path != "tide.py" for hit in local_client.search("tide table of a harbour").hits)
    settle(local_client, looks)
    (folder / "new" / "deep").mkdir(parents=True)
    (folder / "new" / "deep" / "tide.py").write_text(TIDE)
    assert local_client.search("tide table").hits[0].path == "new/deep/tide.py"
    settle(local_client, looks)
    (folder / "new" / "deep" / "tide.py").rename(folder / "new" / "ebb.py")
    assert local_client.search("tide table").hits[0].path == "new/ebb.py"


def test_a_question_may_accept_an_older_look(local_client: LocalSatchel, looks: Looks, folder: Path) -> None:
    (folder / "tide.py").write_text(TIDE)
    assert looks.during(local_client, "tide table", fresh=3_600) == 0
    assert looks.during(local_client, "tide table", fresh=0) == 1


@pytest.mark.parametrize("value", ["soon", -1, float("nan"), float("inf"), True, [1]])
def test_a_freshness_is_a_number_of_seconds_or_now(value: object) -> None:
    with pytest.raises(InvalidOption, match="a number of seconds, or now"):
        Question(query="x", fresh=value)  # type: ignore[arg-type]
    assert Question(query="x", fresh="2.5").fresh == 2.5  # type: ignore[arg-type]
    assert Question(query="x", fresh="").fresh is None  # type: ignore[arg-type]


def test_changes_in_ignored_folders_and_in_the_index_cost_no_walk(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("node_modules", "build"):
        (folder / name).mkdir()
    (folder / ".satchelignore").write_text("build/\n")
    with open_local(folder, index_dir=str(folder / "index")) as client:
        looks = Looks(client, monkeypatch)
        settle(client, looks)
        (folder / "node_modules" / "x.js").write_text("x")
        (folder / "build" / "x.py").write_text("x")
        assert looks.during(client) == 0
        (folder / ".satchelignore").write_text("")
        assert looks.during(client) == 1


def test_a_folder_that_is_removed_and_made_again_is_watched_again(
    local_client: LocalSatchel, looks: Looks, folder: Path
) -> None:
    shutil.rmtree(folder)
    before = looks.count
    with pytest.raises(WorkspaceMissing):
        local_client.search("backoff")
    assert looks.count == before + 1
    folder.mkdir()
    (folder / "tide.py").write_text(TIDE)
    assert [hit.path for hit in local_client.search("tide table").hits] == ["tide.py"]
    settle(local_client, looks)
    (folder / "ebb.py").write_text("def ebb(): ...\n")
    assert looks.during(local_client) == 1


def test_an_edit_by_another_process_is_looked_at(local_client: LocalSatchel, looks: Looks, folder: Path) -> None:
    with local_client.engine.store.write() as writer:
        writer.drop("retry.py")
    assert looks.during(local_client) == 1
    assert local_client.search("backoff delay").hits[0].path == "retry.py"


def test_closing_ends_the_watch(local_client: LocalSatchel, looks: Looks) -> None:
    watch = local_client.auto_index._looks._watch
    assert watch is not None
    assert looks.count
    marker_folder = Path(watch._marker_folder)
    assert marker_folder.is_dir()
    local_client.close()
    assert not marker_folder.exists()


@pytest.mark.parametrize("limit", ["_MAX_FOLDERS", "_MARKER_WAIT_S"])
def test_where_watching_fails_the_folder_is_walked_and_a_note_says_so_once(
    local_client: LocalSatchel, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(watching, limit, 0)
    notes = [note for _ in range(4) for note in local_client.search("backoff delay").notes]
    assert len(notes) == 1
    assert "cannot be watched" in notes[0]
    (folder / "tide.py").write_text(TIDE)
    assert local_client.search("tide table").hits[0].path == "tide.py"


@pytest.mark.parametrize(
    ("mounts", "is_remote"),
    [
        ("1 0 8:1 / / rw - ext4 /dev/sda rw\n", False),
        ("1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / {parent} rw - nfs4 host:/x rw\n", True),
        ("1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / {folder}/sub rw - fuse.sshfs host:/x rw\n", True),
        ("1 0 8:1 / / rw - nfs4 host:/ rw\n2 1 0:5 / {parent} rw - tmpfs none rw\n", False),
    ],
)
def test_a_network_file_system_is_not_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, is_remote: bool
) -> None:
    folder = tmp_path.resolve() / "watched"
    folder.mkdir()
    table = tmp_path / "mountinfo"
    table.write_text(mounts.format(parent=tmp_path.resolve(), folder=folder))
    monkeypatch.setattr(watching, "_MOUNTS", table)
    if is_remote:
        with pytest.raises(CannotWatch, match="network"):
            FolderWatch(folder, {""})
    else:
        FolderWatch(folder, {""}).close()


def test_a_folder_that_is_gone_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FolderWatch(tmp_path, {"", "gone"})


def test_without_a_folder_for_temporary_files_nothing_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(CannotWatch):
        FolderWatch(tmp_path, {""})


def test_a_closed_watch_reports_that_it_cannot_watch(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path, {""})
    watch.close()
    with pytest.raises(CannotWatch):
        watch.is_quiet_since(0.0)


EDIT = st.tuples(
    st.sampled_from(["write", "remove", "move", "remove folder"]),
    st.sampled_from(["a.py", "b/a.py", "b/c/a.py", "b/c/d.py"]),
    st.sampled_from(["b/x.py", "e/f/y.py", "z.py"]),
)
WRITE_AGAIN = ("write", "b/a.py", "")


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(EDIT, min_size=1, max_size=3), max_size=8))
@example([[WRITE_AGAIN], [("remove folder", "b/a.py", ""), WRITE_AGAIN], [WRITE_AGAIN], [WRITE_AGAIN]])
def test_law_a_watching_client_has_every_edit_at_the_next_question(rounds: list[list[tuple[str, str, str]]]) -> None:
    with TemporaryDirectory() as place:
        root = Path(place) / "root"
        root.mkdir()
        (root / "first.py").write_text(TIDE)
        with open_local(root, index_dir=str(Path(place) / "index")) as client:
            for _ in range(3):
                client.search("tide")
            for number, edits in enumerate(rounds):
                for edit, path, other in edits:
                    _apply(edit, root / path, root / other, f"def edited_{number}():\n    return {number}\n")
                client.search("tide")
                on_disk = {file.relative_to(root).as_posix(): file.read_text() for file in root.rglob("*.py")}
                stored = {path: client.expand(path).text.rstrip("\n") for path in client.engine.store.files()}
                assert stored == {path: text.rstrip("\n") for path, text in on_disk.items()}


def _apply(edit: str, path: Path, other: Path, text: str) -> None:
    if edit == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    elif edit == "remove":
        path.unlink(missing_ok=True)
    elif edit == "move" and path.exists():
        other.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, other)
    elif edit == "remove folder" and path.parent.name != "root":
        shutil.rmtree(path.parent, ignore_errors=True)
