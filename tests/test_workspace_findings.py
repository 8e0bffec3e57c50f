"""What reviews found wrong with workspaces, each as small as it gets."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from satchel import Block, ContextEngine, ConversationMessage, Focus, TokenBudget, User, counter_for
from satchel.errors import InvalidInput, InvalidOption
from satchel.models.access import Effect, principal
from satchel.models.block import is_done
from satchel.models.options import DEFAULT_CONTEXT_CONFIG, RequestType, TruncationStrategy, with_changes
from satchel.service.importing import import_source
from satchel.workspace import recipe as workspace
from satchel.workspace.trim import ContentTruncator
from tests.effort import no_blow_up
from tests.workspaces import BOB, NOW, engine_in, ids, request


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ContextEngine]:
    with engine_in(tmp_path) as engine:
        yield engine


def put(engine: ContextEngine, *blocks: Block) -> None:
    with engine.workspace.edit() as edit:
        for block in blocks:
            edit.put(block)


def vault(folder: Path, **notes: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in notes.items():
        (folder / f"{name}.md").write_text(text)
    return folder


# -- imports


def test_a_prefix_is_for_grants_and_activity_too(engine: ContextEngine, tmp_path: Path) -> None:
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


def test_a_vault_that_is_suddenly_empty_takes_nothing_away(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="text of a", B="text of b")
    import_source(engine.workspace, folder)
    for note in folder.iterdir():
        note.unlink()
    with pytest.raises(InvalidInput, match="they are kept"):
        import_source(engine.workspace, folder)
    assert engine.store.holds_blocks()
    assert engine.workspace.forget(str(folder)) >= 2
    assert not engine.store.holds_blocks()


def test_an_import_leaves_ones_own_blocks_alone(engine: ContextEngine, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("year", [1, 1500, 9999])
def test_any_date_can_be_kept(engine: ContextEngine, year: int) -> None:
    when = datetime(year, 5, 5, tzinfo=UTC)
    put(engine, Block(id="old", type="text", content="an old map", last_modified=when))
    assert engine.build(request("old map", focus=Focus(block_id="old"))).items[0].metadata.last_modified == when


def test_a_note_that_changed_after_its_import_is_said_to_have(engine: ContextEngine, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", A="The ferry leaves at nine.")
    import_source(engine.workspace, folder)
    later = time.time() + 5
    os.utime(folder / "A.md", (later, later))
    assert any("A.md has changed" in note for note in engine.build(request("ferry", focus=Focus(page_id="A"))).notes)
    (folder / "A.md").unlink()
    assert any("A.md has changed" in note for note in engine.build(request("ferry", focus=Focus(page_id="A"))).notes)


# -- several at once


def test_many_threads_may_record_and_edit(engine: ContextEngine) -> None:
    put(engine, Block(id="a", type="page", title="A"))
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(10):
                engine.workspace.record("ann", "view", "a", NOW - timedelta(minutes=i))
                with engine.workspace.edit() as edit:
                    edit.put(Block(id=f"{number}-{i}", type="text", content=f"text {number} {i}"))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(engine.store.recent(engine.filters_for(BOB), limit=99)) == 30


# -- what is shown


def test_a_focused_page_or_file_shows_its_text(engine: ContextEngine) -> None:
    put(engine, Block(id="press", type="page", title="Press list", content="We tell Ann at the Gazette first."))
    assert "Gazette" in engine.build(request("Summarize this page", focus=Focus(page_id="press"))).serialized
    (engine.root / "run.py").write_text("LIMIT = 9\nfor i in range(LIMIT):\n    print(i)\n")
    engine.index()
    assert "print(i)" in engine.build(request("translate", focus=Focus(page_id="run.py"))).serialized


def test_the_answer_in_a_long_block_is_shown(engine: ContextEngine) -> None:
    body = [f"Entry {i}: the team met and talked about item {i} of the list." for i in range(2600)]
    body[2500] = "The vault code for the harbor office is 7719."
    put(engine, Block(id="log", type="page", title="Log", content="\n".join(body)))
    for kind in ("assist", "chat", "search"):
        assert "7719" in engine.build(request("what is the vault code for the harbor office?", type=kind)).serialized
    focused = engine.build(request("what is the vault code for the harbor office?", focus=Focus(block_id="log")))
    assert "7719" in focused.serialized
    assert engine.expand("log").text == "\n".join(body)


def test_one_line_that_answers_among_many_that_repeat_is_kept() -> None:
    log = "\n".join(["12:00 heartbeat ok"] * 400 + ["12:07 worker crashed: disk full"] + ["12:00 heartbeat ok"] * 400)
    truncator = ContentTruncator(counter_for("gpt-4o"), query="why did the worker crash?")
    assert "disk full" in truncator.truncate(log, 300, TruncationStrategy.EXTRACTIVE)


def test_code_is_cut_by_lines_and_keeps_its_first(engine: ContextEngine) -> None:
    lines = ["def report(rows):"] + [f"    step_{i} = prepare(rows, {i})" for i in range(900)]
    lines[700] = "    total = compute_total(rows)"
    (engine.root / "big.py").write_text("\n".join(lines) + "\n")
    engine.index()
    budget = TokenBudget(total=600, system=0)
    payload = engine.build(
        request("where is the total computed?", focus=Focus(block_id="big.py:5"), token_budget=budget)
    )
    text = next(item.content for item in payload.items if item.section == "focus")
    assert text.startswith("def report(rows):")
    assert "total = compute_total(rows)\n    step_700 = prepare(rows, 700)" in text


def test_code_that_changed_on_disk_is_said_to_have(engine: ContextEngine) -> None:
    (engine.root / "a.py").write_text("def alpha():\n    return 1\n")
    engine.index()
    (engine.root / "a.py").write_text("def alpha():\n    return 22222\n")
    payload = engine.build(request("zebra crossing", focus=Focus(block_id="a.py#alpha")))
    assert any("a.py has changed" in note for note in payload.notes)
    (engine.root / "a.py").unlink()
    assert any("a.py is gone" in n for n in engine.build(request("zebra", focus=Focus(block_id="a.py#alpha"))).notes)


def test_a_block_with_the_id_of_a_turn_is_not_the_turn(engine: ContextEngine) -> None:
    put(engine, Block(id="conversation:1", type="page", title="Plan", content="short"))
    turns = (ConversationMessage(role="user", content="I typed a text that is longer than the block is."),)
    payload = engine.build(
        request("the plan?", type="chat", focus=Focus(block_id="conversation:1"), conversation_history=turns)
    )
    assert ids(payload, "history") == ["conversation:1"]
    assert "short" in payload.section("focus").items[0].content  # type: ignore[union-attr]
    assert payload.expand("conversation:1") == "Plan\nshort"


@pytest.mark.parametrize(
    ("metadata", "done"),
    [({"status": "done"}, True), ({"done": "false"}, False), ({"done": 1}, True),
     ({"done": False, "status": "done"}, False), ({"status": "Cancelled"}, True), ({}, False)],
)  # fmt: skip
def test_done_may_be_said_in_several_ways(metadata: dict[str, Any], done: bool) -> None:
    assert is_done(metadata) is done


@pytest.mark.parametrize("query", ["What is due this week?", "what are my deadlines?", "Which tasks are due tomorrow?"])
def test_what_is_due_soon_is_found_behind_much_that_is_overdue(engine: ContextEngine, query: str) -> None:
    old = [Block(id=f"o{i}", type="todo", content=f"old {i}", metadata={"due": "2026-01-01"}) for i in range(40)]
    put(engine, *old, Block(id="soon", type="todo", content="Paint the pier", metadata={"due": "2026-11-17"}))
    assert "soon" in ids(engine.build(request(query, type="chat")), "semantic")


def test_a_long_focus_leaves_room_for_what_is_around_it(engine: ContextEngine) -> None:
    put(
        engine,
        Block(id="page", type="page", title="Page"),
        Block(id="long", type="text", parent="page", content="A long sentence about nothing at all. " * 2000),
        Block(id="next", type="text", parent="page", position=1, content="What comes next."),
        Block(id="child", type="todo", parent="long", content="A small task"),
    )
    payload = engine.build(request("zzz", focus=Focus(block_id="long")))
    assert set(ids(payload, "focus")) == {"long", "page", "next", "child"}


def test_no_line_takes_long_to_write(engine: ContextEngine) -> None:
    put(engine, Block(id="odd", type="text", content="z\n" + "- " * 100_000 + "x"))
    with no_blow_up("a line"):
        engine.build(request("zzz", focus=Focus(block_id="odd")))


def test_an_index_beside_250_edits_of_one_block_shows_the_others_too(engine: ContextEngine) -> None:
    put(
        engine,
        Block(id="busy", type="text", content="busy block"),
        Block(id="other", type="text", content="other block"),
    )
    with engine.workspace.edit() as edit:
        edit.record("ann", "edit", "other", NOW - timedelta(hours=2))
        for i in range(250):
            edit.record("ann", "edit", "busy", NOW - timedelta(seconds=i))
            edit.record("ann", "edit", "busy", NOW + timedelta(days=i + 1))
    assert set(ids(engine.build(request("zzz")), "activity")) == {"busy", "other"}


def test_dividers_take_no_number(engine: ContextEngine) -> None:
    put(engine, Block(id="p", type="page", title="P"), Block(id="d", type="divider", parent="p"))
    payload = engine.build(request("zzz", focus=Focus(page_id="p")))
    assert ids(payload, "focus") == ["p"]
    assert next(entry.reason for entry in payload.ledger if entry.id == "d") == "no-text"


def test_a_long_block_hides_nothing_when_it_is_cut(engine: ContextEngine) -> None:
    text = "\n".join(f"Entry {i} of the harbor ledger \x1b[31m \u202e" for i in range(400))
    put(engine, Block(id="log", type="text", content=text))
    for format in ("xml", "markdown"):
        for total in (300, 3000):
            budget = TokenBudget(total=total, system=0)
            asked = request("harbor ledger entry", type="search", format=format, token_budget=budget)
            payload = engine.build(asked)
            assert "log" in ids(payload, "semantic")
            assert "\x1b" not in payload.serialized
            assert "\u202e" not in payload.serialized
            assert engine.validate(payload).valid


def test_the_whole_text_of_a_long_block_has_no_receipt_of_its_part(engine: ContextEngine) -> None:
    text = "\n".join(f"Entry {i} of the harbor ledger." for i in range(200))
    put(engine, Block(id="log", type="text", content=text), Block(id="note", type="text", content="See the log."))
    with engine.workspace.edit() as edit:
        edit.link("note", "log")
    budget = TokenBudget(total=20_000)
    asked = request("harbor ledger entry", focus=Focus(block_id="note"), type="search", token_budget=budget)
    item = next(item for item in engine.build(asked).items if item.block_id == "log")
    assert (item.content == text) == (item.trim is None)


def test_nearness_to_the_focus_counts_also_without_the_focus_collector(tmp_path: Path) -> None:
    changes = {"collectors": {"focus": {"enabled": False}, "semantic": {"top_k": 2}}}
    config = with_changes(DEFAULT_CONTEXT_CONFIG, changes)
    with engine_in(tmp_path, context_config=config) as engine:
        put(
            engine,
            Block(id="p", type="page", title="P"),
            Block(id="here", type="text", parent="p", content="what is focused"),
            Block(id="near", type="text", parent="p", content="the ferry leaves at nine"),
            Block(id="far", type="text", content="the ferry leaves at ten"),
        )
        found = {e.id: e.signals for e in engine.build(request("ferry", focus=Focus(block_id="here"))).ledger}
        assert found["near"]["structural"] == 0.8
        assert found["far"]["structural"] == 0.0


# -- bad input


@pytest.mark.parametrize(
    "wrong",
    [{"title": None}, {"content": None}, {"content": b""}, {"position": float("nan")}, {"position": "a"},
     {"last_modified": "2026-01-01"}, {"summary": None}, {"start_line": 2**70}, {"start_line": "a"},
     {"metadata": {"x": object()}}, {"metadata": {"x": float("nan")}}, {"type": "Two Words"}],
)  # fmt: skip
def test_a_block_that_could_not_be_kept_is_refused(engine: ContextEngine, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        put(engine, Block(**{"id": "x", "type": "text", "content": "text"} | wrong))


@pytest.mark.parametrize("wrong", ["groups:staff", "Group:x", "", "user:", "group: "])
def test_a_principal_that_is_misspelt_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput):
        principal(wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"collectors": 5}, {"collectors": {"semantic": True}}, {"by_type": {"chat": 5}}, {"by_type": {"chta": {}}},
     {"token_budget": 5}, {"collectors": {"deadline_ms": 1e300}}, {"collectors": {"semantic": {"top_k": 2.5}}}],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        with_changes(DEFAULT_CONTEXT_CONFIG, wrong)


def test_a_user_must_have_a_name_that_can_be_kept() -> None:
    with pytest.raises(InvalidOption):
        User(id="\ud800")


@pytest.mark.parametrize("kind", ["text", "heading"])
def test_what_is_revoked_while_a_context_is_built_does_not_come_with_what_is_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Between collecting and the last look: a title shows what stands below it, a page its outline."""
    from satchel.workspace.gather import admit_blocks as real

    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            edit.put(Block(id="title", type="page", title="Garden tools"))
            secret = "The safe opens with 4711."
            title, content = ("", secret) if kind == "text" else (secret, "")
            edit.put(Block(id="below", type=kind, parent="title", title=title, content=content))
            edit.grant("title", "user:ann")
        asked = [
            request("Garden tools", type=RequestType.SEARCH),
            request("What is this?", focus=Focus(page_id="title")),
        ]
        assert any("4711" in engine.build(one).serialized for one in asked), "which is what this is about"

        def late(*told: Any) -> Any:
            def deny() -> None:
                with engine.workspace.edit() as edit:
                    edit.grant("below", "user:ann", Effect.DENY)

            thread = threading.Thread(target=deny)
            thread.start()
            thread.join()
            return real(*told)

        monkeypatch.setattr(workspace, "admit_blocks", late)
        for one in asked:
            with engine.workspace.edit() as edit:
                edit.grant("below", "user:ann", Effect.ALLOW)
            payload = engine.build(one)
            assert "4711" not in payload.serialized
            assert "below" not in {entry.id for entry in payload.ledger}
