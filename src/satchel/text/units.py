"""The smallest parts of a text that can say the same thing twice: lines of code, sentences of prose."""

from __future__ import annotations

import re
from typing import Final

# Shorter lines (`else:`, `return None`, `}`) stand everywhere and repeat nothing.
_MIN_UNIT_CHARS: Final = 16

# A line as long as this is a paragraph, and its sentences are what can be repeated.
_PARAGRAPH_CHARS: Final = 200
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def units(text: str) -> set[str]:
    """The distinct lines of a text, paragraphs taken apart into sentences."""
    lines = text.split("\n")
    if max(map(len, lines)) > _PARAGRAPH_CHARS:
        lines = [part for line in lines for part in _SENTENCE_END.split(line)]
    found = {line for line in map(str.strip, lines) if len(line) >= _MIN_UNIT_CHARS}
    return found or {text.strip()}


_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words(text: str) -> set[str]:
    """The distinct words in lower case, identifiers taken apart: `parseHTTPReply` has parse, http, reply."""
    found: set[str] = set()
    for word in set(_WORD.findall(text)):
        found.add(word.lower())
        if not word.islower() and not word.isupper():
            found.update(part.lower() for part in _HUMP.split(word))
    return found
