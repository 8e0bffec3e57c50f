"""Clean untrusted text for storage, and reasons for printing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from satchel.models.document import Unreadable
from satchel.text.decoding import decode_text, has_byte_order_mark
from satchel.text.visible import make_visible_line

# Control characters come from fonts without a character table, or from attackers; no page needs them.
_JUNK: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_CHARSET: Final = re.compile(rb"charset\s*=\s*[\"']?\s*([\w-]{2,40})", re.IGNORECASE)
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*\n){2,}")
_MAX_LINE_CHARS: Final = 200  # names, titles and reasons are printed in a line or two

_CAPTION: Final = re.compile(
    r"(?:Figure|Fig\.|Table|Exhibit|Chart|Plate|Scheme|Abbildung|Abb\.|Tabelle)\s{1,3}"
    r"(?:[A-Z]?\d{1,4}(?:[.\-]\d{1,3}){0,3}[a-z]?|[IVXLC]{1,7}|[A-Z])(?:\s?[:.–—|-]\s?|\s+(?=[A-Z“\"(]))\S",
    re.IGNORECASE,
)
_BETWEEN_COLUMNS: Final = "   "
_MAX_TEXT_LINE_CHARS: Final = 2000  # bounds the work on lines of hostile length
_MAX_MARKDOWN_CHARS: Final = 100_000  # of a page, searched again for every caption: bounds the time
_MAX_CAPTION_LINES: Final = 3  # further lines are more likely text of the page
_ALIGNED_CHARS: Final = 2  # columns laid out as text start with this much rounding
_NEARBY_LINES: Final = 6  # above and below a caption; enough to see the width of the column
_FULL_LINE_SHARE: Final = 0.85  # of the column's width; a shorter line ends its paragraph
_FINAL: Final = (".", "!", "?", ":", ";", "|")
_NEW_BLOCK: Final = re.compile(r"\s*(?:[|#>]|[-*+] |\d{1,3}[.)] |```|!\[)")
_BROKEN_AT_END: Final = re.compile(r"[a-zà-ÿ]-$")
_NO_WORD: Final = re.compile(r"[\W_]+")
_EMPHASIS: Final = "*_#> \t"
_MAX_CAPTION_CHARS: Final = 300  # longer text is a paragraph that begins with "Table 1"
_MAX_CAPTIONS: Final = 200  # of a page; bounds the work on hostile pages

_PICTURE: Final = re.compile(r"\\?!\[([^\]\n]{0,500})\]\(((?:[^()\n]|\([^()\n]{0,200}\)){0,4000})\)")
_NAMED_BY_A_PROGRAM: Final = re.compile(
    r"(?:(?:picture|image|img|grafik|bild|photo|graphic)[ _-]?\d*"
    r"|[^\s/]+\.(?:png|jpe?g|gif|[ew]mf|svg|bmp|tiff?|webp))?",
    re.IGNORECASE,
)


def decoded(data: bytes) -> str:
    """The bytes as text: by the byte order mark, as UTF-8, by the declared charset, or as Windows-1252."""
    if has_byte_order_mark(data):
        return decode_text(data)
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8")
    charset = _CHARSET.search(data[:1024])
    with suppress(LookupError):
        return data.decode(charset[1].decode() if charset else "cp1252", "replace")
    return data.decode("cp1252", "replace")


def tidy(text: str) -> str:
    """The text with `\\n` line ends, without control characters and runs of empty lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _BLANK_LINES.sub("\n\n", _JUNK.sub("", text)).strip("\n")


def one_line(text: str, most: int = _MAX_LINE_CHARS) -> str:
    """The text on a single line of at most `most` characters, with hidden characters made visible."""
    line = " ".join(make_visible_line(text[: 4 * most]).text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def unreadable(reason: str) -> Unreadable:
    """The reason, made safe to print."""
    return Unreadable(one_line(reason))


class CannotRead(Exception):
    """A document cannot be read; the text is the reason for the file's owner."""


class _Part(NamedTuple):
    """The text in a column of a line, and the start position."""

    start: int
    text: str


def captions_in(text: str, markdown: str = "") -> tuple[str, ...]:
    """Captions of figures and tables, with continuation lines.

    Wide gaps separate the columns of a line. The same text as Markdown, if given, shows which lines belong to a table.
    """
    captions: dict[str, None] = {}
    lines = text.splitlines()
    for at, line in enumerate(lines):
        for part in _parts(line):
            if len(part.text) <= _MAX_CAPTION_CHARS and _CAPTION.match(part.text):
                captions[_with_continuation(part, lines, at, markdown)] = None
                if len(captions) >= _MAX_CAPTIONS:
                    return tuple(captions)
    return tuple(captions)


def _parts(line: str) -> Iterator[_Part]:
    """The columns of a line."""
    start = 0
    for part in line.split(_BETWEEN_COLUMNS):
        bare = part.strip().strip(_EMPHASIS)
        if bare:
            yield _Part(start + len(part) - len(part.lstrip()), bare)
        start += len(part) + len(_BETWEEN_COLUMNS)


def _with_continuation(caption: _Part, lines: list[str], at: int, markdown: str) -> str:
    """A caption with the next lines of the column, while clearly part of the caption."""
    whole = last = caption.text
    columns = len(list(_parts(lines[at])))
    nearby = (
        part
        for line in lines[max(0, at - _NEARBY_LINES) : at + _NEARBY_LINES]
        for part in _parts(line[:_MAX_TEXT_LINE_CHARS])
    )
    width = max((len(part.text) for part in nearby if abs(part.start - caption.start) <= _ALIGNED_CHARS), default=0)
    for line in lines[at + 1 : at + _MAX_CAPTION_LINES]:
        parts = list(_parts(line[:_MAX_TEXT_LINE_CHARS]))
        following = [part.text for part in parts if abs(part.start - caption.start) <= _ALIGNED_CHARS]
        if last.endswith(_FINAL) or not following or len(parts) > columns or _NEW_BLOCK.match(line):
            break
        (text, *_) = following
        # After a short line, a line that begins with a capital letter starts a new paragraph.
        goes_on = text[0].islower() or (
            text[0].isalpha() and len(last) + len(text.split()[0]) >= width * _FULL_LINE_SHARE
        )
        if not goes_on or _CAPTION.match(text) or _is_elsewhere(text, last, markdown[:_MAX_MARKDOWN_CHARS]):
            break
        joined = whole[:-1] + text if _BROKEN_AT_END.search(whole) and text[0].islower() else f"{whole} {text}"
        if len(joined) > _MAX_CAPTION_CHARS:
            break
        whole, last = joined, text
    return whole


def _is_elsewhere(text: str, before: str, markdown: str) -> bool:
    """True if a line is in a table, list or heading without the line before."""
    line, both = _NO_WORD.sub("", text), _NO_WORD.sub("", before + text)
    blocks = (_NO_WORD.sub("", block) for block in markdown.splitlines() if _NEW_BLOCK.match(block))
    return any(line in block and both not in block for block in blocks)


def without_pictures(markdown: str) -> tuple[str, int]:
    """The Markdown with alternative texts in place of pictures, and the number of pictures."""
    return _PICTURE.subn(lambda mark: "" if _NAMED_BY_A_PROGRAM.fullmatch(mark[1].strip()) else mark[1], markdown)


def picture_places(markdown: str) -> tuple[str, ...]:
    """Link targets of the pictures in the Markdown."""
    return tuple(dict.fromkeys(mark[2].strip("<> ") for mark in _PICTURE.finditer(markdown)))
