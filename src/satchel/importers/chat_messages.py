"""Messages of a conversation in the formats of ChatGPT, Claude, coding agents and plain JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from satchel.importers.json_values import dict_of, field_of, list_of, text_of
from satchel.importers.storable import storable_line

TIME_FIELDS: Final = ("timestamp", "created_at", "create_time", "time", "date")
"""Names of the fields that may hold the time of a message."""

_MAX_TITLE_CHARS: Final = 200  # a title is a line in a list; the message itself is not cut
_MAX_NAME_CHARS: Final = 64  # roles, models and speakers have short names; a longer value is cut to keep metadata small
_MAX_PART_DEPTH: Final = 8  # deeper parts are reported as left out; the limit bounds the recursion over untrusted JSON
# In seconds the year 5138, in milliseconds 1973: a larger number is in the smaller unit.
_MAX_EPOCH_SECONDS: Final = 1e11
_ROLES: Final = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "function": "tool"}
_UNSEEN_ROLES: Final = frozenset({"system", "developer", "root"})
_UNSEEN_PARTS: Final = frozenset(
    "thinking redacted_thinking reasoning thoughts reasoning_recap token_budget flag "
    "user_editable_context model_editable_context step-start step-finish snapshot patch agent compaction".split()
)
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "function"})

_CODEX_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_CODEX_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_CODEX_SURROUNDINGS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
)


class ConversationKind(StrEnum):
    """The program or format a conversation comes from."""

    JSONL = "jsonl"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    OPENCODE = "opencode"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message in the common form of all formats; `key` and `answers` are ids of the source format.

    `answers` is empty for a message that begins a conversation, and None where nothing is said about it.
    """

    source: ConversationKind
    key: str
    answers: str | None
    role: str
    text: str
    time: datetime | None
    name: str = ""
    model: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def is_hidden(self) -> bool:
        """True if the message was hidden from the reader of the conversation."""
        return self.role in _UNSEEN_ROLES

    @property
    def is_shown(self) -> bool:
        """True if a reader of the conversation saw the message."""
        return not self.is_hidden and bool(self.text.strip())


# -- formats


