"""A new index starts as a copy of the index of the same tree elsewhere, with nothing of anybody's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from satchel.errors import IndexBusy, UnknownBlock
from satchel.models.access import Effect
from satchel.models.block import Action, Block, BlockType
from satchel.models.search import Filters
from satchel.service.engine import ContextEngine
from satchel.service.factory.opening import open_engine, place_of
from satchel.service.settings import Settings
from satchel.storage.sqlite.seeding import Seeding


def tree(root: Path, count: int = 12) -> Path:
    for number in range(count):
        (root / "pack").mkdir(parents=True, exist_ok=True)
        (root / "pack" / f"m{number}.py").write_text(f"def function_{number}():\n    return {number}\n")
    return root


def opened(root: Path) -> ContextEngine:
    return open_engine(root, index_dir=str(root.parent / "index"))


@pytest.fixture
def worktrees(tmp_path: Path) -> tuple[Path, Path]:
    """An indexed folder, and a copy that is not indexed."""
    one = tree(tmp_path / "one")
    with opened(one) as engine:
        engine.index()
    return one, Path(shutil.copytree(one, tmp_path / "two"))


def answers(engine: ContextEngine) -> list[object]:
    questions = ["function_3", "which function returns 7", "function"]
    return [[(hit.id, hit.relevance, hit.content) for hit in engine.search(q).hits] for q in questions]


def test_a_second_worktree_reads_only_what_differs_and_answers_as_an_index_from_nothing(
    worktrees: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = worktrees
    (two / "pack" / "m3.py").write_text("def function_3():\n    return 33\n")
    (two / "pack" / "m4.py").unlink()
    with opened(two) as engine:
        report = engine.index()
        assert (report.read, report.touched, report.dropped) == (
            1,
            10,
            0,
        )  # the copy came without the file that is not here
        seeded = answers(engine)
        links = [path.stat().st_nlink for path in (tmp_path / "index").glob("*/derived/*.segment")]
        assert 2 in links
    with open_engine(two, index_dir=str(tmp_path / "fresh")) as engine:
        assert engine.index().read == 11
        assert answers(engine) == seeded
    with opened(one) as engine:
        assert engine.index().read == 0


def test_equal_sizes_and_times_do_not_hide_other_content(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    (two / "pack" / "m3.py").write_text("def function_3():\n    return 9\n")
    for root in (one, two):
        for path in root.rglob("*.py"):
            os.utime(path, ns=(10**18, 10**18))
    with opened(one) as engine:
        engine.index()
    with opened(two) as engine:
        assert engine.index().read == 1
        assert "return 9" in engine.search("function_3").hits[0].content


def put_block(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.put(Block(id="plan", type=BlockType.PAGE, title="Secret plan", content="launch"))


def grant(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.grant("/", "user:ann", Effect.ALLOW)


def record(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.record("ann", Action.EDIT, "pack/m1.py", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("change", [put_block, grant, record])
def test_an_index_with_anything_of_users_is_not_copied(
    worktrees: tuple[Path, Path], change: Callable[[ContextEngine], None]
) -> None:
    one, two = worktrees
    with opened(one) as engine:
        change(engine)
    with opened(two) as engine:
        assert engine.index().read == 12
        assert engine.store.block("plan", Filters()) is None


def test_an_index_of_another_embedder_or_reader_or_tree_is_not_copied(
    worktrees: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = worktrees
    with opened(one) as engine, engine.store.write() as writer:
        writer.set_fact("reader", "older")
    with opened(two) as engine:
        assert engine.index().read == 12
    with opened(one) as engine:
        (one / "pack" / "m0.py").write_text("changed = 1\n")
        engine.index()
        assert engine.store.fact("reader") == "", "files of two readers"
    other = tree(tmp_path / "other", count=2)
    with opened(other) as engine:
        assert engine.index().read == 2


def test_a_busy_or_damaged_index_is_not_copied(worktrees: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = worktrees
    with opened(one) as busy, busy.store.lock(), opened(two) as engine:
        assert engine.index().read == 12
    three = Path(shutil.copytree(one, tmp_path / "three"))
    for truth in (tmp_path / "index").glob("*/truth.sqlite"):
        truth.write_bytes(b"no database" * 1000)
    with opened(three) as engine:
        assert engine.index().read == 12
    assert not list((tmp_path / "index").glob("*/*.part*"))


def test_a_new_index_that_was_only_opened_is_empty(worktrees: tuple[Path, Path]) -> None:
    with opened(worktrees[1]) as engine:
        assert engine.status().files == 0


def test_segments_are_copied_where_links_are_not_possible(
    worktrees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr("os.link", no_links)
    with opened(worktrees[1]) as engine:
        assert engine.index().read == 0
        assert engine.search("function_3").hits


def test_a_copy_without_its_segments_answers_as_the_whole_copy(
    worktrees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between the database and the segments."""

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("satchel.storage.sqlite.seeding._link_segments", full)
    with opened(worktrees[0]) as one, opened(worktrees[1]) as two:
        assert two.index().read == 0
        assert answers(two) == answers(one)


def test_a_grant_made_after_an_index_was_chosen_keeps_it_from_being_copied(
    worktrees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = Seeding._candidates

    def grant_then(self: Seeding) -> list[Path]:
        chosen = candidates(self)
        assert chosen
        with opened(worktrees[0]) as other:
            grant(other)
        return chosen

    monkeypatch.setattr(Seeding, "_candidates", grant_then)
    with opened(worktrees[1]) as engine:
        assert engine.index().read == 12


def test_a_copy_holds_no_file_that_the_new_folder_ignores_not_even_before_its_first_run(
    worktrees: tuple[Path, Path],
) -> None:
    (worktrees[1] / ".satchelignore").write_text("m4.py\n")
    with opened(worktrees[1]) as engine:
        engine.changes()  # starts from the copy
        assert engine.store.generation
        assert "pack/m4.py" not in engine.store.files()
        assert "pack/m5.py" in engine.store.files()
        with pytest.raises(UnknownBlock):
            engine.expand("pack/m4.py")


def test_an_index_that_was_removed_and_made_anew_is_not_spoiled_by_a_process_that_had_it_open(tmp_path: Path) -> None:
    root = tree(tmp_path / "one")
    with opened(root) as before:
        for number in range(3):
            (root / "pack" / "m0.py").write_text(f"def function_0():\n    return {number}\n")
            before.index()
        place_of(root, Settings(index_dir=str(tmp_path / "index"))).remove()
        with opened(root) as anew:
            anew.index()
            with anew.workspace.edit() as edit:
                edit.put(Block(id="plan", type=BlockType.PAGE, title="Plan of the harbor"))
        (root / "pack" / "m1.py").write_text("def function_1():\n    return 11\n")
        before.index()
        assert before.store.block("plan", Filters()) is not None
    with opened(root) as engine:
        assert engine.store.block("plan", Filters()) is not None
        assert engine.search("function_1").hits


def test_an_index_is_not_removed_while_it_is_written(tmp_path: Path) -> None:
    root = tree(tmp_path / "one")
    place = place_of(root, Settings(index_dir=str(tmp_path / "index")))
    with opened(root) as engine:
        engine.index()
        with engine.store.lock(), pytest.raises(IndexBusy):
            place.remove()
        assert engine.search("function_1").hits
