"""What every page embedder must do, as tests: subclass `PageEmbedderContract` in a test module of your own.

    from satchel.testing.page_embedder_contract import PageEmbedderContract

    class TestMyPageEmbedder(PageEmbedderContract):
        def make_embedder(self) -> MyPageEmbedder:
            return MyPageEmbedder("model")

How good the vectors are is no part of it: a page embedder of random numbers may pass.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Final

import numpy as np

from satchel.ports.page_embedder import PageEmbedder, PageView
from satchel.testing.embedder_contract import TOLERANCE, check_identity, check_rows

QUESTIONS: Final = ("revenue by quarter", "Which chart shows the rainfall in Graz?", "a", "検索 エンジン")
ODD_TEXTS: Final = ("", " \t\r\n", "\x00\x01\x1b[31m", "\ud800", "left \udfff right", "e\u0301" + "\u0301" * 500)


def pages() -> list[PageView]:
    """Four pages that differ in what is written on them and in their pictures."""
    return [
        PageView(_picture((200, 40, 40), 60), "Revenue by quarter\nQ1 | Q2 | Q3", ("Figure 1: revenue",)),
        PageView(_picture((40, 200, 40), 20), "Rainfall in Graz\n\nmm per month"),
        PageView(_picture((40, 40, 200), 90), "# Login\n\nThe login page retries three times."),
        PageView(_picture((255, 255, 255), 5), "Appendix", ("Table 2: staff",)),
    ]


class PageEmbedderContract:
    """The tests; give them `make_embedder`."""

    def make_embedder(self) -> PageEmbedder:
        """The embedder to be tested; asked for anew by each test, and each time the same model."""
        raise NotImplementedError("subclass PageEmbedderContract and say how your page embedder is made")

    def test_it_has_all_that_the_port_asks_for(self) -> None:
        """A library calls these five."""
        embedder = self.make_embedder()
        assert isinstance(embedder, PageEmbedder), f"{type(embedder).__name__} lacks a member of the port"

    def test_its_name_dimensions_and_needs_say_something_and_never_change(self) -> None:
        """A library keeps them, and compares them with those of the next process."""
        embedder = self.make_embedder()
        needs_images = embedder.needs_images
        assert isinstance(needs_images, bool), f"needs_images is {needs_images!r}"
        check_identity(embedder, self.make_embedder, lambda: embedder.embed_pages(pages()))
        assert embedder.needs_images == self.make_embedder().needs_images == needs_images, (
            "it changed with the first pages"
        )

    def test_each_page_has_rows_of_float32_of_length_one(self) -> None:
        """At least one, where there is something on the page."""
        embedder = self.make_embedder()
        for count in range(1, len(pages()) + 1):
            found = embedder.embed_pages(pages()[:count])
            assert len(found) == count, f"{count} pages gave {len(found)} tables"
            for rows in found:
                check_rows(rows, embedder.dimensions, least=1)

    def test_a_question_has_rows_of_the_same_length(self) -> None:
        """So that they can be compared with the pages'."""
        embedder = self.make_embedder()
        for text in QUESTIONS:
            check_rows(embedder.embed_query(text), embedder.dimensions, least=0)
        check_rows(embedder.embed_query(QUESTIONS[0]), embedder.dimensions, least=1)

    def test_a_page_has_the_same_rows_alone_in_a_batch_and_the_next_time(self) -> None:
        """A library adds whatever has changed."""
        embedder = self.make_embedder()
        batch = embedder.embed_pages(pages())
        alone = [embedder.embed_pages([page])[0] for page in pages()]
        turned = embedder.embed_pages(pages()[::-1])[::-1]
        again = self.make_embedder().embed_pages(pages())
        for how, others in (("alone", alone), ("turned around", turned), ("from a second embedder", again)):
            for rows, other in zip(batch, others, strict=True):
                np.testing.assert_allclose(other, rows, atol=TOLERANCE, err_msg=how)

    def test_pages_that_differ_have_rows_that_differ(self) -> None:
        """Else nothing could be found."""
        first, second, *_ = self.make_embedder().embed_pages(pages())
        assert first.shape != second.shape or not np.allclose(first, second, atol=TOLERANCE), "two pages look the same"

    def test_no_pages_give_no_tables_and_an_empty_page_no_rows(self) -> None:
        """And its neighbours are left alone."""
        embedder = self.make_embedder()
        assert embedder.embed_pages([]) == []
        page = pages()[0]
        between = embedder.embed_pages([page, PageView(), page])
        check_rows(between[1], embedder.dimensions, least=0)
        assert not len(between[1]), "there is nothing on the page, yet it has rows"
        np.testing.assert_allclose(between[0], between[2], atol=TOLERANCE, err_msg="beside an empty page")

    def test_odd_texts_do_no_harm(self) -> None:
        """On pages as in questions."""
        embedder = self.make_embedder()
        picture = pages()[0].image
        odd = [PageView(picture, text, (text,)) for text in ODD_TEXTS]
        for rows in embedder.embed_pages(odd):
            check_rows(rows, embedder.dimensions, least=0)
        for text in (*ODD_TEXTS, "revenue " * 50_000, "x" * 200_000):
            check_rows(embedder.embed_query(text), embedder.dimensions, least=0)


@lru_cache(maxsize=8)
def _picture(colour: tuple[int, int, int], stripe: int) -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (120, 160), "white")
    ImageDraw.Draw(image).rectangle((10, 10, 10 + stripe, 150), fill=colour)
    kept = io.BytesIO()
    image.save(kept, "PNG")
    return kept.getvalue()
