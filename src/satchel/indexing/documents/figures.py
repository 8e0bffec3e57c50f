"""Pictures on pages with text: selection, cropping, and text recognized in pictures."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.indexing.documents.recognition import Line, Recognition, in_rows

if TYPE_CHECKING:
    from PIL.Image import Image


LONG_SIDE: Final = 200  # in pixels; smaller pictures are ornaments
SHORT_SIDE: Final = 100
"""In pixels; smaller pictures are ornaments."""

MOST_PAGES: Final = 3
"""A picture on more pages is a logo or a background; its text is given on the first page only."""

_MIN_LINE_CHARS: Final = 2  # letters and digits: a single character is mostly a dot or stroke taken for a letter

# Shorter lines are labels, even if the page's text names the same year or town.
_MIN_REPEATED_WORDS: Final = 4
_MIN_SCATTERED_WORDS: Final = 6  # all on the page, in any order: fewer words would match by chance
_MIN_WORD_LETTERS: Final = 3  # shorter words and numbers are on most pages and prove no repetition
_MAX_PICTURE_CHARS: Final = 20_000  # bounds the text of a picture with texture taken for letters
_WORD: Final = re.compile(r"\w+")


class Picture(NamedTuple):
    """A picture on a page: a key for identity, a function to make the image, and the page's text over the picture."""

    key: Hashable
    make: Callable[[], Image | None]
    over: Callable[[], str] = str


def text_in_pictures(pages: Sequence[tuple[str, Sequence[Picture]]], recognition: Recognition) -> Iterator[str]:
    """Text in the pictures of each page (given as text and pictures), without lines that repeat the page's text."""
    on_pages = Counter(key for _, pictures in pages for key in {picture.key for picture in pictures})
    lines: dict[Hashable, list[Line]] = {}
    for text, pictures in pages:
        new = [picture for picture in pictures if picture.key not in lines or on_pages[picture.key] <= MOST_PAGES]
        rows: dict[str, None] = {}
        for picture in new:
            if picture.key not in lines:
                labels = recognition.labels_in(picture.make)
                lines[picture.key] = [line for line in labels if sum(map(str.isalnum, line.text)) >= _MIN_LINE_CHARS]
            # Lines also in the page's text may be written over the picture, and are dropped for later pages, too.
            lines[picture.key] = _own_lines(lines[picture.key], text, picture.over())
            part = "\n".join(in_rows(lines[picture.key]))[:_MAX_PICTURE_CHARS]
            rows |= dict.fromkeys(filter(None, part.split("\n")))
        yield "\n".join(rows)


def is_worth_reading(width: int, height: int) -> bool:
    """True if a picture of this size in pixels can be a chart."""
    return max(width, height) >= LONG_SIDE and min(width, height) >= SHORT_SIDE


def _own_lines(lines: list[Line], text: str, over: str) -> list[Line]:
    """The lines found neither in the page's text nor in the text written `over` the picture."""
    known_words = set(_WORD.findall(text.casefold()))
    text, over = _spaced(text), _spaced(over)

    def is_known(line: Line) -> bool:
        words = _WORD.findall(line.text.casefold())
        if _spaced(line.text) in over:
            return True
        long = sum(1 for word in words if sum(map(str.isalpha, word)) >= _MIN_WORD_LETTERS)
        if long < min(_MIN_REPEATED_WORDS, len(words)) or len(words) < _MIN_REPEATED_WORDS:
            return False
        return _spaced(line.text) in text or (long >= _MIN_SCATTERED_WORDS and known_words.issuperset(words))

    return [line for line in lines if not is_known(line)]


def _spaced(text: str) -> str:
    """The words of a text, each between spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


_MIN_PAGE_SHARE: Final = 0.05  # of the page's area; smaller pictures are logos and icons
_WHOLE_PAGE_SHARE: Final = 0.8  # of the page's area; larger pictures are scans or backgrounds

# A picture of the whole page under more text is a scan with a text layer, or a background.
_FULL_PAGE_CHARS: Final = 400
_MAX_PICTURES_ON_PAGE: Final = 200  # bounds the time for a page made of thousands of fragments
_MAX_SOURCE_PIXELS: Final = 60_000_000  # bounds memory: PDFium unpacks a picture to render anything beside it
_MAX_CROP_PIXELS: Final = 6_000_000  # bounds the time for OCR; larger crops are scaled down
_MIN_PIXELS_PER_POINT: Final = 150 / 72  # 150 dpi; at less, small letters have too few pixels for OCR
_MAX_PIXELS_PER_POINT: Final = 300 / 72  # 300 dpi, the usual resolution for OCR; more costs time and memory

# Programs cut pictures into strips; strips this close to each other are merged.
_TOUCHING_POINTS: Final = 2.0


class Figure(NamedTuple):
    """Position of a picture on the displayed page, in points from the upper left, and the pixel size in the file."""

    left: float
    top: float
    right: float
    bottom: float
    wide: int
    high: int
    key: Hashable = None

    @property
    def area(self) -> float:
        """Area in square points."""
        return (self.right - self.left) * (self.bottom - self.top)

    def cut_out(self, file: Any, number: int) -> Image | None:
        """The picture as displayed on the page, at about the resolution in the file."""
        with closing(file[number - 1]) as page:
            width, height = page.get_size()
            fine = max(self.wide / (self.right - self.left), self.high / (self.bottom - self.top))
            scale = min(max(fine, _MIN_PIXELS_PER_POINT), _MAX_PIXELS_PER_POINT, (_MAX_CROP_PIXELS / self.area) ** 0.5)
            crop = (self.left, height - self.bottom, width - self.right, self.top)
            return rendered(page, scale=scale, crop=crop, grayscale=True, draw_annots=False)

    def text_over(self, file: Any, number: int) -> str:
        """The page's own text over the picture; empty on rotated pages."""
        import pypdfium2

        with closing(file[number - 1]) as page, suppress(pypdfium2.PdfiumError, ValueError):
            if page.get_rotation() % 360:
                return ""
            left, bottom, right, top = page.get_bbox()
            width, height = page.get_size()
            wide, high = (right - left) / max(width, 1e-6), (top - bottom) / max(height, 1e-6)
            text: str = page.get_textpage().get_text_bounded(
                left=left + self.left * wide,
                right=left + self.right * wide,
                top=top - self.top * high,
                bottom=top - self.bottom * high,
            )
            return text
        return ""


