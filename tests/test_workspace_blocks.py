"""Blocks of a workspace: what is refused, what an import reports, and which sources have changed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from satchel import Block, ContextEngine, LinkKind
from satchel.errors import InvalidInput
from satchel.models.block import Activity, Link, Notice
from satchel.service.importing import import_source
from tests.workspaces import engine_in

PAGE = Block(id="page", type="page", title="Page")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ContextEngine]:
    with engine_in(tmp_path) as engine:
        yield engine


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.md").write_text("# One\n\nThe first note.\n")
    (folder / "deep" / "two.md").write_text("# Two\n\nThe second note.\n")
    return folder


def block_ids(engine: ContextEngine) -> set[str]:
    return {record.id for record in engine.workspace.records() if isinstance(record, Block)}


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("title", 7, "must be text"),
        ("content", None, "must be text"),
        ("signature", b"f()", "must be text"),
        ("position", True, "must be a number"),
        ("position", math.nan, "must be a number"),
        ("position", "first", "must be a number"),
        ("start_line", -1, "must be the number of a line"),
        ("end_line", 2**31, "must be the number of a line"),
        ("end_line", True, "must be the number of a line"),
        ("last_modified", "2026-11-16", "must be a datetime"),
        ("content", "x" * 16_000_001, "is longer than 16,000,000 characters"),
    ],
)
def test_a_block_that_could_not_be_stored_is_refused_and_nothing_of_its_edit_stays(
    engine: ContextEngine, name: str, value: Any, problem: str
) -> None:
    wrong = replace(PAGE, id="wrong", **{name: value})
    with pytest.raises(InvalidInput, match=problem) as caught:
        engine.workspace.load([PAGE, wrong])
    assert caught.value.field == name
    assert block_ids(engine) == set()


def test_activity_needs_a_time_that_is_one(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.put(PAGE)
    with pytest.raises(InvalidInput, match="must be a datetime"):
        engine.workspace.record("ann", "edit", "page", at="yesterday")  # type: ignore[arg-type]


def test_records_about_unknown_blocks_are_left_out_noted_and_not_counted(engine: ContextEngine) -> None:
    when = datetime(2026, 11, 1, tzinfo=UTC)
    report = engine.workspace.load(
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
    assert [note for note in report.notes if "'gone'" in note and note.startswith("left out: ")]
    stored = [record for record in engine.workspace.records() if isinstance(record, Link)]
    assert len(stored) == report.counts["link"]
    assert "child" in {link.target for link in stored}


def test_a_block_under_itself_is_made_a_root_with_a_note(engine: ContextEngine) -> None:
    report = engine.workspace.load([replace(PAGE, parent="page")])
    (note,) = report.notes
    assert note.startswith("'page' was made a root: ")
    assert [record.parent for record in engine.workspace.records() if isinstance(record, Block)] == [None]


def test_a_thousand_notes_are_enough(engine: ContextEngine) -> None:
    report = engine.workspace.load(Notice(where="", problem=f"problem {number}") for number in range(2_000))
    assert report.notes == [*(f"problem {number}" for number in range(1_000)), "… and more"]


def test_a_source_that_became_empty_keeps_its_blocks(engine: ContextEngine, notes: Path) -> None:
    import_source(engine.workspace, notes)
    before = block_ids(engine)
    assert before
    for note in notes.rglob("*.md"):
        note.unlink()
    with pytest.raises(InvalidInput, match=rf"holds nothing now, and {len(before)} blocks came from it"):
        import_source(engine.workspace, notes, kind="vault")
    assert block_ids(engine) == before


def test_only_a_source_that_is_known_can_be_forgotten(engine: ContextEngine, notes: Path) -> None:
    with pytest.raises(InvalidInput, match="is not one of none"):
        engine.workspace.forget("vault:/nowhere")
    import_source(engine.workspace, notes)
    (name,) = engine.workspace.sources()
    with pytest.raises(InvalidInput, match=f"is not one of {name}"):
        engine.workspace.forget("vault:/nowhere")
    blocks = block_ids(engine)
    assert engine.workspace.forget(name) == len(blocks) > 0
    assert block_ids(engine) == set()
    assert engine.workspace.sources() == {}


def test_files_that_changed_after_their_import_are_named(engine: ContextEngine, notes: Path) -> None:
    asked = ["one.md", "deep/two.md", "one.md", "never.md"]
    assert engine.workspace.changed_since(asked) == []  # nothing was imported, so nothing is known
    import_source(engine.workspace, notes)
    assert engine.workspace.changed_since(asked) == ["never.md"]
    assert engine.workspace.changed_sources() == []
    late = engine.workspace.sources().popitem()[1].imported_ns + 1
    os.utime(notes / "deep" / "two.md", ns=(late, late))
    assert engine.workspace.changed_since(asked) == ["deep/two.md", "never.md"]
    (notes / "one.md").unlink()
    assert engine.workspace.changed_since(asked) == ["one.md", "deep/two.md", "never.md"]
    assert [source.path for source in engine.workspace.changed_sources()] == [str(notes)]


def test_a_source_in_one_file_is_seen_to_change(engine: ContextEngine, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "Hello."}\n')
    import_source(engine.workspace, chat)
    assert engine.workspace.changed_sources() == []
    chat.write_text('{"role": "user", "content": "Hello again."}\n')
    assert [source.path for source in engine.workspace.changed_sources()] == [str(chat)]
    chat.unlink()
    assert engine.workspace.changed_sources() == []  # it is not there to be imported again
