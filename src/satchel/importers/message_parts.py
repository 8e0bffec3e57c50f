"""What is said in a message of a conversation, whoever exported it: its text, its fields, its time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from satchel.importers.storable import storable_line

_MOST_TITLE_CHARS: Final = 200
_MOST_NAME_CHARS: Final = 64
_MOST_NESTED_PARTS: Final = 8
_ROLES: Final = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "function": "tool"}
UNSEEN_ROLES: Final = frozenset({"system", "developer", "root"})
_UNSEEN_PARTS: Final = frozenset(
    "thinking redacted_thinking reasoning thoughts reasoning_recap token_budget flag "
    "user_editable_context model_editable_context".split()
)
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message as all the formats have it; `key` and `answers` are the format's own ids.

    `answers` is empty for a message that begins a conversation, and None where nothing is said about it.
    """

    key: str
    answers: str | None
    role: str
    text: str
    moment: datetime | None
    name: str = ""
    model: str = ""
    lost: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Whether a reader of the conversation saw it."""
        return self.role not in UNSEEN_ROLES and bool(self.text.strip())

    @property
    def mark(self) -> str:
        """What tells it from the first message of another conversation."""
        return f"{self.role} {self.moment} {self.text}"


def rendered(content: Any) -> tuple[str, tuple[str, ...]]:
    """The text of a content of any shape, and what in it is no text."""
    texts: list[str] = []
    lost: list[str] = []
    try:
        _render(content, texts, lost, 0)
    except RecursionError:
        lost.append("a value that is nested too deeply")
    return "\n\n".join(text for text in texts if text.strip()), tuple(lost)


def _render(value: Any, texts: list[str], lost: list[str], level: int) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif level > _MOST_NESTED_PARTS:
        lost.append("a part that is nested too deeply")
    elif isinstance(value, list):
        for one in value:
            _render(one, texts, lost, level + 1)
    elif isinstance(value, dict):
        _render_part(value, texts, lost, level)


def _render_part(part: dict[str, Any], texts: list[str], lost: list[str], level: int) -> None:
    kind = text_of(part, "type", "content_type")
    if kind in _UNSEEN_PARTS:
        return
    if kind in _CALLS:
        texts.append(_call(part))
        return
    for name in ("text", "parts", "content", "result", "output", "refusal"):
        inner = part.get(name)
        if isinstance(inner, str | list | dict):
            _render(inner, texts, lost, level + 1)
            return
    lost.append(file_name(part) if kind != "text" else "a part without a text")


def _call(part: dict[str, Any]) -> str:
    """What was asked of a tool: its name, and what it was given as JSON."""
    call = dict_of(part, "function") or part
    given = field_of(call, "input", "arguments")
    told = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return f"{text_of(call, 'name') or 'tool'}({told})"


def file_name(attached: Any) -> str:
    """What to call something that is no text."""
    if not isinstance(attached, dict):
        return "an attachment"
    kind = name_of(text_of(attached, "type", "content_type", "mime_type", "file_type"))
    name = line_of(text_of(attached, "file_name", "name", "filename", "title"))
    return f"the attachment {name}" if name else f"an attachment ({kind or 'of no type'})"


def field_of(value: Mapping[str, Any], *names: str) -> Any:
    """The first of the fields that is there."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def text_of(value: Mapping[str, Any], *names: str) -> str:
    """The first of the fields that is a text, or none."""
    return next((found for name in names if isinstance(found := value.get(name), str) and found), "")


def dict_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The field if it is an object, else an empty one."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def list_of(value: Mapping[str, Any], name: str) -> list[Any]:
    """The field if it is a list, else an empty one."""
    found = value.get(name)
    return found if isinstance(found, list) else []


def line_of(text: str) -> str:
    """A title: one line, not too long."""
    return storable_line(text[:_MOST_TITLE_CHARS].strip())


def name_of(text: str) -> str:
    """A name: one line, short."""
    return storable_line(text[:_MOST_NAME_CHARS].strip())


def role_of(said: str) -> str:
    """Who spoke, in one way of saying it."""
    role = name_of(said.lower())
    return _ROLES.get(role, role) or "unknown"


def moment_of(value: Any) -> datetime | None:
    """The moment in UTC: from ISO 8601, or from the seconds (or thousandths and less) since 1970."""
    try:
        if isinstance(value, str) and not re.fullmatch(r"-?\d{9,}(?:\.\d+)?", value):
            moment = datetime.fromisoformat(value)
            return (moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        number = float(value)
        for _ in ("milliseconds", "microseconds", "nanoseconds"):
            number = number / 1000 if abs(number) > _MOST_SECONDS else number
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None


_MOST_SECONDS: Final = 1e11
"""As seconds this is the year 5138, as thousandths it is 1973: nobody means the other."""
