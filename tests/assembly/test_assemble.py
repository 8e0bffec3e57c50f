"""Assembling chunks: order, budget, filters, merging, and what the result says of it."""

from __future__ import annotations

import inspect
import logging
import re
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import (
    ContextBuildOptions,
    ContextBuildResult,
    ContextFormat,
    Entity,
    EntityResult,
    KnowledgeChunk,
    assemble,
    counter_for,
    estimate_tokens,
)
from satchel.errors import BudgetCannotBeMet, InvalidHit, InvalidOption
from satchel.models.context import Fate, Reason
from satchel.models.options import Ordering, OverflowPolicy, Packing, RerankingStrategy, TokenEstimationMethod
from tests.support import lawbook
from tests.support.effort import steps
from tests.support.oracle import true_count

EXACT = ContextBuildOptions(token_estimation=TokenEstimationMethod.TOKENIZER)


def chunk(
    path: str = "src/a.py",
    start: int = 1,
    relevance: float = 0.8,
    text: str = "",
    lines: int = 2,
    language: str = "python",
) -> KnowledgeChunk:
    content = text or "\n".join(f"{path} line {start + i}" for i in range(lines))
    end = start + content.count("\n")
    return KnowledgeChunk(
        content, file_path=path, start_line=start, end_line=end, relevance=relevance, language=language
    )


def positions(result: ContextBuildResult, *needles: str) -> list[int]:
    return [result.context.index(needle) for needle in needles]


def ascending(numbers: list[int]) -> bool:
    return numbers == sorted(numbers)


@pytest.mark.requirement("S1.assemble.signature")
def test_assemble_is_a_plain_call() -> None:
    assert not inspect.iscoroutinefunction(assemble)
    assert isinstance(assemble([chunk()]), ContextBuildResult)


@pytest.mark.requirement("S1.assemble.empty", "S2.assemble.empty")
def test_no_hits_give_the_empty_result() -> None:
    options = ContextBuildOptions(context_header="Header", context_footer="Footer", include_sources=True)
    assert assemble([], options) is ContextBuildResult.EMPTY


@pytest.mark.requirement("S1.group.by-file", "S1.group.best-file-first", "S1.group.lines-ascending")
def test_chunks_of_a_file_stand_together_best_file_first_by_line() -> None:
    hits = [
        chunk("b.py", 40, 0.6),
        chunk("a.py", 70, 0.7),
        chunk("b.py", 10, 0.9),
        chunk("c.py", 5, 0.7),
        chunk("a.py", 9, 0.5),
    ]
    result = assemble(hits)
    assert ascending(positions(result, "b.py line 10", "b.py line 40", "a.py line 9", "a.py line 70", "c.py line 5"))


@pytest.mark.requirement("S1.group.off")
def test_chunks_that_are_not_grouped_stay_as_given() -> None:
    hits = [chunk("a.py", 9, 0.5), chunk("b.py", 10, 0.9), chunk("a.py", 70, 0.7)]
    result = assemble(hits, ContextBuildOptions(group_by_file=False))
    assert ascending(positions(result, "a.py line 9", "b.py line 10", "a.py line 70"))


def test_an_ordering_by_relevance_can_be_asked_for_without_groups() -> None:
    hits = [chunk("a.py", 9, 0.5), chunk("b.py", 10, 0.9), chunk("a.py", 70, 0.7)]
    result = assemble(hits, ContextBuildOptions(group_by_file=False, ordering=Ordering.RELEVANCE))
    assert ascending(positions(result, "b.py line 10", "a.py line 70", "a.py line 9"))


def test_the_best_stand_at_both_ends_when_asked() -> None:
    hits = [chunk(f"f{i}.py", 1, 0.9 - i / 20) for i in range(5)]
    result = assemble(hits, ContextBuildOptions(ordering=Ordering.EDGES))
    assert ascending(positions(result, "f0.py line", "f2.py line", "f4.py line", "f3.py line", "f1.py line"))


@pytest.mark.requirement("S0.pipeline.one-file-heading", "S1.markdown.grouped-header")
def test_a_file_is_named_once_above_its_chunks() -> None:
    result = assemble([chunk("a.py", 1), chunk("a.py", 50), chunk("a.py", 90)])
    assert lawbook.headings(result.context) == ["a.py"]
    assert ascending(positions(result, "Lines 1-2", "Lines 50-51", "Lines 90-91"))


