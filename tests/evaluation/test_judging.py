"""What is scored and how: every figure against one worked out by hand."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InvalidInput, InvalidOption
from satchel.evaluation.configuration import configuration_from, failures, thresholds_from
from satchel.evaluation.dataset import Expected, question_from, read_dataset
from satchel.evaluation.estimates import calibrate, difference, interval
from satchel.evaluation.judging import RankedHit, Reply, Shown, Words, coverage, is_right, ndcg, rank, token_share
from satchel.evaluation.outcome import (
    AtBudget,
    Evaluation,
    QuestionRow,
    compare,
    judged_row,
    latency,
    read_evaluation,
    to_dict,
)


def no_texts(_: str) -> None:
    return None


def answer(*pieces: Shown) -> Reply:
    return Reply(tokens=10, pieces=pieces)


class TestDataset:
    def test_every_kind_of_expectation(self, tmp_path: Path) -> None:
        file = tmp_path / "q.jsonl"
        told = {
            "query": "q", "files": ["./a.py"], "lines": ["b.py:3-9", "c.py:4"], "pages": ["d.pdf#page=2"],
            "phrases": ["thirty days", ["x", "y"]], "user": "ann", "group": "g", "id": "one",
        }  # fmt: skip
        file.write_text(json.dumps(told) + "\n\n" + '{"query": "r", "files": ["z"]}\n')
        first, second = read_dataset(file)
        assert [str(one) for one in first.expected] == [
            "a.py", "b.py:3-9", "c.py:4-4", "d.pdf#page=2", "'thirty days'", "'x' | 'y'",
        ]  # fmt: skip
        assert (first.id, first.user, first.group) == ("one", "ann", "g")
        assert second.id == "r"

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("{", "is not JSON"),
            ("[1]", "must be an object"),
            ('{"files": ["a"]}', "must be a string"),
            ('{"query": " ", "files": ["a"]}', "must not be empty"),
            ('{"query": "q"}', "has no expected result"),
            ('{"query": "q", "file": ["a"]}', "is not a field"),
            ('{"query": "q", "files": "a"}', "must be a list"),
            ('{"query": "q", "files": [1]}', "must be paths"),
            ('{"query": "q", "lines": ["a.py:9-3"]}', "must be like src/app.py:10-20"),
            ('{"query": "q", "lines": ["a.py"]}', "must be like src/app.py:10-20"),
            ('{"query": "q", "pages": ["a.pdf:3"]}', "must be like report.pdf#page=3"),
            ('{"query": "q", "phrases": [[]]}', "must be strings"),
            ('{"query": "q", "phrases": [""]}', "must be strings"),
            ('{"query": "q", "phrases": ["=="]}', "letters or digits"),
            ('{"query": "q", "phrases": ["a"], "enough": 2}', "must be a number from 0 to 1"),
            ('{"query": "q\\ud800", "files": ["a"]}', "a lone surrogate"),
            ('{"query": "q", "files": ["a"], "user": 3}', "must be a string"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_line(self, tmp_path: Path, line: str, words: str) -> None:
        file = tmp_path / "q.jsonl"
        file.write_text('{"query": "fine", "files": ["a"]}\n' + line + "\n")
        with pytest.raises(InvalidInput, match=words) as caught:
            read_dataset(file)
        assert f"{file}:2" in str(caught.value)

    def test_two_questions_of_one_id_are_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "q.jsonl"
        file.write_text('{"query": "q", "files": ["a"], "id": "x"}\n' * 2)
        with pytest.raises(InvalidInput, match="is also the id in line 1"):
            read_dataset(file)

    def test_a_file_without_questions_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "q.jsonl"
        file.write_text("\n \n")
        with pytest.raises(InvalidInput, match="contains no questions"):
            read_dataset(file)


class TestJudging:
    def test_a_file_counts_only_with_text_of_it(self) -> None:
        wanted = [Expected(path="a.py"), Expected(path="b.py")]
        shown = [Shown(text="x = 1", path="a.py"), Shown(text="  \n", path="b.py")]
        assert coverage(wanted, shown, no_texts) == [1.0, 0.0]

    def test_lines_count_by_the_share_that_stands_there(self) -> None:
        text = "one\ntwo\n\nthree\nfour\n"
        wanted = [Expected(path="a.py", first=1, last=5)]
        # The piece says that it has all lines, but two of them were cut: what stands there counts, not what is said.
        shown = Shown(text="one\ntwo", path="a.py", first=1, last=5)
        assert coverage(wanted, [shown], lambda _: text) == [0.5]
        elsewhere = Shown(text="one\ntwo\nthree\nfour", path="b.py", first=1, last=5)
        assert coverage(wanted, [elsewhere], lambda _: text) == [0.0]

    def test_lines_of_a_file_that_cannot_be_had_count_by_number(self) -> None:
        wanted = [Expected(path="a.py", first=11, last=20)]
        shown = Shown(text="…", path="a.py", first=16, last=40)
        assert coverage(wanted, [shown], no_texts) == [0.5]

    def test_a_page_counts_when_it_is_that_page(self) -> None:
        wanted = [Expected(path="a.pdf", page=2)]
        assert coverage(wanted, [Shown(text="x", path="a.pdf", page=2)], no_texts) == [1.0]
        assert coverage(wanted, [Shown(text="x", path="a.pdf", page=3)], no_texts) == [0.0]

    def test_phrases_heed_words_and_their_order_only(self) -> None:
        words = Words("The Term shall be Thirty\n(30) days, or so.")
        assert words.hold("thirty (30) DAYS")
        assert not words.hold("days thirty")
        assert not words.hold("hirty")
        assert not words.hold("…")

    def test_a_long_phrase_may_lack_a_little(self) -> None:
        phrase = " ".join(f"w{i}" for i in range(100))
        cut = phrase.replace("w50", "x")
        assert Words(cut).hold(phrase)
        assert not Words(phrase[: len(phrase) // 2]).hold(phrase)

    def test_one_of_several_phrases_is_enough(self) -> None:
        one = Expected(phrases=("thirty days", "30 days"))
        assert coverage([one], [Shown(text="within 30 days")], no_texts) == [1.0]
        assert coverage([one], [Shown(text="within 31 days")], no_texts) == [0.0]

    def test_a_phrase_stands_in_one_piece(self) -> None:
        one = Expected(phrases=("thirty days",))
        pieces = (Shown(text="it ends in thirty"), Shown(text="days of rain"))
        assert coverage([one], pieces, no_texts) == [0.0]

    def test_scripts_without_spaces_and_other_forms_of_a_letter(self) -> None:
        assert Words("我们研究机器学习方法").hold("机器学习")
        assert not Words("我们研究机器学习方法").hold("学机器习")
        assert Words("cafe\u0301 au lait").hold("café")

    def test_how_much_of_a_long_phrase_is_enough_can_be_said(self) -> None:
        phrase = " ".join(f"w{i}" for i in range(40))
        half = [Shown(text=" ".join(f"w{i}" for i in range(26)))]
        assert coverage([Expected(phrases=(phrase,))], half, no_texts) == [0.0]
        assert coverage([Expected(phrases=(phrase,), enough=0.5)], half, no_texts) == [1.0]

    def test_pieces_are_right_by_place_or_by_what_they_say(self) -> None:
        wanted = [Expected(path="a.py", first=5, last=9), Expected(phrases=("thirty days",))]
        assert is_right(Shown(text="", path="a.py", first=9, last=12), wanted)
        assert not is_right(Shown(text="", path="a.py", first=10, last=12), wanted)
        assert is_right(Shown(text="in thirty days", path="z"), wanted)


class TestRanking:
    def test_ndcg_by_hand(self) -> None:
        assert ndcg([1], 1) == 1
        assert ndcg([2], 1) == pytest.approx(1 / math.log2(3))
        assert ndcg([1, 3], 2) == pytest.approx((1 + 1 / 2) / (1 + 1 / math.log2(3)))
        assert ndcg([11], 1) == 0
        assert ndcg([1, 1], 2) == 1  # one hit holds both
        assert ndcg([2, 2], 3) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))

    def test_recall_counts_files_not_pieces(self) -> None:
        hits = [Shown(text=str(i), path="a.py", first=i, last=i) for i in range(1, 9)] + [Shown(text="", path="b.py")]
        found = rank(hits, [Expected(path="b.py")])
        assert found.recall == {1: 0.0, 5: 1.0, 10: 1.0}
        assert found.reciprocal_rank == pytest.approx(1 / 9)
        assert found.ndcg == pytest.approx(1 / math.log2(10))

    def test_lines_are_recalled_only_by_a_hit_that_has_them(self) -> None:
        hits = [Shown(text="", path="a.py", first=1, last=5), Shown(text="", path="a.py", first=50, last=60)]
        assert rank(hits, [Expected(path="a.py", first=200, last=210)]).recall[1] == 0
        assert rank(hits, [Expected(path="a.py", first=55, last=57)]).recall[1] == 1

    @given(st.lists(st.integers(1, 30), max_size=8), st.integers(1, 8))
    def test_law_ndcg_is_a_share(self, places: list[int], wanted: int) -> None:
        assert 0 <= ndcg(places[:wanted], wanted) <= 1 + 1e-12


class TestCalibration:
    def test_by_hand(self) -> None:
        found = calibrate([(0.9, True), (0.9, False), (0.1, False), (1.0, True)])
        assert found is not None
        assert found.brier == pytest.approx((0.01 + 0.81 + 0.01 + 0) / 4)
        # 0.9 and 1.0 share the last bin: said (0.9 + 0.9 + 1.0) / 3, right 2 of 3; the other said 0.1, right 0.
        assert found.error == pytest.approx((3 * abs(2.8 / 3 - 2 / 3) + 1 * 0.1) / 4)
        assert [one.hits for one in found.bins] == [1, 3]

    def test_nothing_to_judge(self) -> None:
        assert calibrate([]) is None


class TestIntervals:
    def test_one_holds_the_true_mean_about_as_often_as_it_says(self) -> None:
        chooser = random.Random(5)
        held = 0
        for _ in range(200):
            found = interval([float(chooser.random() < 0.7) for _ in range(60)])
            assert found is not None
            held += found.low <= 0.7 <= found.high
        assert 0.9 <= held / 200 <= 0.99

    def test_pairing_sees_what_two_intervals_do_not(self) -> None:
        chooser = random.Random(7)
        before = [chooser.random() for _ in range(80)]
        after = [value + 0.02 + chooser.uniform(-0.01, 0.01) for value in before]
        one, first, second = difference(before, after), interval(before), interval(after)
        assert one is not None
        assert first is not None
        assert second is not None
        assert one.verdict == "better"
        assert first.high > second.low  # they overlap by far

    def test_the_same_twice_is_no_difference(self) -> None:
        one = difference([0.1, 0.9] * 3, [0.1, 0.9] * 3)
        assert one is not None
        assert (one.difference, one.low, one.high, one.verdict) == (0, 0, 0, "no clear difference")

    def test_nothing_and_unequal_lists(self) -> None:
        assert interval([]) is None
        assert difference([], []) is None
        with pytest.raises(ValueError, match="cannot be paired"):
            difference([1.0], [])

    @pytest.mark.slow
    def test_many_questions_do_not_fill_the_memory(self) -> None:
        found = interval([0.5] * 30_000)
        assert found is not None
        assert found.low == found.high == 0.5


def evaluation(covers: list[float], name: str = "a") -> Evaluation:
    question = question_from({"query": "q", "files": ["a.py"]})
    ranking = judged_row(question, {}, [RankedHit(text="", path="a.py", relevance=0.8)], no_texts).ranking
    return Evaluation(
        name=name,
        rows=tuple(
            QuestionRow(
                id=str(i),
                query=f"q{i}",
                at=(AtBudget(budget=100, cover=cover, precision=0.5, tokens=101 if i == 0 else 90, milliseconds=i),),
                ranking=ranking,
                judged=((0.8, True),),
            )
            for i, cover in enumerate(covers)
        ),
    )


class TestEvaluation:
    def test_a_row_says_what_is_missing(self) -> None:
        question = question_from({"query": "q", "files": ["a.py", "b.py"]})
        row = judged_row(
            question,
            {100: answer(Shown(text="x", path="a.py")), 200: "the budget cannot be met"},
            [RankedHit(text="", path="b.py", relevance=0.4), RankedHit(text="", path="c.py", relevance=0.2)],
            no_texts,
        )
        assert (row.at[0].cover, row.at[0].precision, row.at[0].missing) == (0.5, 1.0, ("b.py",))
        assert (row.at[1].cover, row.at[1].error) == (0.0, "the budget cannot be met")
        assert row.judged == ((0.4, True), (0.2, False))

    def test_the_share_of_tokens_from_expected_files(self) -> None:
        pieces = (Shown(text="x", path="a.py"), Shown(text="y", path="c.py"), Shown(text="z", path="b.py"))
        reply = Reply(tokens=100, pieces=pieces, piece_shares=(0.25, 0.375, 0.125))
        question = question_from({"query": "q", "files": ["a.py"], "lines": ["b.py:1-2"], "phrases": ["y"]})
        assert token_share(reply, question.expected) == 0.375
        assert token_share(reply, question_from({"query": "q", "phrases": ["y"]}).expected) is None
        blocks = Reply(tokens=100, pieces=(Shown(text="x"),), piece_shares=(0.5,))
        assert token_share(blocks, question.expected) is None
        assert token_share(Reply(tokens=100, pieces=pieces), question.expected) is None

    def test_mean_tokens_leave_out_refused_questions(self) -> None:
        refused = AtBudget(budget=100, cover=0, precision=None, tokens=0, milliseconds=0, error="refused")
        rows = (*evaluation([1.0, 1.0]).rows, QuestionRow(id="x", query="x", at=(refused,)))
        assert Evaluation(name="a", rows=rows).mean_tokens() == {100: 95.5}

    def test_a_report_of_an_older_version_has_no_share_of_tokens(self, tmp_path: Path) -> None:
        saved = to_dict(evaluation([1.0, 0.25]))
        for row in saved["rows"]:
            del row["at"][0]["token_share"]
        file = tmp_path / "report.json"
        file.write_text(json.dumps(saved))
        assert read_evaluation(file) == evaluation([1.0, 0.25])

    def test_figures(self) -> None:
        found = evaluation([1.0, 0.5, 0.0])
        figures = found.figures()
        assert figures["cover@100"].mean == 0.5
        assert figures["complete@100"].mean == pytest.approx(1 / 3)
        assert figures["ndcg@10"].mean == 1
        assert found.over == 1

    def test_saved_and_read_it_is_the_same(self, tmp_path: Path) -> None:
        found = evaluation([1.0, 0.25])
        file = tmp_path / "report.json"
        file.write_text(json.dumps(to_dict(found)))
        again = read_evaluation(file)
        assert again == found
        assert to_dict(again) == to_dict(found)

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"kind": "satchel-evaluation", "version": 1}', "\x00"])
    def test_what_is_no_report_is_refused(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "report.json"
        file.write_text(text)
        with pytest.raises(InvalidInput, match="is not a report"):
            read_evaluation(file)

    def test_a_report_of_a_later_version_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "report.json"
        file.write_text(json.dumps(to_dict(evaluation([1.0])) | {"version": 9}))
        with pytest.raises(InvalidInput, match="has version 9"):
            read_evaluation(file)

    def test_comparing_pairs_questions_by_their_ids(self) -> None:
        before, after = evaluation([0.0, 0.0, 1.0, 0.0]), evaluation([1.0, 1.0, 1.0, 1.0, 1.0], "b")
        after = Evaluation(name="b", rows=tuple(reversed(after.rows)))
        found = compare(before, after)
        assert (found.questions, found.only_before, found.only_after) == (4, 0, 1)
        one = found.differences["cover@100"]
        assert (one.before, one.after, one.better, one.worse) == (0.25, 1.0, 3, 0)

    def test_other_questions_under_the_same_ids_are_not_compared(self) -> None:
        before = evaluation([1.0, 1.0])
        other = Evaluation(
            name="b", rows=tuple(QuestionRow(id=row.id, query="another", at=row.at) for row in before.rows)
        )
        with pytest.raises(InvalidInput, match="another dataset"):
            compare(before, other)

    def test_a_regression_is_named(self) -> None:
        found = compare(evaluation([1.0] * 30), evaluation([0.5] * 30, "b"))
        assert found.regressions == ["cover@100", "complete@100"]

    def test_a_report_against_itself_has_no_verdict(self, tmp_path: Path) -> None:
        found = evaluation([1 / 3, 2 / 3, 1 / 7, 3 / 11, 5 / 13, 1 / 9])
        file = tmp_path / "report.json"
        file.write_text(json.dumps(to_dict(found)))
        differences = compare(read_evaluation(file), found).differences
        assert {one.verdict for one in differences.values()} == {"no clear difference"}
        rounded = evaluation([round(value, 6) for value in (1 / 3, 2 / 3, 1 / 7, 3 / 11, 5 / 13, 1 / 9)])
        assert compare(rounded, found).differences["cover@100"].verdict == "no clear difference"

    def test_few_questions_give_no_verdict(self) -> None:
        assert compare(evaluation([1.0] * 4), evaluation([0.0] * 4, "b")).regressions == []
        assert compare(evaluation([1.0] * 5), evaluation([0.0] * 5, "b")).regressions == ["cover@100", "complete@100"]

    def test_questions_of_which_something_else_is_expected_now_are_left_out(self) -> None:
        before, after = evaluation([1.0] * 6), evaluation([0.0] * 6, "b")
        marks = [question_from({"query": "q", "files": [name]}).mark for name in ("a.py", "b.py")]
        assert marks[0] == question_from({"query": "other", "files": ["a.py"]}).mark != marks[1]
        then = Evaluation(name="a", rows=tuple(replace(row, expected=marks[0]) for row in before.rows))
        now = Evaluation(name="b", rows=tuple(replace(row, expected=marks[i < 2]) for i, row in enumerate(after.rows)))
        found = compare(then, now)
        assert (found.questions, found.changed) == (4, 2)
        assert found.left_out == "2 with other expected results now"
        assert compare(before, now).changed == 0, "reports of earlier versions do not say"
        all_new = Evaluation(name="b", rows=tuple(replace(row, expected=marks[1]) for row in after.rows))
        with pytest.raises(InvalidInput, match="other expected results for every question"):
            compare(then, all_new)

    def test_reports_of_other_datasets_cannot_be_compared(self) -> None:
        other = Evaluation(name="b", rows=(QuestionRow(id="other", query="q"),))
        with pytest.raises(InvalidInput, match="another dataset"):
            compare(evaluation([1.0]), other)

    def test_latency(self) -> None:
        assert latency([]) is None
        assert latency([float(i) for i in range(100)]) == {"p50": 49, "p95": 94, "worst": 99, "n": 100}


class TestThresholds:
    def test_what_is_too_low_is_told(self) -> None:
        found = evaluation([1.0, 0.0])
        assert failures(found, thresholds_from(["0.5", "ndcg@10=0.9"], (100,))) == []
        (line,) = failures(found, thresholds_from(["complete@100=0.6"], (100,)))
        assert line == "complete@100 is 0.500; at least 0.6 is required"

    @pytest.mark.parametrize("given", ["cover@5=1", "nonsense", "mrr=2", "ndcg@10=x", "=0.5"])
    def test_nonsense_is_refused(self, given: str) -> None:
        with pytest.raises(InvalidOption, match="fail_under"):
            thresholds_from([given], (100,))


class TestConfiguration:
    def test_options_of_questions_and_settings_are_told_apart(self) -> None:
        found = configuration_from(["top_k=3", "compact=yes", "expand=5", "history_commits=0", "include=a,b"])
        assert found.options == {"top_k": 3, "compact": True, "expand": 5, "include": ("a", "b")}
        assert found.settings == {"history_commits": "0"}
        assert found.needs_own_index
        assert not configuration_from(["top_k=3"]).needs_own_index

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ("top_k", "must be NAME=VALUE"),
            ("tok_k=3", "did you mean top_k"),
            ("token_budget=9", "--budgets"),
            ("top_k=x", "whole number"),
            ("compact=perhaps", "true or false"),
            ("index_dir=/tmp", "no such setting"),
        ],
    )
    def test_nonsense_is_refused(self, given: str, words: str) -> None:
        with pytest.raises(InvalidOption, match=words):
            configuration_from([given])
