"""The first sentence of a docstring, and whether it can be asked as a question."""

from __future__ import annotations

import re
from typing import Final

FEWEST_WORDS: Final = 8
MOST_WORDS: Final = 25

_ROLE: Final = re.compile(r":[a-z:]+:`~?!?([^`<]+?)(?:\s*<[^>`]*>)?`")
_QUOTED: Final = re.compile(r"(`{1,2}|\*{1,2})(\S(?:.*?\S)?)\1")
_END: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)[.!?](?=\s+[A-Z(\"'`:]|$)")
_PLAIN: Final = re.compile(r"[A-Z][A-Za-z0-9 ,;:'\"()/.-]*")
_WORD: Final = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_NOT_PROSE: Final = re.compile(r"^\s*(?::|@|>>>|\.\. |- |\* |[A-Z][A-Za-z ]+\n\s*[-=~]{3,})", re.M)
_NO_QUESTION: Final = re.compile(r"\b(?:deprecated|see (?:also|the doc)|docstring|override[sn]?|overridden)\b", re.I)
_MOSTLY: Final = 0.8


def first_sentence(docstring: str) -> str:
    """The first sentence in one line, without markup and its full stop; empty if it does not begin with prose."""
    paragraph = docstring.strip().split("\n\n")[0]
    if _NOT_PROSE.search(paragraph):
        return ""
    line = _QUOTED.sub(r"\2", _ROLE.sub(r"\1", " ".join(paragraph.split())))
    end = _END.search(line)
    return (line[: end.start()] if end else line).strip()


def can_be_asked(sentence: str, name: str) -> bool:
    """Whether it is plain English of a fair length that does not give the function's name away."""
    words = _WORD.findall(sentence)
    if not FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS or len(words) < FEWEST_WORDS:
        return False
    letters = sum(map(len, words)) / len(sentence.replace(" ", ""))
    if not _PLAIN.fullmatch(sentence) or letters < _MOSTLY or sentence.endswith(":") or _NO_QUESTION.search(sentence):
        return False
    return bool(squeezed(name)) and squeezed(name) not in squeezed(sentence)


def squeezed(text: str) -> str:
    """Letters and digits only, so that `read_header`, readHeader and "read header" are the same."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sentences say nearly the same, by their words."""
    return len(one & other) >= _MOSTLY * len(one | other)


def word_set(sentence: str) -> frozenset[str]:
    """The distinct words of a sentence."""
    return frozenset(word.lower() for word in _WORD.findall(sentence))