@pytest.mark.requirement("S0.pipeline.filter-relevance")
def test_a_chunk_below_the_threshold_is_not_used_and_one_at_it_is() -> None:
    result = assemble([chunk("a.py", relevance=0.5), chunk("b.py", relevance=0.4999)])
    assert result.files_included == ("a.py",)
    assert result.ledger.entries[1].reason is Reason.BELOW_RELEVANCE


@pytest.mark.requirement("S0.pipeline.filter-file-patterns")
@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["*.py"], ["src/a.py", "src/x/b.py"]),
        (["src/*.py"], ["src/a.py"]),
        (["src/**"], ["src/a.py", "src/x/b.py"]),
        (["docs/"], ["docs/c.md"]),
        (["*.py", "!**/b.py"], ["src/a.py"]),
        (["!*.md"], ["src/a.py", "src/x/b.py"]),
        (None, ["docs/c.md", "src/a.py", "src/x/b.py"]),
    ],
)
def test_file_patterns_choose_paths(patterns: list[str] | None, kept: list[str]) -> None:
    hits = [chunk("src/a.py"), chunk("src/x/b.py"), chunk("docs/c.md")]
    assert sorted(assemble(hits, ContextBuildOptions(file_patterns=patterns)).files_included) == kept


@pytest.mark.requirement("S0.pipeline.filter-languages")
@pytest.mark.parametrize(
    ("languages", "kept"),
    [(["python"], ["a.py", "b"]), (["Go", "PY"], ["a.py", "b", "c.go"]), (None, ["a.py", "b", "c.go"])],
)
def test_languages_choose_chunks(languages: list[str] | None, kept: list[str]) -> None:
    by_extension = KnowledgeChunk("x", file_path="c.go")
    hits = [chunk("a.py"), chunk("b", language="Python"), by_extension]
    assert sorted(assemble(hits, ContextBuildOptions(languages=languages)).files_included) == kept


@pytest.mark.requirement("S0.pipeline.all-filtered")
def test_when_the_filters_leave_nothing_the_context_is_empty_and_the_ledger_says_why() -> None:
    result = assemble([chunk(relevance=0.1), chunk("x.md")], ContextBuildOptions(languages=["rust"]))
    assert result.is_empty
    assert result.total_chunks_available == 0
    assert [entry.reason for entry in result.ledger] == [Reason.BELOW_RELEVANCE, Reason.LANGUAGE]


@pytest.mark.requirement("S0.pipeline.assemble-order", "S1.budget.header", "S1.budget.footer", "S1.budget.separator")
@pytest.mark.parametrize("format", [ContextFormat.MARKDOWN, ContextFormat.PLAIN])
def test_header_chunks_separated_footer(format: ContextFormat) -> None:
    options = ContextBuildOptions(
        format=format,
        context_header="The header.",
        context_footer="The footer.",
        chunk_separator="\n***\n",
    )
    text = assemble([chunk("a.py"), chunk("b.py", relevance=0.7)], options).context
    assert text.startswith("The header.\n\n")
    assert text.endswith("\n\nThe footer.")
    assert text.count("\n***\n") == 1
    assert text.index("a.py line 2") < text.index("\n***\n") < text.index("b.py line 1")


@pytest.mark.requirement("S1.budget.trailing-whitespace")
@pytest.mark.parametrize("format", ContextFormat)
@pytest.mark.parametrize("footer", [None, "Footer  \n\n"])
def test_the_text_does_not_end_in_white_space(format: ContextFormat, footer: str | None) -> None:
    text = assemble([chunk(text="x = 1\n\n")], ContextBuildOptions(format=format, context_footer=footer)).context
    assert text == text.rstrip()


@pytest.mark.requirement("S0.pipeline.token-budget", "S1.budget.skip", "S1.result.chunks-truncated")
def test_a_chunk_that_does_not_fit_is_passed_over_and_the_next_is_tried() -> None:
    hits = [chunk("a.py", 1, 0.9), chunk("big.py", 1, 0.8, lines=400), chunk("c.py", 1, 0.7)]
    result = assemble(hits, replace(EXACT, max_tokens=120))
    assert result.files_included == ("a.py", "c.py")
    assert (result.chunks_included, result.chunks_truncated, result.was_truncated) == (2, 1, True)
    assert result.ledger.entries[1].reason is Reason.OVER_BUDGET


