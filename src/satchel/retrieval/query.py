"""Parses a question: weighted terms, mentioned names and paths, and the kind of file asked for."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from satchel.retrieval.intents import Intent, recognized
from satchel.text.languages import language_of
from satchel.text.reports import linked_files, trace_files, without_boilerplate
from satchel.text.words import IDENTIFIER, STOP_WORDS, parts_of, stem, terms_of

# Terms looked up in the index: bounds the time for long reports; the terms left out weigh least.
_MAX_TERMS: Final = 80

# Names, and paths, looked up: bounds the time for a pasted stack trace; the first in the text are used.
_MAX_NAMES: Final = 24

# Longer than any bug report; the regular expressions read no more of a pasted log.
_MAX_QUESTION_CHARS: Final = 20_000

# At most this much of the first line is a title; a longer line is a paragraph.
_TITLE_CHARS: Final = 160

# A term of the title counts as two of the body: the title names the subject, the body mentions much else.
_TITLE_WEIGHT: Final = 2.0

# Longer questions are reports, ranked by the weights learned for long reports (docs/decisions/0017).
_LONG_QUESTION_WORDS: Final = 40

_QUALIFIED: Final = re.compile(r"(?<![\w$])[A-Za-z_$][\w$]*(?:(?:\.|::|->|#|\\)[A-Za-z_$][\w$]*)+")
_SYMBOL: Final = re.compile(r"^[A-Za-z_$@][\w$]*[!?]?(?:(?:\.|::|->|#|\\)[A-Za-z_$][\w$]*[!?]?)*(?:\(\))?$")
_PATH: Final = re.compile(
    r"(?<![\w.\-@/])(?:[\w.\-@]+/)+[\w.\-@]+|(?<![\w.\-@/])[\w\-]+\.(?:[a-z]{1,4}|cpp|scala|swift|kts|tsx|jsx)\b"
)
_CALLED: Final = re.compile(r"\b([A-Za-z_]\w*)\(")
_QUOTED: Final = re.compile(r"`([A-Za-z_][\w.:]*)(?:\(\))?`")


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A parsed question."""

    text: str
    """The question without the boilerplate of an issue template."""
    title: str
    """The first line."""
    terms: dict[str, float]
    names: tuple[str, ...]
    paths: tuple[str, ...]
    frames: tuple[str, ...]
    """The files of a pasted stack trace, the innermost frame first; absolute on another machine, as a rule."""
    intents: frozenset[Intent]
    """What the question asks for beside its subject."""
    language: str = ""
    """The language, if it is known and not English."""

    @property
    def is_symbol(self) -> bool:
        """True for nothing but the name of a definition."""
        return Intent.SYMBOL in self.intents

    @property
    def is_long(self) -> bool:
        """True for a report, which is ranked by weights of its own."""
        return Intent.REPORT in self.intents


def understand(text: str) -> ParsedQuestion:
    """Parse a question; only the beginning of a text longer than any report is read."""
    full = text[:_MAX_QUESTION_CHARS]
    text = without_boilerplate(full).strip() if "\n" in full.strip() else full
    text = text or full
    words = [part for name in IDENTIFIER.findall(text) for part in parts_of(name)]
    by_form = {
        Intent.SYMBOL: bool(_SYMBOL.match(text.strip())),
        Intent.REPORT: len(words) > _LONG_QUESTION_WORDS,
        Intent.STACK_TRACE: bool(frames := trace_files(full)),
    }
    intents = recognized(text, frozenset(words)) | {intent for intent, is_there in by_form.items() if is_there}
    return ParsedQuestion(
        text=text,
        title=text.strip().partition("\n")[0][:_TITLE_CHARS],
        terms=_terms(text),
        names=_names(text, Intent.SYMBOL in intents),
        paths=_paths(full),
        frames=frames,
        intents=intents,
        language=language_of(text),
    )


def _terms(text: str) -> dict[str, float]:
    """The weight of each term; repeated terms and terms in the first line weigh more."""
    counts: Counter[str] = Counter()
    head = text.strip().partition("\n")[0][:_TITLE_CHARS]
    is_all = len(head) == len(text.strip())
    for part, weight in ((head, 1.0 if is_all else _TITLE_WEIGHT), ("" if is_all else text.strip()[len(head) :], 1.0)):
        for identifier in IDENTIFIER.findall(part):
            for term in terms_of(identifier):
                counts[term] += weight  # type: ignore[assignment]
    telling = {term: count for term, count in counts.items() if term not in _STOP_TERMS and len(term) > 1}
    most_common = Counter(telling or counts).most_common(_MAX_TERMS)
    return {term: 1 + math.log(count) if count > 1 else 1.0 for term, count in most_common}


_STOP_TERMS: Final = STOP_WORDS | {stem(word) for word in STOP_WORDS}


def _paths(text: str) -> tuple[str, ...]:
    """The paths in the question, those of links first."""
    written = (match[0].removeprefix("./") for match in _PATH.finditer(text))
    return tuple(dict.fromkeys([*linked_files(text), *written]))[:_MAX_NAMES]


def _names(text: str, is_symbol: bool) -> tuple[str, ...]:
    """The identifiers mentioned in the question, as written."""
    names: dict[str, None] = {}
    if is_symbol:
        names[text.strip().removesuffix("()")] = None
    for pattern in (_QUOTED, _QUALIFIED, _CALLED):
        for match in pattern.finditer(text):
            names[match[match.lastindex or 0]] = None
    for word in IDENTIFIER.findall(text):
        has_inner_capital = any(c.isupper() for c in word[1:]) and any(c.islower() for c in word)
        if has_inner_capital or ("_" in word.strip("_") and len(word) > 3):
            names[word] = None
    return tuple(names)[:_MAX_NAMES]
