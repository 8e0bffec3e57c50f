"""Contract tests for embedders: subclass a contract in your own test module.

    from satchel.testing.embedder_contract import EmbedderContract

    class TestMyEmbedder(EmbedderContract):
        def make_embedder(self) -> MyEmbedder:
            return MyEmbedder("model")

`PageEmbedderContract` has the tests for an embedder of pages. Neither contract measures the quality of the vectors: an
embedder of random numbers may pass.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from satchel.ports.embedder import Embedder
from satchel.ports.page_embedder import PageEmbedder, PageView

if TYPE_CHECKING:
    from numpy.typing import NDArray


AnyEmbedder = Embedder | PageEmbedder

TOLERANCE: Final = 1e-4
"""Maximum difference of two vectors of a text: a batch is padded and summed in a different order than a single text."""

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
    """Contract tests; implement `make_embedder`."""

    def make_embedder(self) -> Embedder:
        """The embedder under test; called again by each test, and must return the same model each time."""
        raise NotImplementedError("subclass EmbedderContract and override the method that makes your embedder")

    @pytest.fixture
    def embedder(self) -> Embedder:
        """A new embedder for each test."""
        return self.make_embedder()

    def test_it_has_all_that_the_port_asks_for(self, embedder: Embedder) -> None:
        """Index and search call these four members."""
        assert isinstance(embedder, Embedder), f"{type(embedder).__name__} lacks a member of satchel.ports.embedder"

    def test_its_name_and_its_dimensions_say_something_and_never_change(self, embedder: Embedder) -> None:
        """An index stores name and dimensions, and compares both in the next process."""
        check_identity(embedder, self.make_embedder(), lambda: embedder.embed_texts(TEXTS))

    def test_there_is_one_row_of_float32_for_each_text(self, embedder: Embedder) -> None:
        """The result is a matrix, as wide as `dimensions`."""
        for count in range(1, len(TEXTS) + 1):
            check_vectors(embedder.embed_texts(TEXTS[:count]), count, embedder.dimensions)

    def test_a_query_has_one_vector_of_the_same_length(self, embedder: Embedder) -> None:
        """Queries are compared with the rows of texts."""
        for text in TEXTS:
            check_vectors(embedder.embed_query(text)[np.newaxis], 1, embedder.dimensions)

    def test_a_text_has_the_same_vector_alone_in_a_batch_and_the_next_time(self, embedder: Embedder) -> None:
        """An index embeds changed texts in batches of any composition."""
        batch = embedder.embed_texts(TEXTS)
        alone = np.concatenate([embedder.embed_texts([text]) for text in TEXTS])
        np.testing.assert_allclose(alone, batch, atol=TOLERANCE, err_msg="alone and in a batch")
        np.testing.assert_allclose(embedder.embed_texts(TEXTS), batch, atol=TOLERANCE, err_msg="the second time")
        again = self.make_embedder().embed_texts(TEXTS)
        np.testing.assert_allclose(again, batch, atol=TOLERANCE, err_msg="from a second embedder")

    def test_rows_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        """Row 3 belongs to text 3, also when there are more texts than fit in a batch."""
        one_each = embedder.embed_texts(TEXTS)
        assert len(np.unique(one_each.round(3), axis=0)) > 1, "all texts have one vector: order cannot be seen"
        turned = embedder.embed_texts(TEXTS[::-1])
        np.testing.assert_allclose(turned, one_each[::-1], atol=TOLERANCE, err_msg="turned around")
        many = embedder.embed_texts(TEXTS * 60)
        np.testing.assert_allclose(many, np.tile(one_each, (60, 1)), atol=TOLERANCE, err_msg="repeated 60 times")

    def test_no_texts_give_no_rows_of_the_usual_length(self, embedder: Embedder) -> None:
        """The call comes first, before the embedder has seen a text."""
        check_vectors(embedder.embed_texts([]), 0, embedder.dimensions)
        check_vectors(embedder.embed_texts(()), 0, embedder.dimensions)

    def test_an_empty_text_has_a_row_and_leaves_its_neighbours_alone(self, embedder: Embedder) -> None:
        """The row is zeros, or the model's vector for an empty text."""
        check_vectors(embedder.embed_texts([""]), 1, embedder.dimensions)
        check_vectors(embedder.embed_query("")[np.newaxis], 1, embedder.dimensions)
        vectors = embedder.embed_texts([TEXTS[0], "", TEXTS[1]])
        check_vectors(vectors, 3, embedder.dimensions)
        expected = embedder.embed_texts(TEXTS[:2])
        np.testing.assert_allclose(vectors[[0, 2]], expected, atol=TOLERANCE, err_msg="beside an empty text")

    def test_a_very_long_text_has_a_row_like_any_other(self, embedder: Embedder) -> None:
        """The text may be cut off: generated files and data have lines of this size."""
        long_texts = ["retry the backoff\n" * 12_000, "x" * 200_000, "aB3_" * 50_000]
        check_vectors(embedder.embed_texts(long_texts), len(long_texts), embedder.dimensions)
        check_vectors(embedder.embed_query(long_texts[0])[np.newaxis], 1, embedder.dimensions)

    def test_odd_characters_and_lone_surrogates_have_a_row_like_any_other(self, embedder: Embedder) -> None:
        """Files contain any character; a file name with invalid UTF-8 has lone surrogates."""
        check_vectors(embedder.embed_texts(ODD_TEXTS), len(ODD_TEXTS), embedder.dimensions)
        for text in ODD_TEXTS:
            check_vectors(embedder.embed_query(text)[np.newaxis], 1, embedder.dimensions)


