"""The letters of a PDF page with their places, by PDFium, and the parts of lines that they form.

A segment is a run of words without a wide gap: a line of a column, or the cell of a table's row.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Final, NamedTuple

# Letters of scripts from right to left, without their digits, which run from left to right.
RIGHT_TO_LEFT: Final = re.compile(r"[\u0590-\u065f\u066a-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_WORD: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\d+(?:[.,:]\d+)*(?![^\W\d_])"
    r"|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_LAM: Final = "\u0644"
_INSIDE_NUMBERS: Final = frozenset(".,:/-%@_+")

MAX_LETTERS: Final = 30_000  # bounds the time for a hostile page
_OPEN_LINES: Final = 12  # a letter belongs to one of the last lines that were begun
_MIDDLE_SHARE: Final = 0.4  # of the letters' height: farther apart, two letters stand in different lines
_SIMILAR_HEIGHT: Final = 2.2  # a larger letter counts as so many times the smaller one, no more
_COLUMN_GAP: Final = 0.8  # of the letters' height: a wider gap ends a segment
_WORD_GAP: Final = 0.144  # of the letters' height: between letters that do not follow each other in the file
_LOOSE_WORD_GAP: Final = 0.6  # between letters that do, where PDFium sees no space
_FOLLOWING: Final = 3  # letters at so many places from each other follow each other in the file
_SAME_PLACE: Final = 0.05  # points: the letters of a ligature share a place
_OUTSIDE: Final = 2.0  # points beyond the page's border: such a letter is not printed

# Codes that PDFium gives for a hyphen at the end of a line.
_HYPHENS: Final = frozenset((0x02, 0xFFFE))
_SPACES: Final = frozenset((10, 13, 32, 160))
_LOW_SURROGATES: Final = range(0xDC00, 0xE000)
_MAX_CODE: Final = 0x10FFFF  # the last letter of Unicode


class Letter(NamedTuple):
    """A letter, as the page is shown: its box in points, and the quarter turns that it leans to the left."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    turn: int
    at: int
    """The place in the file's own order."""
    after_space: bool

    @property
    def height(self) -> float:
        """The height of the box, never 0."""
        return max(self.y1 - self.y0, 0.1)

    @property
    def middle(self) -> float:
        """The height of the middle of the box."""
        return (self.y0 + self.y1) / 2


@dataclass(frozen=True)
class LineSegment:
    """Words of a line without a wide gap between them."""

    text: str
    x0: float
    x1: float
    y0: float
    y1: float
    row: int
    """The line on the page, counted from the top."""

    @cached_property
    def words(self) -> list[str]:
        """The words, as they are compared."""
        return words_of(self.text)


def words_of(text: str) -> list[str]:
    """The words of a text without case and ligatures; numbers are words, and so is every Chinese letter."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def letters_on(page: Any, text_page: Any) -> list[Letter]:
    """The printed letters of a page in the file's order."""
    import ctypes

    from pypdfium2 import raw

    box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    left, bottom, right, top = page.get_cropbox()
    letters: list[Letter] = []
    after_space = False
    for at in range(min(text_page.count_chars(), MAX_LETTERS)):
        code = raw.FPDFText_GetUnicode(text_page, at)
        if code in _SPACES or raw.FPDFText_IsGenerated(text_page, at) == 1:
            after_space = True
            continue
        text = "-" if code in _HYPHENS else chr(code) if code <= _MAX_CODE else "\ufffd"
        if code in _LOW_SURROGATES:
            if letters and "\ud800" <= letters[-1].text < "\udc00":
                whole = (letters[-1].text + text).encode("utf-16", "surrogatepass").decode("utf-16")
                letters[-1] = letters[-1]._replace(text=whole)
            continue
        raw.FPDFText_GetLooseCharBox(text_page, at, box)
        raw.FPDFText_GetCharOrigin(text_page, at, x, y)
        if not (left - _OUTSIDE <= x.value <= right + _OUTSIDE and bottom - _OUTSIDE <= y.value <= top + _OUTSIDE):
            continue
        turn = round(raw.FPDFText_GetCharAngle(text_page, at) / (math.pi / 2)) % 4
        place = (box.left, box.right, box.bottom, box.top)
        if not all(map(math.isfinite, place)):
            continue
        letters.append(Letter(text, *place, turn=turn, at=at, after_space=after_space))
        after_space = False
    letters = [letter for letter in letters if not "\ud800" <= letter.text <= "\udfff"]
    # Places and angles are those before the page is turned for reading.
    quarters = page.get_rotation() // 90 % 4
    if not quarters:
        return letters
    return [turned(letter, -quarters % 4)._replace(turn=(letter.turn + quarters) % 4) for letter in letters]


def turned(letter: Letter, quarters: int) -> Letter:
    """The letter on the page turned by so many quarters; upright if it was turned as often."""
    x0, x1, y0, y1 = letter.x0, letter.x1, letter.y0, letter.y1
    for _ in range(quarters):
        x0, x1, y0, y1 = -y1, -y0, x0, x1
    return letter._replace(x0=x0, x1=x1, y0=y0, y1=y1, turn=0)


