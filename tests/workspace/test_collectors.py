"""What each collector brings, with which relevance."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from datetime import timedelta
from pathlib import Path

import pytest

from satchel import (
    Block,
    ContextConfig,
    ContextEngine,
    ContextHints,
    ConversationMessage,
    Focus,
    LinkKind,
    TokenBudget,
    User,
)
from satchel.assembly.units import elisions_in
from satchel.models.block import Action
from satchel.models.options import (
    ActivityConfig,
    CollectorsConfig,
    FocusConfig,
    HistoryConfig,
    RelationsConfig,
    RequestType,
    SemanticConfig,
)
from satchel.workspace import gather as gathering
from satchel.workspace.collectors.activity import ActivityCollector
from satchel.workspace.collectors.relations import RelationCollector
from satchel.workspace.collectors.semantic import SemanticCollector, search_text
from tests.support.waiting import HANG_SECONDS, wait_for
from tests.support.workspaces import ANN, NOW, engine_in, fill, ids, put, relevances, request


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ContextEngine]:
    with engine_in(tmp_path) as engine:
        fill(engine)
        yield engine


def with_collectors(tmp_path: Path, **collectors: object) -> ContextConfig:
    return ContextConfig(collectors=CollectorsConfig(**collectors))  # type: ignore[arg-type]


ONLY_FOCUS = {
    "semantic": SemanticConfig(enabled=False),
    "relations": RelationsConfig(enabled=False),
    "activity": ActivityConfig(enabled=False),
}


# -- focus


@pytest.mark.requirement("S4.focus.block")
def test_the_focused_block_is_as_relevant_as_can_be(engine: ContextEngine) -> None:
    payload = engine.build(request(focus=Focus(block_id="book")))
    assert relevances(payload)["book"] == 1.0
    assert ids(payload, "focus")[0] == "book"


@pytest.mark.requirement("S4.focus.ancestors")
def test_up_to_three_ancestors_come_with_it_the_nearest_first(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        for depth in range(6):
            edit.put(
                Block(id=f"d{depth}", type="text", content=f"level {depth}", parent=f"d{depth - 1}" if depth else None)
            )
    found = relevances(engine.build(request(focus=Focus(block_id="d5"))))
    assert {name: round(found[name], 3) for name in ("d4", "d3", "d2")} == {"d4": 0.9, "d3": 0.8, "d2": 0.7}
    assert not {"d1", "d0"} & set(ids(engine.build(request("zzz", focus=Focus(block_id="d5"))), "focus"))


@pytest.mark.requirement("S4.focus.siblings")
def test_two_siblings_before_and_two_after_come_with_it(engine: ContextEngine) -> None:
    found = relevances(engine.build(request("zzz", focus=Focus(block_id="press"))))
    assert {name: round(found[name], 3) for name in ("book", "cake", "invite", "band")} == {
        "book": 0.8, "cake": 0.75, "invite": 0.7, "band": 0.65,
    }  # fmt: skip


@pytest.mark.requirement("S4.focus.children")
def test_up_to_five_children_come_with_it(engine: ContextEngine) -> None:
    payload = engine.build(request("zzz", focus=Focus(block_id="book")))
    found = relevances(payload)
    assert [round(found[f"sub{i}"], 3) for i in range(5)] == [0.85, 0.8, 0.75, 0.7, 0.65]
    assert "sub5" not in [item.block_id for item in payload.items]


@pytest.mark.requirement("S4.focus.page-summary")
def test_a_focused_page_gives_its_summary_and_its_sections_in_reading_order(engine: ContextEngine) -> None:
    payload = engine.build(request("Summarize this page", focus=Focus(page_id="launch")))
    assert ids(payload, "focus")[:3] == ["launch", "goals", "tasks"]
    assert payload.items[1].content == "## Goals\n\nReach a thousand harbors in the first month."
    summary = payload.items[0].content
    assert "How we launch in December." in summary
    assert "Goals; Tasks; Risks" in summary


def test_a_focused_database_gives_its_rows(engine: ContextEngine) -> None:
    payload = engine.build(request("Who is in the crew?", focus=Focus(database_id="crew")))
    assert ids(payload, "focus") == ["crew", "row-1", "row-2"]


@pytest.mark.requirement("S4.focus.no-focus", "S4.relations.no-focus")
def test_without_a_focus_there_is_nothing_around_it_and_nothing_joined_to_it(engine: ContextEngine) -> None:
    payload = engine.build(request())
    assert ids(payload, "focus") == []
    assert ids(payload, "relations") == []


@pytest.mark.requirement("S4.hints.max-depth")
def test_max_depth_limits_how_far_the_tree_and_links_are_walked(engine: ContextEngine) -> None:
    def around(depth: int | None) -> set[str]:
        asked = request("zzz", focus=Focus(block_id="sub0"), hints=ContextHints(max_depth=depth))
        return {entry.id for entry in engine.build(asked).ledger if entry.collector.startswith("focus")}

    assert around(0) == {"sub0"}
    assert {"book"} <= around(1)
    assert "tasks" not in around(1)
    assert {"book", "tasks", "launch"} <= around(None)


def test_the_focus_settings_change_what_is_collected(tmp_path: Path) -> None:
    config = with_collectors(
        tmp_path, focus=FocusConfig(ancestor_depth=1, sibling_count=1, children_limit=2), **ONLY_FOCUS
    )
    with engine_in(tmp_path, context_config=config) as engine:
        fill(engine)
        payload = engine.build(request(focus=Focus(block_id="book")))
        found = [entry.id for entry in payload.ledger if entry.collector.startswith("focus")]
        assert found == ["book", "tasks", "invite", "press", "sub0", "sub1"]


def test_tasks_beside_the_focused_one_are_shown_if_the_question_has_to_do_with_them(engine: ContextEngine) -> None:
    focus = Focus(block_id="band")
    plain = engine.build(request("zzz", focus=focus))
    assert "press" not in ids(plain, "focus")
    assert next(e.reason for e in plain.ledger if e.id == "press") == "nothing-to-do-with-the-question"
    payload = engine.build(request("Who writes the press release?", focus=focus))
    shown_in = next(e.into for e in payload.ledger if e.id == "press")
    assert shown_in == "tasks", "with the rest of its section"
    assert payload.serialized.count("press release") == 2, "in the section and in the question"


def test_links_of_an_index_are_shown_if_the_question_has_to_do_with_them(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            edit.put(Block(id="boat", type="page", title="Boats", content="How we rent boats."))
            edit.put(Block(id="index", type="table", content="[[Boats]] [[A]] [[B]] [[C]] harbor master ledger"))
            for name in ("a", "b", "c"):
                edit.put(Block(id=name, type="page", title=name.upper()))
            for name in ("boat", "a", "b", "c"):
                edit.link("index", name)
        assert ids(engine.build(request("zzz", focus=Focus(block_id="boat"))), "relations") == []
        assert "index" in ids(engine.build(request("harbor master ledger", focus=Focus(block_id="boat"))), "semantic")


# -- semantic


@pytest.fixture
def garden(tmp_path: Path) -> Iterator[ContextEngine]:
    config = ContextConfig(collectors=CollectorsConfig(semantic=SemanticConfig(min_threshold=0.01)))
    with engine_in(tmp_path, context_config=config) as engine:
        _plant(engine)
        yield engine


def _plant(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.put(Block(id="title", type="page", title="Garden tools"))
        edit.put(Block(id="shed", type="text", parent="title", content="The garden tools are in the shed."))
        oiled = "Spades, rakes and hoes: a gardener cleans every tool with oil in autumn and hangs it on the wall."
        edit.put(Block(id="oil", type="text", parent="title", content=oiled))
        for i in range(5):
            edit.put(Block(id=f"x{i}", type="text", content=f"Something about mountains and number {i} of the rivers."))


def test_what_was_found_is_shown_with_its_page_and_only_once(garden: ContextEngine) -> None:
    payload = garden.build(request("Garden tools", type=RequestType.SEARCH))
    entries = {entry.id: (entry.fate, entry.reason, entry.into) for entry in payload.ledger}
    assert entries["title"] == ("kept", "fits", None)
    assert entries["shed"] == entries["oil"] == ("merged", "lines-already-shown", "title")
    title = next(item for item in payload.items if item.block_id == "title")
    assert title.content.split("\n")[0] == "# Garden tools"
    assert set(title.holds) == {"shed", "oil"}
    assert payload.serialized.count("cleans every tool with oil") == 1


def test_an_excluded_block_does_not_come_back_with_its_section(garden: ContextEngine) -> None:
    for excluded in ("shed", "title"):
        hints = ContextHints(exclude_blocks=(excluded,))
        payload = garden.build(request("Garden tools", type=RequestType.SEARCH, hints=hints))
        assert excluded not in ids(payload, "semantic")
        assert "in the shed" not in payload.serialized
        assert ("cleans every tool" in payload.serialized) is (excluded == "shed")


@pytest.mark.parametrize("budget", [60, 120, 4000])
def test_whatever_becomes_of_a_section_the_ledger_says_so(garden: ContextEngine, budget: int) -> None:
    with garden.workspace.edit() as edit:
        edit.put(Block(id="inner", type="page", title="Garden tools of iron", parent="title", position=-1))
        edit.move("oil", "inner")
        for i in range(7):
            edit.put(Block(id=f"first{i}", type="text", parent="title", content=f"Line {i}. " * 20, position=-9 + i))
    for focus in (None, Focus(block_id="first0")):
        asked = request("Garden tools", type=RequestType.SEARCH, focus=focus, token_budget=TokenBudget(total=budget))
        payload = garden.build(asked)
        inner = next(entry for entry in payload.ledger if entry.id == "inner")
        shown = payload.serialized.count("cleans every tool with oil")
        assert shown == (inner.fate in ("kept", "trimmed"))
        assert shown == 1 or (budget < 4000 and inner.reason == "over-budget")


def test_a_long_section_is_shown_with_elisions_and_can_be_had_whole(empty: ContextEngine) -> None:
    put(empty, Block(id="page", type="page", title="Log"))
    put(empty, Block(id="days", type="heading", title="Days", parent="page", metadata={"level": 2}))
    for i in range(60):
        text = f"Day {i}: the crew painted boat number {i} and wrote the report about boat {i}. " * 4
        put(empty, Block(id=f"d{i}", type="text", parent="days", content=text, position=i))
    put(
        empty,
        Block(id="key", type="text", parent="days", content="The key of the crane hangs in the office.", position=30),
    )
    asked = request(
        "Where does the key of the crane hang?", type=RequestType.SEARCH, token_budget=TokenBudget(total=900)
    )
    item = next(item for item in empty.build(asked).items if item.block_id == "days")
    assert "The key of the crane hangs in the office." in item.content
    assert item.content.startswith("## Days\n")
    elisions = elisions_in(item.content)
    assert sum(elision.line_count for elision in elisions) == item.elided > 0
    whole = empty.expand("days").text.split("\n")
    for elision in elisions:
        lines = empty.expand(f"days:{elision.first}-{elision.last}").text
        assert lines == "\n".join(whole[elision.first - 1 : elision.last])


@pytest.mark.parametrize("kind", list(RequestType))
def test_no_type_of_request_is_empty_when_something_answers(garden: ContextEngine, kind: RequestType) -> None:
    assert "in the shed" in garden.build(request("Where are the garden tools?", type=kind)).serialized


def test_a_title_that_stands_back_and_is_there_for_another_reason_has_one_fate(garden: ContextEngine) -> None:
    payload = garden.build(request("Garden tools", type=RequestType.SEARCH, focus=Focus(block_id="oil")))
    fates = [entry.fate for entry in payload.ledger if entry.id == "title"]
    assert sorted(fates) == ["kept", "merged"]


@pytest.mark.requirement("S4.semantic.item-mapping", "S4.item.metadata")
def test_a_hit_becomes_an_item_with_its_page_and_its_breadcrumb(engine: ContextEngine) -> None:
    # Too little room for the whole page around the section.
    payload = engine.build(request("May the venue be taken already?", token_budget=TokenBudget(total=300, system=0)))
    item = next(item for item in payload.items if "venue" in item.found)
    assert (item.block_id, item.block_type) == ("risks", "heading")
    assert item.content == "## Risks\n\nThe venue may be taken already."
    assert item.metadata.page_title == "Launch plan"
    assert item.metadata.path == ("Launch plan",)
    hit = next(hit for hit in engine.search("May the venue be taken already?").hits if hit.block_id == "venue")
    entry = next(entry for entry in payload.ledger if entry.id == "venue")
    assert (entry.relevance, entry.into) == (hit.relevance, "risks")


@pytest.mark.requirement("S4.semantic.threshold")
def test_what_is_less_relevant_than_the_threshold_is_left_out_and_the_ledger_says_so(engine: ContextEngine) -> None:
    payload = engine.build(request("May the venue be taken already?"))
    below = [entry for entry in payload.ledger if entry.reason == "below-min-relevance"]
    assert below
    assert all(entry.relevance < 0.6 for entry in below)
    assert not {entry.id for entry in below} & {item.block_id for item in payload.items}


@pytest.mark.requirement("S4.semantic.top-k")
def test_the_search_is_for_fifteen_or_as_many_as_configured(tmp_path: Path) -> None:
    for count, expected in ((None, 15), (7, 7)):
        semantic = SemanticConfig(min_threshold=0) if count is None else SemanticConfig(top_k=count, min_threshold=0)
        with engine_in(tmp_path, context_config=with_collectors(tmp_path, semantic=semantic)) as engine:
            with engine.workspace.edit() as edit:
                for i in range(40):
                    edit.put(Block(id=f"n{i}", type="text", content=f"the harbor ledger number {i}"))
            payload = engine.build(request("harbor ledger"))
            found = [entry for entry in payload.ledger if entry.reason != "below-min-relevance"]
            assert len(found) == expected


def test_a_question_that_points_at_the_focus_is_searched_with_what_is_focused() -> None:
    focus = Block(id="t", type="todo", title="", content="Migrate the billing database")
    assert "billing" in search_text(request("Break this task into subtasks"), focus)
    assert "subtasks" not in search_text(request("Break this task into subtasks"), focus)
    assert search_text(request("Who wrote the harbor invoice letter"), focus) == "Who wrote the harbor invoice letter"
    assert "delay" in search_text(request("Why does this delay the invoices?"), focus)
    history = (ConversationMessage(role="user", content="How is the hall booked?"),)
    asked = request("And when?", type="chat", conversation_history=history)
    assert "hall" in search_text(asked, None)


def test_tasks_are_found_by_their_due_date(engine: ContextEngine) -> None:
    payload = engine.build(request("What tasks are overdue?"))
    assert ids(payload, "semantic") == ["book"]
    assert "overdue" in next(item for item in payload.items).reasons


@pytest.mark.parametrize("query", ["What is due this week?", "what are my deadlines?", "Which tasks are due tomorrow?"])
def test_what_is_due_soon_is_found_behind_much_that_is_overdue(empty: ContextEngine, query: str) -> None:
    old = [Block(id=f"o{i}", type="todo", content=f"old {i}", metadata={"due": "2026-01-01"}) for i in range(40)]
    put(empty, *old, Block(id="soon", type="todo", content="Paint the pier", metadata={"due": "2026-11-17"}))
    assert "soon" in ids(empty.build(request(query, type="chat")), "semantic")


# -- relations


@pytest.mark.requirement("S4.relations.related-rows")
def test_rows_related_to_a_row_come_with_it(engine: ContextEngine) -> None:
    found = relevances(engine.build(request("zzz", focus=Focus(block_id="row-1"))))
    payload = engine.build(request("zzz", focus=Focus(block_id="row-2")))
    assert found["row-2"] == 0.8  # also its sibling
    related = [entry.relevance for entry in payload.ledger if entry.id == "row-1" and "related row" in entry.collector]
    assert related[-1] == 0.75


@pytest.mark.requirement("S4.relations.links", "S4.relations.backlinks")
def test_links_and_backlinks_come_with_it(engine: ContextEngine) -> None:
    payload = engine.build(request("zzz", focus=Focus(block_id="book")))
    told = {(entry.id, round(entry.relevance, 3)) for entry in payload.ledger if "relations" in entry.collector}
    assert ("venue", 0.7) in told
    assert ("press", 0.65) in told


@pytest.mark.requirement("S4.config.relations")
def test_links_are_followed_as_many_steps_as_configured(tmp_path: Path) -> None:
    for depth, expected in ((1, ["b"]), (2, ["b", "c"]), (3, ["b", "c", "d"])):
        config = with_collectors(
            tmp_path, relations=RelationsConfig(max_depth=depth), semantic=SemanticConfig(enabled=False)
        )
        with engine_in(tmp_path, context_config=config) as engine:
            with engine.workspace.edit() as edit:
                for name in "abcd":
                    edit.put(Block(id=name, type="page", title=f"Page {name}"))
                for source, target in ("ab", "bc", "cd"):
                    edit.link(source, target, LinkKind.RELATION)
            payload = engine.build(request("zzz", focus=Focus(block_id="a")))
            assert ids(payload, "relations") == expected
            assert round(relevances(payload)["b"], 3) == 0.7
            if depth > 1:
                assert round(relevances(payload)["c"], 3) == 0.56


def test_no_more_than_ten_joined_blocks_are_taken(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            edit.put(Block(id="hub", type="page", title="Hub"))
            for i in range(30):
                edit.put(Block(id=f"s{i}", type="text", content=f"spoke number {i}"))
                edit.link("hub", f"s{i}")
        assert len(ids(engine.build(request("zzz", focus=Focus(block_id="hub"))), "relations")) == 10


def test_links_to_itself_and_to_nowhere_are_harmless(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.link("cake", "cake")
        edit.link("cake", "no such block")
        edit.link("cake", None, name="nothing by that name")
    assert ids(engine.build(request("zzz", focus=Focus(block_id="cake"))), "relations") == []


# -- activity


@pytest.mark.requirement("S4.activity.edits", "S4.activity.edit-time", "S4.config.activity")
def test_the_latest_edits_of_the_user_come_newest_first(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            edit.set_default("allow")
            for i in range(15):
                edit.put(Block(id=f"e{i}", type="text", content=f"edited thing {i}"))
                edit.record("ann", Action.EDIT, f"e{i}", NOW - timedelta(hours=i))
            edit.put(Block(id="old", type="text", content="edited long ago"))
            edit.record("ann", Action.EDIT, "old", NOW - timedelta(hours=73))
            edit.put(Block(id="theirs", type="text", content="edited by another"))
            edit.record("bob", Action.EDIT, "theirs", NOW)
        payload = engine.build(request("zzz"))
        assert sorted(ids(payload, "activity")) == sorted(f"e{i}" for i in range(10))
        found = relevances(payload)
        assert [round(found[f"e{i}"], 3) for i in (0, 1, 9)] == [0.6, 0.58, 0.42]
        item = next(item for item in payload.items if item.block_id == "e3")
        assert item.metadata.last_modified == NOW - timedelta(hours=3)


@pytest.mark.requirement("S4.activity.views")
def test_the_pages_viewed_last_come_as_summaries(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            edit.set_default("allow")
            for i in range(8):
                edit.put(Block(id=f"p{i}", type="page", title=f"Page {i}", summary=f"All about {i}."))
                edit.put(Block(id=f"p{i}/h", type="heading", title=f"Part of {i}", parent=f"p{i}"))
                edit.record("ann", Action.VIEW, f"p{i}/h", NOW - timedelta(hours=i))
        payload = engine.build(request("zzz"))
        assert sorted(ids(payload, "activity")) == [f"p{i}" for i in range(5)]
        assert [round(relevances(payload)[f"p{i}"], 3) for i in (0, 4)] == [0.5, 0.42]
        item = next(item for item in payload.items if item.block_id == "p2")
        assert item.content == "Page 2\nAll about 2.\nOutline: Part of 2"


def test_in_a_workspace_of_ones_own_everything_was_done_by_its_owner(engine: ContextEngine) -> None:
    engine.workspace.record("whoever", Action.EDIT, "goal", NOW - timedelta(hours=1))
    assert "goal" in ids(engine.build(request("zzz", user=User(id="ann"))), "activity")


def test_many_edits_of_one_block_do_not_hide_the_edits_of_others(empty: ContextEngine) -> None:
    put(
        empty,
        Block(id="busy", type="text", content="busy block"),
        Block(id="other", type="text", content="other block"),
    )
    with empty.workspace.edit() as edit:
        edit.record("ann", "edit", "other", NOW - timedelta(hours=2))
        for i in range(250):
            edit.record("ann", "edit", "busy", NOW - timedelta(seconds=i))
            edit.record("ann", "edit", "busy", NOW + timedelta(days=i + 1))
    assert set(ids(empty.build(request("zzz")), "activity")) == {"busy", "other"}


# -- history


@pytest.mark.requirement("S4.request.conversation-history")
def test_the_turns_of_a_conversation_are_written_in_their_order(engine: ContextEngine) -> None:
    history = tuple(
        ConversationMessage(role="user" if i % 2 == 0 else "assistant", content=f"turn {i}") for i in range(6)
    )
    payload = engine.build(request(type="chat", conversation_history=history))
    section = payload.section(payload.sections[-1].type)
    assert section is not None
    assert [item.content for item in section.items] == [
        f"{'user' if i % 2 == 0 else 'assistant'}: turn {i}" for i in range(6)
    ]
    assert "### Conversation" in payload.serialized


def test_older_turns_are_condensed_and_the_newest_kept(tmp_path: Path) -> None:
    config = with_collectors(tmp_path, history=HistoryConfig(max_turns=3))
    with engine_in(tmp_path, context_config=config) as engine:
        history = tuple(ConversationMessage(role="user", content=f"First of {i}. Second of {i}.") for i in range(9))
        payload = engine.build(request(type="chat", conversation_history=history))
        turns = ids(payload, "history")
        assert turns == ["conversation:earlier", "conversation:7", "conversation:8", "conversation:9"]
        earlier = payload.items[-4].content
        assert "First of 0." in earlier
        assert "Second of 0." not in earlier


def test_when_room_is_short_the_newest_turns_stay(engine: ContextEngine) -> None:

    history = tuple(ConversationMessage(role="user", content=f"turn {i} " + "word " * 60) for i in range(12))
    budget = TokenBudget(total=420, focus=0, semantic=0, relations=0, activity=0, history=300, system=0)
    payload = engine.build(request("zzz", type="chat", conversation_history=history, token_budget=budget))
    kept = ids(payload, "history")
    assert "conversation:12" in kept
    assert "conversation:1" not in kept


# -- together


@pytest.mark.requirement("S4.builder.collectors-parallel")
def test_collectors_run_side_by_side_and_a_failing_one_is_reported(
    engine: ContextEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = threading.Barrier(2, timeout=HANG_SECONDS)

    # Each waits for the other: one after the other they would never meet.
    def meet(*_: object) -> list[object]:
        meeting.wait()
        return []

    monkeypatch.setattr(RelationCollector, "collect", meet)
    monkeypatch.setattr(ActivityCollector, "collect", meet)

    def fail(*_: object) -> None:
        raise ValueError("secret detail of a hidden block")

    monkeypatch.setattr(SemanticCollector, "collect", fail)
    payload = engine.build(request(focus=Focus(block_id="book")))
    assert payload.metadata.collectors_used == ("focus", "relations", "activity")
    assert payload.statistics.collectors_failed == {"semantic": "failed: ValueError"}
    assert any("semantic" in note for note in payload.notes)
    assert "secret detail" not in str(payload)
    assert "book" in ids(payload, "focus")


def test_a_collector_that_is_late_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ContextConfig(collectors=CollectorsConfig(deadline_ms=50))
    with engine_in(tmp_path, context_config=config) as engine:
        fill(engine)
        let_go = threading.Event()

        def linger(*_: object) -> list[object]:
            let_go.wait()
            return []

        def wait_when_others_are_done(futures: Sequence[Future[object]], timeout: float) -> None:
            wait_for(lambda: [future.done() for future in futures].count(False) == 1, "all collectors but the late one")
            wait(futures, timeout=timeout)

        monkeypatch.setattr(gathering, "wait", wait_when_others_are_done)
        monkeypatch.setattr(SemanticCollector, "collect", linger)
        payload = engine.build(request(focus=Focus(block_id="book")))
        let_go.set()
        assert payload.statistics.collectors_failed == {"semantic": "did not finish within 50 ms"}
        assert "book" in ids(payload, "focus")


@pytest.mark.requirement("S4.config.collectors-enabled")
@pytest.mark.parametrize("name", ["focus", "semantic", "relations", "activity"])
def test_a_collector_that_is_switched_off_contributes_nothing(tmp_path: Path, name: str) -> None:
    kinds = {"focus": FocusConfig, "semantic": SemanticConfig, "relations": RelationsConfig, "activity": ActivityConfig}
    config = with_collectors(tmp_path, **{name: kinds[name](enabled=False)})
    with engine_in(tmp_path, context_config=config) as engine:
        fill(engine)
        engine.workspace.record("ann", Action.EDIT, "goal", NOW)
        payload = engine.build(request(focus=Focus(block_id="book")))
        assert name not in payload.metadata.collectors_used
        assert ids(payload, name) == []


def test_a_block_that_several_collectors_found_is_in_once_with_every_reason(engine: ContextEngine) -> None:
    engine.workspace.record(ANN.id, Action.EDIT, "tasks", NOW)
    payload = engine.build(request("Who writes the press release?", focus=Focus(block_id="book")))
    found = [item for item in payload.items if item.block_id == "tasks"]
    assert len(found) == 1
    assert found[0].section == "focus"
    assert found[0].reasons[0] == "ancestor"
    assert "search" in found[0].reasons
    assert any("edit by ann" in reason for reason in found[0].reasons)
    press = {entry.into for entry in payload.ledger if entry.id == "press"}
    assert press == {"tasks"}, "a sibling that the search found is shown with its section"


@pytest.mark.requirement("S4.config.activity")
def test_edits_beyond_their_age_are_left_out_however_few_there_are(tmp_path: Path) -> None:
    for hours, expected in ((72, ["new"]), (74, ["new", "old"])):
        config = with_collectors(tmp_path, activity=ActivityConfig(max_age_hours=hours))
        with engine_in(tmp_path, context_config=config) as engine:
            with engine.workspace.edit() as edit:
                edit.set_default("allow")
                for name, age in (("new", 71), ("old", 73)):
                    edit.put(Block(id=name, type="text", content=f"edited {name} thing"))
                    edit.record("ann", Action.EDIT, name, NOW - timedelta(hours=age))
            assert sorted(ids(engine.build(request("zzz")), "activity")) == expected


@pytest.mark.requirement("S4.hints.max-depth")
def test_max_depth_limits_how_far_links_are_followed(tmp_path: Path) -> None:
    config = with_collectors(tmp_path, relations=RelationsConfig(max_depth=3), semantic=SemanticConfig(enabled=False))
    with engine_in(tmp_path, context_config=config) as engine:
        with engine.workspace.edit() as edit:
            for name in "abcd":
                edit.put(Block(id=name, type="page", title=f"Page {name}"))
            for source, target in ("ab", "bc", "cd"):
                edit.link(source, target, LinkKind.RELATION)
        for depth, expected in ((1, ["b"]), (2, ["b", "c"]), (None, ["b", "c", "d"])):
            asked = request("zzz", focus=Focus(block_id="a"), hints=ContextHints(max_depth=depth))
            assert ids(engine.build(asked), "relations") == expected


@pytest.mark.requirement("S4.never.ignore-permissions")
def test_children_that_may_not_be_read_take_no_places(tmp_path: Path) -> None:
    config = with_collectors(tmp_path, focus=FocusConfig(children_limit=3), **ONLY_FOCUS)
    with engine_in(tmp_path, context_config=config) as engine:
        with engine.workspace.edit() as edit:
            edit.set_default("allow")
            edit.put(Block(id="top", type="page", title="Top"))
            for number in range(8):
                edit.put(Block(id=f"c{number}", type="text", parent="top", position=number, content=f"child {number}"))
                if number < 5:
                    edit.deny(f"c{number}", "ann")
        found = engine.build(request(focus=Focus(block_id="top")))
        text = found.text
        assert [number for number in range(8) if f"child {number}" in text] == [5, 6, 7]
