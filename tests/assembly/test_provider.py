from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from satchel import ContextBuildOptions, ContextFormat, Entity, EntityResult, KnowledgeChunk, assemble
from satchel.errors import BudgetCannotBeMet
from satchel.models.options import OverflowPolicy, ProviderFormat, TokenEstimationMethod
from tests.support import strategies
from tests.support.oracle import true_count

HITS = [
    KnowledgeChunk("def a(): ...", file_path="src/a.py", start_line=1, end_line=1, relevance=0.9),
    KnowledgeChunk("# Guide", file_path="docs/g.md", start_line=1, end_line=1, relevance=0.8),
    KnowledgeChunk("def z(): ...", file_path="src/a.py", start_line=90, end_line=90, relevance=0.7),
]


def test_anthropic_gets_a_search_result_per_file_and_a_text_block_per_citable_span() -> None:
    options = ContextBuildOptions(provider=ProviderFormat.ANTHROPIC, context_header="Context:", context_footer="Go.")
    header, code, guide, footer = assemble(HITS, options).provider_content
    assert header == {"type": "text", "text": "Context:"}
    assert footer == {"type": "text", "text": "Go."}
    assert code == {
        "type": "search_result",
        "source": "src/a.py",
        "title": "src/a.py (lines 1-1, 90-90)",
        "content": [{"type": "text", "text": "def a(): ..."}, {"type": "text", "text": "def z(): ..."}],
        "citations": {"enabled": True},
    }
    assert guide["source"] == "docs/g.md"


def test_the_spans_of_anthropics_blocks_are_the_citation_numbers_in_order() -> None:
    result = assemble(HITS, ContextBuildOptions(provider=ProviderFormat.ANTHROPIC))
    spans = [block["text"] for found in result.provider_content for block in found["content"]]
    assert spans == [source.text for source in result.sources]
    assert len(spans) == len(result.citations)


@pytest.mark.parametrize("format", ContextFormat)
def test_openais_parts_joined_are_the_context(format: ContextFormat) -> None:
    result = assemble(HITS, ContextBuildOptions(provider=ProviderFormat.OPENAI, format=format, context_header="C"))
    assert "".join(part["text"] for part in result.provider_content) == result.context
    assert {part["type"] for part in result.provider_content} == {"text"}


def test_no_provider_no_content() -> None:
    assert assemble(HITS).provider_content == ()


def test_an_entity_without_text_has_something_to_cite() -> None:
    bare = EntityResult(Entity("e", "Decision 7", "decision"))
    (block,) = assemble([bare], ContextBuildOptions(provider=ProviderFormat.ANTHROPIC)).provider_content
    assert block["content"] == [{"type": "text", "text": "Decision 7"}]
    both = EntityResult(Entity("e", "f", "function", None, None, "Does f.", "def f(): ..."))
    (block,) = assemble([both], ContextBuildOptions(provider=ProviderFormat.ANTHROPIC)).provider_content
    assert block["content"][0]["text"] == "Does f.\n\ndef f(): ..."


def test_a_trimmed_span_has_its_receipt() -> None:
    hit = KnowledgeChunk("line of text\n" * 900, file_path="a.txt", start_line=1, end_line=900)
    options = ContextBuildOptions(provider=ProviderFormat.ANTHROPIC, overflow=OverflowPolicy.TRUNCATE, max_tokens=500)
    (block,) = assemble([hit], options).provider_content
    assert 'expand("a.txt:1-900")]' in block["content"][0]["text"]


def test_a_blank_summary_is_no_text_block() -> None:
    hit = EntityResult(Entity(id="e1", name="Router", type="class", summary="\r\n"), 1.0)
    options = ContextBuildOptions(provider=ProviderFormat.ANTHROPIC, min_relevance=0, min_content_length=0)
    (block,) = assemble([hit], options).provider_content
    assert [text["text"] for text in block["content"]] == ["Router"]


@given(
    strategies.hits,
    strategies.options(provider=ProviderFormat.ANTHROPIC, token_estimation=TokenEstimationMethod.TOKENIZER),
)
def test_law_what_anthropic_is_given_is_within_the_budget(
    hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions
) -> None:
    try:
        result = assemble(hits, options)
    except BudgetCannotBeMet:
        return
    strings = []
    for block in result.provider_content:
        if block["type"] == "text":
            strings.append(block["text"])
        else:
            assert all(text["text"].strip() for text in block["content"])
            strings += [block["source"], block["title"], *(text["text"] for text in block["content"])]
    assert true_count("".join(f"{text}\n" for text in strings), options.tokenizer or "o200k_base") <= options.max_tokens


def test_breakpoints_for_the_cache_stand_behind_the_header_and_the_sources() -> None:
    plain = ContextBuildOptions(provider=ProviderFormat.ANTHROPIC, context_header="Context:", context_footer="Go.")
    marked = assemble(HITS, replace(plain, cache_breakpoints=True)).provider_content
    places = [place for place, block in enumerate(marked) if "cache_control" in block]
    assert places == [0, len(marked) - 2]
    assert marked[-1] == {"type": "text", "text": "Go."}
    bare = [{name: value for name, value in block.items() if name != "cache_control"} for block in marked]
    assert tuple(bare) == assemble(HITS, plain).provider_content
