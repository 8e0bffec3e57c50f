"""Importing into a workspace: again, from several sources, and beside the user's own blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel import Block, ContextEngine, Focus
from satchel.errors import InvalidInput
from satchel.service.importing import import_source
from tests.support.workspaces import BOB, engine_in, put, request


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ContextEngine]:
    with engine_in(tmp_path) as engine:
        yield engine


def vault(folder: Path, **notes: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in notes.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_a_prefix_applies_to_grants_and_activity_too(engine: ContextEngine, tmp_path: Path) -> None:
    put(engine, Block(id="home", type="page", title="Mine"))
    with engine.workspace.edit() as edit:
        edit.grant("home", "ann")
    lines = tmp_path / "x.jsonl"
    lines.write_text(
        '{"record": "workspace", "version": 1}\n{"record": "block", "id": "home", "type": "page", "title": "Theirs"}\n'
        '{"record": "grant", "block": "home", "principal": "*"}\n'
    )
    import_source(engine.workspace, lines, prefix="theirs/")
    assert engine.store.block("home", engine.filters_for(BOB)) is None
    assert engine.store.block("theirs/home", engine.filters_for(BOB)) is not None


def test_importing_a_vault_that_became_empty_removes_nothing(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="text of a", B="text of b")
    import_source(engine.workspace, folder)
    for note in folder.iterdir():
        note.unlink()
    with pytest.raises(InvalidInput, match="were not removed"):
        import_source(engine.workspace, folder)
    assert engine.store.holds_blocks()
    assert engine.workspace.forget(str(folder)) >= 2
    assert not engine.store.holds_blocks()


def test_an_import_leaves_the_users_own_blocks_alone(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="text of a", B="text of b")
    import_source(engine.workspace, folder)
    put(engine, Block(id="mine", type="text", content="my own", parent="A"))
    with engine.workspace.edit() as edit:
        edit.set_default("allow")
        edit.set_inherits("A", inherits=False)
        edit.grant("A", "ann")
    (folder / "A.md").unlink()
    import_source(engine.workspace, folder)
    kept = [one for one in engine.workspace.records() if isinstance(one, Block) and one.id == "mine"]
    assert kept
    assert engine.store.block("mine", engine.filters_for(BOB)) is None  # it was closed through its parent
    put(engine, Block(id="C", type="page", title="C", content="mine"))
    vault(folder, C="theirs")
    with pytest.raises(InvalidInput, match="of the workspace"):
        import_source(engine.workspace, folder)


def test_two_vaults_with_the_same_note_need_a_prefix_and_a_moved_one_does_not(
    engine: ContextEngine, tmp_path: Path
) -> None:
    first, second = vault(tmp_path / "v1", Home="one"), vault(tmp_path / "v2", Home="two")
    import_source(engine.workspace, first)
    with pytest.raises(InvalidInput, match="--prefix"):
        import_source(engine.workspace, second)
    import_source(engine.workspace, second, prefix="two/")
    first.rename(tmp_path / "v3")
    assert import_source(engine.workspace, tmp_path / "v3").counts["block"] >= 1


def test_importing_again_does_not_open_what_was_closed(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="text of a")
    import_source(engine.workspace, folder)
    with engine.workspace.edit() as edit:
        edit.set_default("allow")
        edit.set_inherits("A", inherits=False)
    (folder / "A.md").write_text("other text of a")
    import_source(engine.workspace, folder)
    assert engine.store.block("A", engine.filters_for(BOB)) is None


def test_a_note_that_changed_after_its_import_is_noted(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="The ferry leaves at nine.")
    import_source(engine.workspace, folder)
    later = time.time() + 5
    os.utime(folder / "A.md", (later, later))
    assert any("A.md has changed" in note for note in engine.build(request("ferry", focus=Focus(page_id="A"))).notes)
    (folder / "A.md").unlink()
    assert any("A.md has changed" in note for note in engine.build(request("ferry", focus=Focus(page_id="A"))).notes)
