"""Scores of other retrievers: what is a relevance, and what is refused with its place."""

from __future__ import annotations

import math
from typing import Any

import pytest

from satchel.errors import InvalidHit
from satchel.integrations.frameworks.scores import ScoreKind, relevances


@pytest.mark.parametrize(
    ("kind", "scores", "expected"),
    [
        ("relevance", [1, None, 0.25, 0], [1, 1, 0.25, 0]),
        ("cosine", [1.0000001, 1, 0, -1, -1.0000001], [1, 1, 0.5, 0, 0]),
        ("distance", [0, 1, 3, None], [1, 0.5, 0.25, 1]),
        ("rank", [7, None, 900], [1, 0.75, 0.5]),
        ("rank", [7], [1]),
        ("rank", [], []),
    ],
)
def test_a_score_becomes_a_relevance_by_the_rule_of_its_kind(
    kind: str, scores: list[float | None], expected: list[float]
) -> None:
    assert relevances(scores, ScoreKind(kind)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "score", "problem"),
    [
        ("relevance", "high", "must be a number"),
        ("relevance", [1], "must be a number"),
        ("relevance", 10**400, "must be a number"),
        ("relevance", math.nan, "is not a relevance"),
        ("relevance", 12.7, "or 'rank' .*BM25"),
        ("cosine", 1.1, "from -1 to 1"),
        ("cosine", math.nan, "from -1 to 1"),
        ("distance", -0.1, "0 or more"),
        ("distance", math.inf, "0 or more"),
        ("distance", math.nan, "0 or more"),
    ],
)
def test_what_is_no_score_of_its_kind_is_refused_with_its_place(kind: str, score: Any, problem: str) -> None:
    with pytest.raises(InvalidHit, match=problem) as caught:
        relevances([0.5, score], ScoreKind(kind))
    assert caught.value.field == "hits[1].score"