@pytest.mark.requirement("S2.budget.stop")
def test_stop_ends_at_the_first_that_does_not_fit() -> None:
    hits = [chunk("a.py", 1, 0.9), chunk("big.py", 1, 0.8, lines=400), chunk("c.py", 1, 0.7)]
    result = assemble(hits, replace(EXACT, max_tokens=120, overflow=OverflowPolicy.STOP))
    assert result.files_included == ("a.py",)
    assert result.was_truncated
    assert [entry.reason for entry in result.ledger] == [Reason.FITS, Reason.OVER_BUDGET, Reason.AFTER_STOP]


def test_truncate_trims_the_best_that_does_not_fit_and_says_so() -> None:
    hits = [chunk("a.py", 1, 0.9), chunk("big.py", 1, 0.8, lines=400), chunk("c.py", 1, 0.7)]
    result = assemble(hits, replace(EXACT, max_tokens=400, overflow=OverflowPolicy.TRUNCATE))
    assert result.files_included[:2] == ("a.py", "big.py")
    entry = result.ledger.entries[1]
    assert (entry.fate, entry.reason) == (Fate.TRIMMED, Reason.TRIMMED_TO_FIT)
    assert result.estimated_tokens <= 400
    shown = tuple(source.text for source in result.sources)[1].split("\n")
    assert f"Lines 1-{len(shown)}" in result.context
    missing = 400 - len(shown)
    assert f"[truncated: {missing} lines, " in result.context
    assert 'expand("big.py:1-400")' in result.context
    assert result.expand("big.py:1-400") == hits[1].content
    assert hits[1].content.startswith(tuple(source.text for source in result.sources)[1])
    assert result.was_truncated


def test_truncate_leaves_it_when_less_than_the_minimum_remains() -> None:
    hits = [chunk("a.py", 1, 0.9), chunk("big.py", 1, 0.8, lines=400)]
    needed = assemble(hits[:1], EXACT).estimated_tokens
    result = assemble(hits, replace(EXACT, max_tokens=needed + 99, overflow=OverflowPolicy.TRUNCATE))
    assert result.files_included == ("a.py",)


@pytest.mark.requirement("S1.budget.max-tokens", "S1.budget.exact-fit")
@pytest.mark.parametrize("format", ContextFormat)
@pytest.mark.parametrize("method", TokenEstimationMethod)
def test_a_text_of_exactly_the_budget_fits_and_one_token_less_does_not(
    format: ContextFormat, method: TokenEstimationMethod
) -> None:
    options = ContextBuildOptions(format=format, token_estimation=method, context_header="H", context_footer="The end.")
    hits = [chunk("a.py"), chunk("b.py", relevance=0.7)]
    needed = assemble(hits, options).estimated_tokens
    assert assemble(hits, replace(options, max_tokens=needed)).chunks_included == 2
    less = assemble(hits, replace(options, max_tokens=needed - 1))
    assert less.chunks_included == 1
    assert less.estimated_tokens <= needed - 1


@pytest.mark.parametrize("overflow", OverflowPolicy)
def test_what_fits_alone_is_not_refused_among_others(overflow: OverflowPolicy) -> None:
    hits = [chunk("small.py", 1, 0.9), *(chunk(f"big{i}.py", 1, 0.5 - i / 100, lines=60) for i in range(3))]
    options = replace(EXACT, overflow=overflow)
    needed = assemble(hits[:1], options).estimated_tokens
    fits = assemble(hits, replace(options, max_tokens=needed))
    assert (fits.files_included, fits.estimated_tokens) == (("small.py",), needed)
    less = assemble(hits, replace(options, max_tokens=needed - 1))
    assert less.is_empty
    assert min(entry.tokens for entry in less.ledger if entry.tokens) == needed, "what is said to be needed is enough"


@pytest.mark.requirement("S1.budget.max-chunks", "S1.budget.unreached", "S0.result.chunks-truncated")
def test_no_more_than_max_chunks_and_the_rest_counts_as_truncated() -> None:
    hits = [chunk("a.py", 10 * i + 1, 0.9 - i / 100) for i in range(9)]
    result = assemble(hits, ContextBuildOptions(max_chunks=3))
    assert (result.chunks_included, result.chunks_truncated) == (3, 6)
    assert result.was_truncated
    assert [entry.reason for entry in result.ledger][3:] == [Reason.MAX_CHUNKS] * 6


def test_max_chunks_counts_chunks_not_joined_pieces() -> None:
    hits = [chunk("a.py", 2 * i + 1, 0.9) for i in range(9)]
    result = assemble(hits, ContextBuildOptions(max_chunks=4))
    assert result.chunks_included == 4
    assert len(result.sources) == 1


