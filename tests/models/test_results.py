from __future__ import annotations

import copy
import dataclasses
import pickle
from datetime import timedelta

import pytest

from satchel import ContextBuildOptions, ContextBuildResult, ContextFormat, KnowledgeChunk, assemble
from satchel.errors import BudgetCannotBeMet, InvalidHit, UnknownPiece, UnknownTokenizer


@pytest.mark.requirement("S0.result.empty")
def test_empty_is_one_shared_value() -> None:
    assert ContextBuildResult.EMPTY is ContextBuildResult.EMPTY
    assert ContextBuildResult() == ContextBuildResult.EMPTY
    assert ContextBuildResult.EMPTY.context == ""
    assert ContextBuildResult.EMPTY.files_included == ()


@pytest.mark.requirement("S0.result.is-empty")
@pytest.mark.parametrize(("text", "empty"), [("", True), (" \n\t", True), ("x", False), ("\n x", False)])
def test_white_space_alone_is_empty(text: str, empty: bool) -> None:
    assert ContextBuildResult(text=text).is_empty is empty
    assert ContextBuildResult.EMPTY.is_empty


@pytest.mark.requirement("S0.result.total-chunks-available")
def test_the_total_is_what_is_in_and_what_is_out() -> None:
    assert ContextBuildResult(chunks_included=3, chunks_truncated=4).total_chunks_available == 7


@pytest.mark.requirement("S0.result.inclusion-percentage")
def test_the_percentage_is_of_the_total() -> None:
    assert ContextBuildResult(chunks_included=3, chunks_truncated=1).inclusion_percentage == 75.0


@pytest.mark.requirement("S0.result.inclusion-percentage-of-none")
def test_the_percentage_of_nothing_is_zero() -> None:
    assert ContextBuildResult().inclusion_percentage == 0


@pytest.mark.requirement("S0.result.file-count")
def test_the_file_count_is_the_number_of_files() -> None:
    assert ContextBuildResult(files_included=("a.py", "b.py")).file_count == 2
    assert ContextBuildResult().file_count == 0


@pytest.mark.requirement(
    "S0.result.context",
    "S0.result.estimated-tokens",
    "S0.result.chunks-included",
    "S0.result.chunks-truncated",
    "S0.result.files-included",
    "S0.result.was-truncated",
    "S0.result.format",
    "S0.result.build-time",
    "S0.result.average-relevance",
)
def test_a_result_has_quiet_defaults() -> None:
    result = ContextBuildResult()
    assert result.context == ""
    assert result.estimated_tokens == result.chunks_included == result.chunks_truncated == 0
    assert result.files_included == ()
    assert result.was_truncated is False
    assert result.format is ContextFormat.MARKDOWN
    assert result.build_time == timedelta(0)
    assert result.average_relevance == 0.0


@pytest.mark.requirement("S2.result.summary")
def test_there_is_no_summary_unless_something_was_summarised() -> None:
    assert ContextBuildResult().summary is None
    assert ContextBuildResult(summary="short").summary == "short"


@pytest.mark.requirement("S0.quality.computed-edges")
def test_every_computed_property_answers_on_defaults() -> None:
    for name, value in vars(ContextBuildResult).items():
        if isinstance(value, property):
            getattr(ContextBuildResult(), name)


@pytest.mark.requirement("S0.quality.frozen")
def test_a_result_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ContextBuildResult.EMPTY.text = "x"  # type: ignore[misc]
    assert not hasattr(ContextBuildResult.EMPTY, "__dict__")


@pytest.mark.requirement("S0.result.complete-metadata", "S1.result.build-time", "S1.result.format")
def test_one_result_tells_everything_about_one_assembly() -> None:
    options = ContextBuildOptions(max_chunks=1, format=ContextFormat.PLAIN)
    result = assemble([KnowledgeChunk("one", file_path="a"), KnowledgeChunk("two", file_path="b")], options)
    assert result.context
    assert result.estimated_tokens > 0
    assert (result.chunks_included, result.chunks_truncated) == (1, 1)
    assert result.files_included == ("a",)
    assert result.was_truncated
    assert result.format is ContextFormat.PLAIN
    assert timedelta(0) < result.build_time < timedelta(seconds=30)
    assert result.average_relevance == 1.0


def test_expand_gives_the_exact_text_whatever_became_of_the_hit() -> None:
    text = "a\x1b[0m\r\nb"
    result = assemble([KnowledgeChunk(text, file_path="x", id="one", relevance=0.1)])
    assert result.is_empty
    assert result.expand("one") == text


def test_expanding_an_unknown_id_says_so() -> None:
    with pytest.raises(UnknownPiece, match="'nope'"):
        ContextBuildResult.EMPTY.expand("nope")


def test_results_and_errors_cross_process_borders() -> None:
    result = assemble([KnowledgeChunk("x", file_path="a")], query="x")
    assert pickle.loads(pickle.dumps(result)) == result
    assert copy.deepcopy(result) == result
    errors = [InvalidHit("f", 1, "p"), BudgetCannotBeMet(1, 2), UnknownTokenizer("x", ["y"])]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)
