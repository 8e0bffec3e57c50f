"""S3's layout of pages: each below a line with its number, its file and its page, that no page can forge."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from satchel.models.chunk import Piece

_OPENING: Final = re.compile("[\\[［〔【〖⟦❲⁅]")
_WORD: Final = "document"
_HEADER_CHARS: Final = 60

# Letters of other alphabets that look like those of the word; what else looks alike, NFKD makes the same.
_LOOK_ALIKES: Final = {
    "d": "ԁԀ",
    "o": "оοОΟօ",
    "c": "сϲСϹ",
    "u": "υս",
    "m": "мМ",
    "e": "еєЕΕҽ",
    "n": "пոΝ",
    "t": "тτТΤ",
}
_ALIKE: Final = {ord(alike): letter for letter, all_alike in _LOOK_ALIKES.items() for alike in all_alike}


def page_heading(piece: Piece) -> str:
    """`[Document 1: crisis.pdf, Page 3]`, in one line whatever the file is called."""
    return f"[Document {piece.number}: {_safe_name(piece.lead.name)}, Page {piece.lead.page}]\n"


def guard_page(markdown: str) -> str:
    """The text with everything hidden shown; whatever in it looks like a header of ours no longer does."""
    text = make_visible(markdown).text
    if not _OPENING.search(text):
        return text
    return "\n".join(_guarded(line) if _OPENING.search(line) else line for line in text.split("\n"))


def _guarded(line: str) -> str:
    """A line with a backslash before each bracket after which `Document 2` or something that looks like it stands."""
    made, at = [], 0
    for bracket in _OPENING.finditer(line):
        if _is_header(line[bracket.end() : bracket.end() + _HEADER_CHARS]):
            made.append(line[at : bracket.start()] + "\\")
            at = bracket.start()
    made.append(line[at:])
    return "".join(made)


def _is_header(inside: str) -> bool:
    """Whether what follows a bracket would be read as the beginning of a header: the word and a number."""
    word = ""
    for letter in unicodedata.normalize("NFKD", inside).translate(_ALIKE).lower():
        if letter.isalnum():
            word += letter
        elif word.startswith(_WORD) and word != _WORD:
            break
    return word.startswith(_WORD) and word[len(_WORD) : len(_WORD) + 1].isdigit()


def _safe_name(filename: str) -> str:
    """A file's name in one line, in which nothing closes the header or opens another."""
    name = _guarded(make_visible_line(filename).text)
    return re.sub(r"(,\s*page\s*\d+\s*)\]", r"\1\\]", name, flags=re.IGNORECASE)