@pytest.mark.requirement("S1.budget.footer-reserved")
def test_chunks_give_way_to_the_footer() -> None:
    hits = [chunk("a.py"), chunk("b.py", relevance=0.7)]
    without = assemble(hits, EXACT).estimated_tokens
    options = replace(EXACT, max_tokens=without, context_footer="A footer that takes some room.")
    result = assemble(hits, options)
    assert result.chunks_included == 1
    assert result.context.endswith("A footer that takes some room.")


@pytest.mark.requirement("S1.budget.fixed-parts-too-big")
@pytest.mark.parametrize("format", ContextFormat)
def test_when_the_fixed_parts_alone_are_too_much_that_is_an_error(format: ContextFormat) -> None:
    options = replace(EXACT, format=format, max_tokens=10, context_header="word " * 50)
    with pytest.raises(BudgetCannotBeMet, match="max_tokens=10") as raised:
        assemble([chunk()], options)
    assert raised.value.needed_tokens >= 50


@pytest.mark.requirement("S1.budget.nothing-fits", "S1.result.average-relevance")
def test_when_no_chunk_fits_there_is_no_text_and_no_error() -> None:
    result = assemble([chunk(lines=300), chunk("b.py", lines=300)], replace(EXACT, max_tokens=50, context_header="H"))
    assert (result.chunks_included, result.chunks_truncated) == (0, 2)
    assert result.is_empty
    assert result.was_truncated
    assert result.average_relevance == 0.0


@pytest.mark.requirement("S1.result.chunks-included", "S1.result.files-included", "S1.result.average-relevance")
def test_the_result_counts_what_is_in_the_text() -> None:
    hits = [chunk("b.py", 1, 0.6), chunk("a.py", 1, 0.9), chunk("b.py", 30, 0.9)]
    result = assemble(hits)
    assert result.chunks_included == 3
    assert result.files_included == ("b.py", "a.py")
    assert result.average_relevance == pytest.approx(0.8)


@pytest.mark.requirement("S1.result.estimated-tokens", "S0.result.estimated-tokens")
@pytest.mark.parametrize("method", TokenEstimationMethod)
def test_the_token_count_is_that_of_the_finished_text(method: TokenEstimationMethod) -> None:
    result = assemble([chunk(), chunk("b.py")], ContextBuildOptions(token_estimation=method))
    assert result.estimated_tokens == estimate_tokens(result.context, method)


def test_estimates_are_called_estimates() -> None:
    assert "estimated" in assemble([chunk()]).notes[0]
    assert assemble([chunk()], EXACT).notes == ()


def test_truncate_goes_on_with_what_fits_when_the_best_cannot_be_trimmed() -> None:
    hits = [chunk("big.py", 1, 0.99, lines=400), chunk("a.py", 1, 0.9), chunk("b.py", 1, 0.8)]
    result = assemble(hits, replace(EXACT, max_tokens=90, overflow=OverflowPolicy.TRUNCATE))
    assert result.files_included == ("a.py", "b.py")


def test_what_is_wrong_with_the_call_is_said() -> None:
    with pytest.raises(InvalidOption, match="must be a ContextBuildOptions"):
        assemble([chunk()], {"max_tokens": 5})  # type: ignore[arg-type]
    with pytest.raises(InvalidHit, match="not a single hit"):
        assemble(chunk())  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="name of a model"):
        counter_for(5)  # type: ignore[arg-type]
    from langchain_core.documents import Document

    with pytest.raises(InvalidHit, match="with from_langchain"):
        assemble([Document(page_content="x")])  # type: ignore[list-item]


def test_hits_that_are_all_below_the_threshold_are_noted() -> None:
    result = assemble([chunk(relevance=0.42), chunk("b", relevance=0.1)])
    assert "min_relevance=0.5 (the best has 0.42)" in result.notes[0]


def test_a_path_may_be_a_path() -> None:
    from pathlib import Path

    assert KnowledgeChunk("x", file_path=Path("a") / "b.py").file_path == "a/b.py"  # type: ignore[arg-type]


def test_a_counter_may_be_given() -> None:
    counter = counter_for("claude-opus-5")
    result = assemble([chunk()], counter=counter)
    assert result.estimated_tokens == counter.count(result.context) > true_count(result.context)
    assert assemble([chunk()], counter="claude-opus-5").context == result.context


