"""Where a text may be taken apart so that the counts of its parts add up to the count of the whole.

OpenAI's encodings first cut text into words, and merge bytes only within a word. After a line end, a word border
is certain when the next line has something on it that is neither white space nor a slash: the pattern that takes
line ends goes as far as the last one, and the one for punctuation may take line ends and slashes after it.
`tests/test_token_counting.py` checks it against tiktoken.
"""

from __future__ import annotations

import re
from typing import Final

_LINE_BORDER: Final = re.compile(r"(?<=\n)(?=[^\S\r\n]*[^\s/])")
_PLAIN_STARTS: Final = frozenset("#`~<{[(-*_=\"'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_LINE_START: Final = re.compile(r"[^\S\r\n]*[^\s/]")


def adds_up(before: str, after: str) -> bool:
    """Whether the counts of the two texts add up to the count of both joined."""
    if not before or not after:
        return True
    # Most parts begin with a heading, a fence, a tag or a letter, which needs no pattern to see.
    return before[-1] == "\n" and (after[0] in _PLAIN_STARTS or _LINE_START.match(after) is not None)


def first_border(text: str, start: int) -> int:
    """The first certain border at or after `start`, or the end of the text."""
    found = _LINE_BORDER.search(text, start)
    return found.start() if found else len(text)


def last_border(text: str, end: int) -> int:
    """The last certain border at or before `end`, or the start of the text."""
    newline = text.rfind("\n", 0, end)
    while newline >= 0:
        if _LINE_START.match(text, newline + 1):
            return newline + 1
        newline = text.rfind("\n", 0, newline)
    return 0


def lines_that_add_up(text: str) -> list[str]:
    """The text cut at every certain border."""
    return _LINE_BORDER.split(text)
