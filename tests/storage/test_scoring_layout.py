"""Merging segments: which are merged, and that it gives what laying out at once gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from satchel.storage.sql.scoring import CODE, NOTE, PAGED, PROSE
from satchel.storage.sql.scoring_layout import SearchArraysBuilder, SegmentPart, merge, segments_to_merge

WORDS = st.lists(st.sampled_from("retry socket parse HttpHeader config_file".split()), max_size=4).map(" ".join)
FILE = st.tuples(
    st.sampled_from([CODE, NOTE, PROSE, PAGED]), WORDS, WORDS, st.lists(st.tuples(WORDS, WORDS), max_size=3)
)
DIMENSIONS = 4


def laid_out(files: Sequence[tuple[int, tuple[int, str, str, list[tuple[str, str]]]]]) -> dict[str, np.ndarray]:
    builder = SearchArraysBuilder(DIMENSIONS)
    for number, (reading, stem, folder, pieces) in files:
        builder.add_file(number, reading, stem, folder.replace(" ", "/"))
        for i, (text, names) in enumerate(pieces):
            builder.add_piece(10 * number + i, text, names, bytes([number % 128, i, 0, 1]))
    return builder.arrays()


@given(st.lists(st.lists(st.tuples(FILE, st.booleans()), min_size=1, max_size=4), min_size=1, max_size=4))
def test_law_merged_segments_are_those_that_laying_out_at_once_gives(segments: list[list[tuple]]) -> None:  # type: ignore[type-arg]
    numbered, number = [], 0
    for segment in segments:
        numbered.append([(number := number + 1, file, is_kept) for file, is_kept in segment])
    parts = [
        SegmentPart(laid_out([(n, file) for n, file, _ in segment]), np.array([kept for *_, kept in segment]))
        for segment in numbered
    ]
    at_once = laid_out([(n, file) for segment in numbered for n, file, is_kept in segment if is_kept])
    merged = merge(parts)
    assert merged.keys() == at_once.keys()
    for name, array in at_once.items():
        assert merged[name].dtype == array.dtype, name
        assert merged[name].tolist() == array.tolist(), name


@given(st.lists(st.integers(1, 400), min_size=1, max_size=120))
def test_law_segments_are_few_and_each_piece_is_merged_few_times(commits: list[int]) -> None:
    sizes: dict[int, int] = {}
    merges: dict[int, int] = {}
    """How often the piece of a segment that was merged most often has been merged."""
    for number, size in enumerate(commits):
        sizes[number], merges[number] = size, 0
        chosen = segments_to_merge(sizes, gone=0, files=sum(sizes.values()))
        if chosen:
            total, most = sum(sizes.pop(one) for one in chosen), max(merges.pop(one) for one in chosen)
            sizes[number], merges[number] = total, most + 1
    total = sum(commits)
    assert sum(sizes.values()) == total
    assert len(sizes) <= 1 + log(total, 3) + 1
    assert max(merges.values()) <= 2 * (1 + log(total, 1.5))


def test_segments_with_many_deleted_files_are_all_merged() -> None:
    assert segments_to_merge({"a": 1_000, "b": 10}, gone=0, files=100) == []
    assert set(segments_to_merge({"a": 1_000, "b": 10}, gone=40, files=100)) == {"a", "b"}