class TestMerging:
    def test_adjacent_chunks_become_one_piece(self) -> None:
        result = assemble([chunk("a.py", 3, 0.6), chunk("a.py", 1, 0.9)])
        assert lawbook.fences(result.context) == ["a.py line 1\na.py line 2\na.py line 3\na.py line 4"]
        assert "Lines 1-4" in result.context
        assert result.chunks_included == 2
        assert len(result.sources) == 1
        assert {entry.reason for entry in result.ledger} == {Reason.JOINED}
        assert {entry.number for entry in result.ledger} == {1}

    def test_overlapping_chunks_show_their_lines_once(self) -> None:
        result = assemble([chunk("a.py", 1, lines=5), chunk("a.py", 4, lines=6)])
        assert tuple(source.text for source in result.sources) == ("\n".join(f"a.py line {i}" for i in range(1, 10)),)

    def test_a_chunk_inside_another_adds_nothing(self) -> None:
        result = assemble([chunk("a.py", 1, lines=9), chunk("a.py", 4, lines=2)])
        assert tuple(source.text for source in result.sources) == ("\n".join(f"a.py line {i}" for i in range(1, 10)),)

    def test_a_chunk_inside_one_that_is_shown_is_covered_even_when_there_is_no_room_for_it(self) -> None:
        hits = [chunk("a.py", 1, 0.9, lines=9), chunk("a.py", 4, 0.6, lines=2)]
        result = assemble(hits, ContextBuildOptions(max_chunks=1))
        assert (result.chunks_included, result.chunks_truncated, result.chunks_merged) == (1, 0, 1)
        entry = result.ledger.entries[1]
        assert (entry.fate, entry.reason, entry.into, entry.number) == (Fate.MERGED, Reason.COVERED, "a.py:1-9", 1)

    def test_chunks_that_disagree_on_a_shared_line_stay_apart(self) -> None:
        stale = chunk("a.py", 2, text="something else\nand more")
        result = assemble([chunk("a.py", 1, lines=3), stale])
        assert len(result.sources) == 2

    def test_chunks_whose_lines_do_not_match_their_numbers_stay_apart(self) -> None:
        odd = KnowledgeChunk("one line", file_path="a.py", start_line=3, end_line=9, language="python")
        assert len(assemble([chunk("a.py", 1), odd]).sources) == 2

    def test_chunks_of_different_files_stay_apart(self) -> None:
        assert len(assemble([chunk("a.py", 1), chunk("b.py", 3)]).sources) == 2

    def test_merging_can_be_turned_off(self) -> None:
        options = ContextBuildOptions(merge_adjacent=False)
        assert len(assemble([chunk("a.py", 1), chunk("a.py", 3)], options).sources) == 2

    def test_the_room_that_merging_frees_is_used(self) -> None:
        hits = [chunk("a.py", 1, 0.9, lines=30), chunk("a.py", 2, 0.85, lines=30), chunk("b.py", 1, 0.6, lines=8)]
        needed = assemble(hits, EXACT).estimated_tokens
        apart = assemble(hits, replace(EXACT, merge_adjacent=False)).estimated_tokens
        assert needed < apart - 100
        assert assemble(hits, replace(EXACT, max_tokens=needed)).chunks_included == 3


def test_the_same_hit_twice_is_written_once() -> None:
    result = assemble([chunk(relevance=0.6), chunk(relevance=0.9), chunk(relevance=0.7)])
    assert len(result.sources) == 1
    assert result.average_relevance == 0.9
    assert result.chunks_merged == 2
    assert [entry.fate for entry in result.ledger] == [Fate.MERGED, Fate.KEPT, Fate.MERGED]
    assert {entry.into for entry in result.ledger.with_fate(Fate.MERGED)} == {"src/a.py:1-2~2"}


def test_one_id_for_two_texts_is_told_apart() -> None:
    hits = [KnowledgeChunk("one", file_path="a", id="same"), KnowledgeChunk("two", file_path="b", id="same")]
    result = assemble(hits)
    assert [source.entity_id for source in result.sources] == ["same", "same~2"]
    assert (result.expand("same"), result.expand("same~2")) == ("one", "two")


def test_blank_chunks_are_left_out() -> None:
    result = assemble([KnowledgeChunk(" \n ", file_path="a"), chunk()])
    assert result.chunks_included == 1
    assert result.ledger.entries[0].reason is Reason.EMPTY


def test_something_that_is_no_hit_is_refused_by_place() -> None:
    with pytest.raises(InvalidHit, match=r"hits\[1\]"):
        assemble([chunk(), {"content": "x"}])  # type: ignore[list-item]


