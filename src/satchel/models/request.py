"""The context request (S4): question, user, focus, conversation, hints and budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from satchel.errors import InvalidInput, InvalidOption
from satchel.models.block import block_type
from satchel.models.checks import as_choice, as_count, as_record, as_text, check_fields
from satchel.models.options import ContextFormat, RequestType, TokenBudget, as_format

# Longer than any question, even with a pasted file; bounds the time of tokenizing and searching.
_MAX_QUERY_CHARS: Final = 1_000_000


def _as_names(error: type[InvalidInput], field_name: str, values: Iterable[str] | None) -> tuple[str, ...]:
    if isinstance(values, str):
        raise error(field_name, values, "must be a list of texts, not a single text")
    names = tuple(dict.fromkeys(values or ()))
    for name in names:
        if not isinstance(name, str) or not name:
            raise error(field_name, name, "must be a non-empty text")
    return names


def _as_types(error: type[InvalidInput], field_name: str, values: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(block_type(name) for name in _as_names(error, field_name, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The requesting user. `groups` adds to the groups of the user in the workspace.

    `preferred_types` and `pinned` (blocks, usually pages) rank higher for this user.
    """

    id: str
    name: str = ""
    groups: tuple[str, ...] = ()
    preferred_types: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, InvalidOption, as_text, "id", prefix="user.")
        if not self.id.strip():
            raise InvalidOption("user.id", self.id, "must not be empty: the access of this user applies")
        for text in (self.id, self.name, *self.groups):
            if not isinstance(text, str) or not text.isprintable():
                raise InvalidOption("user", text, "must be a name of printable characters")
        check_fields(self, InvalidOption, _as_names, "groups", prefix="user.")
        check_fields(self, InvalidOption, _as_types, "preferred_types")
        check_fields(self, InvalidOption, _as_names, "pinned", prefix="user.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """The focus of the user: a block (in code also `path:line`), a page, a database, or nothing."""

    block_id: str | None = None
    page_id: str | None = None
    database_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("block_id", "page_id", "database_id"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise InvalidOption(f"focus.{name}", value, "must be the id of a block, or None")

    @property
    def innermost(self) -> str | None:
        """The narrowest focused id, or None."""
        return self.block_id or self.page_id or self.database_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMessage:
    """A turn of the conversation."""

    role: str
    content: str
    timestamp: datetime | None = None
    name: str = ""

    def __post_init__(self) -> None:
        check_fields(self, InvalidOption, as_text, "role", "content", "name", prefix="conversation_history.")
        check_fields(self, InvalidOption, as_moment, "timestamp", prefix="conversation_history.", optional=True)
        if not self.role:
            raise InvalidOption(
                "conversation_history.role",
                self.role,
                "must not be empty: give the speaker's role (user, assistant, …)",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """A range of time; either end may be open."""

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        check_fields(self, InvalidOption, as_moment, "start", "end", prefix="time_range.", optional=True)
        if self.start and self.end and self.end < self.start:
            raise InvalidOption(
                "time_range.end", self.end.isoformat(), f"must not be before time_range.start={self.start.isoformat()}"
            )

    def holds(self, moment: datetime) -> bool:
        """True if the moment is in the range (both ends included)."""
        moment = as_moment(InvalidOption, "moment", moment)
        return (self.start is None or self.start <= moment) and (self.end is None or moment <= self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextHints:
    """Hints for a request: preferred types and times, blocks to include or exclude, and a depth limit."""

    prioritize_types: tuple[str, ...] = ()
    time_range: TimeRange | None = None
    include_blocks: tuple[str, ...] = ()
    exclude_blocks: tuple[str, ...] = ()
    max_depth: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, InvalidOption, _as_types, "prioritize_types", prefix="hints.")
        check_fields(self, InvalidOption, _as_names, "include_blocks", "exclude_blocks", prefix="hints.")
        both = sorted(set(self.include_blocks) & set(self.exclude_blocks))
        if both:
            raise InvalidOption(
                "hints", both[0], "is in both include_blocks and exclude_blocks; remove it from one of them"
            )
        check_fields(
            self, InvalidOption, partial(as_record, kind=TimeRange), "time_range", prefix="hints.", optional=True
        )
        check_fields(self, InvalidOption, partial(as_count, least=0), "max_depth", prefix="hints.", optional=True)


NO_HINTS: Final = ContextHints()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """A question with all settings for its context (S4).

    Without a token budget, the budget of the request type applies; `format` and `system_prompt` control the rendering.
    """

    query: str
    user: User
    type: RequestType = RequestType.ASSIST
    focus: Focus | None = None
    conversation_history: tuple[ConversationMessage, ...] = ()
    token_budget: TokenBudget | None = None
    hints: ContextHints = NO_HINTS
    format: ContextFormat | str = ContextFormat.MARKDOWN
    system_prompt: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, InvalidOption, as_text, "query")
        if not self.query.strip():
            raise InvalidOption("query", self.query, "must not be empty")
        if len(self.query) > _MAX_QUERY_CHARS:
            raise InvalidOption("query", self.query, f"must be at most {_MAX_QUERY_CHARS:,} characters")
        check_fields(self, InvalidOption, partial(as_choice, choices=RequestType), "type")
        object.__setattr__(self, "format", as_format("format", self.format))
        if not isinstance(self.user, User | Mapping):
            raise InvalidOption("user", self.user, "must be a User: the access of this user applies")
        object.__setattr__(self, "hints", self.hints or NO_HINTS)
        for name, kind in (("user", User), ("focus", Focus), ("token_budget", TokenBudget), ("hints", ContextHints)):
            check = partial(as_record, kind=kind, none="" if name == "user" else ", or None")
            check_fields(self, InvalidOption, check, name, optional=True)
        message = partial(as_record, InvalidOption, "conversation_history", kind=ConversationMessage)
        object.__setattr__(self, "conversation_history", tuple(map(message, self.conversation_history or ())))
        check_fields(self, InvalidOption, as_text, "system_prompt")


def as_moment(error: type[InvalidInput], field_name: str, value: object) -> datetime:
    """The value as a datetime with time zone (default UTC); text must be ISO 8601."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise error(
                field_name, value, "must be a date and time in ISO 8601, like 2026-11-01T09:00:00+00:00"
            ) from None
    if not isinstance(value, datetime):
        raise error(field_name, value, "must be a datetime, or text in ISO 8601 like 2026-11-01T09:00:00+00:00")
    return value if value.tzinfo else value.replace(tzinfo=UTC)