def figures_on(page: Any, things: Sequence[Any], chars: int) -> Iterator[Figure]:
    """Pictures of sufficient size among the objects on a page; `chars` is the length of the page's text."""
    import pypdfium2

    width, height = page.get_size()
    pieces: list[tuple[Figure, list[Any]]] = []
    for thing in things[:_MAX_PICTURES_ON_PAGE]:
        try:
            wide, high = thing.get_px_size()
            place = _place(page, thing, width, height)
        except (pypdfium2.PdfiumError, ValueError, OverflowError):
            continue
        if wide * high > _MAX_SOURCE_PIXELS:
            return  # it would have to be unpacked to show what lies beside it
        if place is not None:
            pieces.append((Figure(*place, wide, high), [thing]))
    for figure, parts in _joined(pieces):
        share = figure.area / max(width * height, 1.0)
        may_be_text = _MIN_PAGE_SHARE <= share < _WHOLE_PAGE_SHARE or (
            share >= _WHOLE_PAGE_SHARE and chars < _FULL_PAGE_CHARS
        )
        if may_be_text and is_worth_reading(figure.wide, figure.high):
            yield figure._replace(key=tuple(_fingerprint(part) for part in parts))


def rendered(page: Any, **how: Any) -> Image:
    """A page of PDFium, or the crop given by the options, as an image."""
    with closing(page.render(**how)) as bitmap:
        image: Image = bitmap.to_pil().copy()
        return image


def _place(page: Any, thing: Any, width: float, height: float) -> tuple[float, float, float, float] | None:
    """Bounding box of an object on the displayed page: rotated, and clipped at the page edges."""
    left, bottom, right, top = thing.get_bounds()
    corners = [(left, bottom), (left, top), (right, bottom), (right, top)]
    holder = thing.container
    while holder is not None:
        matrix = holder.get_matrix()
        corners = [matrix.on_point(x, y) for x, y in corners]
        holder = holder.container
    points = [_on_shown_page(page, x, y, width, height) for x, y in corners]
    xs = [min(max(x, 0.0), width) for x, _ in points]
    ys = [min(max(y, 0.0), height) for _, y in points]
    box = (min(xs), min(ys), max(xs), max(ys))
    return box if box[2] - box[0] >= 1 and box[3] - box[1] >= 1 else None


def _on_shown_page(page: Any, x: float, y: float, width: float, height: float) -> tuple[float, float]:
    """Convert a point of the page's own coordinates to coordinates on the displayed page."""
    left, bottom, right, top = page.get_bbox()
    x, y = x - left, y - bottom
    wide, high = right - left, top - bottom
    turned = {0: (x, high - y), 90: (y, x), 180: (wide - x, y), 270: (high - y, wide - x)}[page.get_rotation() % 360]
    # A page may be measured in other units than points.
    shown_wide, shown_high = (wide, high) if page.get_rotation() % 180 == 0 else (high, wide)
    return turned[0] * width / max(shown_wide, 1e-6), turned[1] * height / max(shown_high, 1e-6)


_Piece = tuple[Figure, list[Any]]


def _joined(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Merge pictures that touch along a whole side: first vertically, then horizontally."""
    beside = _stacked((_transposed(figure), parts) for figure, parts in _stacked(pieces))
    return [(_transposed(figure), parts) for figure, parts in beside]


def _stacked(pieces: Iterable[_Piece]) -> list[_Piece]:
    stacked: list[_Piece] = []
    for figure, parts in sorted(pieces, key=lambda piece: (round(piece[0].left), piece[0].top)):
        last = stacked[-1][0] if stacked else None
        if last and _touches((last.left, last.right, last.bottom), (figure.left, figure.right, figure.top)):
            whole = last._replace(bottom=figure.bottom, wide=max(last.wide, figure.wide), high=last.high + figure.high)
            stacked[-1] = (whole, stacked[-1][1] + parts)
        else:
            stacked.append((figure, parts))
    return stacked


def _transposed(figure: Figure) -> Figure:
    """The figure with x and y axes exchanged."""
    left, top, right, bottom, wide, high, key = figure
    return Figure(left=top, top=left, right=bottom, bottom=right, wide=high, high=wide, key=key)


def _touches(edges: tuple[float, ...], other_edges: tuple[float, ...]) -> bool:
    return all(abs(edge - other) <= _TOUCHING_POINTS for edge, other in zip(edges, other_edges, strict=True))


def _fingerprint(thing: Any) -> bytes:
    """Hash of a picture's data and size, independent of position."""
    data = hashlib.blake2b(thing.get_data(), digest_size=16)
    data.update(repr(thing.get_px_size()).encode())
    return data.digest()
