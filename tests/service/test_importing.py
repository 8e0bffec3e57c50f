"""Importing into a workspace: again, from several sources, and beside the user's own blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel import Block, ContextEngine, Focus
from satchel.errors import InvalidInput
from satchel.models.block import Link
from satchel.service.importing import ImportReport, import_again, import_source
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


@pytest.fixture
def exact_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files written just before an import count as untouched, without waiting for the clock of the file system."""
    monkeypatch.setattr("satchel.models.files._CLOCK_TICK_NS", 0)


def refreshed(engine: ContextEngine) -> ImportReport:
    """Import what changed, as a question does."""
    (source,) = engine.workspace.sources().values()
    return import_again(engine.workspace, source, only_changes=True)


def stored(engine: ContextEngine) -> list[str]:
    return sorted(repr(record) for record in engine.workspace.records())


NAMES = ("Home", "Plan", "area/area", "area/Plan", "area/deep/Log", "Zoo")
TEXTS = (
    "---\naliases: [Base]\n---\n# Start\n\nsee [[Plan]] and [[Base]] ^start\n",
    "# Tasks\n\n- [ ] do [[Home#Start]]\n- [ ] do [[Log]]\n",
    "links to [[Base]], [[area]], [[Home#^start]], ![[Plan#Tasks]] and [[nowhere]]\n",
    "## Tasks\n\nplain\n",
    "---\naliases: Log\ntags: [a]\n---\n[near](../Home.md) [[Zoo]]\n",
)
WRITE = st.tuples(st.sampled_from(NAMES), st.sampled_from(TEXTS))
DELETE = st.tuples(st.sampled_from(NAMES), st.none())
RENAME = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))
STEPS = st.lists(st.lists(st.one_of(WRITE, DELETE, RENAME), min_size=1, max_size=2), min_size=1, max_size=4)


def apply(folder: Path, name: str, change: str | None, number: int) -> None:
    note = folder / f"{name}.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    if change is None:
        note.unlink(missing_ok=True)
    elif change not in NAMES:
        note.write_text(change + "x" * number)
    elif note.exists():
        target = folder / f"{change}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        note.rename(target)


@settings(max_examples=25)
@given(steps=STEPS)
@pytest.mark.usefixtures("exact_times")
def test_law_importing_only_changes_gives_what_importing_everything_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[tuple[str, str | None]]]
) -> None:
    place = tmp_path_factory.mktemp("law")
    folder, number = place / "vault", 0
    for name, text in zip(NAMES, TEXTS, strict=False):
        apply(folder, name, text, 0)
    (folder / "always.md").write_text("one note is always there, and leads to [[Home]] and [[Log]]\n")
    (place / "incremental").mkdir()
    with engine_in(place / "incremental") as incremental:
        import_source(incremental.workspace, folder)
        for step in steps:
            for name, change in step:
                number += 1
                apply(folder, name, change, number)
            refreshed(incremental)
            (place / f"fresh{number}").mkdir()
            with engine_in(place / f"fresh{number}") as fresh:
                import_source(fresh.workspace, folder)
                assert stored(incremental) == stored(fresh)


@pytest.mark.usefixtures("exact_times")
def test_one_edited_note_is_read_alone_and_a_moved_heading_moves_the_links_of_others(
    engine: ContextEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {f"note{number}": f"to [[A#Part]] from {number}" for number in range(30)}
    folder = vault(tmp_path / "v", A="# Part\n\ntext", B="to [[A#Part]]", **others)
    import_source(engine.workspace, folder)
    read: list[str] = []

    def read_bytes(_root: int, path: str, _most: int) -> bytes:
        read.append(path)
        return b"# Other"

    monkeypatch.setattr("satchel.importers.vault.read_bytes", read_bytes)
    (folder / "A.md").write_text("# Other")
    report = refreshed(engine)
    assert read == ["A.md"]
    assert report.counts["block"] == 2
    assert report.counts["link"] == 31, "links to the heading lead to the page now"
    targets = {record.target for record in engine.workspace.records() if isinstance(record, Link)}
    assert targets == {"A"}


@pytest.mark.usefixtures("exact_times")
def test_a_note_of_an_import_is_told_once(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="text", B="more")
    (folder / "picture.xyz").write_text("not a note")
    assert len(import_source(engine.workspace, folder).notes) == 1
    (folder / "A.md").write_text("text and more text")
    assert refreshed(engine).notes == []
    (folder / "C.md").write_bytes(b"\0binary")
    assert [note.partition(":")[0] for note in refreshed(engine).notes] == ["C.md"]
    assert refreshed(engine).notes == []
    assert len(import_source(engine.workspace, folder).notes) == 2, "who imports again hears everything again"


@pytest.mark.usefixtures("exact_times")
def test_a_state_of_another_version_or_damaged_reads_everything(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="text", B="more")
    import_source(engine.workspace, folder)
    (source,) = engine.workspace.sources().values()
    good = engine.workspace.import_state(source)
    for bad in ("", "x", good[:-9], good[::-1]):
        with engine.workspace.edit() as edit:
            edit.set_fact(f"imported {source.name}", bad)
        assert refreshed(engine).counts["block"] > 2
    assert refreshed(engine).counts["block"] == 0
    assert engine.workspace.forget(source.name) > 2
    assert not engine.workspace.import_state(source)


@pytest.mark.usefixtures("exact_times")
def test_importing_changes_of_a_vault_with_a_prefix_keeps_the_other_blocks(
    engine: ContextEngine, tmp_path: Path
) -> None:
    folder = vault(tmp_path / "v", A="to [[B]]", B="more")
    import_source(engine.workspace, folder, prefix="p/")
    (folder / "A.md").write_text("now to [[B]] and [[A]]")
    refreshed(engine)
    ids = {record.id for record in engine.workspace.records() if isinstance(record, Block)}
    assert {"p/A", "p/B"} <= ids
    assert all(block.startswith("p/") for block in ids)
    (folder / "B.md").unlink()
    assert refreshed(engine).removed >= 1
