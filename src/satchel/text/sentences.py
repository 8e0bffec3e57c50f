"""The sentences of a text, each with all that follows it up to the next: put together they are the text."""

from __future__ import annotations

import re
from typing import Final

from satchel.text.graphemes import boundary_at_or_before

_END: Final = re.compile(r"(?<=[.!?…])[\"')\]”’»]*\s+(?=\S)|(?<=[。！？])|\n+")
_LONGEST: Final = 600
"""What has no end for this long is cut at a space."""


def sentences(text: str) -> list[str]:
    """The text taken apart; `"".join` gives it back."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        if end.end() > start:
            found += _shortened(text[start : end.end()])
            start = end.end()
    if start < len(text):
        found += _shortened(text[start:])
    return found


def _shortened(sentence: str) -> list[str]:
    parts: list[str] = []
    while len(sentence) > _LONGEST:
        at = sentence.rfind(" ", _LONGEST // 2, _LONGEST) + 1 or boundary_at_or_before(sentence, _LONGEST) or _LONGEST
        parts.append(sentence[:at])
        sentence = sentence[at:]
    return [*parts, sentence] if sentence else parts
