"""How the scoreboard judges, fills and tells: every rule by a case that would break it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scoreboard import figures, page
from benchmarks.scoreboard.asking import BUDGETS
from benchmarks.scoreboard.evidence import Corpus
from benchmarks.scoreboard.filling import cut, filled
from benchmarks.scoreboard.integrity import stands
from benchmarks.scoreboard.outcomes import Outcome, read_outcome
from benchmarks.scoreboard.pictures import pictures
from benchmarks.scoreboard.readme import table
from benchmarks.scoreboard.timing import Round, ratios
from benchmarks.scoreboard.words import WHY_BEHIND
from benchmarks.sections import put_section
from satchel.evaluation.dataset import Expected
from satchel.evaluation.judging import RankedHit, Shown
from satchel.evaluation.outcome import AtBudget, Evaluation, QuestionRow
from satchel.tokens.registry import counter_for
from tests.support.places import ROOT

DOCS = ROOT / "docs"
COUNTER = counter_for("o200k_base")


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    files = {
        "a.py": "import os, sys, json\n\ndef alpha(value):\n    first = value + 1\n    return first * 10\n",
        "b.py": "import os, sys, json\n\ndef beta(value):\n    second = value + 2\n    return second * 20\n",
        "short.py": "import os, sys, json\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return Corpus(tmp_path)


class TestEvidence:
    def test_a_file_needs_three_things_that_no_other_file_has(self, corpus: Corpus) -> None:
        wanted = [Expected(path="a.py"), Expected(path="b.py")]
        shown = "def alpha(value):\n    first = value + 1\n    return first * 10"
        assert corpus.covered(wanted, shown) == [1.0, 0.0]
        assert corpus.covered(wanted, "import os, sys, json") == [0.0, 0.0]
        assert corpus.covered(wanted, "def alpha(value):") == [0.0, 0.0]

    def test_the_name_of_a_file_is_no_evidence(self, corpus: Corpus) -> None:
        assert corpus.covered([Expected(path="a.py")], "### a.py:1-5\na.py\na.py alpha") == [0.0]

    def test_line_numbers_and_reflowed_lines_do_not_hide_it(self, corpus: Corpus) -> None:
        numbered = "3: def alpha(value):\n4:     first = value + 1\n5:     return first * 10"
        assert corpus.covered([Expected(path="a.py")], numbered) == [1.0]
        flowing = "def alpha(value): first = value + 1 return first * 10"
        assert corpus.covered([Expected(path="a.py")], flowing) == [1.0]

    def test_a_file_that_has_nothing_of_its_own_cannot_be_proven(self, corpus: Corpus) -> None:
        assert corpus.covered([Expected(path="short.py")], "import os, sys, json") == [0.0]

    def test_lines_and_phrases(self, corpus: Corpus) -> None:
        wanted = [Expected(path="a.py", first=3, last=5), Expected(phrases=("second value 2",))]
        assert corpus.covered(wanted, "def alpha(value):\nsecond = value + 2") == [pytest.approx(1 / 3), 1.0]


class TestFilling:
    def test_never_over_and_a_heading_never_alone(self) -> None:
        passages = [RankedHit(text=f"line {i} of the passage\n" * 9, path=f"{i}.py", first=1, last=9) for i in range(9)]
        for budget in range(20, 400, 7):
            text, whole = filled(passages, budget, COUNTER)
            assert COUNTER.count(text) <= budget
            assert not text.rstrip().split("\n")[-1].startswith("###")
            assert all(passage.text.rstrip() in text for passage in whole)

    def test_everything_when_there_is_room(self) -> None:
        text, whole = filled([RankedHit(text="x", path="a"), RankedHit(text="y", path="b")], 1000, COUNTER)
        assert text == "### a\nx\n\n### b\ny\n\n"
        assert len(whole) == 2

    def test_windows_that_overlap_or_touch_are_one_piece(self, tmp_path: Path) -> None:
        lines = [f"line number {i}" for i in range(1, 41)]
        (tmp_path / "a.py").write_text("\n".join(lines))
        corpus = Corpus(tmp_path)

        def window(first: int, last: int) -> RankedHit:
            return RankedHit(text="\n".join(lines[first - 1 : last]) + "\n", path="a.py", first=first, last=last)

        def text_of(*passages: RankedHit, budget: int = 1000) -> str:
            text, whole = filled(passages, budget, COUNTER, corpus.in_lines)
            assert budget < 1000 or whole == list(passages)
            return text

        def shown(first: int, last: int) -> str:
            return f"### a.py:{first}-{last}\n" + "\n".join(lines[first - 1 : last]) + "\n\n"

        assert text_of(window(10, 20), window(18, 30)) == shown(10, 30)
        assert text_of(window(10, 20), window(30, 40), window(5, 9)) == shown(5, 20) + shown(30, 40)
        assert text_of(window(10, 20), window(30, 40), window(20, 30)) == shown(10, 40), "what joins two makes them one"
        assert text_of(window(10, 20), window(12, 14)) == shown(10, 20)
        assert text_of(window(10, 20), window(22, 23)) == shown(10, 20) + shown(22, 23)
        cut_inside = RankedHit(text="number 15\nline", path="a.py", first=15, last=16)
        assert text_of(window(10, 20), cut_inside) == shown(10, 20) + "### a.py:15-16\nnumber 15\nline\n\n"
        room = COUNTER.count(shown(10, 26))
        ended = text_of(window(10, 20), window(18, 30), budget=room)
        assert ended.startswith(shown(10, 20))
        assert COUNTER.count(ended) <= room

    def test_a_text_without_lines_is_cut_too(self) -> None:
        assert 0 < COUNTER.count(cut("word " * 5000, 100, COUNTER)) <= 100


class TestIntegrity:
    def test_lines_have_to_stand_where_they_are_said_to(self, corpus: Corpus) -> None:
        text = "def alpha(value):\n    first = value + 1"
        assert stands(Shown(text=text, path="a.py", first=3, last=4), corpus) is True
        assert stands(Shown(text=text, path="a.py", first=2, last=4), corpus) is True  # a blank line more
        assert stands(Shown(text=text, path="a.py", first=3, last=5), corpus) is True  # inside the lines that it names
        assert stands(Shown(text=text, path="a.py", first=4, last=5), corpus) is False
        assert stands(Shown(text=f"{text}\n    return 5", path="a.py", first=3, last=5), corpus) is False
        assert stands(Shown(text=text, path="b.py", first=3, last=4), corpus) is False
        assert stands(Shown(text=text, path="a.py", first=3, last=99), corpus) is False
        assert stands(Shown(text=text, path="a.py"), corpus) is None

    def test_an_elision_line_stands_where_its_own_numbers_say(self, corpus: Corpus) -> None:
        text = "def alpha(value):\n⋮ 2 lines (4-5)"
        assert stands(Shown(text=text, path="a.py", first=3, last=5), corpus) is True
        assert stands(Shown(text=text, path="a.py", first=3, last=6), corpus) is False

    def test_a_passage_that_begins_within_a_line_is_right(self, corpus: Corpus) -> None:
        assert stands(Shown(text="alpha(value):\n    first = val", path="a.py", first=3, last=4), corpus) is True


def evaluation(name: str, covers: dict[str, float], ndcg: bool = True) -> Evaluation:
    from satchel.evaluation.judging import RankScores

    return Evaluation(
        name=name,
        rows=tuple(
            QuestionRow(
                id=question,
                query=question,
                at=tuple(
                    AtBudget(budget=budget, cover=cover, precision=None, tokens=budget, milliseconds=0)
                    for budget in BUDGETS
                ),
                ranking=RankScores(ndcg=cover, recall={1: cover, 5: cover, 10: cover}, reciprocal_rank=cover)
                if ndcg
                else None,
            )
            for question, cover in covers.items()
        ),
    )


@pytest.fixture
def results() -> dict[str, Any]:
    ours = Outcome(questions=evaluation("satchel", {"a": 1.0, "b": 0.0}), stands=3, cites=3, claims=((10, 10),))
    better = Outcome(questions=evaluation("peer", {"a": 1.0, "b": 1.0}, ndcg=False), failed={"x": "it died"})
    about = {"what": "as it comes", "takes_budget": False, "reads_question": True, "indexes": True}
    rounds = [
        {"contestant": name, "folder": "f", "round": i, "index_s": s, "index_cpu_s": s, "ask_ms": s, "peak_mb": s}
        for i in range(2)
        for name, s in (("satchel", 1.0), ("peer", 3.0))
    ]
    return {
        "run": {"mode": "default", "date": "2026-11-16", "python": "3.11", "cores": 2, "load": 0.5, "minutes": 9},
        "contestants": {
            "satchel": {**about, "short": "satchel", "takes_budget": True},
            "peer": {**about, "short": "peer"},
        },
        "absent": {"gone": "no such program"},
        "sets": {
            "made": {
                "title": "Made up", "kind": "code", "source": "here.", "fitted": False, "corpora": 1, "questions": 2,
                "missing": {}, "outcomes": {
                    "satchel": figures.of_outcome(ours, ours), "peer": figures.of_outcome(better, ours),
                },
            }
        },
        "counts": {"satchel": {"Python": [0.0, 0.0]}},
        "times": {"rounds": rounds, "megabytes": {"f": 1.0}},
        "growth": {"rounds": rounds, "megabytes": {"f": 1.0}, "times": 2},
    }  # fmt: skip


class TestFigures:
    def test_where_a_peer_is_ahead_is_told(self, results: dict[str, Any]) -> None:
        found = figures.behind(results["sets"])
        assert {one["figure"] for one in found} == {"cover@1000", "cover@2000", "cover@4000", "cover@8000"}
        text = page.section(results)
        assert "| made | cover@1000 | peer | 0.500 |" in text
        assert "0.500 / **1.000** peer" in text

    def test_what_a_peer_cannot_do_is_marked_not_scored(self, results: dict[str, Any]) -> None:
        row = next(line for line in page.section(results).splitlines() if line.startswith("| peer | 2 |"))
        assert row.endswith("| – | – |")
        assert "peer failed on x" in page.section(results)
        assert "Not run: gone (no such program)" in page.section(results)

    def test_outcomes_are_kept(self, tmp_path: Path) -> None:
        outcome = Outcome(questions=evaluation("a", {"q": 0.5}), version="1", stands=1, cites=2, claims=((1, 2),))
        outcome.save(tmp_path / "x" / "a.json")
        assert read_outcome(tmp_path / "x" / "a.json") == outcome

    def test_a_figure_outside_its_interval_is_told(self, results: dict[str, Any]) -> None:
        assert figures.moved(results, results) == []
        changed = json.loads(json.dumps(results))
        changed["sets"]["made"]["outcomes"]["peer"]["figures"]["cover@1000"] = [0.2, 0.1, 0.3]
        assert figures.moved(results, changed) == ["made, peer, cover@1000: 0.200, before 1.000 to 1.000"]

    def test_ratios_are_taken_within_a_round(self) -> None:
        def one(name: str, number: int, seconds: float) -> Round:
            return Round(contestant=name, folder="f", round=number, index_s=seconds, index_cpu_s=0, ask_ms=0, peak_mb=0)

        # The second round was on a machine ten times as slow; the ratio does not notice.
        found = [one("satchel", 0, 1), one("peer", 0, 2), one("satchel", 1, 10), one("peer", 1, 20)]
        ratio = ratios(found, "peer", "index_s")
        assert ratio is not None
        assert (ratio.low, ratio.median, ratio.high) == (2, 2, 2)

    def test_pictures_are_drawn(self, results: dict[str, Any]) -> None:
        drawn = pictures(results)
        assert set(drawn) == {"bench-made.svg", "bench-growth-index.svg", "bench-growth-ask.svg"}
        assert all(text.startswith("<svg") for text in drawn.values())


def test_a_section_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("# Page\n\n## One\n\nold\n\n## Two\n\nkept\n")
    put_section(file, "## One", "## One\n\nnew\n")
    assert file.read_text() == "# Page\n\n## One\n\nnew\n\n## Two\n\nkept\n"


class TestThePage:
    """What is committed: the page is the run's, and says where we are behind and why."""

    @pytest.fixture
    def committed(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
        return found

    def test_it_was_made_from_the_results(self, committed: dict[str, Any]) -> None:
        assert page.section(committed).strip() in (DOCS / "benchmarks.md").read_text("utf-8")
        for name, drawn in pictures(committed).items():
            assert (DOCS / "pictures" / name).read_text("utf-8") == drawn, name

    def test_every_set_on_which_we_are_behind_has_a_reason(self, committed: dict[str, Any]) -> None:
        sets = {one["set"] for one in figures.behind(committed["sets"])}
        assert sets <= WHY_BEHIND.keys()

    def test_nothing_of_ours_is_over_and_every_citation_stands(self, committed: dict[str, Any]) -> None:
        ours = [one["outcomes"]["satchel"] for one in committed["sets"].values()]
        assert sum(one["over"] for one in ours) == 0
        assert sum(one["cites"] for one in ours) == sum(one["stands"] for one in ours) > 10_000

    def test_it_names_every_peer_that_the_issue_names(self, committed: dict[str, Any]) -> None:
        named = {*committed["contestants"], *committed["absent"]}
        assert {"bm25-50", "ripgrep", "semble", "llamaindex", "langchain", "aider", "repomix", "gitingest"} <= named

    def test_the_readme_has_its_rows(self, committed: dict[str, Any]) -> None:
        assert table(committed) in (DOCS.parent / "README.md").read_text("utf-8")