def check_identity(embedder: AnyEmbedder, another: AnyEmbedder, embed: Callable[[], object]) -> None:
    """Fail unless name and dimensions are valid, and stay the same after work and for a second embedder."""
    name, dimensions = embedder.name, embedder.dimensions
    assert isinstance(name, str), f"the name is {name!r}"
    assert name.strip(), "the name is empty"
    assert isinstance(dimensions, int), f"the dimensions are {dimensions!r}"
    assert dimensions > 0, f"the dimensions are {dimensions}"
    embed()
    assert (embedder.name, embedder.dimensions) == (name, dimensions), "they changed with the first work"
    assert (another.name, another.dimensions) == (name, dimensions), "a second embedder is called differently"


def check_vectors(vectors: NDArray[np.float32], count: int, dimensions: int) -> None:
    """Fail unless the matrix has `count` float32 rows, each finite and of length one or zero."""
    check_rows(vectors, dimensions, least=0)
    assert len(vectors) == count, f"the shape is {vectors.shape}, not {(count, dimensions)}"


def check_rows(rows: NDArray[np.float32], dimensions: int, *, least: int) -> None:
    """Fail unless the matrix has float32 rows, each finite and of length one or zero."""
    assert isinstance(rows, np.ndarray), f"not an array but {type(rows).__name__}"
    assert rows.dtype == np.float32, f"the numbers are {rows.dtype}, not float32"
    assert rows.ndim == 2, f"the shape is {rows.shape}, not that of a table"
    assert rows.shape[1] == dimensions, f"the rows have {rows.shape[1]} numbers, not {dimensions}"
    assert len(rows) >= least, f"there are {len(rows)} rows"
    assert np.isfinite(rows).all(), "some numbers are NaN or infinite"
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    wrong = [float(length) for length in lengths if length != 0 and abs(length - 1) > TOLERANCE]
    assert not wrong, f"rows have the lengths {wrong}, neither 1 nor 0"


QUESTIONS: Final = ("revenue by quarter", "Which chart shows the rainfall in Graz?", "a", "検索 エンジン")


def pages() -> list[PageView]:
    """Four pages with different texts and pictures."""
    return [
        PageView(_picture((200, 40, 40), 60), "Revenue by quarter\nQ1 | Q2 | Q3", ("Figure 1: revenue",)),
        PageView(_picture((40, 200, 40), 20), "Rainfall in Graz\n\nmm per month"),
        PageView(_picture((40, 40, 200), 90), "# Login\n\nThe login page retries three times."),
        PageView(_picture((255, 255, 255), 5), "Appendix", ("Table 2: staff",)),
    ]


