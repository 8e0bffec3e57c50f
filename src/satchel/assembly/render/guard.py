"""Keeps untrusted text from being read as structure: as a heading, a number, a link, or the end of what surrounds it.

In Markdown untrusted text stands in four places only: inside a fence longer than any run of fence characters in it; on
the single line of a heading (`heading_text`, `bracketed`); in a paragraph whose block markers are escaped
(`paragraph`); or as the page of a document (`guard_page`). None of them can define the target of a link, so that our
numbers are never links: a definition needs a line that begins with a bracket, and there is none outside of fences.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

from satchel.text.visible import make_visible, make_visible_line

# The start of a tag, code span or image and the middle of a link, with the backslashes before, which would neutralize
# an added backslash.
_MEANINGFUL: Final = re.compile(r"(?<!\\)(\\*)([<`]|!(?=\[)|\](?=\())")
_BRACKET_OR_END: Final = re.compile(r"(?<!\\)(\\*)([\[\]<`]|$)")
_MEANINGFUL_IN_TEXT: Final = re.compile(r"(?<!\\)(\\*)(<|!(?=\[)|\](?=\()|\[(?=\s*\d+\s*\]))")
_BLOCK_START: Final = re.compile(r"^[ \t]*(?:([-+*#>=~`<|:\[_])|(\d{1,9})([.)]))", re.MULTILINE)
_INDENT: Final = re.compile(r"^[ \t]+", re.MULTILINE)

_BACKTICKS: Final = re.compile("`{3,}")
_TILDES: Final = re.compile("~{3,}")
_FENCE_LINE: Final = re.compile(r"(`{3,}|~{3,})(.*)")
_ANY_FENCE: Final = re.compile(r"`{3,}|~{3,}")
# Raw HTML blocks that do not end at a blank line, also inside lists and quotes.
_ENDLESS_HTML: Final = re.compile(
    r"^((?:[^\S\n]|[>*+\-\d.)])*)<(?=!|\?|(?:pre|script|style|textarea)\b)", re.IGNORECASE | re.MULTILINE
)
# A bracket that begins a line, also inside lists and quotes: a link definition may begin there.
_LINE_BRACKET: Final = re.compile(r"^((?:[^\S\n]|[>*+\-\d.)])*)(?=\[)", re.MULTILINE)

# A line that Markdown reads as more than text, or that looks like a rendered line: a heading, a rule, a setext
# underline, a fence, a tag, a bracket that may begin a definition, the head of an item, a receipt, the question; and
# one of our numbers anywhere.
_MORE_THAN_TEXT: Final = re.compile(
    r"^[^\S\n]*(?:>[^\S\n]*){0,8}(?:(?:[-+*]|\d{1,9}[.)])[^\S\n]+(?:\[[ x]\][^\S\n]+)?+){0,8}"
    r"(?:#{1,6}(?:[ \t]|$)|`{3}|~{3}|<|\[(?!\[)|User Query:|_No relevant"
    r"|(?:=+|-+)[ \t]*$|(?:[*_-][ \t]*){3,}$)|\[\s*\d+\s*\]",
    re.MULTILINE | re.IGNORECASE,
)

_OPENING: Final = "[［〔【〖⟦❲⁅"
# Letters of other alphabets that look like the letters of `document` (homoglyphs); NFKD unifies the rest.
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
_PAGE_END: Final = re.compile(r",\s*page\s*\d+\s*\]", re.IGNORECASE)
# `document` and a number, with any signs between the letters.
_DOCUMENT: Final = re.compile(r"(?:[^\w]|_)*+".join([*"document", r"\d"]))


def heading_text(text: str) -> str:
    """Text escaped for a single-line heading: no tags, no code span, no link, no closing sequence, no lost space."""
    if "<" in text or "`" in text or "![" in text or "](" in text:
        text = _MEANINGFUL.sub(r"\1\1\\\2", text)
    return _with_ends(text)


def bracketed(text: str) -> str:
    """Text escaped for use between brackets on a single line."""
    text = make_visible_line(text).text
    return _with_ends(_BRACKET_OR_END.sub(lambda found: found[1] * 2 + (found[2] and f"\\{found[2]}"), text))


def _with_ends(text: str) -> str:
    """A line whose spaces at the ends are visible, and whose last sign does not close a heading."""
    if text.endswith("#"):
        text = f"{text[:-1]}\\#"
    if text != text.strip():
        body = text.strip()
        before, after = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
        text = "␠" * before + body + "␠" * after if body else "␠" * len(text)
    return text


def paragraph(text: str) -> str:
    """The text with escaped block markers: no heading, list, quote, fence, table, tag or link can open."""
    text = _INDENT.sub("", _MEANINGFUL_IN_TEXT.sub(r"\1\1\\\2", text))
    text = _BLOCK_START.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", text)
    return text.strip()


def is_plain(text: str) -> bool:
    """True if Markdown reads nothing but text, lists and tables in the text, and none of our lines or numbers."""
    return "]:" not in text and not text.startswith((" ", "\t")) and not _MORE_THAN_TEXT.search(text)


def fence_for(text: str) -> str:
    """A fence longer than any run of fence characters in the text."""
    # Looking for one character is many times faster than looking for three.
    if "`" not in text or "```" not in text:
        return "```"
    backticks = max(map(len, _BACKTICKS.findall(text)))
    tildes = max(map(len, _TILDES.findall(text)), default=2)
    return "`" * (backticks + 1) if backticks <= tildes + 3 else "~" * (tildes + 1)


def closed(text: str) -> str:
    """Markdown, escaped where an open fence or tag could swallow the text behind.

    Fences at the start of a line that are plainly opened and closed stay. Otherwise (a fence in a list or a quote, an
    open fence) every fence is escaped. Every tag that opens a block without an end is escaped too.
    """
    if ("```" in text or "~~~" in text) and not _plainly_balanced(text):
        text = _ANY_FENCE.sub(lambda fence: "".join(f"\\{char}" for char in fence[0]), text)
    return _ENDLESS_HTML.sub(r"\1\\<", text) if "<" in text else text


def undefined(text: str) -> str:
    """Markdown in which no line defines the target of links."""
    return _LINE_BRACKET.sub(r"\1\\", text) if "]:" in text else text


def _plainly_balanced(text: str) -> bool:
    """True if every fence starts its line and is closed, and no HTML tag could hide a fence."""
    fence = ""
    for line in text.split("\n"):
        line_fence = _FENCE_LINE.match(line)
        if fence:
            if (
                line_fence
                and line_fence[1][0] == fence[0]
                and len(line_fence[1]) >= len(fence)
                and not line_fence[2].strip()
            ):
                fence = ""
        elif line_fence and not (line_fence[1][0] == "`" and "`" in line_fence[2]):
            fence = line_fence[1]
        elif "```" in line or "~~~" in line or _ENDLESS_HTML.match(line):
            return False
    return not fence


def guard_page(markdown: str) -> str:
    """The page of a document: hidden characters are visible, and nothing in it poses as a header or outlasts it."""
    return _without_headers(undefined(closed(make_visible(markdown).text)))


def file_name(name: str) -> str:
    """A file name for the header of a page: on one line, neither closing the header nor making a link of it."""
    name = make_visible_line(name).text
    is_ordinary = "](" not in name and not _PAGE_END.search(name) and _without_headers(name) == name
    if not is_ordinary or not _is_balanced(name):
        return bracketed(name)
    return _MEANINGFUL.sub(r"\1\1\\\2", name)


def _is_balanced(text: str) -> bool:
    """True if every bracket has its other one, so that none of them pairs with a bracket around the text."""
    depth = 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if depth < 0 or sign == "\\":
            return False
    return depth == 0


def _without_headers(text: str) -> str:
    """The text with a backslash before each bracket that is followed by `Document 2` or a look-alike."""
    if text.isascii() and "[" not in text:
        return text
    letters, places = _letters(text)
    headers = _DOCUMENT.finditer(letters)
    brackets = (place for header in headers for place in _brackets_before(letters, places, header.start()))
    cuts = [place for place in brackets if not _is_escaped(text, place)]
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return "\\".join(parts)


def _is_escaped(text: str, place: int) -> bool:
    first = place
    while first and text[first - 1] == "\\":
        first -= 1
    return (place - first) % 2 == 1


def _letters(text: str) -> tuple[str, list[int] | range]:
    """The text in plain lower-case letters, and the place of each of them in the text."""
    if text.isascii():
        return text.lower(), range(len(text))
    plain = [_plain(character) for character in text]
    return "".join(plain), [place for place, letters in enumerate(plain) for _ in letters]


@cache
def _plain(character: str) -> str:
    if character in _OPENING:
        return "["
    return unicodedata.normalize("NFKD", character).translate(_ALIKE).lower()


def _brackets_before(letters: str, places: list[int] | range, end: int) -> list[int]:
    """The places of the brackets between the last letter or digit before `end` and `end`."""
    start = end
    while start and not letters[start - 1].isalnum():
        start -= 1
    return sorted({places[place] for place in range(start, end) if letters[place] == "["})
