from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from satchel import ContextBuildOptions, ContextFormat
from satchel.errors import InvalidOption
from satchel.models.options import (
    DEFAULT_CONTEXT_CONFIG,
    OverflowPolicy,
    RerankingStrategy,
    TokenEstimationMethod,
    with_changes,
)


@pytest.mark.requirement("S0.options.defaults")
def test_every_option_has_the_specified_default() -> None:
    specified = {
        "workspace_path": "",
        "max_tokens": 4000,
        "max_chunks": 10,
        "min_relevance": 0.5,
        "format": ContextFormat.MARKDOWN,
        "include_file_headers": True,
        "include_line_numbers": True,
        "include_scores": False,
        "group_by_file": True,
        "chunk_separator": "\n\n",
        "expand_context": True,
        "context_lines": 5,
        "file_patterns": None,
        "languages": None,
        "context_header": None,
        "context_footer": None,
        "reranking": RerankingStrategy.KEYWORD_BOOST,
        "token_estimation": TokenEstimationMethod.CHARACTER_BASED,
    }
    options = ContextBuildOptions()
    assert {name: getattr(options, name) for name in specified} == specified


@pytest.mark.requirement("S0.options.workspace-path")
def test_the_workspace_path_is_kept() -> None:
    assert ContextBuildOptions(workspace_path="/srv/project").workspace_path == "/srv/project"


@pytest.mark.requirement("S0.options.max-tokens", "S0.options.max-chunks", "S0.options.min-relevance")
def test_budget_settings_are_kept() -> None:
    options = ContextBuildOptions(max_tokens=6000, max_chunks=3, min_relevance=0.75)
    assert (options.max_tokens, options.max_chunks, options.min_relevance) == (6000, 3, 0.75)
    assert ContextBuildOptions().max_tokens == 4000
    assert ContextBuildOptions().max_chunks == 10
    assert ContextBuildOptions().min_relevance == 0.5


@pytest.mark.requirement("S0.options.format", "S0.options.display-flags", "S0.options.group-by-file")
def test_formatting_settings_are_kept() -> None:
    options = ContextBuildOptions(
        format=ContextFormat.XML,
        include_file_headers=False,
        include_line_numbers=False,
        include_scores=True,
        group_by_file=False,
    )
    assert options.format is ContextFormat.XML
    assert not options.include_file_headers
    assert not options.include_line_numbers
    assert options.include_scores
    assert not options.group_by_file


@pytest.mark.requirement("S0.options.chunk-separator")
def test_the_separator_is_kept() -> None:
    assert ContextBuildOptions().chunk_separator == "\n\n"
    assert ContextBuildOptions(chunk_separator="\n***\n").chunk_separator == "\n***\n"


@pytest.mark.requirement("S0.options.expansion")
def test_expansion_settings_are_kept() -> None:
    options = ContextBuildOptions(expand_context=False, context_lines=12)
    assert not options.expand_context
    assert options.context_lines == 12
    assert ContextBuildOptions().expand_context
    assert ContextBuildOptions().context_lines == 5


@pytest.mark.requirement("S0.options.header-footer")
def test_header_and_footer_are_kept() -> None:
    options = ContextBuildOptions(context_header="Relevant code:", context_footer="That is all.")
    assert options.context_header == "Relevant code:"
    assert options.context_footer == "That is all."


@pytest.mark.requirement("S0.options.filters")
def test_filters_are_kept_in_order() -> None:
    options = ContextBuildOptions(file_patterns=["*.py", "docs/**"], languages=["python", "markdown"])
    assert options.file_patterns == ("*.py", "docs/**")
    assert options.languages == ("python", "markdown")


@pytest.mark.requirement("S0.options.reranking", "S0.reranking.keyword-boost")
def test_reranking_defaults_to_keyword_boost() -> None:
    assert ContextBuildOptions().reranking is RerankingStrategy.KEYWORD_BOOST
    assert ContextBuildOptions(reranking=RerankingStrategy.NONE).reranking is RerankingStrategy.NONE


@pytest.mark.requirement("S0.options.token-estimation")
def test_token_estimation_defaults_to_characters() -> None:
    assert ContextBuildOptions().token_estimation is TokenEstimationMethod.CHARACTER_BASED


@pytest.mark.requirement("S2.options.fields")
def test_the_options_of_entity_assembly_are_here_too() -> None:
    options = ContextBuildOptions(
        max_tokens=100, format=ContextFormat.PLAIN, include_sources=True, include_code_content=False, group_by_type=True
    )
    assert options.include_sources
    assert not options.include_code_content
    assert options.group_by_type


