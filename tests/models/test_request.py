"""What can be asked for, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from satchel import ContextConfig, ContextHints, ContextRequest, ConversationMessage, Focus, TokenBudget, User
from satchel.errors import InvalidInput, InvalidOption
from satchel.models.block import BlockType, block_type
from satchel.models.options import DEFAULT_CONTEXT_CONFIG, RequestType, TruncationStrategy, with_changes
from satchel.models.request import TimeRange

ANN = User(id="ann")


@pytest.mark.requirement("S4.request.required")
def test_a_request_needs_a_query_and_a_user() -> None:
    with pytest.raises(TypeError):
        ContextRequest(query="why?")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ContextRequest(user=ANN)  # type: ignore[call-arg]
    for query in ("", "  \n"):
        with pytest.raises(InvalidOption, match="query"):
            ContextRequest(query=query, user=ANN)
    with pytest.raises(InvalidOption, match="the access of this user applies"):
        ContextRequest(query="why?", user=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="the access of this user applies"):
        User(id=" ")


@pytest.mark.requirement("S4.request.focus")
def test_a_focus_may_be_absent_or_name_any_of_three() -> None:
    assert ContextRequest(query="why?", user=ANN).focus is None
    assert Focus().innermost is None
    assert Focus(page_id="p", database_id="d").innermost == "p"
    assert Focus(block_id="b", page_id="p").innermost == "b"
    with pytest.raises(InvalidOption, match="page_id"):
        Focus(page_id="")


@pytest.mark.requirement("S4.request.type")
def test_a_request_is_of_one_of_four_types() -> None:
    assert [kind.value for kind in RequestType] == ["assist", "chat", "search", "automate"]
    assert ContextRequest(query="why?", user=ANN, type="chat").type is RequestType.CHAT  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="assist, chat, search, automate"):
        ContextRequest(query="why?", user=ANN, type="guess")  # type: ignore[arg-type]


@pytest.mark.requirement("S4.hints.optional")
def test_hints_may_be_left_out() -> None:
    without = ContextRequest(query="why?", user=ANN)
    assert without == ContextRequest(query="why?", user=ANN, hints=ContextHints())
    assert without == ContextRequest(query="why?", user=ANN, hints=None)  # type: ignore[arg-type]
    assert ContextHints().include_blocks == ()


@pytest.mark.requirement("S4.budget.fields", "S4.config.token-budget")
def test_the_default_budget_is_the_specifications() -> None:
    budget = TokenBudget()
    assert (budget.total, budget.focus, budget.semantic, budget.relations) == (4000, 1500, 1200, 800)
    assert (budget.activity, budget.history, budget.system) == (300, 500, 200)
    assert budget.reserved == 4500
    assert budget.shrunk().reserved <= 4000
    assert DEFAULT_CONTEXT_CONFIG.token_budget == budget


@pytest.mark.requirement("S4.budget.shrink")
def test_reservations_that_are_too_much_shrink_in_proportion() -> None:
    shrunk = TokenBudget(total=1000, focus=1000, semantic=500, relations=500, activity=0, history=0, system=0).shrunk()
    assert (shrunk.focus, shrunk.semantic, shrunk.relations) == (500, 250, 250)
    enough = TokenBudget(total=5000)
    assert enough.shrunk() == enough


@pytest.mark.parametrize("wrong", [{"total": 0}, {"total": -1}, {"focus": -5}, {"total": 10**12}, {"semantic": 1.5}])
def test_absurd_budgets_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=f"token_budget.{next(iter(wrong))}"):
        TokenBudget(**wrong)


def test_a_time_range_must_not_run_backwards() -> None:
    with pytest.raises(InvalidOption, match="must not be before"):
        TimeRange(start=datetime(2026, 2, 1), end=datetime(2026, 1, 1))
    with pytest.raises(InvalidOption, match="2026-11-01"):
        TimeRange(start="yesterday")  # type: ignore[arg-type]
    assert TimeRange(start="2026-01-01").holds(datetime(2026, 1, 2, tzinfo=UTC))  # type: ignore[arg-type]


def test_hints_must_not_contradict_each_other() -> None:
    with pytest.raises(InvalidOption, match="in both include_blocks and exclude_blocks"):
        ContextHints(include_blocks=("a", "b"), exclude_blocks=("b",))
    with pytest.raises(InvalidOption, match="max_depth"):
        ContextHints(max_depth=-1)
    with pytest.raises(InvalidOption, match="must be a list"):
        ContextHints(include_blocks="launch")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a known block type"):
        ContextHints(prioritize_types=("To Do",))


def test_a_message_says_who_spoke() -> None:
    with pytest.raises(InvalidOption, match="role"):
        ConversationMessage(role="", content="hello")
    with pytest.raises(InvalidOption, match="ConversationMessage"):
        ContextRequest(query="why?", user=ANN, conversation_history=("hello",))  # type: ignore[arg-type]


def test_a_workspace_may_have_types_of_its_own() -> None:
    assert block_type("todo") is BlockType.TODO
    assert block_type("acme.ticket") == "acme.ticket"
    for wrong in ("", "Two Words", "x" * 65, "../etc"):
        with pytest.raises(InvalidInput, match="type"):
            block_type(wrong)


@pytest.mark.requirement("S4.request.type-effect")
def test_each_type_has_defaults_of_its_own_where_nobody_says_otherwise() -> None:
    search = DEFAULT_CONTEXT_CONFIG.for_type(RequestType.SEARCH)
    assert (search.collectors.semantic.top_k, search.collectors.activity.enabled) == (40, False)
    assert DEFAULT_CONTEXT_CONFIG.for_type(RequestType.ASSIST) == DEFAULT_CONTEXT_CONFIG
    mine = with_changes(DEFAULT_CONTEXT_CONFIG, {"collectors": {"semantic": {"top_k": 3}}})
    assert mine.for_type(RequestType.SEARCH).collectors.semantic.top_k == 3
    assert mine.for_type(RequestType.SEARCH).collectors.semantic.min_threshold == 0.002
    asked = ContextConfig(by_type={RequestType.SEARCH: {"collectors": {"semantic": {"top_k": 7}}}})
    assert asked.for_type(RequestType.SEARCH).collectors.semantic.top_k == 7


@pytest.mark.requirement(
    "S4.config.collectors-enabled",
    "S4.config.focus",
    "S4.config.relations",
    "S4.config.activity",
    "S4.config.truncation",
)
def test_the_defaults_are_the_specifications() -> None:
    collectors, truncation = DEFAULT_CONTEXT_CONFIG.collectors, DEFAULT_CONTEXT_CONFIG.truncation
    for one in (collectors.focus, collectors.semantic, collectors.relations, collectors.activity):
        assert one.enabled is True
    focus, relations, activity = collectors.focus, collectors.relations, collectors.activity
    assert (focus.ancestor_depth, focus.sibling_count, focus.children_limit) == (3, 2, 5)
    assert (collectors.semantic.top_k, collectors.semantic.min_threshold) == (15, 0.6)
    assert (relations.max_depth, relations.max_items) == (2, 10)
    assert (activity.recent_edit_count, activity.recent_view_count, activity.max_age_hours) == (10, 5, 72)
    assert (truncation.default_strategy, truncation.min_content_length) == (TruncationStrategy.EXTRACTIVE, 50)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"colectors": {}}, "there is no such setting"),
        ({"collectors": {"focus": {"depth": 1}}}, "collectors.focus.depth"),
        ({"collectors": {"semantic": {"min_threshold": 2}}}, "from 0 to 1"),
        ({"collectors": {"semantic": {"top_k": -1}}}, "at least 0"),
        ({"ranking": {"weights": {"recency": float("nan")}}}, "at least 0"),
        ({"truncation": {"default_strategy": "hack"}}, "keep_start, keep_end, extractive, summarize"),
    ],
)
def test_a_configuration_that_cannot_be_right_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        with_changes(DEFAULT_CONTEXT_CONFIG, changes)


def test_a_user_must_have_a_name_that_can_be_stored() -> None:
    with pytest.raises(InvalidOption):
        User(id="\ud800")


def test_plain_dictionaries_are_taken_as_the_specification_writes_them() -> None:
    made = ContextRequest(
        query="q",
        user={"id": "ann"},  # type: ignore[arg-type]
        focus={"blockId": "b1"},  # type: ignore[arg-type]
        token_budget={"total": 4000},  # type: ignore[arg-type]
        hints={"prioritizeTypes": ["todo"], "timeRange": {"start": "2026-11-01"}, "maxDepth": 2},  # type: ignore[arg-type]
        conversation_history=[{"role": "user", "content": "hi"}],  # type: ignore[arg-type]
    )
    assert made.user == User(id="ann")
    assert made.focus == Focus(block_id="b1")
    assert made.token_budget == TokenBudget(total=4000)
    assert made.hints.prioritize_types == ("todo",)
    assert made.hints.time_range is not None
    assert made.hints.max_depth == 2
    assert made.conversation_history == (ConversationMessage(role="user", content="hi"),)


def test_an_unknown_field_of_a_dictionary_is_named() -> None:
    with pytest.raises(InvalidOption, match=r"focus\.block='b1'.*is not a field of Focus \(block_id"):
        ContextRequest(query="q", user=User(id="ann"), focus={"block": "b1"})  # type: ignore[arg-type]
