"""How passages of documents are weighed: words that stand together, figures, and how sure the first one is."""

from __future__ import annotations

import pytest

from satchel.retrieval.query import understand
from satchel.retrieval.ranking import BestScore, WeightSet, best_of, closeness, learned_weights, probability


class TestCloseness:
    def test_words_that_stand_together_are_nearer_than_scattered_ones(self) -> None:
        filler = "of nothing in particular " * 20
        together, apart = closeness(
            understand("red bridge toll"), ["The red bridge toll is paid.", f"red {filler} bridge {filler} toll"]
        )
        assert together.near > apart.near
        assert together.pairs > apart.pairs == 0

    def test_a_part_of_an_identifier_says_its_word(self) -> None:
        [found] = closeness(understand("what happened in 2022"), ["Net sales in FY2022 were flat, as happens."])
        assert found.near == pytest.approx(1)

    def test_nothing_is_close_in_a_passage_without_words(self) -> None:
        assert closeness(understand("how much is it"), ["", "…"]) == [(0, 0, 0), (0, 0, 0)]


class TestFigures:
    @pytest.mark.parametrize(
        "question",
        ["How much did it cost?", "capital expenditure in FY2018", "what share in %", "the ratio of debt to equity",
         "How many pumps are there?", "total assets at the end of 2021"],
    )  # fmt: skip
    def test_who_asks_for_a_figure_gets_numbers(self, question: str) -> None:
        table, prose = closeness(understand(question), ["Assets 1,204 998 17", "The company holds assets."])
        assert table.figures > 0.5
        assert prose.figures == 0

    @pytest.mark.parametrize("question", ["who leads the company", "where is the parser", "why is it generated?"])
    def test_others_do_not(self, question: str) -> None:
        assert closeness(understand(question), ["Assets 1,204 998 17"])[0].figures == 0


class TestProbability:
    def test_the_first_is_surer_the_further_it_is_before_the_second(self) -> None:
        weights = learned_weights(WeightSet.DOCUMENTS)
        close, far = (probability(9.0, best_of([9.0, second]), weights) for second in (8.9, 4.0))
        assert far > 0.8 > 0.6 > close

    def test_only_the_first_has_the_lead(self) -> None:
        weights = learned_weights(WeightSet.DOCUMENTS)
        assert probability(5.0, BestScore(9.0, 4.0), weights) == probability(5.0, BestScore(9.0), weights)

    def test_what_is_alone_has_some_lead_and_no_scores_have_none(self) -> None:
        alone = best_of([7.0])
        assert (alone.score, 0 < alone.lead < best_of([7.0, -7.0]).lead) == (7.0, True)
        assert best_of([]).score == 0

    def test_all_files_are_less_probable_where_nothing_resembles_the_question(self) -> None:
        weights = learned_weights(WeightSet.SHORT)
        alike, unlike = (best_of([3.0, 1.0], [meaning]) for meaning in (0.7, 0.2))
        for score in (3.0, 1.0):
            assert probability(score, unlike, weights) < probability(score, alike, weights) / 1.5
