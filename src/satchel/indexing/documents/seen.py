"""What is written in the pictures on pages that have text besides: every picture is looked at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.documents.ocr import Line, in_rows
from satchel.indexing.documents.recognition import Recognition

if TYPE_CHECKING:
    from PIL.Image import Image

LONG_SIDE: Final = 200
SHORT_SIDE: Final = 100
"""In pixels: pictures that are smaller are ornaments."""

MOST_PAGES: Final = 3
"""A picture on more pages is a logo or a background, and is told of where it stands first."""

_FEWEST_CHARS: Final = 2

# What is as short as a label is a label, though the page's text may name the same year or town.
_FEWEST_WORDS: Final = 4
_FEWEST_LOOSE_WORDS: Final = 6
_FEWEST_LETTERS: Final = 3
_MOST_CHARS: Final = 20_000
_WORD: Final = re.compile(r"\w+")


class Picture(NamedTuple):
    """A picture on a page: what tells it from others, how it is made, and what of the page is written over it."""

    key: Hashable
    make: Callable[[], Image | None]
    over: Callable[[], str] = str


class Seen:
    """The lines in a document's pictures, as they are found page after page."""

    def __init__(self, recognition: Recognition) -> None:
        self._recognition = recognition
        self._known: dict[Hashable, list[Line]] = {}

    def on_pages(self, pages: Sequence[tuple[str, Sequence[Picture]]]) -> Iterator[str]:
        """What is written in the pictures of each page (its text and its pictures), without repeating it."""
        on_pages = Counter(key for _, pictures in pages for key in {picture.key for picture in pictures})
        met: set[Hashable] = set()
        for text, pictures in pages:
            shown = [one for one in pictures if one.key not in met or on_pages[one.key] <= MOST_PAGES]
            met.update(picture.key for picture in shown)
            parts = [self.in_picture(one.key, one.make, text, one.over()) for one in shown]
            yield "\n".join(dict.fromkeys(line for part in parts for line in part.split("\n") if line))

    def in_picture(self, key: Hashable, picture: Callable[[], Image | None], page_text: str, over: str = "") -> str:
        """What the picture says, without the lines of the page's text and whatever of it is written `over` it."""
        lines = self._known.get(key)
        if lines is None:
            found = self._recognition.labels_in(picture)
            lines = self._known[key] = [line for line in found if _says_something(line.text)]
        known = _Known(page_text, over)
        # What the page's text says too may have been written over the picture: it is not the picture's on another page.
        self._known[key] = lines = [line for line in lines if line.text not in known]
        return "\n".join(in_rows(lines))[:_MOST_CHARS]


def is_worth_reading(width: int, height: int) -> bool:
    """Whether a picture of so many pixels can be a chart."""
    return max(width, height) >= LONG_SIDE and min(width, height) >= SHORT_SIDE


class _Known:
    """What a page says anyhow, whatever stands between its words."""

    def __init__(self, text: str, over: str) -> None:
        words = _WORD.findall(text.casefold())
        self._words = set(words)
        self._text = f" {' '.join(words)} "
        self._over = f" {' '.join(_WORD.findall(over.casefold()))} "

    def __contains__(self, line: object) -> bool:
        words = _WORD.findall(str(line).casefold())
        told = f" {' '.join(words)} "
        if told in self._over:
            return True
        long = sum(1 for word in words if sum(map(str.isalpha, word)) >= _FEWEST_LETTERS)
        if long < min(_FEWEST_WORDS, len(words)) or len(words) < _FEWEST_WORDS:
            return False
        return told in self._text or (long >= _FEWEST_LOOSE_WORDS and self._words.issuperset(words))


def _says_something(text: str) -> bool:
    return sum(map(str.isalnum, text)) >= _FEWEST_CHARS