class PageEmbedderContract:
    """Contract tests; implement `make_embedder`."""

    def make_embedder(self) -> PageEmbedder:
        """The embedder under test; called again by each test, and must return the same model each time."""
        raise NotImplementedError("subclass PageEmbedderContract and override the method that makes your page embedder")

    @pytest.fixture
    def embedder(self) -> PageEmbedder:
        """A new embedder for each test."""
        return self.make_embedder()

    def test_it_has_all_that_the_port_asks_for(self, embedder: PageEmbedder) -> None:
        """A library calls these five members."""
        assert isinstance(embedder, PageEmbedder), f"{type(embedder).__name__} lacks a member of the port"

    def test_its_name_dimensions_and_needs_say_something_and_never_change(self, embedder: PageEmbedder) -> None:
        """A library stores name, dimensions and needs, and compares all three in the next process."""
        needs_images = embedder.needs_images
        assert isinstance(needs_images, bool), f"needs_images is {needs_images!r}"
        check_identity(embedder, self.make_embedder(), lambda: embedder.embed_pages(pages()))
        later = {embedder.needs_images, self.make_embedder().needs_images}
        assert later == {needs_images}, "it changed with the first pages"

    def test_each_page_has_rows_of_float32_of_length_one(self, embedder: PageEmbedder) -> None:
        """A page with content has at least one row."""
        for count in range(1, len(pages()) + 1):
            tables = embedder.embed_pages(pages()[:count])
            assert len(tables) == count, f"{count} pages gave {len(tables)} tables"
            for rows in tables:
                check_rows(rows, embedder.dimensions, least=1)

    def test_a_question_has_rows_of_the_same_length(self, embedder: PageEmbedder) -> None:
        """Question rows are compared with page rows."""
        for text in QUESTIONS:
            check_rows(embedder.embed_query(text), embedder.dimensions, least=0)
        check_rows(embedder.embed_query(QUESTIONS[0]), embedder.dimensions, least=1)

    def test_a_page_has_the_same_rows_alone_in_a_batch_and_the_next_time(self, embedder: PageEmbedder) -> None:
        """A library embeds changed pages in batches of any composition."""
        batch = embedder.embed_pages(pages())
        alone = [embedder.embed_pages([page])[0] for page in pages()]
        turned = embedder.embed_pages(pages()[::-1])[::-1]
        again = self.make_embedder().embed_pages(pages())
        for how, others in (("alone", alone), ("turned around", turned), ("from a second embedder", again)):
            for rows, other in zip(batch, others, strict=True):
                np.testing.assert_allclose(other, rows, atol=TOLERANCE, err_msg=how)

    def test_pages_that_differ_have_rows_that_differ(self) -> None:
        """Equal rows would make search impossible."""
        first, second, *_ = self.make_embedder().embed_pages(pages())
        assert first.shape != second.shape or not np.allclose(first, second, atol=TOLERANCE), "two pages look the same"

    def test_no_pages_give_no_tables_and_an_empty_page_no_rows(self, embedder: PageEmbedder) -> None:
        """An empty page does not change the rows of neighbouring pages."""
        assert embedder.embed_pages([]) == []
        page = pages()[0]
        between = embedder.embed_pages([page, PageView(), page])
        check_rows(between[1], embedder.dimensions, least=0)
        assert not len(between[1]), "there is nothing on the page, yet it has rows"
        np.testing.assert_allclose(between[0], between[2], atol=TOLERANCE, err_msg="beside an empty page")

    def test_odd_texts_do_no_harm(self, embedder: PageEmbedder) -> None:
        """Odd texts are accepted on pages and in questions."""
        picture = pages()[0].image
        odd = [PageView(picture, text, (text,)) for text in ("", *ODD_TEXTS)]
        for rows in embedder.embed_pages(odd):
            check_rows(rows, embedder.dimensions, least=0)
        for text in ("", *ODD_TEXTS, "revenue " * 50_000, "x" * 200_000):
            check_rows(embedder.embed_query(text), embedder.dimensions, least=0)


@lru_cache(maxsize=8)
def _picture(colour: tuple[int, int, int], stripe: int) -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (120, 160), "white")
    ImageDraw.Draw(image).rectangle((10, 10, 10 + stripe, 150), fill=colour)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