class TestExpandedContext:
    @pytest.mark.requirement("S1.format-chunk.expanded-context")
    @pytest.mark.parametrize("format", ContextFormat)
    def test_it_is_preferred_to_the_content(self, format: ContextFormat) -> None:
        hit = KnowledgeChunk("narrow", file_path="a", expanded_context="wide narrow wide")
        assert "wide narrow wide" in assemble([hit], ContextBuildOptions(format=format)).context

    def test_the_content_is_used_when_expansion_is_off(self) -> None:
        hit = KnowledgeChunk("narrow", file_path="a", expanded_context="wide")
        (source,) = assemble([hit], ContextBuildOptions(expand_context=False)).sources
        assert source.text == "narrow"

    def test_the_lines_are_those_that_are_shown(self) -> None:
        hit = KnowledgeChunk("b\nc", file_path="x", start_line=11, end_line=12, expanded_context="a\nb\nc\nd\ne")
        result = assemble([hit])
        assert "Lines 10-14" in result.context
        assert (result.sources[0].line, result.sources[0].end_line) == (10, 14)

    def test_the_given_lines_stand_where_the_match_cannot_be_found(self) -> None:
        hit = KnowledgeChunk("b\nc", file_path="x", start_line=11, end_line=12, expanded_context="no match here")
        assert "Lines 11-12" in assemble([hit]).context


@pytest.mark.requirement("S1.quality.debug-log")
def test_one_debug_line_without_content(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "satchel"):
        assemble([chunk("secret.py", text="password = 1")])
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert "1 chunks" in record.getMessage()
    assert "password" not in record.getMessage()
    assert "secret" not in record.getMessage()


