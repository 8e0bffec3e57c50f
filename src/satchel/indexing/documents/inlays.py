"""The pictures inside of office files and e-books: what is written in them goes to the page that shows them."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from satchel.indexing.documents.pictures import frame_at, with_picture
from satchel.indexing.documents.recognition import Recognition
from satchel.indexing.documents.seen import Picture, Seen, is_worth_reading
from satchel.indexing.documents.tidy import picture_places, tidy, without_pictures
from satchel.indexing.documents.zips import part_of
from satchel.models.document import Page, Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_BYTES: Final = 30_000_000
_MOST_ON_PAGE: Final = 50


class Illustrated(NamedTuple):
    """A page, and where in the archive its pictures are."""

    page: Page
    places: tuple[str, ...] = ()


def places_in(markdown: str, folder: str) -> tuple[str, ...]:
    """Where in the archive the pictures of a page are, which lies in a folder of it."""
    return tuple(
        posixpath.normpath(posixpath.join(folder, unquote(place)))
        for place in picture_places(markdown)[:_MOST_ON_PAGE]
        if ":" not in place
    )


def illustrated(page: Page, folder: str) -> Illustrated:
    """The page with what its pictures are said to show in their place; `folder` is where it lies in the archive."""
    markdown, pictures = without_pictures(page.markdown)
    return Illustrated(page._replace(markdown=tidy(markdown), pictures=pictures), places_in(page.markdown, folder))


def read_inlays(pages: Sequence[Illustrated], data: bytes, recognition: Recognition) -> tuple[Page, ...]:
    """The pages with what is written in their pictures."""
    if not recognition.is_wanted or not any(one.places for one in pages):
        return tuple(one.page for one in pages)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        worth = {
            place: Picture(place, partial(_picture, archive, place))
            for one in pages
            for place in one.places
            if _is_worth_reading(archive, place)
        }
        pictures = [(one.page.markdown, [worth[place] for place in one.places if place in worth]) for one in pages]
        seen = Seen(recognition).on_pages(pictures)
        return tuple(one.page._replace(seen=text) for one, text in zip(pages, seen, strict=True))


def _is_worth_reading(archive: zipfile.ZipFile, place: str) -> bool:
    data = part_of(archive, place, _MOST_BYTES)
    answer = with_picture(data, lambda image: is_worth_reading(*image.size)) if data else False
    return answer is True


def _picture(archive: zipfile.ZipFile, place: str) -> Image | None:
    found = with_picture(part_of(archive, place, _MOST_BYTES), lambda image: frame_at(image, 1))
    return None if isinstance(found, Unreadable) else found
