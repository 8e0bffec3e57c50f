"""MaxSim against the plain double loop, the two stages against looking at everything, and packed vectors."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from satchel.errors import InvalidInput
from satchel.retrieval import late_interaction
from satchel.retrieval.late_interaction import (
    max_sim,
    pack_vectors,
    pooled,
    two_stage,
    unit_rows,
    unpack_vectors,
)

Vectors = NDArray[np.float32]


def naive(question: Vectors, page: Vectors) -> float:
    """The definition, written out."""
    best = []
    for asked in question.tolist():
        if not any(asked):
            continue
        cosines = [0.0]
        for seen in page.tolist():
            lengths = math.hypot(*asked) * math.hypot(*seen)
            cosines.append(sum(a * b for a, b in zip(asked, seen, strict=True)) / lengths if lengths else 0.0)
        best.append(min(max(cosines), 1.0))
    return sum(best) / len(best) if best else 0.0


def tables(rows: int, dimensions: int = 4) -> st.SearchStrategy[Vectors]:
    numbers = st.floats(-8, 8, width=16)
    return st.integers(0, rows).flatmap(lambda count: arrays(np.float32, (count, dimensions), elements=numbers))


@given(question=tables(5), pages=st.lists(tables(7), max_size=6))
def test_the_law_of_max_sim_is_the_naive_double_loop(question: Vectors, pages: list[Vectors]) -> None:
    scores = max_sim(question, pages)
    np.testing.assert_allclose(scores, [naive(question, page) for page in pages], atol=1e-5)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()


def test_pages_in_many_blocks_score_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    pages = [random.normal(size=(count, 8)).astype(np.float32) for count in (0, 3, 40, 1, 0, 90, 7, 64, 2)]
    question = random.normal(size=(6, 8)).astype(np.float32)
    at_once = max_sim(question, pages)
    monkeypatch.setattr(late_interaction, "_ROWS_AT_ONCE", 64)
    np.testing.assert_allclose(max_sim(question, pages), at_once, atol=1e-6)


def test_a_page_that_holds_the_question_scores_one_and_an_opposite_or_empty_one_nothing() -> None:
    question = np.eye(3, 8, dtype=np.float32)
    page = np.concatenate([np.eye(8, dtype=np.float32)[5:], question * 40])
    scores = max_sim(question, [page, -question, np.zeros((0, 8), np.float32), np.zeros((2, 8), np.float32)])
    assert scores.tolist() == pytest.approx([1, 0, 0, 0])


def test_a_question_without_vectors_finds_nothing() -> None:
    page = np.eye(3, 8, dtype=np.float32)
    assert max_sim(np.zeros((0, 8), np.float32), [page]).tolist() == [0]
    assert max_sim(np.zeros((2, 8), np.float32), [page]).tolist() == [0]
    assert two_stage(np.zeros((2, 8), np.float32), page, lambda rows: [page for _ in rows]) == []


@pytest.mark.parametrize("strange", [np.nan, np.inf, 1e38, 1e-38])
def test_strange_numbers_neither_win_nor_spread(strange: float) -> None:
    question = np.eye(2, 4, dtype=np.float32)
    odd = np.array([[strange, 0, 0, 0]], np.float32)
    scores = max_sim(question, [odd, question, np.concatenate([odd, question])])
    assert np.isfinite(scores).all()
    assert scores[1:].tolist() == pytest.approx([1, 1])
    assert scores[0] <= 0.5
    assert np.isfinite(pooled(odd)).all()


def test_vectors_of_another_length_are_refused_with_both() -> None:
    with pytest.raises(InvalidInput, match=r"\(2, 5\).*with 4 dimensions"):
        max_sim(np.eye(2, 4, dtype=np.float32), [np.eye(2, 5, dtype=np.float32)])
    with pytest.raises(InvalidInput, match="one vector in each row"):
        max_sim(np.ones(4, np.float32), [])


@given(vectors=tables(9))
def test_the_law_of_pooling_one_unit_vector_or_zeros(vectors: Vectors) -> None:
    one = pooled(vectors)
    assert one.shape == (4,)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-4) or not one.any()


def clustered(pages: int, dimensions: int, seed: int) -> tuple[list[Vectors], list[Vectors]]:
    """Pages about one to three of forty subjects each, and questions about a subject that stands on one page."""
    random = np.random.default_rng(seed)
    subjects = random.normal(size=(40, dimensions))
    made = []
    for _ in range(pages):
        own = subjects[random.choice(40, random.integers(1, 4), replace=False)]
        rows = own[random.integers(0, len(own), random.integers(20, 60))]
        made.append((rows + random.normal(scale=0.7, size=rows.shape)).astype(np.float32))
    questions = []
    for page in random.choice(pages, 60):
        rows = made[page][random.choice(len(made[page]), 8)]
        questions.append((rows + random.normal(scale=0.4, size=rows.shape)).astype(np.float32))
    return made, questions


@pytest.mark.requirement("S3.search.two-stage")
def test_two_stages_find_what_looking_at_every_page_finds() -> None:
    pages, questions = clustered(400, 64, seed=3)
    looked_up = np.stack([pooled(page) for page in pages])
    recalls: list[float] = []
    for question in questions:
        exact = np.argsort(-max_sim(question, pages), kind="stable")[:10]
        fetched: list[int] = []

        def fetch(rows: Sequence[int], fetched: list[int] = fetched) -> list[Vectors]:
            fetched.extend(rows)
            return [pages[row] for row in rows]

        answer = two_stage(question, looked_up, fetch, first=60, top_k=10)
        scores = [score for _, score in answer]
        assert len(fetched) == 60, "the second stage looks at the candidates of the first, and at nothing else"
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(scores, max_sim(question, [pages[row] for row, _ in answer]), atol=1e-6)
        recalls.append(len({row for row, _ in answer} & set(exact.tolist())) / 10)
    assert np.mean(recalls) >= 0.95


def test_two_stages_over_few_pages_are_exact_and_stable() -> None:
    page = np.eye(2, 4, dtype=np.float32)
    pages = [page, page[:1], page, -page]
    answer = two_stage(page, np.stack([pooled(one) for one in pages]), lambda rows: [pages[row] for row in rows])
    assert [row for row, _ in answer] == [0, 2, 1, 3]
    assert two_stage(page, np.zeros((0, 4), np.float32), lambda rows: []) == []


@given(vectors=tables(9, 16))
def test_the_law_that_packed_vectors_keep_their_direction(vectors: Vectors) -> None:
    again = unpack_vectors(pack_vectors(vectors))
    assert again.shape == vectors.shape
    assert again.dtype == np.float32
    cosines = (again * unit_rows(vectors)).sum(axis=1)
    assert (cosines[unit_rows(vectors).any(axis=1)] > 0.999).all()


def test_packing_changes_scores_by_less_than_a_hundredth() -> None:
    pages, questions = clustered(200, 128, seed=8)
    packed = [unpack_vectors(pack_vectors(page)) for page in pages]
    for question in questions[:20]:
        np.testing.assert_allclose(max_sim(question, packed), max_sim(question, pages), atol=0.01)


GOOD = pack_vectors(np.eye(3, 4, dtype=np.float32))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"SMV1",
        GOOD[:-1],
        GOOD + b"\0",
        b"XXXX" + GOOD[4:],
        struct.pack("<4sIH", b"SMV1", 4_000_000_000, 8_192),
        struct.pack("<4sIH", b"SMV1", 65_536, 65_535),
    ],
    ids=["nothing", "no header", "cut", "longer", "other", "bomb", "wide"],
)
def test_bytes_that_are_no_packed_vectors_are_refused(packed: bytes) -> None:
    with pytest.raises(InvalidInput):
        unpack_vectors(packed)


@given(packed=st.binary(max_size=64) | st.builds(lambda end: GOOD[:10] + end, st.binary(max_size=16)))
def test_the_law_that_any_bytes_unpack_to_finite_vectors_or_are_refused(packed: bytes) -> None:
    try:
        vectors = unpack_vectors(packed)
    except InvalidInput:
        return
    assert np.isfinite(vectors).all()


def test_more_vectors_than_a_page_can_have_are_not_packed() -> None:
    with pytest.raises(InvalidInput, match="at most"):
        pack_vectors(np.zeros((late_interaction.MOST_VECTORS + 1, 1), np.float32))
