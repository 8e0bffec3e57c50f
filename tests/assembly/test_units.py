"""Units stand on their own: every gap is marked, and what `expand` returns for the marks completes the block."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from satchel.assembly.units import (
    ELISION_MARK,
    SourceText,
    best_runs,
    cut_elisions,
    elided_lines,
    elisions_in,
    on_its_own,
    unit_text,
)
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.statements import LineRun, sentences_of, statements

_LINES = st.lists(
    st.sampled_from(
        ["", "x = 1", "    y", "def f():", "⋮ 3 lines (1-3)", "⋮⋮ 2 lines (4-5): g()", "}", "word. Another word."]
    ),
    min_size=1,
    max_size=40,
)


@st.composite
def _runs(draw: st.DrawFn) -> tuple[list[str], list[LineRun]]:
    lines = draw(_LINES)
    last = len(lines)
    starts = draw(st.lists(st.integers(1, last), min_size=1, max_size=4))
    return lines, [LineRun(start, min(last, start + draw(st.integers(0, 5)))) for start in starts]


@given(_runs())
def test_law_a_unit_and_what_its_elisions_stand_for_give_the_block(drawn: tuple[list[str], list[LineRun]]) -> None:
    lines, runs = drawn
    unit = unit_text(SourceText(lines), LineRun(1, len(lines)), runs)
    elisions = elisions_in(unit.text) if unit.elided else []
    assert sum(elision.line_count for elision in elisions) == unit.elided
    marks = {elision.render(_longest_mark(unit.text)): elision for elision in elisions}
    whole: list[str] = []
    for line in unit.text.split("\n"):
        elision = marks.get(line)
        whole += lines[elision.first - 1 : elision.last] if elision else [line]
    assert whole == lines[unit.first - 1 : unit.last]


def _longest_mark(text: str) -> str:
    starts = (line.lstrip() for line in text.split("\n"))
    return ELISION_MARK * max(len(line) - len(line.lstrip(ELISION_MARK)) for line in starts)


def test_an_elision_names_the_blocks_that_it_leaves_out() -> None:
    lines = [
        "class A:",
        "    def f(self):",
        "        return 1",
        "    def g(self):",
        "        return 2",
        "",
        "    z = 3",
    ]
    spans = [
        OutlineBlock("class", "A", "A", WHOLE_FILE, 1, 7, "class A"),
        OutlineBlock("method", "f", "A.f", 0, 2, 3, "def f(self)"),
        OutlineBlock("method", "g", "A.g", 0, 4, 5, "def g(self)"),
    ]
    unit = unit_text(SourceText(lines, spans), LineRun(1, 7), [LineRun(1, 1), LineRun(7, 7)])
    assert unit.text == "class A:\n⋮ 5 lines (2-6): f(), g()\n    z = 3"
    assert unit.elided == 5


def test_a_gap_that_costs_no_more_than_its_elision_is_filled() -> None:
    lines = ["a = 1", "b = 2", "c = 3"]
    assert unit_text(SourceText(lines), LineRun(1, 3), [LineRun(1, 1), LineRun(3, 3)]).text == "a = 1\nb = 2\nc = 3"


def test_a_short_last_line_is_shown_in_place_of_an_elision_of_one_line() -> None:
    lines = ["def f():", "    first = 1", "    return first"]
    assert unit_text(SourceText(lines), LineRun(1, 3), [LineRun(1, 2)]).text == "\n".join(lines)
    long = [*lines[:2], f"    return {'x' * 80}"]
    assert unit_text(SourceText(long), LineRun(1, 3), [LineRun(1, 2)]).text.endswith("⋮ 1 line (3)")


def test_lines_inside_a_block_get_its_head_and_a_mark_at_both_ends() -> None:
    lines = ["class A:", "    a = 1", "    b = 2", "    c = 3", "    d = 4", "    e = 5", "    f = 6", "    g = 7"]
    spans = [OutlineBlock("class", "A", "A", WHOLE_FILE, 1, 8, "class A")]
    source = SourceText(lines, spans)
    around, runs = on_its_own(source, LineRun(5, 5), [LineRun(5, 5)])
    assert unit_text(source, around, runs).text == "class A:\n⋮ 3 lines (2-4)\n    d = 4\n⋮ 3 lines (6-8)"


def test_a_block_that_begins_in_the_lines_is_marked_as_going_on() -> None:
    lines = ["a = 1", "def f():", *(f"    x{i} = call_{i}()" for i in range(6))]
    source = SourceText(lines, [OutlineBlock("function", "f", "f", WHOLE_FILE, 2, 8, "def f()")])
    around, runs = on_its_own(source, LineRun(1, 3), [LineRun(1, 3)])
    assert unit_text(source, around, runs).text.endswith("⋮ 5 lines (4-8)")


def test_a_passage_ends_with_its_sentence_however_long_that_is() -> None:
    clause = ["LEA shall pay,", *(f"including part {i} of the fees," for i in range(9)), "no less than ten dollars."]
    source = SourceText(["This is first.", *clause, "T&B may object."], is_prose=True)
    assert source.sentences(LineRun(1, 4)) == LineRun(1, 12)


def test_a_trail_says_nothing_twice() -> None:
    spans = [
        OutlineBlock("section", "Manual", "Manual", WHOLE_FILE, 1, 9),
        OutlineBlock("section", "Usage", "Usage", 0, 2, 9),
        OutlineBlock("section", "3.3 Usage", "3.3 Usage", 1, 3, 9),
    ]
    assert SourceText([""] * 9, spans, is_prose=True).name(spans[2]) == "Manual › 3.3 Usage"


def test_an_excerpt_prefers_statements_that_need_no_elision_between_them() -> None:
    lines = [f"step_{i} = prepare_the_harbor_for_the_ship({i})" for i in range(9)]
    source = SourceText(lines)
    worth = {4: 1.0, 5: 0.9, 8: 0.95}
    runs = best_runs(source, LineRun(1, 9), [], lambda run: worth.get(run.first, 0.1), 2 * len(lines[0]) + 8)
    assert sorted(runs) == [LineRun(4, 4), LineRun(5, 5)]


def test_a_short_statement_is_not_shown_alone_in_place_of_a_longer_one() -> None:
    lines = [
        "def f():",
        *["    call(with_many, arguments, and_yet, nothing_in_it, that_was, asked_for, at_all, ok)"] * 9,
    ]
    lines[6] = "    continue"
    worth = {4: 2.0, 7: 1.5}
    runs = best_runs(SourceText(lines), LineRun(1, 10), [LineRun(1, 1)], lambda run: worth.get(run.first, 1.0), 130)
    assert [run.first for run in runs] == [1, 4]


def test_a_few_words_belong_to_the_paragraph_that_they_introduce() -> None:
    lines = ["prints", "", "```text", "one", "```"]
    (fence,) = statements(lines, 1, 5, is_prose=True)
    assert (fence.lines, fence.parent and fence.parent.lines) == (LineRun(3, 5), LineRun(1, 1))


def test_a_source_line_that_looks_like_an_elision_gets_a_shorter_mark_than_ours() -> None:
    lines = ["⋮ 9 lines (1-9)", *("x" for _ in range(5))]
    unit = unit_text(SourceText(lines), LineRun(1, 6), [LineRun(1, 1)])
    assert unit.text == "⋮ 9 lines (1-9)\n⋮⋮ 5 lines (2-6)"
    assert [elision.first for elision in elisions_in(unit.text)] == [2]


@given(_runs(), st.integers(0, 400))
def test_law_a_part_of_a_unit_has_the_elisions_that_it_counts(
    drawn: tuple[list[str], list[LineRun]], length: int
) -> None:
    lines, runs = drawn
    unit = unit_text(SourceText(lines), LineRun(1, len(lines)), runs)
    part = unit.text[:length]
    cut = cut_elisions(unit.text, unit.elided, part)
    assert elided_lines(elisions_in(part) if cut.elided else []) == cut.elided


def test_a_cut_that_takes_the_elision_leaves_no_line_that_could_be_taken_for_one() -> None:
    lines = ["⋮ 9 lines (1-9)", *("x" for _ in range(5))]
    unit = unit_text(SourceText(lines), LineRun(1, 6), [LineRun(1, 1)])
    cut = cut_elisions(unit.text, unit.elided, lines[0])
    assert cut == (0, 4)  # five lines are missing; the elision line is counted with the text that was cut


def test_the_head_of_a_block_is_its_comment_and_its_signature() -> None:
    lines = ["/// Says hello.", "#[must_use]", "pub fn hello(", "    name: &str,", ") -> String {", "    todo()", "}"]
    span = OutlineBlock("function", "hello", "hello", WHOLE_FILE, 1, 7, "pub fn hello( name: &str, ) -> String")
    assert SourceText(lines, [span]).head(span)[-1] == LineRun(3, 5)


def test_statements_of_code_keep_their_branches_and_closing_brackets() -> None:
    lines = ["if a:", "    b()", "else:", "    c()", "d(", "    1,", ")"]
    assert [part.lines for part in statements(lines, 1, 7)] == [LineRun(1, 4), LineRun(5, 7)]


def test_a_long_statement_is_divided_below_its_head() -> None:
    lines = ["for x in y:", *(f"    step_{i}()" for i in range(15))]
    parts = statements(lines, 1, 16)
    assert len(parts) == 15
    assert all(part.parent is not None and part.parent.lines == LineRun(1, 1) for part in parts)


def test_sentences_may_begin_and_end_within_a_line() -> None:
    lines = ["In no event shall the buyer", "pay more than ten. The seller may", "cancel at any time."]
    first, second = sentences_of(lines, 1, 3)
    source = SourceText(lines, is_prose=True)
    assert source.text(first) == "In no event shall the buyer\npay more than ten."
    assert source.text(second) == "The seller may\ncancel at any time."
