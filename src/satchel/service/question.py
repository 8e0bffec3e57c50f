"""A question with everything that can be said about it, the same for every surface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.models.budget import TokenBudget
from satchel.models.checks import as_count, as_text
from satchel.models.options import ContextFormat
from satchel.models.request import NO_HINTS, ContextHints, ConversationMessage, Focus, RequestType, User

_MOST_LINES: Final = 10_000
_TRUNCATIONS: Final = ("keep_start", "keep_end", "extractive", "summarize")
_FOR_REQUESTS: Final = ("user", "type", "focus", "conversation_history", "truncation", "system_prompt")
_FOR_PIECES: Final = (
    "expand",
    "include_sources",
    "include_scores",
    "compact",
    "block_types",
    "languages",
    "include",
    "exclude",
    "since",
    "until",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody wants a context for. What is left out is taken from the settings.

    With a `type`, `focus`, `hints`, `conversation_history`, `truncation` or `system_prompt` it asks for the context of
    a workspace (S4's request); so it does with a `user` alone, and wherever there are blocks beside the files. The
    filters and the ways of writing that only pieces of files have (`include`, `expand`, …) are then refused.
    """

    query: str
    token_budget: int | TokenBudget | None = None
    format: str | None = None
    model: str | None = None
    top_k: int | None = None
    min_relevance: float | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    block_types: tuple[str, ...] = ()
    since: str | datetime | None = None
    until: str | datetime | None = None
    expand: str | int | None = None
    include_sources: bool = False
    include_scores: bool = False
    compact: bool = False
    user: User | None = None
    type: RequestType | str | None = None
    focus: Focus | str | None = None
    hints: ContextHints = NO_HINTS
    conversation_history: tuple[ConversationMessage, ...] = ()
    truncation: str | None = None
    system_prompt: str = ""

    def __post_init__(self) -> None:
        text = as_text(InvalidOption, "query", self.query)
        if not text.strip():
            raise InvalidOption("query", self.query, "must not be empty")
        if isinstance(self.user, str):
            _set(self, "user", User(id=self.user))  # type: ignore[unreachable]  # untyped callers
        elif not isinstance(self.user, User | None):
            raise InvalidOption("user", self.user, "must be a User, or the name of one")
        if not isinstance(self.token_budget, TokenBudget | None):
            _set(self, "token_budget", as_count(InvalidOption, "token_budget", self.token_budget, 1))
        if self.top_k is not None:
            _set(self, "top_k", as_count(InvalidOption, "top_k", self.top_k, 1))
        if self.format is not None:
            _one_of("format", self.format, tuple(ContextFormat))
        if self.truncation is not None:
            _one_of("truncation", self.truncation, _TRUNCATIONS)
        if self.min_relevance is not None and not (
            isinstance(self.min_relevance, int | float) and 0 <= self.min_relevance <= 1
        ):
            raise InvalidOption("min_relevance", self.min_relevance, "must be a number from 0 to 1")
        for name in ("include", "exclude", "languages", "block_types", "conversation_history"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise InvalidOption(name, value, "must be a list, not one text")
            _set(self, name, tuple(value or ()))
        _set(self, "hints", self.hints or NO_HINTS)
        _set(self, "focus", self.focus or None)
        _set(self, "expand", _expansion(self.expand))

    @property
    def asks_a_workspace(self) -> bool:
        """Whether something is said that only the context of a workspace can heed.

        Who asks is heeded everywhere: with filters for files it is files that are asked for.
        """
        said = [name for name in _FOR_REQUESTS if getattr(self, name)]
        if said == ["user"] and self.hints == NO_HINTS:
            return not self._is_for_pieces
        return bool(said) or self.hints != NO_HINTS

    @property
    def _is_for_pieces(self) -> bool:
        return any(getattr(self, name) for name in _FOR_PIECES)

    def refuse_what_is_for_pieces(self) -> None:
        """An error for the first thing that the context of a workspace cannot heed."""
        for name in _FOR_PIECES:
            value = getattr(self, name)
            if value:
                instead = " (use the hint prioritize_types)" if name == "block_types" else ""
                raise InvalidOption(name, value, f"is not for the context of a workspace{instead}")

    def asked_by(self, user: User | None) -> Question:
        """The same question from somebody."""
        return replace(self, user=user)


def as_question(question: str | Question, told: Mapping[str, Any]) -> Question:
    """The question, and what is said about it by name."""
    unknown = sorted(set(told) - _NAMES)
    if unknown:
        raise InvalidOption(unknown[0], told[unknown[0]], f"there is no such option; known are {', '.join(_ORDERED)}")
    if isinstance(question, Question):
        return replace(question, **told)
    return Question(query=question, **told)


_ORDERED: Final = tuple(one.name for one in fields(Question) if one.name != "query")
_NAMES: Final = frozenset(_ORDERED)


def _expansion(value: object) -> str | int | None:
    if value is None or value in ("", "0") or (value == 0 and not isinstance(value, bool)):
        return None
    if value == "symbol":
        return "symbol"
    lines = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 6 else value
    if isinstance(lines, bool) or not isinstance(lines, int) or not 0 < lines <= _MOST_LINES:
        raise InvalidOption("expand", value, "must be a number of lines, or symbol")
    return lines


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidOption(name, value, f"must be one of {', '.join(known)}")


def _set(value: object, name: str, new: object) -> None:
    object.__setattr__(value, name, new)
