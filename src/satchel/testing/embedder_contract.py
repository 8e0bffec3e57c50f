"""What every embedder must do, as tests: subclass `EmbedderContract` in a test module of your own.

    from satchel.testing.embedder_contract import EmbedderContract

    class TestMyEmbedder(EmbedderContract):
        def make_embedder(self) -> MyEmbedder:
            return MyEmbedder("model")

How good the vectors are is no part of it: an embedder of random numbers may pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.ports.embedder import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satchel.ports.page_embedder import PageEmbedder

TOLERANCE: Final = 1e-4
"""How far two vectors of one text may lie apart: a batch is padded and summed in another order than a single text."""

TEXTS: Final = (
    "def retry(times):\n    return backoff(times)",
    "the login page",
    "class HTTPServer: ...",
    "SELECT name FROM users WHERE id = ?",
    "a",
)
ODD_TEXTS: Final = (
    " \t\r\n",
    "\x00\x01\x1b[31m",
    "\ud800",
    "left \udfff right",
    "\ufeff\u200b\u202e\ufffe",
    "e\u0301" + "\u0301" * 500,
    "👩\u200d👩\u200d👧\u200d👦 🇦🇹",
    "検索エンジン",
    "בדיקה اختبار",
)


class EmbedderContract:
    """The tests; give them `make_embedder`."""

    def make_embedder(self) -> Embedder:
        """The embedder to be tested; asked for anew by each test, and each time the same model."""
        raise NotImplementedError("subclass EmbedderContract and say how your embedder is made")

    def test_it_has_all_that_the_port_asks_for(self) -> None:
        """An index and a search call these four."""
        embedder = self.make_embedder()
        assert isinstance(embedder, Embedder), f"{type(embedder).__name__} lacks a member of satchel.ports.embedder"

    def test_its_name_and_its_dimensions_say_something_and_never_change(self) -> None:
        """An index keeps them, and compares them with those of the next process."""
        embedder = self.make_embedder()
        check_identity(embedder, self.make_embedder, lambda: embedder.embed_texts(TEXTS))

    def test_there_is_one_row_of_float32_for_each_text(self) -> None:
        """A matrix, as wide as `dimensions` says."""
        embedder = self.make_embedder()
        for count in range(1, len(TEXTS) + 1):
            check_vectors(embedder.embed_texts(TEXTS[:count]), count, embedder.dimensions)

    def test_a_query_has_one_vector_of_the_same_length(self) -> None:
        """So that it can be compared with the rows."""
        embedder = self.make_embedder()
        for text in TEXTS:
            check_vectors(embedder.embed_query(text)[np.newaxis], 1, embedder.dimensions)

    def test_a_text_has_the_same_vector_alone_in_a_batch_and_the_next_time(self) -> None:
        """An index embeds in batches of whatever has changed."""
        embedder = self.make_embedder()
        batch = embedder.embed_texts(TEXTS)
        alone = np.concatenate([embedder.embed_texts([text]) for text in TEXTS])
        np.testing.assert_allclose(alone, batch, atol=TOLERANCE, err_msg="alone and in a batch")
        np.testing.assert_allclose(embedder.embed_texts(TEXTS), batch, atol=TOLERANCE, err_msg="the second time")
        again = self.make_embedder().embed_texts(TEXTS)
        np.testing.assert_allclose(again, batch, atol=TOLERANCE, err_msg="from a second embedder")

    def test_rows_come_in_the_order_of_the_texts(self) -> None:
        """Row 3 belongs to text 3, also when there are more texts than fit in a batch."""
        embedder = self.make_embedder()
        one_each = embedder.embed_texts(TEXTS)
        assert len(np.unique(one_each.round(3), axis=0)) > 1, "all texts have one vector: order cannot be seen"
        turned = embedder.embed_texts(TEXTS[::-1])
        np.testing.assert_allclose(turned, one_each[::-1], atol=TOLERANCE, err_msg="turned around")
        many = embedder.embed_texts(TEXTS * 60)
        np.testing.assert_allclose(many, np.tile(one_each, (60, 1)), atol=TOLERANCE, err_msg="repeated 60 times")

    def test_no_texts_give_no_rows_of_the_usual_length(self) -> None:
        """Asked first, before the embedder has seen a text."""
        embedder = self.make_embedder()
        check_vectors(embedder.embed_texts([]), 0, embedder.dimensions)
        check_vectors(embedder.embed_texts(()), 0, embedder.dimensions)

    def test_an_empty_text_has_a_row_and_leaves_its_neighbours_alone(self) -> None:
        """Of zeros, or whatever the model makes of nothing."""
        embedder = self.make_embedder()
        check_vectors(embedder.embed_texts([""]), 1, embedder.dimensions)
        check_vectors(embedder.embed_query("")[np.newaxis], 1, embedder.dimensions)
        vectors = embedder.embed_texts([TEXTS[0], "", TEXTS[1]])
        check_vectors(vectors, 3, embedder.dimensions)
        expected = embedder.embed_texts(TEXTS[:2])
        np.testing.assert_allclose(vectors[[0, 2]], expected, atol=TOLERANCE, err_msg="beside an empty text")

    def test_a_very_long_text_has_a_row_like_any_other(self) -> None:
        """Cut off somewhere, if need be: generated files and data have lines of this size."""
        embedder = self.make_embedder()
        long_texts = ["retry the backoff\n" * 12_000, "x" * 200_000, "aB3_" * 50_000]
        check_vectors(embedder.embed_texts(long_texts), len(long_texts), embedder.dimensions)
        check_vectors(embedder.embed_query(long_texts[0])[np.newaxis], 1, embedder.dimensions)

    def test_odd_characters_and_lone_surrogates_have_a_row_like_any_other(self) -> None:
        """Files hold anything; a name of a file that is not UTF-8 has lone surrogates."""
        embedder = self.make_embedder()
        check_vectors(embedder.embed_texts(ODD_TEXTS), len(ODD_TEXTS), embedder.dimensions)
        for text in ODD_TEXTS:
            check_vectors(embedder.embed_query(text)[np.newaxis], 1, embedder.dimensions)


def check_identity(
    embedder: Embedder | PageEmbedder, make_another: Callable[[], Embedder | PageEmbedder], embed: Callable[[], object]
) -> None:
    """Fail unless the name and the dimensions say something, and neither work nor a second embedder changes them."""
    name, dimensions = embedder.name, embedder.dimensions
    assert isinstance(name, str), f"the name is {name!r}"
    assert name.strip(), "the name is empty"
    assert isinstance(dimensions, int), f"the dimensions are {dimensions!r}"
    assert dimensions > 0, f"the dimensions are {dimensions}"
    embed()
    assert (embedder.name, embedder.dimensions) == (name, dimensions), "they changed with the first work"
    another = make_another()
    assert (another.name, another.dimensions) == (name, dimensions), "a second embedder is called differently"


def check_vectors(vectors: NDArray[np.float32], count: int, dimensions: int) -> None:
    """Fail unless these are so many rows of float32, each finite and of length one or zero."""
    check_rows(vectors, dimensions, least=0)
    assert len(vectors) == count, f"the shape is {vectors.shape}, not {(count, dimensions)}"


def check_rows(rows: NDArray[np.float32], dimensions: int, *, least: int) -> None:
    """Fail unless these are rows of float32, each finite and of length one or zero."""
    assert isinstance(rows, np.ndarray), f"not an array but {type(rows).__name__}"
    assert rows.dtype == np.float32, f"the numbers are {rows.dtype}, not float32"
    assert rows.ndim == 2, f"the shape is {rows.shape}, not that of a table"
    assert rows.shape[1] == dimensions, f"the rows have {rows.shape[1]} numbers, not {dimensions}"
    assert len(rows) >= least, f"there are {len(rows)} rows"
    assert np.isfinite(rows).all(), "some numbers are NaN or infinite"
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    wrong = [float(length) for length in lengths if length != 0 and abs(length - 1) > TOLERANCE]
    assert not wrong, f"rows have the lengths {wrong}, neither 1 nor 0"