@pytest.mark.requirement("S0.options.all-settable")
def test_all_options_can_be_set_together() -> None:
    given: dict[str, Any] = {
        "workspace_path": "/w",
        "max_tokens": 1,
        "max_chunks": 1,
        "min_relevance": 1.0,
        "format": ContextFormat.JSON,
        "include_file_headers": False,
        "include_line_numbers": False,
        "include_scores": True,
        "group_by_file": False,
        "chunk_separator": "",
        "expand_context": False,
        "context_lines": 0,
        "file_patterns": ("a",),
        "languages": ("b",),
        "context_header": "h",
        "context_footer": "f",
        "reranking": RerankingStrategy.RECENCY,
        "token_estimation": TokenEstimationMethod.WORD_BASED,
    }
    options = ContextBuildOptions(**given)
    assert {name: getattr(options, name) for name in given} == given


@pytest.mark.requirement("S0.options.all-settable")
def test_enums_may_be_given_by_value() -> None:
    options = ContextBuildOptions(format="xml", overflow="stop", token_estimation="tokenizer")  # type: ignore[arg-type]
    assert options.format is ContextFormat.XML
    assert options.overflow is OverflowPolicy.STOP
    assert options.token_estimation is TokenEstimationMethod.TOKENIZER


@pytest.mark.requirement("S0.quality.frozen")
def test_options_cannot_be_changed() -> None:
    options = ContextBuildOptions()
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.max_tokens = 5  # type: ignore[misc]
    assert not hasattr(options, "__dict__")


@pytest.mark.requirement("S1.format-chunk.unknown-format", "S1.tokens.unknown-method")
@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("max_tokens", -1, "at least 1"),
        ("max_tokens", 0, "at least 1"),
        ("max_tokens", 1.5, "whole number"),
        ("max_tokens", True, "whole number"),
        ("max_chunks", 0, "at least 1"),
        ("min_relevance", 1.01, "from 0 to 1"),
        ("min_relevance", -0.1, "from 0 to 1"),
        ("min_relevance", float("nan"), "number from 0 to 1"),
        ("context_lines", -1, "at least 0"),
        ("chunk_separator", "", "newline"),
        ("chunk_separator", "---", "newline"),
        ("chunk_separator", None, "text"),
        ("format", "yaml", "markdown, plain, xml, json"),
        ("token_estimation", "guess", "character_based, word_based, tokenizer"),
        ("reranking", "magic", "keyword_boost"),
        ("overflow", "explode", "skip, truncate, stop"),
        ("file_patterns", "*.py", "list"),
        ("file_patterns", 5, "list"),
        ("entity_content_chars", 0, "at least 1"),
        ("include_scores", "yes", "True or False"),
        ("context_header", 5, "text"),
        ("tokenizer", 5, "text"),
        ("languages", [5], "list of strings"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused_by_name(field: str, value: object, says: str) -> None:
    with pytest.raises(InvalidOption, match=says) as raised:
        ContextBuildOptions(**{field: value})  # type: ignore[arg-type]
    assert raised.value.field == field
    assert raised.value.code == "invalid-option"
    assert isinstance(raised.value, ValueError)


def test_an_empty_separator_is_fine_where_it_does_not_matter() -> None:
    assert ContextBuildOptions(format=ContextFormat.JSON, chunk_separator="").chunk_separator == ""
    assert ContextBuildOptions(format=ContextFormat.XML, chunk_separator="").chunk_separator == ""


def test_naming_a_tokenizer_means_counting_with_it() -> None:
    assert ContextBuildOptions(tokenizer="gpt-5").token_estimation is TokenEstimationMethod.TOKENIZER
    with pytest.raises(InvalidOption, match="word_based"):
        ContextBuildOptions(tokenizer="gpt-5", token_estimation=TokenEstimationMethod.WORD_BASED)


@pytest.mark.requirement("S0.format.values")
def test_the_formats_are_four_in_order() -> None:
    assert [member.name for member in ContextFormat] == ["MARKDOWN", "PLAIN", "XML", "JSON"]


@pytest.mark.requirement("S0.method.values")
def test_the_methods_are_three_in_order() -> None:
    assert [member.name for member in TokenEstimationMethod] == ["CHARACTER_BASED", "WORD_BASED", "TOKENIZER"]


@pytest.mark.parametrize(
    "wrong",
    [{"collectors": 5}, {"collectors": {"semantic": True}}, {"by_type": {"chat": 5}}, {"by_type": {"chta": {}}},
     {"token_budget": 5}, {"collectors": {"deadline_ms": 1e300}}, {"collectors": {"semantic": {"top_k": 2.5}}}],
)  # fmt: skip
def test_changes_of_a_configuration_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        with_changes(DEFAULT_CONTEXT_CONFIG, wrong)
