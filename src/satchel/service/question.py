"""A question with everything that can be said about it, the same for every surface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.models.checks import as_count, as_text
from satchel.models.options import RequestType, TokenBudget
from satchel.models.request import NO_HINTS, ContextHints, ConversationMessage, Focus, User
from satchel.service.options import FOR_CHUNKS, FOR_WORKSPACES, OPTIONS

_MOST_LINES: Final = 10_000


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
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise InvalidOption(name, value, f"must be one of {', '.join(choices)}")
        if self.min_relevance is not None and not (
            isinstance(self.min_relevance, int | float) and 0 <= self.min_relevance <= 1
        ):
            raise InvalidOption("min_relevance", self.min_relevance, "must be a number from 0 to 1")
        for name in _LISTS:
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
        asks_files = self.user is None or bool(self._changed(FOR_CHUNKS))
        return bool(self._changed(FOR_WORKSPACES)) or not asks_files

    def _changed(self, names: Iterable[str]) -> list[str]:
        """Those of the options that are not at their default."""
        return [name for name in names if getattr(self, name) != _DEFAULTS[name]]

    def refuse_options_for_chunks(self) -> None:
        """Raise an error for the first option that the context of a workspace does not take."""
        for name in self._changed(FOR_CHUNKS):
            instead = " (use the hint prioritize_types)" if name == "block_types" else ""
            problem = f"is not for the context of a workspace{instead}"
            raise InvalidOption(name, getattr(self, name), problem)

    def asked_by(self, user: User | None) -> Question:
        """The same question from somebody."""
        return replace(self, user=user)


def as_question(question: str | Question, options: Mapping[str, Any]) -> Question:
    """The question with options by name."""
    unknown = sorted(options.keys() - _DEFAULTS.keys())
    if unknown:
        known = ", ".join(_DEFAULTS)
        raise InvalidOption(unknown[0], options[unknown[0]], f"there is no such option; known are {known}")
    return replace(question, **options) if isinstance(question, Question) else Question(query=question, **options)


_DEFAULTS: Final = {field.name: field.default for field in fields(Question) if field.name != "query"}
_CHOICES: Final = {option.name: option.choices for option in OPTIONS if option.choices and option.name != "type"}
_LISTS: Final = tuple(name for name, default in _DEFAULTS.items() if default == ())


def _expansion(value: object) -> str | int | None:
    if value is None or value in ("", "0") or (value == 0 and not isinstance(value, bool)):
        return None
    if value == "symbol":
        return "symbol"
    lines = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 6 else value
    if isinstance(lines, bool) or not isinstance(lines, int) or not 0 < lines <= _MOST_LINES:
        raise InvalidOption("expand", value, "must be a number of lines, or symbol")
    return lines


def _set(value: object, name: str, new: object) -> None:
    object.__setattr__(value, name, new)