def export_kind(value: Any) -> ConversationKind | None:
    """The program a conversation was exported from; None if the value is no conversation."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("mapping"), dict):
        return ConversationKind.CHATGPT
    if isinstance(value.get("chat_messages"), list):
        return ConversationKind.CLAUDE
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    is_opencode = (
        isinstance(value.get("info"), dict) and isinstance(first, dict) and isinstance(first.get("parts"), list)
    )
    return ConversationKind.OPENCODE if is_opencode else None


def messages_of(kind: ConversationKind, value: dict[str, Any]) -> tuple[list[ChatMessage], int]:
    """The messages of the branch shown last, and the count of messages with a text on all remaining branches."""
    messages, leaf = _EXPORTS[kind](value)
    branch: dict[str, ChatMessage] = {}
    while leaf in messages and leaf not in branch:
        branch[leaf] = messages[leaf]
        leaf = messages[leaf].answers or ""
    others = sum(1 for key, message in messages.items() if key not in branch and message.is_shown)
    return list(reversed(branch.values())), others


def _from_chatgpt(value: dict[str, Any]) -> tuple[dict[str, ChatMessage], str]:
    """All messages by id, and the id of the message shown last."""
    nodes = {key: node for key, node in value["mapping"].items() if isinstance(node, dict)}
    current = value.get("current_node")
    if not isinstance(current, str) or current not in nodes:
        current = next((key for key in reversed(nodes) if not nodes[key].get("children")), "")
    return {key: _chatgpt_message(key, node) for key, node in nodes.items()}, current


def _chatgpt_message(key: str, node: Mapping[str, Any]) -> ChatMessage:
    message = dict_of(node, "message")
    author, extra = dict_of(message, "author"), dict_of(message, "metadata")
    is_hidden = extra.get("is_visually_hidden_from_conversation") is True
    text, left_out = _rendered(message.get("content"))
    return ChatMessage(
        source=ConversationKind.CHATGPT,
        key=key,
        answers=text_of(node, "parent"),
        role="system" if is_hidden or not message else _role(text_of(author, "role")),
        text=text,
        time=time_of(field_of(message, "create_time", "update_time")),
        name=_short_name(text_of(author, "name")),
        model=_short_name(text_of(extra, "model_slug")),
        left_out=(*left_out, *map(_file_name, list_of(extra, "attachments"))),
    )


def _from_claude(value: dict[str, Any]) -> tuple[dict[str, ChatMessage], str]:
    messages: dict[str, ChatMessage] = {}
    last = ""
    for number, message in enumerate(value["chat_messages"]):
        if isinstance(message, dict):
            key = text_of(message, "uuid") or f"{number}"
            # Older exports have no parent id: a message answers the previous message.
            messages[key] = _claude_message(key, message, last)
            last = key
    leaf = text_of(value, "current_leaf_message_uuid")
    return messages, leaf if leaf in messages else last


def _claude_message(key: str, message: Mapping[str, Any], before: str) -> ChatMessage:
    text, left_out = _rendered(message.get("content"))
    files = [*list_of(message, "attachments"), *list_of(message, "files")]
    return ChatMessage(
        source=ConversationKind.CLAUDE,
        key=key,
        answers=text_of(message, "parent_message_uuid") or before,
        role=_role(text_of(message, "sender", "role")),
        text=text if text.strip() else text_of(message, "text"),
        time=time_of(field_of(message, "created_at", "updated_at")),
        left_out=(*left_out, *map(_file_name, files)),
    )


def _from_opencode(value: dict[str, Any]) -> tuple[dict[str, ChatMessage], str]:
    messages: dict[str, ChatMessage] = {}
    last = ""
    for message in value["messages"]:
        if not isinstance(message, dict):
            continue
        info = dict_of(message, "info")
        key = text_of(info, "id") or f"{len(messages)}"
        # What the program adds for the model, such as the text of an attached file, is marked as synthetic.
        parts = [part for part in list_of(message, "parts") if not (isinstance(part, dict) and part.get("synthetic"))]
        text, left_out = _rendered(parts)
        messages[key] = ChatMessage(
            source=ConversationKind.OPENCODE,
            key=key,
            answers=last,
            role=_role(text_of(info, "role")),
            text=text,
            time=time_of(field_of(dict_of(info, "time"), "created")),
            model=_short_name(text_of(info, "modelID") or text_of(dict_of(info, "model"), "modelID")),
            left_out=left_out,
        )
        last = key
    return messages, last


_EXPORTS: Final = {
    ConversationKind.CHATGPT: _from_chatgpt,
    ConversationKind.CLAUDE: _from_claude,
    ConversationKind.OPENCODE: _from_opencode,
}


def line_message(value: Any) -> ChatMessage | None:
    """The message in a line of JSON; None if the value is no message."""
    if not isinstance(value, dict):
        return None
    if value.get("type") == "response_item" and isinstance(value.get("payload"), dict):
        return _codex_message(value, value["payload"])
    is_nested = isinstance(value.get("message"), dict)
    message = value["message"] if is_nested else value
    role = text_of(message, "role", "sender") or (text_of(value, "type") if is_nested else "")
    if not role:
        return None
    content = message.get("content")
    text, left_out = _rendered([content if content is not None else message.get("text"), message.get("tool_calls")])
    return ChatMessage(
        source=ConversationKind.CLAUDE_CODE if is_nested else ConversationKind.JSONL,
        key=text_of(value, "uuid", "id"),
        answers=text_of(value, "parentUuid", "parent_id", "reply_to") or ("" if "parentUuid" in value else None),
        role=_line_role(value, content, role),
        text=text,
        time=time_of(field_of(value, *TIME_FIELDS)),
        name=_short_name(text_of(message, "name")),
        model=_short_name(text_of(message, "model")),
        left_out=left_out,
    )


def _codex_message(value: Mapping[str, Any], item: dict[str, Any]) -> ChatMessage | None:
    """A message, tool call or result in a line of Codex; the events beside them repeat the same texts."""
    kind = text_of(item, "type")
    if kind == "message":
        role, (text, left_out) = _role(text_of(item, "role")), _rendered(item.get("content"))
    elif kind in _CODEX_CALLS:
        role, text, left_out = "assistant", _call(item), ()
    elif kind in _CODEX_RESULTS:
        role, (text, left_out) = "tool", _rendered(_codex_output(item.get("output")))
    else:
        return None
    if text.lstrip().startswith(_CODEX_SURROUNDINGS):
        role = "system"  # sent as the user, but written by the program
    return ChatMessage(
        source=ConversationKind.CODEX,
        key="",
        answers=None,
        role=role,
        text=text,
        time=time_of(field_of(value, *TIME_FIELDS)),
        left_out=left_out,
    )


def _codex_output(output: Any) -> Any:
    """The text of a tool's result, which older versions wrap in JSON with its exit code."""
    try:
        inner = json.loads(output) if isinstance(output, str) and output.startswith("{") else None
    except (ValueError, RecursionError):
        inner = None
    return inner["output"] if isinstance(inner, dict) and isinstance(inner.get("output"), str) else output


