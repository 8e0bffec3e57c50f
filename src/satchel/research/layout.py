"""How pages are written: each below a line with its number, its file and its page, that no page can counterfeit."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.research.context import SourceDocument

BETWEEN_SOURCES: Final = "\n\n"

_OPENING: Final = re.compile("[\\[［〔【〖⟦❲⁅]")
_WORD: Final = "document"
_LOOKED_AT: Final = 60

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


def header(source: SourceDocument, number: int) -> str:
    """`[Document 1: crisis.pdf, Page 3]`, in one line whatever the file is called."""
    return f"[Document {number}: {_safe_name(source.filename)}, Page {source.page}]"


def citation(source: SourceDocument, number: int) -> str:
    """A page as it is written: its header, then what it says."""
    return f"{header(source, number)}\n{safe_text(source.markdown_content)}"


def safe_text(markdown: str) -> str:
    """The text with everything hidden shown; whatever in it looks like a header of ours no longer does."""
    text = make_visible(markdown).text
    if not _OPENING.search(text):
        return text
    return "\n".join(_guarded(line) if _OPENING.search(line) else line for line in text.split("\n"))


def _guarded(line: str) -> str:
    """A line with a backslash before each bracket after which `Document 2` or something that looks like it stands."""
    made, at = [], 0
    for bracket in _OPENING.finditer(line):
        if _is_header(line[bracket.end() : bracket.end() + _LOOKED_AT]):
            made.append(line[at : bracket.start()] + "\\")
            at = bracket.start()
    made.append(line[at:])
    return "".join(made)


def _is_header(inside: str) -> bool:
    """Whether what follows a bracket would be read as the beginning of a header: the word and a number."""
    said = ""
    for letter in unicodedata.normalize("NFKD", inside).translate(_ALIKE).lower():
        if letter.isalnum():
            said += letter
        elif said.startswith(_WORD) and said != _WORD:
            break
    return said.startswith(_WORD) and said[len(_WORD) : len(_WORD) + 1].isdigit()


def _safe_name(filename: str) -> str:
    """A file's name in one line, in which nothing closes the header or opens another."""
    name = _guarded(make_visible_line(filename).text)
    return re.sub(r"(,\s*page\s*\d+\s*)\]", r"\1\\]", name, flags=re.IGNORECASE)


def joined(sources: Sequence[SourceDocument]) -> str:
    """All pages as one text."""
    return BETWEEN_SOURCES.join(citation(source, number) for number, source in enumerate(sources, start=1))
