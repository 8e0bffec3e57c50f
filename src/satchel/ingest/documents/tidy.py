"""Text from a stranger's file made fit to keep, and reasons made fit to print."""

from __future__ import annotations

import re
from typing import Final

from satchel.model.document import Unreadable
from satchel.text.visible import make_visible_line

# Fonts without a table of characters, and forgers, give control characters; no page is the poorer without them.
_JUNK: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*\n){2,}")
_LONGEST_LINE: Final = 200

_CAPTION: Final = re.compile(
    r"(?:Figure|Fig\.|Table|Exhibit|Chart|Plate|Scheme|Abbildung|Abb\.|Tabelle)\s{1,3}"
    r"(?:[A-Z]?\d{1,4}(?:[.\-]\d{1,3}){0,3}[a-z]?|[IVXLC]{1,7}|[A-Z])(?:\s?[:.–—|-]\s?|\s+(?=[A-Z“\"(]))\S",
    re.IGNORECASE,
)
_EMPHASIS: Final = "*_#> \t"
_LONGEST_CAPTION: Final = 300
_MOST_CAPTIONS: Final = 200

_PICTURE: Final = re.compile(r"\\?!\[([^\]\n]{0,500})\]\(((?:[^()\n]|\([^()\n]{0,200}\)){0,4000})\)")
_NAMED_BY_A_PROGRAM: Final = re.compile(
    r"(?:(?:picture|image|img|grafik|bild|photo|graphic)[ _-]?\d*"
    r"|[^\s/]+\.(?:png|jpe?g|gif|[ew]mf|svg|bmp|tiff?|webp))?",
    re.IGNORECASE,
)


def tidy(text: str) -> str:
    """The text with one kind of line end, without control characters and heaps of empty lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _BLANK_LINES.sub("\n\n", _JUNK.sub("", text)).strip("\n")


def one_line(text: str, most: int = _LONGEST_LINE) -> str:
    """The text on one line of bounded length, with nothing hidden in it."""
    line = " ".join(make_visible_line(text[: 4 * most]).text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def unreadable(reason: str) -> Unreadable:
    """A reason that can be printed, whatever went into it."""
    return Unreadable(one_line(reason))


def captions_in(text: str) -> tuple[str, ...]:
    """The lines that stand under or over a figure or a table; wide gaps part the columns of a line."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        for part in line.split("   "):
            bare = part.strip().strip(_EMPHASIS)
            if len(bare) <= _LONGEST_CAPTION and _CAPTION.match(bare):
                found[bare] = None
                if len(found) >= _MOST_CAPTIONS:
                    return tuple(found)
    return tuple(found)


def without_pictures(markdown: str) -> tuple[str, int]:
    """The Markdown with what its pictures are said to show in their place, and how many there are."""
    return _PICTURE.subn(lambda mark: "" if _NAMED_BY_A_PROGRAM.fullmatch(mark[1].strip()) else mark[1], markdown)


def picture_places(markdown: str) -> tuple[str, ...]:
    """Where the Markdown says that its pictures are."""
    return tuple(dict.fromkeys(mark[2].strip("<> ") for mark in _PICTURE.finditer(markdown)))
