"""What S0, S1 and S2 print, taken to the letter."""

from __future__ import annotations

import json

import pytest

from satchel import (
    ContextBuildOptions,
    ContextFormat,
    Entity,
    EntityResult,
    KnowledgeChunk,
    assemble,
    format_chunk,
)
from satchel.errors import InvalidOption
from satchel.models.context import SourceDocument
from satchel.models.options import HeadingStyle, OverflowPolicy, TokenEstimationMethod

CHUNK = KnowledgeChunk(
    "def moor():\n    pass", file_path="a.py", start_line=1, end_line=2, relevance=0.9, language="python"
)


def entity(score: float, *, name: str = "Moorings", summary: str | None = "Where ships are moored.") -> EntityResult:
    return EntityResult(Entity(name, name, "document", "docs/moorings.md", 3, summary), score)


@pytest.mark.parametrize(("number", "format"), list(enumerate(ContextFormat)))
def test_formats_have_numbers(number: int, format: ContextFormat) -> None:
    assert ContextBuildOptions(format=number).format is format  # type: ignore[arg-type]


def test_methods_have_numbers_and_others_are_refused() -> None:
    assert TokenEstimationMethod(2) is TokenEstimationMethod.TOKENIZER  # type: ignore[arg-type]
    for wrong in (4, -1, True, 1.0):
        with pytest.raises(InvalidOption, match="must be one of"):
            ContextBuildOptions(format=wrong)  # type: ignore[arg-type]


def test_one_blank_line_stands_between_compact_chunks() -> None:
    other = KnowledgeChunk("def sail():\n    pass", file_path="b.py", start_line=1, end_line=2, relevance=0.8)
    text = assemble([CHUNK, other], ContextBuildOptions(heading_style=HeadingStyle.COMPACT)).context
    assert "```\n\n### b.py" in text


def test_a_single_chunk_in_json_is_an_object_by_itself() -> None:
    text = format_chunk(CHUNK, ContextFormat.JSON).formatted_content
    assert text.startswith("{\n")
    assert text.endswith("}")
    assert json.loads(text)["file"] == "a.py"


def test_the_flags_of_a_single_chunk_may_be_positional() -> None:
    assert format_chunk(CHUNK, ContextFormat.MARKDOWN, False, False).formatted_content.startswith("```python")


def test_the_score_of_a_source_is_set_by_search() -> None:
    source = SourceDocument("d", "a.pdf", 1, "pdf")
    source.relevance_score = 0.7
    assert source.relevance == 0.7


def test_entities_have_no_threshold_and_no_limit_unless_set() -> None:
    some = [entity(score / 20, name=f"Mooring {score}") for score in range(1, 16)]
    assert len(assemble(some, ContextBuildOptions(max_tokens=4000)).sources) == 15
    filtered = assemble(some, ContextBuildOptions(max_tokens=4000, min_relevance=0.6))
    assert len(filtered.sources) == 4
    assert "11 hits are below min_relevance=0.6 and left out" in filtered.notes
    assert len(assemble(some, ContextBuildOptions(max_tokens=4000, max_chunks=3)).sources) == 3


def test_chunks_below_the_threshold_are_told() -> None:
    low = KnowledgeChunk("def sail():\n    pass", file_path="b.py", relevance=0.3)
    assert "1 hit is below min_relevance=0.5 and left out" in assemble([CHUNK, low]).notes


def test_a_limit_on_the_content_of_an_entity_is_not_the_budget() -> None:
    long = EntityResult(Entity("e", "Moorings", "document", None, None, None, "x" * 501), 0.9)
    assert not assemble([long], ContextBuildOptions(include_code_content=True)).was_truncated


def test_the_sources_of_entities_have_a_name_and_a_type_in_xml() -> None:
    text = assemble([entity(0.9)], ContextBuildOptions(format=ContextFormat.XML, include_sources=True)).context
    assert '<source name="Moorings" type="document" />' in text


def test_a_summary_that_is_too_long_is_shortened_to_fit_and_reported() -> None:
    sentences = [f"The mooring number {number} is for boats of up to {number} metres." for number in range(2, 60)]
    options = ContextBuildOptions(max_tokens=120, overflow=OverflowPolicy.TRUNCATE, tokenizer="gpt-4o")
    result = assemble([entity(0.9, summary=" ".join(sentences))], options)
    assert result.tokens <= 120
    assert result.was_truncated
    assert result.summary
    assert result.summary in result.context
    assert "The mooring number 2 is for boats" in result.summary
    assert assemble([entity(0.9)], options).summary is None
