"""Late interaction (MaxSim) between the vectors of a question and the vectors of pages, in two stages.

For each question vector the best cosine among the page's vectors counts, negative cosines as 0; the score of a page is
the mean over the question's vectors. The score is in 0..1, and 1 only if the page has every vector of the question.
The score is no probability: models differ in how high an unrelated page scores.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS_AT_ONCE: Final = 16_384
"""Page vectors compared at once: with 64 question vectors the products take 4 MB, whatever the number of pages."""

_MIN_SQUARED_NORM: Final = 1e-20
"""Squares of shorter rows are no longer exact in float32; blocks with such rows are normalized first."""

_MAGIC: Final = b"SMV1"
_HEADER: Final = struct.Struct("<4sIH")
MOST_VECTORS: Final = 65_536
"""No page has more vectors; packed bytes that claim more are an attack on memory."""
MOST_DIMENSIONS: Final = 8_192
"""Bounds a packed vector; the models of the ColPali family have 128 dimensions."""
_INT8_STEPS: Final = 127  # the largest int8: each row is scaled to -127..127


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows scaled to unit length; rows of length zero or with NaN or infinity become zeros."""
    rows = np.asarray(vectors, np.float32)
    if rows.ndim != 2:
        raise InvalidInput("vectors", rows.shape, "must be a two-dimensional array with one vector in each row")
    if not rows.size:
        return rows
    rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, np.float32(0))
    largest = np.abs(rows).max(axis=1, keepdims=True)
    # First by the largest number: squares of very large and very small ones leave float32.
    rows = np.asarray(rows / np.where(largest > 0, largest, 1), np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


def max_sim(question: NDArray[np.float32], pages: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The MaxSim score of each page, 0..1; the vectors need not have unit length."""
    query_rows = unit_rows(question)
    query_rows = query_rows[query_rows.any(axis=1)]
    scores = np.zeros(len(pages), np.float32)
    if not len(query_rows):
        return scores
    for page in pages:
        if page.ndim != 2 or (len(page) and page.shape[1] != query_rows.shape[1]):
            raise InvalidInput(
                "pages",
                page.shape,
                f"must be arrays of vectors with {query_rows.shape[1]} dimensions, like the question's vectors",
            )
    for block in _blocks(pages):
        scores[block] = _best(query_rows, [pages[i] for i in block])
    return scores


def _blocks(pages: Sequence[NDArray[np.float32]]) -> list[list[int]]:
    blocks: list[list[int]] = []
    rows = _ROWS_AT_ONCE
    for i, page in enumerate(pages):
        if not len(page):
            continue
        if rows + len(page) > _ROWS_AT_ONCE:
            blocks.append([])
            rows = 0
        blocks[-1].append(i)
        rows += len(page)
    return blocks


def _best(query_rows: NDArray[np.float32], pages: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    borders = np.cumsum([0, *(len(page) for page in pages[:-1])])
    rows = np.concatenate(pages)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        norms_are_exact = bool(np.isfinite(squares).all() and (squares > _MIN_SQUARED_NORM).all())
    # Dividing the products by the lengths costs a tenth of making every row a unit first.
    cosines = (
        (rows @ query_rows.T) / np.sqrt(squares)[:, np.newaxis] if norms_are_exact else unit_rows(rows) @ query_rows.T
    )
    best = np.maximum.reduceat(cosines, borders, axis=0)
    return np.asarray(np.clip(best, 0, 1).mean(axis=1), np.float32)


def pooled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of the vectors as a unit vector for the first stage, or zeros."""
    rows = unit_rows(vectors)
    mean = rows.mean(axis=0, dtype=np.float64) if len(rows) else np.zeros(rows.shape[1])
    vector: NDArray[np.float32] = unit_rows(np.asarray(mean, np.float32)[np.newaxis])[0]
    return vector


def two_stage(
    question: NDArray[np.float32],
    pooled_pages: NDArray[np.float32],
    fetch: Callable[[Sequence[int]], Sequence[NDArray[np.float32]]],
    *,
    first: int = 100,
    top_k: int = 10,
) -> list[tuple[int, float]]:
    """The best pages as (row, score), best first: `first` candidates by pooled vectors, rescored exactly.

    `fetch` gives the vectors of the candidates. A page is missed if its pooled vector is far from the question,
    even if a single place on the page answers: only the candidates are compared exactly.
    """
    candidates = candidates_for(question, pooled_pages, first)
    scores = max_sim(question, fetch(candidates))
    order = sorted(zip(candidates, scores.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    return order[:top_k]


def candidates_for(question: NDArray[np.float32], pooled_pages: NDArray[np.float32], first: int) -> list[int]:
    """The rows of the pooled pages nearest to the whole question or to any of its vectors."""
    asks = first_stage_questions(question)
    if not len(pooled_pages) or not len(asks) or first < 1:
        return []
    alike = np.asarray(pooled_pages, np.float32) @ asks.T
    nearness = alike[:, 0] + np.maximum(alike[:, 1:].max(axis=1), 0) if len(asks) > 1 else alike[:, 0]
    return [int(i) for i in np.argsort(-nearness, kind="stable")[:first]]


def first_stage_questions(question: NDArray[np.float32]) -> NDArray[np.float32]:
    """The query vectors of the first stage: the pooled question, then each question vector."""
    rows = unit_rows(question)
    rows = rows[rows.any(axis=1)]
    return np.concatenate([pooled(rows)[np.newaxis], rows]) if len(rows) else rows


def pack_vectors(vectors: NDArray[np.float32]) -> bytes:
    """Pack the vectors into bytes, eight bits per number; directions stay accurate to about half a degree."""
    rows = unit_rows(vectors)
    if len(rows) > MOST_VECTORS or rows.shape[1] > MOST_DIMENSIONS:
        raise InvalidInput(
            "vectors", rows.shape, f"must be at most {MOST_VECTORS} vectors of at most {MOST_DIMENSIONS} dimensions"
        )
    scales = np.abs(rows).max(axis=1, initial=0) / _INT8_STEPS
    steps = np.rint(rows / np.where(scales > 0, scales, 1)[:, np.newaxis]).astype(np.int8)
    return _HEADER.pack(_MAGIC, *rows.shape) + steps.tobytes()


def unpack_vectors(packed: bytes) -> NDArray[np.float32]:
    """Unpack the bytes of `pack_vectors` into unit vectors; `InvalidInput` for any malformed bytes."""
    if len(packed) < _HEADER.size:
        raise InvalidInput("packed", packed[:16], "is shorter than the header of packed vectors")
    magic, rows, dimensions = _HEADER.unpack_from(packed)
    if magic != _MAGIC:
        raise InvalidInput("packed", packed[:16], "does not begin with the magic number of packed vectors")
    if (
        rows > MOST_VECTORS
        or dimensions > MOST_DIMENSIONS
        or len(packed) != _HEADER.size + math.prod((rows, dimensions))
    ):
        raise InvalidInput(
            "packed", packed[:16], f"does not contain {rows} vectors of {dimensions} dimensions, as its header says"
        )
    steps = np.frombuffer(packed, np.int8, offset=_HEADER.size).reshape(rows, dimensions)
    return unit_rows(steps.astype(np.float32))
