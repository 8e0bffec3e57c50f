from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from satchel import ContextBuildOptions, ContextBuildResult, KnowledgeChunk, assemble
from satchel.errors import RerankerMissing
from satchel.models.options import Ordering, RerankingStrategy

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def ranked(strategy: RerankingStrategy, hits: list[KnowledgeChunk], **more: object) -> ContextBuildResult:
    options = ContextBuildOptions(
        reranking=strategy, group_by_file=False, ordering=Ordering.RELEVANCE, merge_adjacent=False, min_relevance=0
    )
    return assemble(hits, options, **more)  # type: ignore[arg-type]


def paths(result: ContextBuildResult) -> list[str]:
    return list(result.files_included)


def hit(path: str, text: str, relevance: float, days: int | None = None) -> KnowledgeChunk:
    modified = None if days is None else NOW - timedelta(days=days)
    return KnowledgeChunk(text, file_path=path, relevance=relevance, last_modified=modified)


def test_none_leaves_the_relevance_alone() -> None:
    result = ranked(RerankingStrategy.NONE, [hit("a", "retry", 0.5), hit("b", "x", 0.9)], query="retry")
    assert paths(result) == ["b", "a"]
    assert [entry.score for entry in result.ledger] == [0.5, 0.9]


class TestKeywordBoost:
    def test_a_hit_with_the_querys_words_is_lifted_over_its_equal(self) -> None:
        hits = [hit("a", "nothing to do with it", 0.70), hit("b", "def retryBackoff(): pass", 0.68)]
        result = ranked(RerankingStrategy.KEYWORD_BOOST, hits, query="how is the retry backoff computed")
        assert paths(result) == ["b", "a"]
        assert result.ledger.entries[1].signals["keywords"] == pytest.approx(2 / 3)
        assert result.ledger.entries[1].relevance == 0.68

    def test_identifiers_and_paths_count(self) -> None:
        hits = [hit("src/http_client.py", "class X: pass", 0.5), hit("b", "parseHTTPReply()", 0.5)]
        result = ranked(RerankingStrategy.KEYWORD_BOOST, hits, query="http reply")
        assert [entry.signals["keywords"] for entry in result.ledger] == [0.5, 1.0]

    def test_a_boost_never_lowers_and_stays_in_bounds(self) -> None:
        result = ranked(RerankingStrategy.KEYWORD_BOOST, [hit("a", "word", 1.0), hit("b", "x", 0.3)], query="word")
        assert [entry.score for entry in result.ledger] == [1.0, 0.3]

    def test_without_a_query_nothing_changes(self) -> None:
        result = ranked(RerankingStrategy.KEYWORD_BOOST, [hit("a", "word", 0.4)])
        assert result.ledger.entries[0].score == 0.4

    def test_a_query_of_stop_words_still_works(self) -> None:
        result = ranked(
            RerankingStrategy.KEYWORD_BOOST, [hit("a", "what is it", 0.4), hit("b", "x", 0.4)], query="what is it"
        )
        assert paths(result) == ["a", "b"]
        assert ranked(RerankingStrategy.KEYWORD_BOOST, [hit("a", "x", 0.4)], query="???").ledger.entries[0].score == 0.4


class TestDiversity:
    def test_something_new_goes_before_more_of_the_same(self) -> None:
        same = "connect to the database and read the user table"
        hits = [hit("a", same, 0.9), hit("b", same + " again", 0.88), hit("c", "render the login page in html", 0.7)]
        assert paths(ranked(RerankingStrategy.DIVERSITY, hits)) == ["a", "c", "b"]
        assert paths(ranked(RerankingStrategy.NONE, hits)) == ["a", "b", "c"]

    def test_scores_fall_in_the_order_of_choice_and_stay_in_bounds(self) -> None:
        hits = [hit(f"f{i}", f"word{i % 3} text here", 0.9 - i / 20) for i in range(9)]
        scores = sorted((entry.score for entry in ranked(RerankingStrategy.DIVERSITY, hits).ledger), reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert scores[0] == pytest.approx(0.9)


class TestRecency:
    def test_the_newer_of_two_equals_goes_first(self) -> None:
        hits = [hit("old", "x", 0.8, days=40), hit("new", "y", 0.8, days=1), hit("undated", "z", 0.8)]
        result = ranked(RerankingStrategy.RECENCY, hits, now=NOW)
        assert paths(result) == ["new", "undated", "old"]
        assert [round(entry.signals["recency"], 3) for entry in result.ledger] == [0.0, 0.967, 0.5]

    def test_freshness_does_not_beat_relevance(self) -> None:
        hits = [hit("old", "x", 0.95, days=400), hit("new", "y", 0.4, days=0)]
        assert paths(ranked(RerankingStrategy.RECENCY, hits, now=NOW)) == ["old", "new"]

    def test_without_a_clock_the_newest_hit_is_the_reference(self) -> None:
        hits = [hit("a", "x", 0.8, days=500), hit("b", "y", 0.8, days=515)]
        result = ranked(RerankingStrategy.RECENCY, hits)
        assert [entry.signals["recency"] for entry in result.ledger] == [1.0, 0.5]
        assert "measured from" in result.notes[0]

    def test_naive_dates_are_taken_as_utc(self) -> None:
        naive = KnowledgeChunk("x", file_path="a", last_modified=datetime(2026, 11, 15))
        assert ranked(RerankingStrategy.RECENCY, [naive], now=NOW).ledger.entries[0].signals["recency"] == 1.0


class ByLength:
    """A cross-encoder that likes long texts, to see the port at work."""

    def score(self, query: str, texts: list[str]) -> list[float]:
        return [min(1.0, len(text) / 100) for text in texts]


class TestCrossEncoder:
    def test_its_judgement_is_the_score(self) -> None:
        hits = [hit("short", "x", 0.9), hit("long", "y" * 80, 0.2)]
        result = ranked(RerankingStrategy.CROSS_ENCODER, hits, query="q", cross_encoder=ByLength())
        assert paths(result) == ["long", "short"]
        assert result.ledger.entries[1].signals == {"cross_encoder": 0.8}

    def test_without_one_the_error_says_what_to_pass(self) -> None:
        with pytest.raises(RerankerMissing, match="cross_encoder="):
            ranked(RerankingStrategy.CROSS_ENCODER, [hit("a", "x", 1)], query="q")

    def test_without_a_query_hits_keep_their_relevance_and_a_note_says_so(self) -> None:
        result = ranked(RerankingStrategy.CROSS_ENCODER, [hit("a", "x", 0.4)], cross_encoder=ByLength())
        assert result.ledger.entries[0].score == 0.4
        assert "needs a query" in result.notes[0]


def test_every_strategy_can_be_chosen() -> None:
    for strategy in RerankingStrategy:
        assert ranked(strategy, [hit("a", "x", 0.9)], query="x", cross_encoder=ByLength()).chunks_included == 1
