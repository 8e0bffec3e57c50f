"""Text for people: hidden characters made visible, lone surrogates replaced, numbers with nouns."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

PLAIN_NAME: Final = re.compile(r"[\w./#:@+-]{1,200}", re.ASCII)
"""A path or an id that may stand in a line of ours: it cannot be taken for anything else in any format."""


def replace_surrogates(text: str) -> str:
    """The text with `?` for each lone surrogate, because tokenizers, JSON parsers and databases refuse surrogates."""
    return text.encode("utf-8", "replace").decode()


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with a noun: `1 file`, `1,200 files`, `2 entries`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


_ASCII_HARMLESS: Final = bytes(range(0x20, 0x7F)) + b"\t\n"

# Subdivision flags in general use. Any other tag sequence could spell a message after a black flag.
_TAG_FLAGS: Final = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)

# A single character class: the regular expression engine then skips ordinary text at full speed.
_SUSPECT: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)

# Ideographs have few registered variants each; the rest of the 240 selectors could carry a hidden byte apiece.
_LAST_COMMON_SELECTOR: Final = "\U000e011f"
_LETTERS_AND_MARKS: Final = frozenset({"Lo", "Lm", "Mn", "Mc"})

_ALONE: Final = re.compile("[\ud800-\udfff]")
_DELETE_PICTURE: Final = "␡"


class Visible(NamedTuple):
    """Text without hidden characters, and the number of characters made visible."""

    text: str
    changes: int


def show_lone_bytes(text: str) -> Visible:
    """The text with bytes outside UTF-8 made visible and everything else unchanged, fit for JSON."""
    return Visible(text, 0) if text.isascii() else Visible(*_ALONE.subn(lambda lone: make_visible(lone[0]).text, text))


def make_visible(text: str) -> Visible:
    """The text with line ends as `\\n` and every hidden character shown."""
    if text.isascii() and not text.encode("ascii").translate(None, _ASCII_HARMLESS):
        return Visible(text, 0)
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    text = text.removeprefix("\ufeff")
    count = 0

    def pictured(match: re.Match[str]) -> str:
        nonlocal count
        if _belongs(match.string, match.start()):
            return match[0]
        count += 1
        return _picture(match[0])

    return Visible(_SUSPECT.sub(pictured, text), count)


def make_visible_lines(text: str) -> Visible:
    """`make_visible` for lines cut from a file: a trailing `\\r`, separated from `\\n` by the cut, is dropped."""
    return make_visible(text.removesuffix("\r"))


@lru_cache(maxsize=4096)
def make_visible_line(text: str) -> Visible:
    """`make_visible` for text on a single line: a path, a name, a type."""
    visible, count = make_visible(text)
    line = visible.replace("\n", "␊").replace("\t", "␉")
    return Visible(line, count + visible.count("\n") + visible.count("\t"))


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return _DELETE_PICTURE
    if 0xDC80 <= code <= 0xDCFF:
        return f"⟦0x{code - 0xDC00:02X}⟧"
    return f"⟦U+{code:04X}⟧"


def _belongs(text: str, at: int) -> bool:
    """True if the joiner, variation selector or tag at `at` has an ordinary function there."""
    mark = text[at]
    before = text[at - 1] if at else ""
    if not before:
        return False
    if mark in "\u200c\u200d":
        if not _joins(before):
            return False
        # Between emoji a joiner needs a character on both sides; some scripts also end a word with a joiner.
        after = text[at + 1 : at + 2]
        return unicodedata.category(before) in _LETTERS_AND_MARKS or (bool(after) and _joins(after))
    if "\u180b" <= mark <= "\u180d":
        return "\u1820" <= before <= "\u18aa"
    if "\ufe00" <= mark <= "\ufe0f":
        return not _is_selector(before) and (ord(before) > 0x2000 or before in "0123456789#*©®")
    if "\U000e0100" <= mark <= _LAST_COMMON_SELECTOR:
        return unicodedata.category(before) == "Lo"
    if "\U000e0020" <= mark <= "\U000e007f":
        flag = text.rfind("\U0001f3f4", max(0, at - 6), at)
        return flag >= 0 and text.startswith(_TAG_FLAGS, flag)
    return False


def _joins(char: str) -> bool:
    """True if joiners have a meaning beside this character: emoji, and scripts with joined letters."""
    if ord(char) < 0x0600:
        return False
    return unicodedata.category(char) in ("Lo", "Lm", "Mn", "Mc", "So", "Sk", "Sm")


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
