"""How what is shown is judged: bodies, cuts, marks, fragments, symbols, answers in notes, figures and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import shown_bench
from benchmarks.scoreboard import __main__ as scoreboard
from benchmarks.scoreboard.corpora import Asked, Corpus
from benchmarks.sections import put_results, write_results
from benchmarks.shown import figures, notes, page
from benchmarks.shown.contexts import BUDGETS, COUNTER, ContextMeasures, CorpusMeasures, measure_corpus
from benchmarks.shown.notes import Answered, SectionSearch, plain_line, sections_of, share_shown, squeezed
from benchmarks.shown.pieces import (
    ShownPiece,
    SourceFile,
    begins_inside_body,
    is_cut,
    is_fragment,
    is_unmarked_cut,
    pieces_of,
    shown_lines,
)
from benchmarks.shown.symbols import Symbol, SymbolShown, judge_symbol, sample_symbols, symbol_at
from satchel.evaluation.dataset import Expected
from satchel.evaluation.outcome import AtBudget, Evaluation, QuestionRow
from satchel.models.context import Context, ContextSource
from satchel.models.outline import WHOLE_FILE, OutlineBlock

CODE = SourceFile(
    [
        "import os",
        "",
        "class Box:",
        "    @property",
        "    def size(self):",
        "        width = 2",
        "        return width",
        "",
        "    def open(self):",
        "        return 1",
        "",
    ],
    [
        OutlineBlock("class", "Box", "Box", WHOLE_FILE, 3, 10),
        OutlineBlock("method", "size", "Box.size", 0, 4, 7),
        OutlineBlock("method", "open", "Box.open", 0, 9, 10),
    ],
)
PLAIN = SourceFile(["first", "second", "third", ""])


def piece(first: int, last: int, file: SourceFile = CODE, **about: Any) -> ShownPiece:
    text = "\n".join(file.lines[first - 1 : last])
    return replace(ShownPiece(text, path="box.py", first=first, last=last), **about)


class TestBodies:
    def test_a_piece_that_begins_with_a_definition_does_not_begin_inside_a_body(self) -> None:
        assert not begins_inside_body(piece(4, 7), CODE)
        assert not begins_inside_body(piece(1, 2), CODE)

    def test_a_piece_that_begins_with_a_statement_does(self) -> None:
        assert begins_inside_body(piece(6, 7), CODE)

    def test_a_mark_before_the_first_line_says_so(self) -> None:
        elided = "⋮ 2 lines (4-5)\n        width = 2\n        return width"
        assert not begins_inside_body(piece(6, 7, text=elided, heading="### a.py (lines 4-7, 2 not shown)\n"), CODE)
        assert not begins_inside_body(piece(6, 7, heading="### a.py (lines 6-7 of 10)\n"), CODE)

    def test_a_mark_further_down_does_not(self) -> None:
        elided = "        width = 2\n⋮ 1 line (7)"
        assert begins_inside_body(piece(6, 7, text=elided, heading="### a.py (lines 6-7, 1 not shown)\n"), CODE)

    def test_a_section_has_no_body(self) -> None:
        prose = SourceFile(["# A", "one", "two"], [OutlineBlock("section", "A", "A", WHOLE_FILE, 1, 3)])
        assert not begins_inside_body(piece(2, 3, prose), prose)
        assert is_unmarked_cut(piece(2, 3, prose), prose)


class TestCuts:
    @pytest.mark.parametrize(("first", "last"), [(1, 11), (3, 10), (4, 7), (4, 10), (9, 10), (1, 2)])
    def test_whole_definitions_are_not_cut(self, first: int, last: int) -> None:
        assert not is_cut(piece(first, last), CODE)

    @pytest.mark.parametrize(("first", "last"), [(4, 6), (6, 7), (3, 4), (3, 8), (5, 10)])
    def test_parts_of_definitions_are_cut(self, first: int, last: int) -> None:
        assert is_unmarked_cut(piece(first, last), CODE)

    def test_blank_lines_at_the_end_are_not_missed(self) -> None:
        file = SourceFile([*CODE.lines, ""], [OutlineBlock("class", "Box", "Box", WHOLE_FILE, 3, 12)])
        assert not is_cut(piece(3, 10, file), file)

    def test_a_file_without_definitions_is_cut_unless_all_of_it_is_shown(self) -> None:
        assert not is_cut(piece(1, 3, PLAIN), PLAIN)
        assert is_unmarked_cut(piece(1, 2, PLAIN), PLAIN)
        assert is_unmarked_cut(piece(2, 3, PLAIN), PLAIN)

    def test_elision_lines_a_receipt_and_the_number_of_lines_are_marks(self) -> None:
        elided = "    @property\n⋮ 3 lines (5-7)"
        assert piece(4, 7, text=elided, heading="### [1] box.py · Box.size (lines 4-7, 3 not shown)\n").is_marked
        assert piece(4, 6, receipt='\n```\n[truncated: 1 line, 9 characters not shown; expand("box.py:4-7")]').is_marked
        assert piece(4, 6, heading="### [1] box.py (lines 4-6 of 11)\n").is_marked
        assert not piece(4, 6, heading="### [1] box.py · Box.size (lines 4-6)\n").is_marked

    def test_a_source_line_that_looks_like_a_mark_is_none(self) -> None:
        forged = "⋮ 3 lines (5-7)"
        assert not piece(4, 6, text=forged, heading="### [1] box.py (lines 4-6)\n").is_marked
        longer = piece(4, 9, text=f"{forged}\n⋮⋮ 2 lines (8-9)", heading="### [1] box.py (lines 4-9, 2 not shown)\n")
        assert longer.elision_lines == {"⋮⋮ 2 lines (8-9)"}
        assert longer.source_text == forged


class TestFragments:
    def test_one_short_line_is_a_fragment(self) -> None:
        assert is_fragment(piece(1, 2), COUNTER)

    def test_two_lines_or_a_long_one_are_not(self) -> None:
        assert not is_fragment(piece(6, 7), COUNTER)
        assert not is_fragment(ShownPiece("one long line says " + "enough, " * 12), COUNTER)

    def test_elision_lines_do_not_count(self) -> None:
        heading = "### a.py (lines 3-10, 7 not shown)\n"
        assert is_fragment(ShownPiece("class Box:\n⋮ 7 lines (4-10): size, open()", heading), COUNTER)


class TestPieces:
    def test_headings_and_receipts_are_what_is_around_the_text(self) -> None:
        shown = "### [1] a.py (lines 1-2)\n```python\nimport os\n```\n[truncated: …]"
        context = Context(
            text=f"before\n{shown}",
            sources=[ContextSource("a.py:1-2", "a.py", "file", "a.py", 1, end_line=2, number=1, text="import os")],
            spans=((7, 7 + len(shown)),),
        )
        (found,) = pieces_of(context)
        assert found.heading == "### [1] a.py (lines 1-2)\n```python\n"
        assert found.receipt == "\n```\n[truncated: …]"
        assert (found.path, found.first, found.last) == ("a.py", 1, 2)

    def test_escaped_text_has_its_first_and_last_line_around_it(self) -> None:
        shown = "[1] [Plan] [page]\nFirst\n\\# Plan\n[truncated: …]"
        sources = [ContextSource("x", "Plan", "page", text="First\n# Plan")]
        (found,) = pieces_of(Context(text=shown, sources=sources, spans=((0, len(shown)),)))
        assert (found.heading, found.receipt) == ("[1] [Plan] [page]", "[truncated: …]")

    def test_shown_lines_skip_what_is_elided(self) -> None:
        text = "class Box:\n⋮ 3 lines (4-6)\n        return width\n⋮ 3 lines (8-10): open()"
        shown = piece(3, 10, text=text, heading="### box.py · Box (lines 3-10, 6 not shown)\n")
        assert shown_lines(shown, CODE.lines) == {3, 7}

    def test_the_same_line_before_an_elision_is_not_the_one_after(self) -> None:
        lines = ["{", "a", "}", "b", "}"]
        shown = ShownPiece("{\n⋮ 3 lines (2-4)\n}", "### a (lines 1-5, 3 not shown)\n", first=1, last=5)
        assert shown_lines(shown, lines) == {1, 5}

    def test_a_line_shown_in_part_is_not_shown(self) -> None:
        lines = ["One. Two.", "Three."]
        shown = ShownPiece("⋮ 1 line (1)\nTwo.\nThree.", "### a (lines 1-2, 1 not shown)\n", first=1, last=2)
        assert shown_lines(shown, lines) == {2}


class TestSymbols:
    def test_the_line_of_a_definition_is_below_its_decorators(self) -> None:
        symbol = symbol_at("box.py", CODE.blocks[1], CODE, COUNTER)
        assert symbol is not None
        assert (symbol.first, symbol.line, symbol.last) == (4, 5, 7)
        nameless = OutlineBlock("function", "other", "other", WHOLE_FILE, 6, 7)
        assert symbol_at("box.py", nameless, CODE, COUNTER) is None

    def test_line_and_whole_at_their_budgets(self) -> None:
        symbol = Symbol(name="size", path="box.py", first=4, last=7, line=5, tokens=20)
        shown = judge_symbol(symbol, CODE, {1000: [piece(1, 2), piece(4, 6)], 2000: [piece(4, 5), piece(6, 10)]})
        assert shown.line_at == {1000: True, 2000: True}
        assert shown.whole
        elsewhere = judge_symbol(symbol, CODE, {1000: [piece(4, 7, path="other.py")], 2000: [piece(5, 7)]})
        assert elsewhere.line_at == {1000: False, 2000: True}
        assert not elsewhere.whole

    def test_the_sample_is_seeded_and_has_unique_names_of_sources_only(self) -> None:
        names = [f"function_{number}" for number in range(40)]
        lines = [f"def {name}(): ..." for name in names]
        blocks = [OutlineBlock("function", name, name, WHOLE_FILE, i, i) for i, name in enumerate(names, 1)]
        twice = SourceFile(lines[:20], blocks[:20])
        tested = SourceFile(["def test_it(): ..."], [OutlineBlock("function", "test_it", "test_it", -1, 1, 1)])
        files = {"src/a.py": SourceFile(lines, blocks), "src/b.py": twice, "tests/test_a.py": tested}
        chosen = sample_symbols(files, files.__getitem__, COUNTER, 12, "seed")
        assert len(chosen) == 9  # three would be methods
        assert {symbol.name for symbol in chosen} <= set(names[20:])
        assert chosen == sample_symbols(files, files.__getitem__, COUNTER, 12, "seed")
        assert chosen != sample_symbols(files, files.__getitem__, COUNTER, 12, "another")


class TestNotes:
    @pytest.mark.parametrize(
        ("line", "plain"),
        [
            ("- [ ] **Open** the [[Settings|settings]]", "open the settings"),
            ("> 2. See [the guide](https://example.com/a_(b)) &amp; more", "see the guide & more"),
            ("### `Heading` ![[picture.png]]", "heading"),
            ("| a | b |", "a b"),
            ("|---|:-:|", ""),
            ("```python", ""),
            ("text <!-- hidden --><br>next", "text next"),
        ],
    )
    def test_lines_without_markup(self, line: str, plain: str) -> None:
        assert plain_line(line) == plain

    def test_an_answer_is_whole_if_each_line_is_shown(self, tmp_path: Path) -> None:
        (tmp_path / "c").mkdir()
        (tmp_path / "c" / "n.md").write_text("# Title\n\n1. Open *settings*\n2. Press [Save](x)\n--\n")
        question = notes.Question(corpus="c", question="?", path="n.md", lines=((3, 5),), kind="howto")
        wanted = notes.answer_lines(question, tmp_path)
        assert wanted == ["opensettings", "presssave"]
        assert share_shown(wanted, "- Open settings\n- Press Save") == 1
        assert share_shown(wanted, "Open\nsettings") == 0.5
        assert squeezed("Press\n> **Save**") == "presssave"

    def test_the_question_at_the_end_is_no_answer(self) -> None:
        assert notes.without_question("text\n---\n\nUser Query: press save") == "text\n---\n"
        assert notes.without_question("text") == "text"

    def test_sections_end_at_headings_and_not_inside_fences(self) -> None:
        text = "start\n# A\none\n```\n# no heading\n```\n## B\ntwo\n# C\nthree"
        found = [(section.trail, section.text.split("\n")[0]) for section in sections_of("n", text)]
        assert found == [((), "start"), (("A",), "# A"), (("A", "B"), "## B"), (("C",), "# C")]

    def test_the_peer_fills_the_budget_and_never_more(self, tmp_path: Path) -> None:
        for number in range(6):
            text = "\n".join(f"line {line} of the harvest note {number}" for line in range(20))
            (tmp_path / f"{number}.md").write_text(f"# Harvest {number}\n{text}\n")
        search = SectionSearch(tmp_path, COUNTER)
        for budget in (30, 100, 400):
            text = search.build("harvest note", budget)
            assert budget * 0.7 < COUNTER.count(text) <= budget

    def test_each_question_names_lines_of_a_collection(self) -> None:
        names = {collection.name for collection in notes.collections()}
        assert len(notes.questions()) == 96
        assert {question.corpus for question in notes.questions()} == names
        assert all(first <= last for question in notes.questions() for first, last in question.lines)

    def test_the_notes_of_a_repository_without_images_and_other_parts(self, tmp_path: Path) -> None:
        for name in ("a.md", "img/b.PNG", "news/c.md", ".git/d", ".obsidian/app.json", ".obsidian/plugins/e.js"):
            (tmp_path / "exported" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "exported" / name).write_text("x")
        notes.copy_notes(tmp_path / "exported", tmp_path / "chosen", ("news/", ".obsidian/plugins/"))
        found = {path.relative_to(tmp_path / "chosen").as_posix() for path in tmp_path.glob("chosen/**/*.*")}
        assert {name for name in found if not name.endswith(".obsidian")} == {"a.md", ".obsidian/app.json"}

    def test_without_the_notes_it_says_why(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SATCHEL_NOTES", raising=False)
        assert "SATCHEL_NOTES" in notes.missing_collections()
        monkeypatch.setenv("SATCHEL_NOTES", str(tmp_path))
        assert "madetech" in notes.missing_collections()
        for collection in notes.collections():
            (tmp_path / collection.name).mkdir()
        assert notes.missing_collections() == ""


def measures(**changed: float) -> ContextMeasures:
    usual = {"cover": 1.0, "tokens": 800, "expected_tokens": 400, "frame_tokens": 100, "elision_tokens": 10}
    pieces = {"pieces": 4, "inside_body": 0, "unmarked": 0, "fragments": 0}
    return ContextMeasures(**usual | pieces | changed)  # type: ignore[arg-type]


@pytest.fixture
def results() -> dict[str, Any]:
    questions = [dict.fromkeys(BUDGETS, measures(inside_body=i % 2)) for i in range(10)]
    symbols = [SymbolShown(tokens=100, line_at={1000: i > 0, 2000: True}, whole=True) for i in range(50)]
    answered = [
        Answered("c", str(i), way, budget, i > 0 or way == "imported", 900)
        for i in range(20)
        for way in notes.WAYS
        for budget in notes.BUDGETS
    ]
    ours, peer = (
        Evaluation(name=name, rows=tuple(_row(i, cover) for i in range(10)))
        for name, cover in (("satchel", 0.8), ("bm25-12", 0.7))
    )
    corpora = [CorpusMeasures(questions=questions)]
    return {
        "sets": {"code_x": {"title": "X", "kind": "code", "corpora": 1} | figures.of_contexts(corpora)},
        "symbols": figures.of_symbols(symbols),
        "notes": figures.of_notes(answered),
        "contracts": figures.of_peers(ours, peer, "cover@2000"),
        "missing": {"docs_y": "it is not there"},
        "run": {"mode": "a sample", "date": "2026-01-01", "cores": 2, "load": 1.0, "minutes": 3},
    }


def _row(number: int, cover: float) -> QuestionRow:
    at = AtBudget(budget=2000, cover=cover, precision=None, tokens=1900, milliseconds=0.0)
    return QuestionRow(id=str(number), query=str(number), at=(at,))


class TestFigures:
    def test_a_ratio_is_of_the_sums_and_its_interval_draws_questions(self) -> None:
        share, low, high = figures.ratio([1, 0, 0, 0], [10, 10, 10, 10])
        assert share == pytest.approx(0.025)
        assert low == 0
        assert 0.05 <= high <= 0.1
        assert figures.ratio([0], [0]) == []

    def test_figures_of_contexts(self, results: dict[str, Any]) -> None:
        found = results["sets"]["code_x"]
        assert found["at"]["2000"]["expected"] == [0.5, 0.5, 0.5]
        assert found["at"]["1000"]["frame"][0] == pytest.approx(0.1)
        assert (found["pieces"], found["contexts"], found["inside_body"][0]) == (160, 40, 0.125)

    def test_only_small_definitions_must_be_whole(self) -> None:
        small = SymbolShown(tokens=800, line_at={1000: True, 2000: True}, whole=True)
        large = SymbolShown(tokens=801, line_at={1000: True, 2000: True}, whole=False)
        assert figures.of_symbols([small, large])["whole@2000"][0] == 1

    def test_imported_notes_and_plain_files_are_compared_on_the_same_questions(self, results: dict[str, Any]) -> None:
        assert results["notes"]["imported-files@1000"][0] == pytest.approx(0.05)
        assert results["contracts"]["ahead"][0] == pytest.approx(0.1)


class TestPage:
    def test_each_target_stands_beside_what_was_measured(self, results: dict[str, Any]) -> None:
        rows = [line for line in page.section(results).splitlines() if line.endswith(("| yes |", "| NO |"))]
        verdicts = {row.split(" | ")[0].strip("| "): row.endswith("yes |") for row in rows}
        assert verdicts["50 symbols: line of the definition shown at 1,000 tokens"]
        assert not verdicts["code_x: pieces (160) that begin inside a body"]
        assert verdicts["code_x: pieces cut without a mark"]
        assert verdicts["code_x: tokens from expected files at 2,000"]
        assert len(rows) == 3 + 3 + 2 + 4 + 1

    def test_what_was_not_measured_is_named(self, results: dict[str, Any]) -> None:
        for name in ("symbols", "notes", "contracts"):
            del results[name]
        results["sets"] = {}
        assert "Not measured: docs_y: it is not there." in page.section(results)

    def test_a_context_that_could_not_be_built_is_a_missed_target(self, results: dict[str, Any]) -> None:
        results["notes"] |= {"errors": 2, "late": 1}
        written = page.section(results)
        assert "| notes: contexts that could not be built | 2 | 0 | NO |" in written
        assert "(measure again on a quieter machine) | 1 | 0 | NO |" in written

    def test_a_crash_is_a_context_without_the_answer(self, capsys: pytest.CaptureFixture[str]) -> None:
        def crash(_question: str, _budget: int) -> notes.Built:
            raise RecursionError("too deep")

        question = notes.Question(corpus="c", question="?", path="n.md", lines=((1, 1),), kind="fact")
        found = notes.ask(question, "imported", crash, 1000, ["wanted"])
        assert (found.whole, found.tokens, found.error) == (False, 0, "RecursionError('too deep')")
        assert "too deep" in capsys.readouterr().err
        late = notes.ask(question, "imported", lambda _q, _b: notes.Built("Wanted", is_late=True), 1000, ["wanted"])
        assert (late.whole, late.is_late, late.error) == (True, True, "")


class TestResults:
    def test_a_part_leaves_the_others(self, tmp_path: Path) -> None:
        file = tmp_path / "benchmarks.json"
        put_results(file, "shown", {"a": 1})
        write_results(file, json.loads(file.read_text()) | {"sets": {}})
        put_results(file, "shown", {"a": 2})
        assert json.loads(file.read_text()) == {"shown": {"a": 2}, "sets": {}}
        assert "shown" in scoreboard.OTHER_PARTS


def test_a_corpus_is_measured_from_its_files(tmp_path: Path) -> None:
    for name in ("apple", "pear"):
        body = "\n".join(f"    {name}_{number} = press({number})" for number in range(12))
        (tmp_path / f"{name}.py").write_text(f"def {name}_juice(press):\n{body}\n    return {name}_11\n")
    asked = Asked(id="1", query="apple juice", expected=(Expected(path="apple.py"),), files=("apple.py",))
    found = measure_corpus(Corpus(name="juice", folder=tmp_path, questions=(asked,)), symbols=8)
    assert len(found.symbols) == 2
    assert all(symbol.line_at[1000] and symbol.whole for symbol in found.symbols)
    at = found.questions[0][1000]
    assert at.cover == 1
    assert 0 < at.expected_tokens <= at.tokens <= 1000
    assert at.unmarked == at.inside_body == at.fragments == 0
    assert at.faults == ()


def test_faults_of_pieces_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_bench, "FAULTS", tmp_path / "faults.txt")
    context = replace(measures(unmarked=1), faults=("cut without a mark: a.py:1-2, 1000 tokens for 'x'",))
    shown_bench._write_faults({"code_x box": CorpusMeasures(questions=[{1000: context}])})
    written = (tmp_path / "faults.txt").read_text()
    assert written == "code_x box: cut without a mark: a.py:1-2, 1000 tokens for 'x'\n"
