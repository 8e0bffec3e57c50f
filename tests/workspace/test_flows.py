"""The specification's three example flows, and a morning's work, on the vault in examples/."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from satchel import (
    Block,
    BlockType,
    ContextEngine,
    ContextHints,
    ContextRequest,
    ConversationMessage,
    Focus,
    TokenBudget,
    User,
)
from satchel.models.block import TASK_TYPES
from satchel.models.options import RequestType
from satchel.models.results import SectionType
from satchel.models.search import SearchResult
from satchel.retrieval.search import Searcher
from satchel.service.importing import import_source
from tests.support.places import ROOT
from tests.support.workspaces import engine_in, ids

VAULT = ROOT / "examples" / "vault"
NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
ANN = User(id="ann")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContextEngine]:
    with engine_in(tmp_path_factory.mktemp("vault")) as engine:
        report = import_source(engine.workspace, VAULT)
        assert report.counts["block"] > 150
        yield engine


@pytest.mark.requirement("S4.flow.page-summarization")
def test_summarizing_a_page_is_mostly_about_what_is_on_the_page(engine: ContextEngine) -> None:
    budget = TokenBudget(total=3000, focus=2500, semantic=200, relations=200, activity=0, history=0, system=100)
    page = "Projects/Launch plan"
    payload = engine.build(
        ContextRequest(
            query="Summarize this page",
            focus=Focus(page_id=page),
            type=RequestType.ASSIST,
            user=ANN,
            token_budget=budget,
        )
    )
    focus = ids(payload, "focus")
    assert focus[0] == page
    items = [item for item in payload.items if item.section == SectionType.FOCUS]
    on_the_page = [name for item in items for name in (item.block_id, *item.holds) if name.startswith(f"{page}#")]
    assert len(on_the_page) >= 12
    tokens = {section.type: section.token_count for section in payload.sections}
    assert tokens[SectionType.FOCUS] > 0.6 * payload.metadata.total_tokens
    assert payload.metadata.total_tokens <= 3000 - 100
    assert engine.validate(payload).valid


@pytest.mark.requirement("S4.flow.workspace-chat")
def test_asking_for_overdue_tasks_finds_them_and_no_others(engine: ContextEngine) -> None:
    budget = TokenBudget(total=4000, focus=0, semantic=2500, relations=500, activity=500, history=300, system=200)
    payload = engine.build(
        ContextRequest(
            query="What tasks are overdue?",
            type=RequestType.CHAT,
            user=ANN,
            token_budget=budget,
            hints=ContextHints(prioritize_types=(BlockType.TODO, BlockType.KANBAN_CARD)),
        )
    )
    found = {item.block_id: item for item in payload.items}
    tasks = [one for one in engine.workspace.records() if isinstance(one, Block) and one.type in TASK_TYPES]
    overdue = {
        task.id
        for task in tasks
        if not task.metadata.get("done") and "2026-01-01" < str(task.metadata.get("due", "9999")) < "2026-11-16"
    }
    assert len(overdue) >= 6
    assert overdue <= set(found)
    for name in set(found) - overdue:
        assert "overdue" not in found[name].reasons
    assert ids(payload, "focus") == []
    assert payload.metadata.total_tokens <= 3800


@pytest.mark.requirement("S4.flow.task-breakdown")
def test_breaking_a_task_down_brings_the_task_and_tasks_like_it(engine: ContextEngine) -> None:
    budget = TokenBudget(total=2000, focus=1200, semantic=500, relations=200, activity=0, history=0, system=100)
    payload = engine.build(
        ContextRequest(
            query="Break this task into subtasks",
            focus=Focus(block_id="Projects/Billing#^task-456"),
            type=RequestType.ASSIST,
            user=ANN,
            token_budget=budget,
        )
    )
    assert ids(payload, "focus")[0] == "Projects/Billing#^task-456"
    similar = [item for item in payload.items if "igrat" in item.content and item.block_type == "todo"]
    assert {item.block_id.partition("#")[0] for item in similar} >= {"Projects/Billing", "Projects/Calendar migration"}
    assert payload.metadata.total_tokens <= 1900


SESSION = (
    # What Ann does on a Monday morning: a page is opened and asked about, questions are repeated after a look
    # elsewhere or with another focus, answers are asked for again.
    ("chat", "What tasks are overdue?", None),
    ("chat", "Who works on offline check-in?", None),
    ("assist", "Summarize this page", "Projects/Launch plan"),
    ("assist", "What are the risks?", "Projects/Launch plan"),
    ("chat", "When does the beta start?", None),
    ("chat", "When does the beta start?", None),
    ("assist", "Summarize this page", "Projects/Launch plan"),
    ("assist", "Summarize this page", "Projects/Billing"),
    ("chat", "What tasks are overdue?", "Projects/Billing"),
    ("assist", "Break this task into subtasks", "Projects/Billing#^task-456"),
    ("assist", "Break this task into subtasks", "Projects/Billing#^task-456"),
    ("chat", "Who decided to use Postgres?", "Projects/Billing"),
    ("chat", "Who decided to use Postgres?", "Projects/Billing#^task-456"),
    ("search", "billing database migration", None),
    ("chat", "billing database migration", None),
    ("assist", "Summarize this page", "Projects/Billing"),
    ("chat", "What tasks are overdue?", None),
    ("chat", "Who works on offline check-in?", "Projects/Launch plan"),
    ("search", "offline check-in", None),
    ("chat", "When does the beta start?", "Projects/Launch plan"),
    ("assist", "Break this task into subtasks", "Projects/Billing#^task-456"),
    ("assist", "Summarize this page", "Projects/Launch plan"),
    ("search", "offline check-in", None),
    ("chat", "What are the risks?", "Projects/Launch plan"),
    ("chat", "What tasks are overdue?", None),
    ("assist", "What are the risks?", "Projects/Launch plan"),
    ("chat", "Who decided to use Postgres?", None),
    ("search", "billing database migration", "Projects/Billing"),
    ("assist", "Summarize this page", "Projects/Billing"),
    ("chat", "What tasks are overdue?", "Projects/Launch plan"),
)


@pytest.mark.requirement("S4.performance.cache-hit-rate")
def test_most_searches_of_a_mornings_work_are_answered_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached: list[bool] = []
    search = Searcher.search

    def recorded(self: Searcher, *args: Any, **options: Any) -> SearchResult:
        result = search(self, *args, **options)
        cached.append(result.cached)
        return result

    monkeypatch.setattr(Searcher, "search", recorded)
    with engine_in(tmp_path) as engine:
        import_source(engine.workspace, VAULT)
        said: list[ConversationMessage] = []
        for kind, query, focus in SESSION:
            page = Focus(page_id=focus) if focus and "#" not in focus else Focus(block_id=focus) if focus else None
            asked = ContextRequest(
                query=query, user=ANN, type=RequestType(kind), focus=page, conversation_history=tuple(said)
            )
            payload = engine.build(asked)
            assert engine.validate(payload).valid
            engine.workspace.record("ann", "view", focus or "Home", NOW)
            if kind == "chat":
                said += [
                    ConversationMessage(role="user", content=query),
                    ConversationMessage(role="assistant", content="…"),
                ]
        assert len(cached) >= len(SESSION)
        assert sum(cached) / len(cached) > 0.6, cached


def test_a_folder_of_private_notes_stays_private(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        import_source(engine.workspace, VAULT)
        with engine.workspace.edit() as edit:
            edit.set_default("allow")
            edit.set_inherits("People/Private/Private", inherits=False)
            edit.grant("People/Private/Private", "ann")
        asked = ContextRequest(query="What does everybody earn? Salaries and raises", user=ANN, type=RequestType.SEARCH)
        assert "Salaries" in engine.build(asked).serialized
        for focus in (None, Focus(page_id="Home"), Focus(page_id="People/Ann")):
            theirs = engine.build(ContextRequest(query=asked.query, user=User(id="bob"), focus=focus, type=asked.type))
            assert not [item for item in theirs.items if "Private" in item.block_id]
            assert "Salaries 2026" not in [item.metadata.page_title for item in theirs.items]