def upright(letters: Sequence[Letter]) -> list[list[Letter]]:
    """The letters by the direction in which they lean, each group as if the page were turned to read it."""
    groups = ([turned(letter, turn) for letter in letters if letter.turn == turn] for turn in range(4))
    return [group for group in groups if group]


def segments_of(letters: Iterable[Letter]) -> list[LineSegment]:
    """The segments of upright letters, line by line from the top, each line from left to right."""
    return [
        LineSegment(
            text,
            min(letter.x0 for letter in part),
            max(letter.x1 for letter in part),
            min(letter.y0 for letter in part),
            max(letter.y1 for letter in part),
            row,
        )
        for row, line in enumerate(_lines(letters))
        for part in _parts(line)
        if (text := _joined(part))
    ]


def _lines(letters: Iterable[Letter]) -> list[list[Letter]]:
    """The letters by line; a letter printed twice, to look bold, counts once."""
    lines: list[list[Letter]] = []
    seen: set[tuple[str, int, int]] = set()
    for letter in sorted(letters, key=lambda letter: -letter.middle):
        printed = letter.text, round(letter.x0), round(letter.y0)
        if letter.text.isspace() or printed in seen:
            continue
        seen.add(printed)
        for line in reversed(lines[-_OPEN_LINES:]):
            small, large = sorted((line[0].height, letter.height))
            if abs(line[0].middle - letter.middle) < _MIDDLE_SHARE * min(large, _SIMILAR_HEIGHT * small):
                line.append(letter)
                break
        else:
            lines.append([letter])
    return lines


def _parts(line: list[Letter]) -> list[list[Letter]]:
    """The letters of a line from left to right, parted at wide gaps."""
    gap = _COLUMN_GAP * line[0].height
    parts: list[list[Letter]] = []
    for letter in sorted(line, key=lambda letter: (round(letter.x0, 1), letter.at)):
        if parts and letter.x0 - max(before.x1 for before in parts[-1][-3:]) <= gap:
            parts[-1].append(letter)
        else:
            parts.append([letter])
    return parts


def _joined(part: Sequence[Letter]) -> str:
    """The text of letters in reading order, with the spaces between words."""
    text = ""
    before = None
    height = part[0].height
    for letter in _in_reading_order(part):
        text += f" {letter.text}" if before and _is_gap(before, letter, height) else letter.text
        before = letter
    return text


def _is_gap(one: Letter, other: Letter, height: float) -> bool:
    """True if a space stands between two letters: by the file where they follow each other in it, or by distance."""
    distance = max(other.x0 - one.x1, one.x0 - other.x1)
    first, second = sorted((one, other), key=lambda letter: letter.at)
    if second.at - first.at <= _FOLLOWING:
        return second.after_space or distance > _LOOSE_WORD_GAP * height
    return distance > _WORD_GAP * height


def _in_reading_order(part: Sequence[Letter]) -> Sequence[Letter]:
    """Letters from left to right in the order of reading: a plain form of the bidirectional algorithm."""
    leftward = sum(_is_leftward(letter) for letter in part)
    if not leftward:
        return part
    if leftward * 2 < sum(letter.text.isalpha() for letter in part):  # a few such words in a line from left to right
        runs = [(is_leftward, list(run)) for is_leftward, run in groupby(part, key=_is_leftward)]
        return [letter for is_leftward, run in runs for letter in (_leftward(run) if is_leftward else run)]
    return _leftward(part)


def _is_leftward(letter: Letter) -> bool:
    return bool(RIGHT_TO_LEFT.match(letter.text))


def _leftward(part: Sequence[Letter]) -> list[Letter]:
    """The letters from right to left, but numbers and words of other scripts from left to right."""
    ordered: list[list[Letter]] = []
    rightward: list[list[Letter]] = []
    for glyph in reversed(_glyphs(part)):
        first = glyph[0].text
        if not _is_leftward(glyph[0]) and (first.isalnum() or (rightward and first in _INSIDE_NUMBERS)):
            rightward.insert(0, glyph)
            continue
        while rightward and not rightward[-1][0].text.isalnum():
            ordered.append(rightward.pop())
        ordered += rightward
        rightward = []
        # PDFium has the letters of the ligature lam-alef backwards.
        ordered.append(glyph[::-1] if _is_leftward(glyph[0]) and glyph[-1].text == _LAM else glyph)
    return [letter for glyph in [*ordered, *rightward] for letter in glyph]


def _glyphs(part: Sequence[Letter]) -> list[list[Letter]]:
    """The letters, those of a ligature together: they share a place."""
    glyphs: list[list[Letter]] = []
    for letter in part:
        first = glyphs[-1][0] if glyphs else None
        if first and abs(first.x0 - letter.x0) < _SAME_PLACE and abs(first.x1 - letter.x1) < _SAME_PLACE:
            glyphs[-1].append(letter)
        else:
            glyphs.append([letter])
    return glyphs
