"""DESIGN's promises 1, 4, 5, 6 and 7 as laws."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import ContextBuildOptions, ContextBuildResult, ContextFormat, EntityResult, KnowledgeChunk, assemble
from satchel.errors import BudgetCannotBeMet
from satchel.models.context import Fate
from satchel.models.options import OverflowPolicy
from satchel.text.visible import make_visible, make_visible_lines
from tests.support import lawbook, strategies


def assembled(
    hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions, query: str | None = None
) -> ContextBuildResult | None:
    try:
        return assemble(hits, options, query=query)
    except BudgetCannotBeMet as error:
        assert error.needed_tokens >= options.max_tokens  # noqa: PT017 - the other outcome is a result
        return None


@pytest.mark.requirement("S1.budget.max-tokens", "S2.budget.max-tokens", "S1.result.estimated-tokens")
@given(strategies.hits, strategies.options(), st.one_of(st.none(), strategies.nasty_text))
def test_law_never_above_budget_always_parses(
    hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions, query: str | None
) -> None:
    result = assembled(hits, options, query)
    if result is not None:
        lawbook.check(result, options)


@given(strategies.hits, strategies.options())
def test_law_same_request_same_bytes(hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions) -> None:
    first, second = assembled(hits, options), assembled(list(hits), options)
    if first is not None and second is not None:
        assert first.context == second.context
        assert first.ledger == second.ledger


@pytest.mark.requirement(
    "S1.markdown.valid", "S1.xml.escape", "S1.json.valid", "S1.xml.one-root", "S1.json.one-document"
)
@given(strategies.chunk_hits, st.sampled_from(ContextFormat), st.booleans())
def test_law_parsing_gives_back_exactly_the_pieces_put_in(
    chunks: list[KnowledgeChunk], format: ContextFormat, citations: bool
) -> None:
    options = ContextBuildOptions(
        format=format,
        max_tokens=10**6,
        max_chunks=100,
        min_relevance=0,
        merge_adjacent=False,
        group_by_file=False,
        include_citations=citations,
    )
    # A mark makes every chunk one of its own; it stands now before the text and now behind it.
    marked = [
        replace(chunk, expanded_context=None, content=f"{i}\n{chunk.content}" if i % 2 else f"{chunk.content}\n{i}")
        for i, chunk in enumerate(chunks)
    ]
    result = assemble(marked, options)
    wanted = [make_visible_lines(chunk.content).text for chunk in marked]
    if result.is_empty:
        assert wanted == []
        return
    parsed = {
        ContextFormat.MARKDOWN: lawbook.fences,
        ContextFormat.XML: lawbook.xml_texts,
        ContextFormat.JSON: lambda text: [chunk["content"] for chunk in lawbook.json_chunks(text)],
        ContextFormat.PLAIN: lawbook.plain_texts,
    }[format](result.context)
    if format is ContextFormat.PLAIN:
        assert [text.rstrip() for text in parsed] == [text.rstrip() for text in wanted]
    else:
        assert parsed == wanted


@pytest.mark.requirement("S1.markdown.valid")
@given(strategies.chunk_hits)
def test_law_no_heading_that_satchel_did_not_write(chunks: list[KnowledgeChunk]) -> None:
    options = ContextBuildOptions(max_tokens=10**6, max_chunks=100, min_relevance=0, include_citations=True)
    result = assemble(chunks, options)
    blocks = lawbook.markdown_blocks(result.context)
    assert {token.type for token in blocks} <= {
        "heading_open", "inline", "heading_close", "paragraph_open", "paragraph_close", "fence",
    }  # fmt: skip
    written = [number for number in lawbook.headings(result.context) if number.startswith("[")]
    assert len(lawbook.headings(result.context)) == len(written)
    numbers = [int(heading[1 : heading.index("]")]) for heading in written]
    assert numbers == sorted(set(numbers))


@given(strategies.hits, strategies.options())
def test_law_citations_cannot_drift(hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions) -> None:
    result = assembled(hits, options)
    if result is None:
        return
    assert list(result.citations) == list(range(1, len(result.sources) + 1))
    for number, source in result.citations.items():
        assert source.number == number
        assert isinstance(result.expand(source.id), str)
    ends = [end for _, end in result.spans]
    assert all(start < end for start, end in result.spans)
    assert all(end <= start for end, (start, _) in zip(ends, result.spans[1:], strict=False))


@pytest.mark.requirement("S2.xml.limit")
@given(
    strategies.hits, strategies.options(overflow=OverflowPolicy.TRUNCATE, min_truncated_tokens=10, min_content_length=3)
)
def test_law_nothing_is_cut_without_a_receipt(
    hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions
) -> None:
    result = assembled(hits, options)
    if result is None:
        return
    for entry in result.ledger.with_fate(Fate.TRIMMED):
        assert entry.number is not None
        start, end = result.spans[entry.number - 1]
        piece = result.context[start:end]
        assert "truncated" in piece
        shown = tuple(source.text for source in result.sources)[entry.number - 1]
        # Line ends of both kinds may meet where a summary and a content do.
        full = make_visible(result.expand(entry.id)).text.replace("␍", "")
        assert shown.replace("␍", "").split("\n")[0] in full
        assert len(shown) < len(make_visible(result.expand(entry.id)).text) + 3


@given(strategies.hits, strategies.options())
def test_law_every_hit_has_its_place_in_the_ledger(
    hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions
) -> None:
    result = assembled(hits, options)
    if result is None or not hits:
        return
    assert len(result.ledger) == len(hits)
    assert len({entry.id for entry in result.ledger}) == len(hits)
    fates = [entry.fate for entry in result.ledger]
    assert fates.count(Fate.KEPT) + fates.count(Fate.TRIMMED) == result.chunks_included
    assert fates.count(Fate.MERGED) == result.chunks_merged
    assert result.chunks_included <= options.max_chunks
