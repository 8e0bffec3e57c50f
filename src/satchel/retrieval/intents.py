"""Recognizes what a question asks for beside its subject: instructions, changes, reasons, tests, a list, a number."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

# What a question asks for is said at its beginning: further on a report mentions much else.
_BEGINNING_CHARS: Final = 160


class Intent(StrEnum):
    """What a question asks for; a question may have several intents, or none."""

    HOW_TO = "how_to"
    WHAT_CHANGED = "what_changed"
    WHY = "why"
    WHERE_IS = "where_is"
    LIST_ALL = "list_all"
    TESTS = "tests"
    DOCUMENTATION = "documentation"
    CONFIGURATION = "configuration"
    EXAMPLES = "examples"
    FIGURES = "figures"
    SYMBOL = "symbol"
    """Nothing but the name of a definition."""
    REPORT = "report"
    """A long text: a bug report, mostly."""
    STACK_TRACE = "stack_trace"
    """Names files in the frames of a stack trace."""


class IntentPattern(NamedTuple):
    """How an intent is recognized, and the files that hold its answer."""

    asked: re.Pattern[str] | None
    words: frozenset[str]
    files: re.Pattern[str] | None
    anywhere: bool
    """True if the pattern is searched in the whole question, not only in its beginning."""

    def is_in(self, text: str, words: Collection[str]) -> bool:
        """True if the beginning of the text, or a word of it, asks for this."""
        part = text if self.anywhere else text[:_BEGINNING_CHARS]
        return bool(self.asked and self.asked.search(part)) or not self.words.isdisjoint(words)


@cache
def intent_patterns() -> dict[Intent, IntentPattern]:
    """The intents in intents.toml; the others are recognized by the form of a question."""
    table = tomllib.loads(resources.files("satchel.retrieval").joinpath("intents.toml").read_text("utf-8"))
    return {
        Intent(name): IntentPattern(
            asked=_compiled(entry.get("asked")),
            words=frozenset(entry.get("words", "").split()),
            files=_compiled(entry.get("files")),
            anywhere=entry.get("anywhere", False),
        )
        for name, entry in table.items()
    }


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    return re.compile(pattern.replace("\\\n", ""), re.IGNORECASE) if pattern else None


def recognized(text: str, words: Collection[str]) -> frozenset[Intent]:
    """The intents of a question, from its text and its words."""
    return frozenset(intent for intent, pattern in intent_patterns().items() if pattern.is_in(text, words))


def holds_answer(intents: Collection[Intent], path: str) -> bool:
    """True if files of this kind answer one of the intents, as change logs and decision records do."""
    files = (intent_patterns()[intent].files for intent in intents if intent in intent_patterns())
    return any(pattern.search(path) for pattern in files if pattern)
