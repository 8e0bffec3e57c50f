"""Blocks of a workspace: what is stored and refused, what an import reports, and which sources have changed."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from satchel import Block, ContextEngine, Focus, LinkKind
from satchel.errors import InvalidInput
from satchel.models.block import Activity, Link, Notice
from satchel.service.importing import import_source
from tests.support.workspaces import BOB, NOW, put, request

PAGE = Block(id="page", type="page", title="Page")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.md").write_text("# One\n\nThe first note.\n")
    (folder / "deep" / "two.md").write_text("# Two\n\nThe second note.\n")
    return folder


def block_ids(engine: ContextEngine) -> set[str]:
    return {record.id for record in engine.workspace.records() if isinstance(record, Block)}


def test_many_threads_may_record_and_edit(empty: ContextEngine) -> None:
    put(empty, Block(id="a", type="page", title="A"))
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(10):
                empty.workspace.record("ann", "view", "a", NOW - timedelta(minutes=i))
                with empty.workspace.edit() as edit:
                    edit.put(Block(id=f"{number}-{i}", type="text", content=f"text {number} {i}"))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(empty.store.recent(empty.filters_for(BOB), limit=99)) == 30


@pytest.mark.parametrize("year", [1, 1500, 9999])
def test_any_date_can_be_stored(empty: ContextEngine, year: int) -> None:
    when = datetime(year, 5, 5, tzinfo=UTC)
    put(empty, Block(id="old", type="text", content="an old map", last_modified=when))
    assert empty.build(request("old map", focus=Focus(block_id="old"))).items[0].metadata.last_modified == when


@pytest.mark.parametrize(
    "wrong",
    [{"title": None}, {"content": None}, {"content": b""}, {"position": float("nan")}, {"position": "a"},
     {"last_modified": "2026-01-01"}, {"summary": None}, {"start_line": 2**70}, {"start_line": "a"},
     {"metadata": {"x": object()}}, {"metadata": {"x": float("nan")}}, {"type": "Two Words"}],
)  # fmt: skip
def test_a_block_that_could_not_be_stored_is_refused(empty: ContextEngine, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        put(empty, Block(**{"id": "x", "type": "text", "content": "text"} | wrong))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("title", 7, "must be text"),
        ("content", None, "must be text"),
        ("signature", b"f()", "must be text"),
        ("position", True, "must be a finite number"),
        ("position", math.nan, "must be a finite number"),
        ("position", "first", "must be a finite number"),
        ("start_line", -1, "must be a line number"),
        ("end_line", 2**31, "must be a line number"),
        ("end_line", True, "must be a line number"),
        ("last_modified", "2026-11-16", "must be a datetime"),
        ("content", "x" * 16_000_001, "is longer than 16,000,000 characters"),
    ],
)
def test_a_block_that_could_not_be_stored_is_refused_and_nothing_of_its_edit_stays(
    empty: ContextEngine, name: str, value: Any, problem: str
) -> None:
    wrong = replace(PAGE, id="wrong", **{name: value})
    with pytest.raises(InvalidInput, match=problem) as caught:
        empty.workspace.load([PAGE, wrong])
    assert caught.value.field == name
    assert block_ids(empty) == set()


def test_activity_needs_a_time_that_is_one(empty: ContextEngine) -> None:
    with empty.workspace.edit() as edit:
        edit.put(PAGE)
    with pytest.raises(InvalidInput, match="must be a datetime"):
        empty.workspace.record("ann", "edit", "page", at="yesterday")  # type: ignore[arg-type]


def test_records_about_unknown_blocks_are_left_out_noted_and_not_counted(empty: ContextEngine) -> None:
    when = datetime(2026, 11, 1, tzinfo=UTC)
    report = empty.workspace.load(
        [
            Link(source="page", kind=LinkKind.MENTIONS, target="child"),  # before its blocks: it waits for them
            Link(source="page", kind=LinkKind.MENTIONS, target="nowhere"),
            Activity(block="gone", actor="ann", action="edit", timestamp=when),
            PAGE,
            Block(id="child", type="text", content="A child.", parent="page"),
            Notice(where="export.zip", problem="it is damaged"),
            Notice(where="", problem="it is old"),
        ]
    )
    assert report.counts["block"] == 2
    assert report.counts["activity"] == 0
    assert report.notes[:2] == ["export.zip: it is damaged", "it is old"]
    assert [note for note in report.notes if "'gone'" in note and note.startswith("the activity was left out: ")]
    stored = [record for record in empty.workspace.records() if isinstance(record, Link)]
    assert len(stored) == report.counts["link"]
    assert "child" in {link.target for link in stored}


def test_a_block_under_itself_is_made_a_root_with_a_note(empty: ContextEngine) -> None:
    report = empty.workspace.load([replace(PAGE, parent="page")])
    (note,) = report.notes
    assert note.startswith("'page' was stored without a parent: ")
    assert [record.parent for record in empty.workspace.records() if isinstance(record, Block)] == [None]


def test_a_thousand_notes_are_enough(empty: ContextEngine) -> None:
    report = empty.workspace.load(Notice(where="", problem=f"problem {number}") for number in range(2_000))
    assert report.notes == [*(f"problem {number}" for number in range(1_000)), "… and further notes"]


def test_a_source_that_became_empty_keeps_its_blocks(empty: ContextEngine, notes: Path) -> None:
    import_source(empty.workspace, notes)
    before = block_ids(empty)
    assert before
    for note in notes.rglob("*.md"):
        note.unlink()
    with pytest.raises(InvalidInput, match=rf"contains no blocks now; the {len(before)} blocks of its last import"):
        import_source(empty.workspace, notes, kind="vault")
    assert block_ids(empty) == before


def test_only_a_source_that_is_known_can_be_forgotten(empty: ContextEngine, notes: Path) -> None:
    with pytest.raises(InvalidInput, match="known sources: none"):
        empty.workspace.forget("vault:/nowhere")
    import_source(empty.workspace, notes)
    (name,) = empty.workspace.sources()
    with pytest.raises(InvalidInput, match=f"known sources: {name}"):
        empty.workspace.forget("vault:/nowhere")
    blocks = block_ids(empty)
    assert empty.workspace.forget(name) == len(blocks) > 0
    assert block_ids(empty) == set()
    assert empty.workspace.sources() == {}


def test_files_that_changed_after_their_import_are_named(empty: ContextEngine, notes: Path) -> None:
    asked = ["one.md", "deep/two.md", "one.md", "never.md"]
    assert empty.workspace.changed_since(asked) == []  # nothing was imported, so nothing is known
    import_source(empty.workspace, notes)
    assert empty.workspace.changed_since(asked) == ["never.md"]
    assert empty.workspace.changed_sources() == []
    late = empty.workspace.sources().popitem()[1].imported_ns + 1
    os.utime(notes / "deep" / "two.md", ns=(late, late))
    assert empty.workspace.changed_since(asked) == ["deep/two.md", "never.md"]
    (notes / "one.md").unlink()
    assert empty.workspace.changed_since(asked) == ["one.md", "deep/two.md", "never.md"]
    assert [source.path for source in empty.workspace.changed_sources()] == [str(notes)]


def test_a_source_in_one_file_is_seen_to_change(empty: ContextEngine, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "Hello."}\n')
    import_source(empty.workspace, chat)
    assert empty.workspace.changed_sources() == []
    chat.write_text('{"role": "user", "content": "Hello again."}\n')
    assert [source.path for source in empty.workspace.changed_sources()] == [str(chat)]
    chat.unlink()
    assert empty.workspace.changed_sources() == []  # it is not there to be imported again