def _line_role(value: Mapping[str, Any], content: Any, role: str) -> str:
    if value.get("isMeta") is True:
        return "system"
    parts = content if isinstance(content, list) else []
    # Claude Code stores tool results under the role `user`.
    is_result = parts and all(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)
    return "tool" if is_result else _role(role)


# -- message content


def _rendered(content: Any) -> tuple[str, tuple[str, ...]]:
    """The text of content in any shape, and descriptions of the parts without text."""
    texts: list[str] = []
    left_out: list[str] = []
    try:
        _render(content, texts, left_out, 0)
    except RecursionError:
        left_out.append("a value that is nested too deeply")
    return "\n\n".join(text for text in texts if text.strip()), tuple(left_out)


def _render(value: Any, texts: list[str], left_out: list[str], level: int) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif level > _MAX_PART_DEPTH:
        left_out.append("a part that is nested too deeply")
    elif isinstance(value, list):
        for part in value:
            _render(part, texts, left_out, level + 1)
    elif isinstance(value, dict):
        _render_part(value, texts, left_out, level)


def _render_part(part: dict[str, Any], texts: list[str], left_out: list[str], level: int) -> None:
    kind = text_of(part, "type", "content_type")
    if kind in _UNSEEN_PARTS:
        return
    if kind in _CALLS:
        texts.append(_call(part))
        return
    if kind == "tool":  # opencode keeps a call and its result together
        state = dict_of(part, "state")
        texts.append(_call({"name": text_of(part, "tool"), "input": state.get("input")}))
        _render(field_of(state, "output", "error"), texts, left_out, level + 1)
        return
    for name in ("text", "parts", "content", "result", "output", "refusal"):
        if isinstance(part.get(name), str | list | dict):
            _render(part[name], texts, left_out, level + 1)
            return
    left_out.append(_file_name(part) if kind != "text" else "a part without text")


def _call(part: dict[str, Any]) -> str:
    """A tool call as text: name, then arguments as JSON."""
    call = dict_of(part, "function") or part
    arguments = field_of(call, "input", "arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{text_of(call, 'name') or 'tool'}({written})"


def _file_name(attachment: Any) -> str:
    """A readable name for an attachment or another part without text."""
    if not isinstance(attachment, dict):
        return "an attachment"
    kind = _short_name(text_of(attachment, "type", "content_type", "mime_type", "file_type"))
    name = title_line(text_of(attachment, "file_name", "name", "filename", "title"))
    return f"the attachment {name}" if name else f"an attachment ({kind or 'of no type'})"


def title_line(text: str) -> str:
    """The text as a title: a single line of limited length."""
    return storable_line(text[:_MAX_TITLE_CHARS].strip())


def _short_name(text: str) -> str:
    return storable_line(text[:_MAX_NAME_CHARS].strip())


def _role(written: str) -> str:
    """The speaker's role under a common name for all formats."""
    role = _short_name(written.lower())
    return _ROLES.get(role, role) or "unknown"


def time_of(value: Any) -> datetime | None:
    """The moment in UTC: from ISO 8601, or from seconds (or milli-, micro- or nanoseconds) since 1970."""
    try:
        if isinstance(value, str) and not re.fullmatch(r"-?\d{9,}(?:\.\d+)?", value):
            moment = datetime.fromisoformat(value)
            return (moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        number = float(value)
        for _ in ("milliseconds", "microseconds", "nanoseconds"):
            number = number / 1000 if abs(number) > _MAX_EPOCH_SECONDS else number
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None
