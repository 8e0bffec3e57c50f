"""Building contexts for requests: the payload, its checks, the cache, and what happens with odd workspaces."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from satchel import (
    Block,
    ContextConfig,
    ContextEngine,
    ContextFormat,
    ContextHints,
    ContextPayload,
    ConversationMessage,
    Focus,
    TokenBudget,
    User,
)
from satchel.errors import BudgetCannotBeMet, InvalidInput, UnknownBlock
from satchel.models.access import Effect
from satchel.models.block import Action
from satchel.models.context import Fate
from satchel.models.options import RequestType, TruncationConfig, TruncationStrategy
from satchel.models.results import SectionType
from satchel.tokens.registry import counter_for
from satchel.workspace import recipe as workspace
from tests.support.effort import no_blow_up
from tests.support.oracle import true_count
from tests.support.workspaces import ANN, BOB, NOW, engine_in, fill, ids, put, relevances, request


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[ContextEngine]:
    with engine_in(tmp_path) as engine:
        fill(engine)
        yield engine


# -- the payload


@pytest.mark.requirement("S4.builder.build", "S4.payload.fields", "S4.payload.serialized", "S4.builder.stages")
def test_a_request_gives_sections_metadata_and_one_text(engine: ContextEngine) -> None:
    payload = engine.build(request(focus=Focus(block_id="book")))
    assert isinstance(payload, ContextPayload)
    assert [section.type for section in payload.sections] == ["focus", "semantic", "relations", "activity"]
    for item in payload.items:
        assert item.content in payload.serialized
    assert engine.validate(payload).valid


@pytest.mark.requirement("S4.builder.async-door")
def test_the_same_can_be_awaited(engine: ContextEngine) -> None:
    asked = request(focus=Focus(block_id="book"))
    awaited = asyncio.run(engine.abuild(asked))
    assert awaited.serialized == engine.build(asked).serialized


@pytest.mark.requirement(
    "S4.builder.estimate-tokens", "S4.payload.total-tokens", "S4.performance.estimate-accuracy", "S4.budget.total-hard"
)
@pytest.mark.parametrize("total", [120, 200, 500, 4000])
@pytest.mark.parametrize("format", list(ContextFormat))
def test_the_total_is_hard_and_counted_exactly(engine: ContextEngine, total: int, format: ContextFormat) -> None:
    budget = TokenBudget(total=total, system=0)
    payload = engine.build(request(focus=Focus(block_id="book"), token_budget=budget, format=format))
    assert payload.metadata.total_tokens == true_count(payload.serialized) == engine.estimate_tokens(payload)
    assert payload.metadata.total_tokens <= total
    assert payload.items or total == 120


def test_a_budget_that_not_even_the_template_fits_is_an_error(engine: ContextEngine) -> None:
    with pytest.raises(BudgetCannotBeMet, match="raise the budget"):
        engine.build(request(token_budget=TokenBudget(total=20)))


@pytest.mark.requirement("S4.request.token-budget")
def test_the_requests_budget_takes_the_place_of_the_configured_one(engine: ContextEngine) -> None:
    asked = request(focus=Focus(block_id="book"))
    small = engine.build(replace(asked, token_budget=TokenBudget(total=150, system=0)))
    assert small.metadata.total_tokens <= 150 < engine.build(asked).metadata.total_tokens


@pytest.mark.requirement("S4.payload.focus-ids", "S4.payload.timestamp", "S4.payload.debug-info")
def test_the_metadata_are_complete(engine: ContextEngine) -> None:
    meta = engine.build(request(focus=Focus(block_id="book", page_id="launch"))).metadata
    assert (meta.focus_block_id, meta.focus_page_id) == ("book", "launch")
    assert datetime.fromisoformat(meta.timestamp) == NOW
    assert meta.collectors_used == ("focus", "semantic", "relations", "activity")
    assert 0 < meta.blocks_included <= meta.blocks_considered
    nowhere = engine.build(request()).metadata
    assert (nowhere.focus_block_id, nowhere.focus_page_id) == (None, None)


@pytest.mark.requirement("S4.section.types", "S4.section.fields", "S4.section.token-count")
def test_sections_have_a_type_a_title_items_and_what_they_take_as_written(engine: ContextEngine) -> None:
    assert {kind.value for kind in SectionType} == {"focus", "semantic", "relations", "activity", "history", "system"}
    payload = engine.build(request(focus=Focus(block_id="book")))
    focus = payload.sections[0]
    assert focus.title == "Focused Content"
    start = payload.serialized.index("### Focused Content")
    written = payload.serialized[start : payload.serialized.index("### Related Content")]
    assert focus.token_count == true_count(written)
    assert focus.token_count > sum(true_count(item.content) for item in focus.items)


@pytest.mark.requirement("S4.item.fields", "S4.item.relevance-range")
def test_items_have_a_block_a_type_a_text_and_a_relevance(engine: ContextEngine) -> None:
    payload = engine.build(request("Which task books the hall?", focus=Focus(block_id="book")))
    for item in payload.items:
        assert item.block_id
        assert item.block_type
        assert item.content
        assert 0 <= item.relevance <= 1
    assert max(item.relevance for item in payload.items) == payload.items[0].relevance


def test_the_payload_can_be_had_as_json(engine: ContextEngine) -> None:
    payload = engine.build(request(focus=Focus(block_id="book")))
    values = json.loads(json.dumps(payload.to_specification()))
    assert values["metadata"]["totalTokens"] == payload.metadata.total_tokens
    assert values["sections"][0]["items"][0]["blockId"] == "book"
    assert json.loads(json.dumps(payload.to_dict()))["sources"][0]["id"] == "book"


# -- what decides


@pytest.mark.requirement("S4.request.inputs", "S4.never.static-context")
def test_question_focus_conversation_and_user_each_change_the_context(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.set_default("allow")
        edit.record("bob", Action.EDIT, "goal", NOW - timedelta(hours=1))
    asked = request("Who hires the band?", focus=Focus(block_id="book"), type=RequestType.CHAT)
    first = engine.build(asked).serialized
    turns = (ConversationMessage(role="user", content="Hello there."),)
    others = [
        replace(asked, query="May the venue be taken already?"),
        replace(asked, focus=Focus(block_id="goal")),
        replace(asked, conversation_history=turns),
        replace(asked, user=BOB),
        replace(asked, user=User(id="ann", pinned=("risks",))),
    ]
    texts = [engine.build(other).serialized for other in others]
    assert len({first, *texts[:4]}) == 5
    pinned = {entry.id: entry.score for entry in engine.build(others[4]).ledger if entry.signals.get("user_affinity")}
    assert "venue" in pinned


@pytest.mark.requirement("S4.request.type-effect")
def test_the_same_question_of_another_type_gets_another_context(engine: ContextEngine) -> None:
    engine.workspace.record("ann", Action.EDIT, "goal", NOW)
    turns = (ConversationMessage(role="user", content="Hello there."),)
    asked = request("May the venue be taken already?", conversation_history=turns)
    used = {kind: engine.build(replace(asked, type=kind)).metadata.collectors_used for kind in RequestType}
    assert used[RequestType.CHAT] == ("focus", "semantic", "relations", "activity", "history")
    assert used[RequestType.SEARCH] == used[RequestType.AUTOMATE] == ("focus", "semantic", "relations")
    found = {kind: len(ids(engine.build(replace(asked, type=kind)), "semantic")) for kind in RequestType}
    assert found[RequestType.SEARCH] >= found[RequestType.ASSIST]


@pytest.mark.requirement("S4.hints.include-blocks", "S4.hints.exclude-blocks")
def test_blocks_can_be_asked_for_and_refused(engine: ContextEngine) -> None:
    hints = ContextHints(include_blocks=("goal", "no such block"), exclude_blocks=("press", "launch"))
    payload = engine.build(request("zzz", focus=Focus(block_id="book"), hints=hints))
    present = {item.block_id for item in payload.items}
    assert "goal" in present
    assert not present & {"press", "launch"}
    assert {entry.id for entry in payload.ledger if entry.reason == "excluded-by-hint"} == {"press", "launch"}
    with engine.workspace.edit() as edit:
        edit.grant("launch", "ann")
    hidden = engine.build(request("zzz", hints=ContextHints(include_blocks=("salaries", "goal"))))
    assert {item.block_id for item in hidden.items} == {"goal"}


def test_a_system_prompt_is_written_first_and_counted(engine: ContextEngine) -> None:
    payload = engine.build(request(system_prompt="Answer in verse.", token_budget=TokenBudget(total=300)))
    assert payload.serialized.startswith("## Instructions\nAnswer in verse.")
    assert payload.metadata.total_tokens <= 300
    assert engine.validate(payload).valid


def test_without_one_the_systems_share_is_left_free(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        for i in range(40):
            edit.put(Block(id=f"x{i}", type="text", parent="goal", content=f"a long block {i} " + "word " * 30))
    budget = TokenBudget(total=1000, focus=700, semantic=100, relations=0, activity=0, history=0, system=200)
    payload = engine.build(request(focus=Focus(page_id="launch"), token_budget=budget))
    assert 700 < payload.metadata.total_tokens <= 800


def test_a_text_that_is_trimmed_can_be_had_whole(engine: ContextEngine) -> None:
    long = "\n".join(f"Line {i} about the hall and its keys." for i in range(200))
    with engine.workspace.edit() as edit:
        edit.put(Block(id="long", type="text", content=long))
    budget = TokenBudget(total=500, system=0)
    payload = engine.build(request("hall keys", focus=Focus(block_id="long"), token_budget=budget))
    item = next(item for item in payload.items if item.block_id == "long")
    assert item.trim is not None
    assert 'expand("long")' in payload.serialized
    assert payload.expand("long") == engine.expand("long").text == long
    assert payload.ledger[0].fate == "trimmed"


def test_summarizing_without_a_model_is_noted_in_the_ledger(tmp_path: Path) -> None:
    config = ContextConfig(truncation=TruncationConfig(default_strategy=TruncationStrategy.SUMMARIZE))
    with engine_in(tmp_path, context_config=config) as engine:
        with engine.workspace.edit() as edit:
            edit.put(Block(id="long", type="text", content="A sentence about the hall. " * 300))
        payload = engine.build(request(focus=Focus(block_id="long"), token_budget=TokenBudget(total=400, system=0)))
        assert payload.ledger[0].reason == "trimmed-otherwise-than-asked"
        assert any("no language model" in note for note in payload.notes)


def test_the_same_text_in_two_blocks_is_shown_once(engine: ContextEngine) -> None:
    twin = "The venue has been cleaned and painted for the winter season."
    with engine.workspace.edit() as edit:
        edit.put(Block(id="one", type="text", content=twin, parent="risks", position=5))
        edit.put(Block(id="two", type="text", content=twin))
    payload = engine.build(request("venue cleaned", type=RequestType.SEARCH))
    assert payload.serialized.count(twin) == 1
    assert next(entry.into for entry in payload.ledger if entry.reason == "same-text-as-another") == "launch"


def test_of_two_sections_with_the_same_text_one_is_shown(engine: ContextEngine) -> None:
    text = "The harbor crane is greased every spring, before the first boats of the season are lifted."
    with engine.workspace.edit() as edit:
        for page in ("north", "south"):
            edit.put(Block(id=page, type="page", title="Crane"))
            edit.put(Block(id=f"{page}-text", type="text", content=text, parent=page))
    payload = engine.build(request("When is the crane greased?", type=RequestType.SEARCH))
    assert payload.serialized.count(text) == 1
    fates = {entry.id: entry for entry in payload.ledger}
    assert {fates["north"].fate, fates["south"].fate} == {Fate.KEPT, Fate.MERGED}


def test_the_same_request_gives_the_same_bytes(engine: ContextEngine, tmp_path: Path) -> None:
    asked = request("Which task books the hall?", focus=Focus(block_id="book"))
    first = engine.build(asked)
    again = engine.build(asked)
    assert (first.serialized, first.ledger) == (again.serialized, again.ledger)
    with engine_in(tmp_path) as other:
        assert other.build(asked).serialized == first.serialized


# -- validation


@pytest.mark.requirement("S4.builder.validate")
def test_every_check_has_a_name_and_can_fail(engine: ContextEngine) -> None:
    payload = engine.build(request(focus=Focus(block_id="book")))
    names = {check.name for check in engine.validate(payload).checks}
    assert names == {
        "budget", "token-count", "section-token-counts", "text-shows-sections", "parses", "relevance-range",
        "distinct-blocks", "citation-numbers", "receipts", "excluded-blocks", "block-counts", "permissions",
        "up-to-date",
    }  # fmt: skip
    first, *others = payload.sections
    item = first.items[0]

    def changed(**more: Any) -> ContextPayload:
        return replace(payload, sections=(replace(first, items=(replace(item, **more), *first.items[1:])), *others))

    assert payload.request is not None
    tight = replace(payload.request, token_budget=TokenBudget(total=60))
    refused = replace(payload.request, hints=ContextHints(exclude_blocks=("book",)))
    wrong = {
        "budget": replace(payload, request=tight),
        "token-count": replace(payload, metadata=replace(payload.metadata, total_tokens=7)),
        "section-token-counts": replace(payload, sections=(replace(first, token_count=1), *others)),
        "text-shows-sections": replace(payload, text=payload.text + " "),
        "parses": replace(payload, request=replace(payload.request, format=ContextFormat.JSON)),
        "relevance-range": changed(relevance=1.5),
        "distinct-blocks": changed(block_id=first.items[1].block_id),
        "citation-numbers": changed(number=9),
        "receipts": changed(whole="more"),
        "excluded-blocks": replace(payload, request=refused),
        "block-counts": replace(payload, metadata=replace(payload.metadata, blocks_included=99)),
        "permissions": changed(block_id="nobody's"),
        "up-to-date": replace(payload, statistics=replace(payload.statistics, generation=0)),
    }
    assert set(wrong) == names
    for name, one in wrong.items():
        result = engine.validate(one)
        assert name in {check.name for check in result.failed}, name
        assert not result


# -- permissions


def test_nobody_sees_what_was_not_granted(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.grant("launch", "ann")
        edit.grant("salaries", "bob")
    asked = request("Who earns more at the launch event?", focus=Focus(block_id="book"))
    mine = engine.build(asked)
    assert "Salaries" not in str(mine)
    assert "book" in ids(mine, "focus")
    theirs = engine.build(replace(asked, user=BOB, focus=None))
    assert {item.block_id for item in theirs.items} <= {"salaries"}
    assert {entry.id for entry in theirs.ledger} <= {"salaries"}
    stranger = engine.build(replace(asked, user=User(id="eve"), focus=None))
    assert stranger.items == ()
    assert stranger.metadata.blocks_considered == 0


def test_a_focus_that_may_not_be_read_is_as_unknown_as_one_that_is_not_there(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.grant("launch", "ann")
    told = []
    for name in ("salaries", "salarier"):
        with pytest.raises(UnknownBlock) as caught:
            engine.build(request(focus=Focus(page_id=name)))
        told.append(str(caught.value).replace(name, "…"))
    assert told[0] == told[1]


def test_a_revoked_grant_holds_for_the_very_next_request(engine: ContextEngine, tmp_path: Path) -> None:
    with engine.workspace.edit() as edit:
        edit.put_group("crew", ["ann"])
        edit.grant("launch", "group:crew")
    asked = request("Which task books the hall for the launch event?")
    assert engine.build(asked).items
    with engine_in(tmp_path) as other, other.workspace.edit() as edit:
        edit.revoke("launch", "group:crew")
    assert engine.build(asked).items == ()


@pytest.mark.requirement("S4.never.ignore-permissions")
def test_the_cache_is_not_shared_by_those_with_other_rights(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.grant("launch", "*")
        edit.grant("salaries", "bob")
    asked = request("Who earns more at the launch event?")
    engine.build(asked)
    assert not engine.build(replace(asked, user=BOB)).statistics.cached
    assert engine.build(replace(asked, user=User(id="cleo"))).statistics.cached  # the same rights as Ann
    assert "salaries" in {entry.id for entry in engine.build(replace(asked, user=BOB)).ledger}


def test_no_answer_from_before_a_change_is_given_after_it(engine: ContextEngine) -> None:
    asked = request("May the venue be taken already?")
    engine.build(asked)
    assert engine.build(asked).statistics.cached
    with engine.workspace.edit() as edit:
        edit.put(Block(id="venue2", type="text", content="May the venue be taken already? No, it is ours."))
    fresh = engine.build(asked)
    assert not fresh.statistics.cached
    assert "venue2" in {entry.id for entry in fresh.ledger}
    engine.workspace.record("ann", Action.VIEW, "venue2", NOW)
    assert engine.build(asked).statistics.cached  # looking at something changes nothing that can be found


# -- code


def test_on_code_a_line_is_the_innermost_block_and_calls_are_relations(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        code = 'class Backoff:\n    """Waits."""\n\n    def delay(self, n):\n        """How long."""\n'
        code += "        return base(n)\n"
        (engine.root / "retry.py").write_text(code + "\n\ndef base(n):\n    return 2**n\n")
        engine.index()
        payload = engine.build(request("How long is the delay?", focus=Focus(block_id="retry.py:6")))
        assert payload.metadata.focus_block_id == "retry.py:6"
        assert ids(payload, "focus")[:2] == ["retry.py#Backoff.delay", "retry.py#Backoff"]
        assert "retry.py#base" in {entry.id for entry in payload.ledger if "calls" in entry.collector}
        assert "```python\n" in payload.serialized
        assert engine.validate(payload).valid
        with pytest.raises(UnknownBlock):
            engine.build(request(focus=Focus(block_id="retry.py:999")))


# -- odd workspaces


def test_a_ring_of_parents_is_refused_and_nothing_is_lost(engine: ContextEngine) -> None:
    with pytest.raises(InvalidInput, match="its own ancestor"), engine.workspace.edit() as edit:  # noqa: PT012
        edit.put(Block(id="new", type="text", content="kept?"))
        edit.move("launch", "book")
    with pytest.raises(UnknownBlock):
        engine.expand("new")
    with pytest.raises(InvalidInput, match="its own ancestor"), engine.workspace.edit() as edit:
        edit.put(Block(id="self", type="text", parent="self"))


def test_an_orphan_is_a_root_until_its_parent_comes(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.put(Block(id="child", type="text", content="waiting for a parent", parent="later"))
    assert engine.build(request("zzz", focus=Focus(block_id="child"))).items[0].metadata.path == ()
    with engine.workspace.edit() as edit:
        edit.put(Block(id="later", type="page", title="Later"))
        edit.grant("later", "ann")
    item = engine.build(request("zzz", focus=Focus(block_id="child"))).items[0]
    assert item.metadata.path == ("Later",)


def test_ten_thousand_children_and_two_hundred_levels(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            edit.put(Block(id="wide", type="page", title="Wide"))
            for i in range(10_000):
                edit.put(Block(id=f"w{i}", type="text", content=f"child {i}", parent="wide", position=i))
            for i in range(200):
                edit.put(Block(id=f"d{i}", type="text", content=f"level {i}", parent=f"d{i - 1}" if i else None))
        wide = engine.build(request("zzz", focus=Focus(page_id="wide")))
        assert len(ids(wide, "focus")) <= 101
        middle = engine.build(request("zzz", focus=Focus(block_id="w5000")))
        assert set(ids(middle, "focus")) == {"w5000", "wide", "w4999", "w5001", "w4998", "w5002"}
        deep = engine.build(request("zzz", focus=Focus(block_id="d199")))
        assert len(deep.items[0].metadata.path) == 0  # levels without a title
        assert relevances(deep)["d198"] == 0.9


@pytest.mark.requirement("S4.never.entire-workspace")
def test_however_large_the_budget_the_workspace_is_not_poured_out(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            for i in range(600):
                edit.put(Block(id=f"n{i}", type="page", title=f"Note {i}", content=f"About the harbor, part {i}."))
        budget = TokenBudget(total=1_000_000, focus=500_000, semantic=400_000)
        payload = engine.build(request("harbor", type=RequestType.SEARCH, token_budget=budget))
        assert 0 < payload.metadata.blocks_considered <= 100
        assert not [name for name in dir(engine.store) if name in ("get_all", "all_blocks")]


@pytest.mark.requirement("S4.never.skip-budget")
def test_there_is_always_a_budget(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        for i in range(300):
            edit.put(Block(id=f"x{i}", type="text", parent="goals", content=f"block {i} " + "word " * 40))
    payload = engine.build(request("word", focus=Focus(page_id="launch"), token_budget=None))
    assert payload.metadata.total_tokens <= 4000


def test_text_that_hides_is_made_visible_and_counted(engine: ContextEngine) -> None:
    with engine.workspace.edit() as edit:
        edit.put(Block(id="odd", type="text", title="x\u202ey", content="a\x1b[31mb \U000e0041", parent="goals"))
    payload = engine.build(request("zzz", focus=Focus(block_id="odd")))
    assert payload.statistics.characters_made_visible >= 2
    assert "\x1b" not in payload.serialized
    assert ANN.id == "ann"


# -- what is shown of long, odd and changing blocks


def test_a_focused_page_or_file_shows_its_text(empty: ContextEngine) -> None:
    put(empty, Block(id="press", type="page", title="Press list", content="We tell Ann at the Gazette first."))
    assert "Gazette" in empty.build(request("Summarize this page", focus=Focus(page_id="press"))).serialized
    (empty.root / "run.py").write_text("LIMIT = 9\nfor i in range(LIMIT):\n    print(i)\n")
    empty.index()
    assert "print(i)" in empty.build(request("translate", focus=Focus(page_id="run.py"))).serialized


def test_the_answer_in_a_long_block_is_shown(empty: ContextEngine) -> None:
    body = [f"Entry {i}: the team met and talked about item {i} of the list." for i in range(2600)]
    body[2500] = "The vault code for the harbor office is 7719."
    put(empty, Block(id="log", type="page", title="Log", content="\n".join(body)))
    for kind in ("assist", "chat", "search"):
        assert "7719" in empty.build(request("what is the vault code for the harbor office?", type=kind)).serialized
    focused = empty.build(request("what is the vault code for the harbor office?", focus=Focus(block_id="log")))
    assert "7719" in focused.serialized
    assert empty.expand("log").text == "\n".join(["# Log", *body])


def test_code_is_cut_by_lines_and_keeps_its_first(empty: ContextEngine) -> None:
    lines = ["def report(rows):"] + [f"    step_{i} = prepare(rows, {i})" for i in range(900)]
    lines[700] = "    total = compute_total(rows)"
    (empty.root / "big.py").write_text("\n".join(lines) + "\n")
    empty.index()
    budget = TokenBudget(total=600, system=0)
    payload = empty.build(
        request("where is the total computed?", focus=Focus(block_id="big.py:5"), token_budget=budget)
    )
    text = next(item.content for item in payload.items if item.section == "focus")
    assert text.startswith("def report(rows):")
    assert "total = compute_total(rows)\n    step_700 = prepare(rows, 700)" in text


def test_code_that_changed_on_disk_is_noted(empty: ContextEngine) -> None:
    (empty.root / "a.py").write_text("def alpha():\n    return 1\n")
    empty.index()
    (empty.root / "a.py").write_text("def alpha():\n    return 22222\n")
    payload = empty.build(request("zebra crossing", focus=Focus(block_id="a.py#alpha")))
    assert any("a.py has changed" in note for note in payload.notes)
    (empty.root / "a.py").unlink()
    assert any("a.py is missing" in n for n in empty.build(request("zebra", focus=Focus(block_id="a.py#alpha"))).notes)


def test_a_block_with_the_id_of_a_turn_is_not_the_turn(empty: ContextEngine) -> None:
    put(empty, Block(id="conversation:1", type="page", title="Plan", content="short"))
    turns = (ConversationMessage(role="user", content="I typed a text that is longer than the block is."),)
    payload = empty.build(
        request("the plan?", type="chat", focus=Focus(block_id="conversation:1"), conversation_history=turns)
    )
    assert ids(payload, "history") == ["conversation:1"]
    assert "short" in payload.section("focus").items[0].content  # type: ignore[union-attr]
    assert payload.expand("conversation:1") == "Plan\nshort"


def test_a_long_focus_leaves_room_for_what_is_around_it(empty: ContextEngine) -> None:
    put(
        empty,
        Block(id="page", type="page", title="Page"),
        Block(id="long", type="text", parent="page", content="A long sentence about nothing at all. " * 2000),
        Block(id="next", type="text", parent="page", position=1, content="What comes next."),
        Block(id="child", type="todo", parent="long", content="A small task"),
    )
    payload = empty.build(request("zzz", focus=Focus(block_id="long")))
    assert set(ids(payload, "focus")) == {"long", "page", "next", "child"}


def test_no_line_takes_long_to_render(empty: ContextEngine) -> None:
    put(empty, Block(id="odd", type="text", content="z\n" + "- " * 100_000 + "x"))
    with no_blow_up("a line"):
        empty.build(request("zzz", focus=Focus(block_id="odd")))


def test_dividers_take_no_number(empty: ContextEngine) -> None:
    put(empty, Block(id="p", type="page", title="P"), Block(id="d", type="divider", parent="p"))
    payload = empty.build(request("zzz", focus=Focus(page_id="p")))
    assert ids(payload, "focus") == ["p"]


def test_a_long_block_hides_nothing_when_it_is_cut(empty: ContextEngine) -> None:
    text = "\n".join(f"Entry {i} of the harbor ledger \x1b[31m \u202e" for i in range(400))
    put(empty, Block(id="log", type="text", content=text))
    for format in ("xml", "markdown"):
        for total in (300, 3000):
            budget = TokenBudget(total=total, system=0)
            asked = request("harbor ledger entry", type="search", format=format, token_budget=budget)
            payload = empty.build(asked)
            assert "log" in ids(payload, "semantic")
            assert "\x1b" not in payload.serialized
            assert "\u202e" not in payload.serialized
            assert empty.validate(payload).valid


def test_the_whole_text_of_a_long_block_has_no_receipt_of_its_part(empty: ContextEngine) -> None:
    text = "\n".join(f"Entry {i} of the harbor ledger." for i in range(200))
    put(empty, Block(id="log", type="text", content=text), Block(id="note", type="text", content="See the log."))
    with empty.workspace.edit() as edit:
        edit.link("note", "log")
    budget = TokenBudget(total=20_000)
    asked = request("harbor ledger entry", focus=Focus(block_id="note"), type="search", token_budget=budget)
    item = next(item for item in empty.build(asked).items if item.block_id == "log")
    assert (item.content == text) == (item.trim is None)


@pytest.mark.parametrize("kind", ["text", "heading"])
def test_a_block_revoked_during_a_build_is_not_shown_with_what_is_above_it(
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


def test_a_payload_is_measured_by_what_made_it(engine: ContextEngine) -> None:
    plain = engine.build(request(), config=ContextConfig(citations=False))
    assert engine.validate(plain).valid, engine.validate(plain)
    counted = engine.build(request(), counter=counter_for("claude-sonnet-4-5"))
    assert engine.validate(counted).valid, engine.validate(counted)
    assert engine.estimate_tokens(counted) == counted.metadata.total_tokens


@pytest.mark.parametrize("name", ["Launch plan", "launch PLAN", "laun"])
def test_a_block_may_be_focused_as_people_call_it(engine: ContextEngine, name: str) -> None:
    by_name = engine.build(request("what is open", focus=Focus(block_id=name)))
    assert by_name.text == engine.build(request("what is open", focus=Focus(block_id="launch"))).text


def test_an_ambiguous_name_lists_what_the_asker_may_read(engine: ContextEngine) -> None:
    with pytest.raises(UnknownBlock, match="the name of several blocks: sub0, sub1, "):
        engine.build(request(focus=Focus(block_id="sub")))
    with pytest.raises(UnknownBlock, match="no file or block"):
        engine.build(request(focus=Focus(block_id="nothing is called so")))


def test_a_title_counts_more_than_the_beginnings_of_ids(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        with engine.workspace.edit() as edit:
            for number in range(30):
                edit.put(Block(id=f"Launch/n{number}", type="page", title=f"Note {number}"))
            edit.put(Block(id="Projects/Launch", type="page", title="Launch", content="Where we launch."))
        focused = engine.build(request(focus=Focus(block_id="Launch")))
    assert focused.metadata.focus_block_id == "Launch"
    assert "Where we launch." in focused.text
