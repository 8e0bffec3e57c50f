"""The five signals, and their weighted sum."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from satchel import Block, ContextHints, Focus, User
from satchel.models.block import Action, Activity
from satchel.models.options import DEFAULT_CONTEXT_CONFIG, RankingWeights, with_changes
from satchel.models.request import TimeRange
from satchel.models.results import ContextItem, ItemMetadata
from satchel.ports.block_tree import Step
from satchel.workspace.signals import CompositeRelevanceScorer, affinities
from tests.support.workspaces import ANN, NOW, engine_in, put, request


def item(kind: str = "text", relevance: float = 0.8, days: float | None = None, name: str = "x") -> ContextItem:
    when = None if days is None else NOW - timedelta(days=days)
    return ContextItem(
        block_id=name, block_type=kind, content="…", relevance=relevance, metadata=ItemMetadata(last_modified=when)
    )


@pytest.mark.requirement("S4.ranking.weights", "S4.ranking.composite")
def test_the_score_is_the_weighted_sum_of_the_signals() -> None:
    weights = RankingWeights()
    assert (weights.semantic, weights.structural, weights.recency) == (0.35, 0.25, 0.15)
    assert (weights.type_match, weights.user_affinity) == (0.15, 0.10)
    scorer = CompositeRelevanceScorer(distances={"x": 2}, affinities={"x": 0.4}, now=NOW)
    expected = 0.35 * 0.8 + 0.25 * 0.8 + 0.15 * 0.5 + 0.15 * 0.5 + 0.10 * 0.4
    assert scorer.score(item(days=15), request("plain")) == pytest.approx(expected)
    only = RankingWeights(semantic=1, structural=0, recency=0, type_match=0, user_affinity=0)
    assert CompositeRelevanceScorer(only, now=NOW).score(item(), request("plain")) == 0.8


@pytest.mark.requirement("S4.ranking.semantic")
def test_the_semantic_signal_is_what_the_collector_gave() -> None:
    assert CompositeRelevanceScorer().semantic_score(item(relevance=0.37)) == 0.37


@pytest.mark.requirement("S4.ranking.structural")
@pytest.mark.parametrize(("distance", "signal"), [(0, 1.0), (1, 0.9), (4, 0.6), (10, 0.0), (25, 0.0)])
def test_the_structural_signal_falls_with_the_distance(distance: int, signal: float) -> None:
    scorer = CompositeRelevanceScorer(distances={"x": distance})
    assert scorer.tree_distance("x") == distance
    assert scorer.structural_score(item()) == pytest.approx(signal)
    assert CompositeRelevanceScorer(distances={}).structural_score(item()) == 0.0


@pytest.mark.requirement("S4.ranking.structural-neutral")
def test_without_a_focus_the_structural_signal_is_neutral() -> None:
    assert CompositeRelevanceScorer().structural_score(item()) == 0.5


@pytest.mark.requirement("S4.ranking.recency", "S4.ranking.recency-neutral")
@pytest.mark.parametrize(
    ("days", "signal"), [(0, 1.0), (15, 0.5), (29, 1 / 30), (30, 0.0), (400, 0.0), (-3, 1.0), (None, 0.5)]
)
def test_recency_decays_over_thirty_days(days: float | None, signal: float) -> None:
    assert CompositeRelevanceScorer(now=NOW).recency_score(item(days=days), request()) == pytest.approx(signal)


@pytest.mark.requirement("S4.hints.time-range")
def test_a_time_range_asks_for_what_lies_within() -> None:
    asked = request(
        hints=ContextHints(time_range=TimeRange(start=NOW - timedelta(days=50), end=NOW - timedelta(days=40)))
    )
    scorer = CompositeRelevanceScorer(now=NOW)
    assert scorer.recency_score(item(days=45), asked) == 1.0
    assert scorer.recency_score(item(days=1), asked) == 0.0


@pytest.mark.requirement("S4.ranking.type-match-task", "S4.ranking.type-match-summary", "S4.ranking.type-match-neutral")
@pytest.mark.parametrize(
    ("kind", "query", "signal"),
    [
        ("todo", "Which task is next?", 0.9),
        ("kanban_card", "Tasks of today", 0.9),
        ("todo", "What is next?", 0.5),
        ("page", "a summary please", 0.8),
        ("page", "Which task is next?", 0.5),
        ("text", "a summary of every task", 0.5),
        ("acme.ticket", "task", 0.5),
    ],
)
def test_the_type_signal_heeds_the_questions_words(kind: str, query: str, signal: float) -> None:
    assert CompositeRelevanceScorer().type_match_score(item(kind), request(query)) == signal


@pytest.mark.requirement("S4.hints.prioritize-types")
def test_a_type_that_is_asked_for_ranks_above_others() -> None:
    asked = request(hints=ContextHints(prioritize_types=("db_row",)))
    scorer = CompositeRelevanceScorer(now=NOW)
    assert scorer.type_match_score(item("db_row"), asked) == 1.0
    assert scorer.score(item("db_row"), asked) > scorer.score(item("text"), asked)


@pytest.mark.requirement("S4.ranking.user-affinity")
def test_affinity_grows_with_what_the_user_did_here_and_nearby() -> None:
    trails: dict[str, tuple[Step, ...]] = {
        name: (Step(name, "text", ""), Step("page", "page", "Page")) for name in ("mine", "near")
    }
    trails["far"] = (Step("far", "text", ""),)
    deeds = [
        Activity(block="mine", actor="ann", action=Action.EDIT, timestamp=NOW - timedelta(days=1)),
        Activity(block="mine", actor="ann", action=Action.VIEW, timestamp=NOW - timedelta(days=29)),
    ]
    items = [item(name=name) for name in ("mine", "near", "far")]
    found = affinities(ANN, items, deeds, trails, NOW)
    assert 0 < found["near"] < found["mine"] < 1
    assert "far" not in found
    old = [Activity(block="mine", actor="ann", action=Action.EDIT, timestamp=NOW - timedelta(days=31))]
    assert affinities(ANN, items, old, trails, NOW) == {}


def test_what_a_user_pinned_or_prefers_is_near_to_them() -> None:
    trails = {"x": (Step("x", "text", ""), Step("page", "page", "Page")), "y": (Step("y", "todo", ""),)}
    user = User(id="ann", pinned=("page",), preferred_types=("todo",))
    found = affinities(user, [item(name="x"), item("todo", name="y")], [], trails, NOW)
    assert found == {"x": 1.0, "y": 0.5}


def test_nearness_to_the_focus_counts_without_the_focus_collector(tmp_path: Path) -> None:
    changes = {"collectors": {"focus": {"enabled": False}, "semantic": {"top_k": 2}}}
    config = with_changes(DEFAULT_CONTEXT_CONFIG, changes)
    with engine_in(tmp_path, context_config=config) as engine:
        put(
            engine,
            Block(id="p", type="page", title="P"),
            Block(id="here", type="text", parent="p", content="what is focused"),
            Block(id="near", type="heading", title="Ferry", parent="p", content="the ferry leaves at nine"),
            Block(id="far", type="text", content="the ferry leaves at ten"),
        )
        found = {e.id: e.signals for e in engine.build(request("ferry", focus=Focus(block_id="here"))).ledger}
        assert found["near"]["structural"] == 0.8
        assert found["far"]["structural"] == 0.0