@pytest.mark.requirement("S1.quality.thread-safe")
def test_threads_do_not_disturb_each_other() -> None:
    hits = [chunk(f"f{i}.py", relevance=0.5 + i / 50) for i in range(20)]
    wanted = assemble(hits, EXACT).context
    got: list[str] = []

    def work() -> None:
        got.extend(assemble(hits, EXACT).context for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [wanted] * 40


def test_a_trimmed_piece_ends_with_a_line_that_says_something_and_its_lines_add_up() -> None:
    functions = [f"def number_{i}():\n    return {i}\n\n" for i in range(200)]
    text = "\n".join(functions).rstrip()
    lines = text.count("\n") + 1
    source = KnowledgeChunk(text, file_path="a.py", start_line=1, end_line=lines)
    for budget in range(150, 400, 7):
        result = assemble([source], replace(EXACT, overflow=OverflowPolicy.TRUNCATE, max_tokens=budget))
        (shown,), (citation,) = tuple(source.text for source in result.sources), result.sources
        assert shown == shown.rstrip()
        told = re.search(r"truncated: (\d+) lines, (\d+) characters", result.context)
        assert told is not None
        assert citation.end_line == shown.count("\n") + 1
        assert citation.end_line + int(told[1]) == lines
        assert len(shown) + int(told[2]) == len(text)


@pytest.mark.parametrize("packing", [Packing.VALUE, pytest.param(Packing.GREEDY, marks=pytest.mark.slow)])
def test_fifty_megabytes_in_one_hit_are_dropped_or_trimmed_not_choked_on(packing: Packing) -> None:
    huge = KnowledgeChunk("line of text\n" * 4_000_000, file_path="huge.txt")
    options = replace(EXACT, packing=packing)
    assert assemble([huge, chunk()], options).files_included == ("src/a.py",)
    trimmed = assemble([huge], replace(options, overflow=OverflowPolicy.TRUNCATE))
    assert 3500 < trimmed.estimated_tokens <= 4000


O200K = ContextBuildOptions(tokenizer="o200k_base")


def lines(path: str, first: int, last: int, text: str) -> KnowledgeChunk:
    return KnowledgeChunk(text, file_path=path, start_line=first, end_line=last)


def test_joining_keeps_blank_lines() -> None:
    hits = [
        lines("m.py", 1, 2, "a\nb\n"),
        lines("m.py", 3, 4, "c\n\n"),
        lines("m.py", 5, 5, "d\n"),
        lines("m.py", 4, 6, "\nd\ne"),
    ]
    result = assemble(hits)
    assert tuple(source.text for source in result.sources) == ("a\nb\nc\n\nd\ne",)
    assert "Lines 1-6" in result.context


@given(st.lists(st.sampled_from(["", "x", "  y", "z z"]), min_size=1, max_size=14), st.data())
def test_law_joined_windows_of_a_file_are_the_file(file: list[str], data: st.DataObject) -> None:
    hits, at = [], 0
    while at < len(file):
        start = max(0, at - data.draw(st.integers(0, 2)))
        end = min(len(file), at + data.draw(st.integers(1, 4)))
        text = "\n".join(file[start:end]) + data.draw(st.sampled_from(["", "\n"]))
        hits.append(lines("f", start + 1, end, text))
        at = end
    result = assemble(hits, ContextBuildOptions(max_chunks=100))
    for source, shown in ((source, source.text) for source in result.sources):
        assert source.line is not None
        assert source.end_line is not None
        assert shown.split("\n")[: source.end_line - source.line + 1] == file[source.line - 1 : source.end_line]


@pytest.mark.parametrize("format", ContextFormat)
@pytest.mark.parametrize("group_by_type", [True, False])
@pytest.mark.parametrize("method", [TokenEstimationMethod.TOKENIZER, TokenEstimationMethod.CHARACTER_BASED])
def test_one_long_hit_is_trimmed_into_every_budget(
    format: ContextFormat, group_by_type: bool, method: TokenEstimationMethod
) -> None:
    long = lines("big.py", 1, 600, "\n".join(f"value_{i} = compute({i})" for i in range(600)))
    for budget in range(300, 500, 13):
        options = ContextBuildOptions(
            format=format,
            group_by_type=group_by_type,
            token_estimation=method,
            overflow=OverflowPolicy.TRUNCATE,
            max_tokens=budget,
            include_sources=True,
        )
        result = assemble([long], options)
        assert result.chunks_included == 1, budget
        assert budget * 0.8 < result.estimated_tokens <= budget


def test_many_hits_are_diversified_and_joined_in_time() -> None:
    def diversified(count: int) -> int:
        many = [lines(f"f{i}.py", 1, 3, f"alpha {i}\nbeta {i % 7}\ngamma") for i in range(count)]
        return steps(lambda: assemble(many, ContextBuildOptions(reranking=RerankingStrategy.DIVERSITY)))

    def joined(count: int) -> int:
        neighbours = [lines("one.py", i + 1, i + 1, f"line {i}") for i in range(count)]
        options = ContextBuildOptions(max_chunks=3000, max_tokens=10**6)
        assert len(assemble(neighbours, options).sources) == 1
        return steps(lambda: assemble(neighbours, options))

    for work in (diversified, joined):
        work(10)
        # Twice as many hits take twice as many steps, and four times as many if each were compared with each.
        assert work(2000) < 2.5 * work(1000)


def test_hits_of_one_text_in_different_places_are_different_hits() -> None:
    assert len(assemble([lines("a.py", 10, 10, "return None"), lines("a.py", 99, 99, "return None")]).sources) == 2
    entities = [
        Entity("1", "init", "method", "a.py", 10),
        Entity("2", "init", "method", "a.py", 50),
        Entity("3", "init", "class", "a.py", 50),
    ]
    assert len(assemble([EntityResult(entity) for entity in entities]).sources) == 3


def test_a_duplicate_of_what_is_left_out_is_left_out_too() -> None:
    big = "word " * 2000
    hits = [
        KnowledgeChunk(big, file_path="a"),
        KnowledgeChunk(big, file_path="a"),
        KnowledgeChunk("small", file_path="b"),
    ]
    result = assemble(hits, ContextBuildOptions(max_tokens=200))
    assert [(entry.fate, entry.reason) for entry in result.ledger] == [
        (Fate.DROPPED, Reason.OVER_BUDGET),
        (Fate.DROPPED, Reason.OVER_BUDGET),
        (Fate.KEPT, Reason.FITS),
    ]
    assert (result.chunks_included, result.chunks_truncated, result.chunks_merged) == (1, 2, 0)


def test_equal_ids_are_told_apart_and_the_given_id_still_works() -> None:
    hits = [
        KnowledgeChunk(text, file_path=text, id=name)
        for text, name in [("x", "a"), ("y", "a"), ("z", "a~2"), ("w", "b\nc")]
    ]
    result = assemble(hits)
    ids = [entry.id for entry in result.ledger]
    assert len(set(ids)) == 4
    assert [result.expand(id) for id in ids] == ["x", "y", "z", "w"]
    assert result.expand("b\nc") == "w"


def test_the_best_that_fits_alone_is_shown_whatever_sections_cost() -> None:
    best = KnowledgeChunk("word " * 90, file_path="a.py", type="function")
    other = KnowledgeChunk("x", file_path="b.md", type="document", relevance=0.5)
    options = ContextBuildOptions(tokenizer="o200k_base", group_by_type=True)
    needed = assemble([best], options).estimated_tokens
    result = assemble([best, other], ContextBuildOptions(tokenizer="o200k_base", group_by_type=True, max_tokens=needed))
    assert result.files_included == ("a.py",)


def test_expansion_with_windows_line_ends_has_the_right_lines() -> None:
    chunk = KnowledgeChunk("b\r\nc", file_path="a.py", start_line=2, end_line=3, expanded_context="a\r\nb\r\nc\r\nd")
    assert "Lines 1-4" in assemble([chunk]).context


def test_spans_end_where_the_piece_ends() -> None:
    hits = [KnowledgeChunk("a,", file_path="a"), KnowledgeChunk("b,", file_path="b")]
    result = assemble(hits, ContextBuildOptions(chunk_separator="\n***\n", format=ContextFormat.PLAIN))
    assert [result.context[start:end][-2:] for start, end in result.spans] == ["a,", "b,"]


def test_filters_are_applied_before_the_budget() -> None:
    options = ContextBuildOptions(tokenizer="o200k_base", max_tokens=5, context_header="a long header " * 20)
    assert assemble([KnowledgeChunk("x", relevance=0.1)], options).is_empty


def test_stop_goes_on_as_long_as_hits_fit() -> None:
    hits = [lines("one.py", i, i, f"line {i}") for i in range(1, 201)]
    options = ContextBuildOptions(tokenizer="o200k_base", overflow=OverflowPolicy.STOP, max_tokens=800, max_chunks=1000)
    assert assemble(hits, options).estimated_tokens > 760


def test_a_hit_is_trimmed_at_every_budget() -> None:
    def code(first: int, last: int) -> str:
        return "\n".join(f"value_{i} = compute({i})" for i in range(first, last + 1))

    first = KnowledgeChunk(code(1, 50), file_path="a.py", start_line=1, end_line=50, relevance=0.9)
    second = KnowledgeChunk(code(60, 200), file_path="b.py", start_line=60, end_line=200, relevance=0.8)
    for budget in range(560, 760, 3):
        options = ContextBuildOptions(tokenizer="o200k_base", overflow=OverflowPolicy.TRUNCATE, max_tokens=budget)
        assert assemble([first, second], options).files_included == ("a.py", "b.py"), budget


def test_trimming_shows_no_line_twice() -> None:
    def code(first: int, last: int, relevance: float) -> KnowledgeChunk:
        text = "\n".join(f"value_{i} = compute({i})" for i in range(first, last + 1))
        return KnowledgeChunk(text, file_path="a.py", start_line=first, end_line=last, relevance=relevance)

    options = ContextBuildOptions(tokenizer="o200k_base", overflow=OverflowPolicy.TRUNCATE, max_tokens=750)
    result = assemble([code(1, 50, 0.9), code(1, 100, 0.8)], options)
    assert [source.line for source in result.sources] == [1, 51]
    lines = "\n".join(source.text for source in result.sources).split("\n")
    assert len(set(lines)) == len(lines)


def test_trimming_leaves_off_no_line_that_another_version_of_the_file_does_not_show() -> None:
    def code(word: str, last: int, relevance: float) -> KnowledgeChunk:
        text = "\n".join(f"{word}_{i} = compute({i})" for i in range(1, last + 1))
        return KnowledgeChunk(text, file_path="a.py", start_line=1, end_line=last, relevance=relevance)

    options = ContextBuildOptions(tokenizer="o200k_base", overflow=OverflowPolicy.TRUNCATE, max_tokens=750)
    result = assemble([code("new", 50, 0.9), code("old", 100, 0.8)], options)
    assert sorted(shown.split("\n")[0] for shown in (source.text for source in result.sources)) == [
        "new_1 = compute(1)",
        "old_1 = compute(1)",
    ]


@pytest.mark.parametrize("overflow", OverflowPolicy)
def test_a_long_separator_evicts_nothing(overflow: OverflowPolicy) -> None:
    best, tiny = KnowledgeChunk("alpha beta " * 100, file_path="a"), KnowledgeChunk("x", file_path="b", relevance=0.6)
    separator = "\n\n" + "word " * 60 + "\n"
    needed = assemble([best], O200K).estimated_tokens
    options = ContextBuildOptions(
        tokenizer="o200k_base", chunk_separator=separator, max_tokens=needed, overflow=overflow
    )
    assert assemble([best, tiny], options).files_included == ("a",)
