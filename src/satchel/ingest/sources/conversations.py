"""Conversations as sessions with messages below: exports of ChatGPT and Claude, Claude Code's files, JSON lines.

What is taken over of a conversation is what its reader saw, as text: tools' calls and results too, but neither system
messages nor hidden ones, nor what a model thought before it spoke. Exports of ChatGPT and Claude are trees, because
messages can be edited and answers asked for again: the branch that was last shown is taken over, and a notice says how
many messages stand on others. Sessions in JSON lines are taken over line by line, all branches included. Each message
has a REPLY link to the one it answers; pictures and other attachments become notices.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

from satchel.errors import InvalidInput, InvalidOption
from satchel.ingest.sources.storable import storable, storable_line
from satchel.model.block import Block, BlockType, Link, LinkKind
from satchel.model.records import Notice, Record


class ConversationKind(StrEnum):
    """Who wrote a conversation down."""

    JSONL = "jsonl"
    CLAUDE_CODE = "claude-code"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


_LINE_KINDS: Final = (ConversationKind.JSONL, ConversationKind.CLAUDE_CODE)

_CHUNK_BYTES: Final = 1 << 20
_MOST_CONVERSATION_CHARS: Final = 32_000_000
"""Of one conversation in an export: it is held in memory as a whole, and the export is not."""
_MOST_LINE_BYTES: Final = 16_000_000
_MOST_TITLE_CHARS: Final = 200
_MOST_NAME_CHARS: Final = 64
_MOST_NESTED_PARTS: Final = 8
_NAMED_LOSSES: Final = 5

_MOST_ENTRIES: Final = 100_000
_MOST_DIRECTORY_BYTES: Final = 32_000_000
_MOST_ENTRY_BYTES: Final = 8_000_000_000
_MOST_RATIO: Final = 200
"""Text shrinks to a tenth; a bomb to a thousandth."""
_SMALL_ENTRY_BYTES: Final = 10_000_000

_EXPORT_FILE: Final = re.compile(r"(?:[^/\\]+/)?conversations(?:-\d+)?\.json")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SPACE: Final = re.compile(r"[ \t\r\n]*")

_ROLES: Final = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant", "function": "tool"}
_UNSEEN_ROLES: Final = frozenset({"system", "developer", "root"})
_UNSEEN_PARTS: Final = frozenset(
    "thinking redacted_thinking reasoning thoughts reasoning_recap token_budget flag "
    "user_editable_context model_editable_context".split()
)
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
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
        return self.role not in _UNSEEN_ROLES and bool(self.text.strip())

    @property
    def mark(self) -> str:
        """What tells it from the first message of another conversation."""
        return f"{self.role} {self.moment} {self.text}"


def read_conversations(path: Path, *, kind: str | None = None) -> Iterator[Record]:
    """The conversations in a file, an export's .zip or a folder of them; without a `kind` it is found out."""
    if kind is not None and kind not in tuple(ConversationKind):
        raise InvalidOption("kind", kind, f"must be one of {', '.join(ConversationKind)}, or left out")
    return _read_guarded(Path(path), ConversationKind(kind) if kind else None)


def _read_guarded(path: Path, kind: ConversationKind | None) -> Iterator[Record]:
    try:
        with ExitStack() as opened:
            yield from _Reader(kind).read(path, opened)
    # What a damaged archive or disk raises, and a value that is nested too deeply (a RuntimeError).
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OverflowError) as error:
        raise InvalidInput("path", str(path), _reason(error)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, InvalidInput):
        return error.problem
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be read ({storable_line(reason)})"


class _Reader:
    """Reads one source; the ids given so far are remembered, so that none is given twice."""

    def __init__(self, kind: ConversationKind | None) -> None:
        self._kind = kind
        self._given: dict[str, int] = {}

    def read(self, path: Path, opened: ExitStack) -> Iterator[Record]:
        if path.is_dir():
            yield from self._folder(path)
            return
        file = opened.enter_context(_open(path))
        if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
            yield from self._archive(file, path)
            return
        file.seek(0)
        yield from self._file(file, path.name)

    def _folder(self, path: Path) -> Iterator[Record]:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries)
        exports = [name for name in names if _EXPORT_FILE.fullmatch(name)]
        for name in exports:
            with _open(path / name, os.O_NOFOLLOW) as file:
                yield from self._file(file, name)
        if not exports:
            yield from self._folder_of_lines(path, [name for name in names if name.endswith(".jsonl")])

    def _folder_of_lines(self, path: Path, names: list[str]) -> Iterator[Record]:
        """Claude Code has folders of sessions, some of them without a message: those are no reason to stop."""
        read = 0
        for name in names:
            where = storable_line(name)
            try:
                file = _open(path / name, os.O_NOFOLLOW)
            except (InvalidInput, OSError) as error:
                yield Notice(where=where, problem=f"{_reason(error)}; the file was left out")
                continue
            with file:
                try:
                    yield from _Lines(file, where, self._kind, self._given).records()
                    read += 1
                except InvalidInput as error:
                    yield Notice(where=where, problem=f"{error.problem}; the file was left out")
        if not read:
            raise InvalidInput("path", str(path), "holds neither conversations.json nor a .jsonl file with messages")

    def _archive(self, file: IO[bytes], path: Path) -> Iterator[Record]:
        try:
            archive = zipfile.ZipFile(_SmallReads(file))
        except ValueError as error:
            raise zipfile.BadZipFile(str(error)) from None
        with archive:
            for entry in _export_entries(archive, path):
                try:
                    inner = archive.open(entry)
                except ValueError as error:
                    raise zipfile.BadZipFile(str(error)) from None
                with inner:
                    yield from self._file(inner, entry.filename)

    def _file(self, file: IO[bytes], name: str) -> Iterator[Record]:
        name = storable_line(name)
        if self._is_lines(file, name):
            yield from _Lines(file, name, self._kind, self._given).records()
        else:
            yield from self._export(file, name)

    def _is_lines(self, file: IO[bytes], name: str) -> bool:
        if self._kind:
            return self._kind in _LINE_KINDS
        line = file.readline(_MOST_LINE_BYTES)
        while line and not line.strip(b" \t\r\n\xef\xbb\xbf"):
            line = file.readline(_MOST_LINE_BYTES)
        file.seek(0)
        begin = line.lstrip(b" \t\r\n\xef\xbb\xbf")[:1]
        if begin not in (b"[", b"{"):
            told = f"is no conversation that is known here; it must be one of {', '.join(ConversationKind)}"
            raise InvalidInput("path", name, told)
        first = _parsed(line)
        return begin == b"{" and isinstance(first, dict) and _kind_of(first) is None

    def _export(self, file: IO[bytes], name: str) -> Iterator[Record]:
        known = unknown = 0
        for number, value in enumerate(_Values(file, name), start=1):
            kind = _kind_of(value) if isinstance(value, dict) else None
            if kind is None or self._kind not in (None, kind):
                unknown += 1
                yield Notice(where=f"{name}, conversation {number}", problem="is no conversation; it was left out")
                continue
            known += 1
            yield from self._conversation(kind, value, f"{name}, conversation {number}")
        if unknown and not known:
            wanted = self._kind or "ChatGPT or Claude"
            raise InvalidInput("path", name, f"holds no conversation of {wanted}; is it the right file?")

    def _conversation(self, kind: ConversationKind, value: dict[str, Any], where: str) -> Iterator[Record]:
        read = _from_chatgpt if kind is ConversationKind.CHATGPT else _from_claude
        messages, others = read(value)
        shown = [said for said in messages if said.is_shown]
        if others:
            yield Notice(where=where, problem=f"messages on branches that were not shown last were left out: {others}")
        if not shown:
            yield Notice(where=where, problem="has no message with a text; it was left out")
            return
        session = _Session(
            id=_session_id(_text(value, "conversation_id", "uuid", "id"), kind, shown[0], self._given),
            source=kind,
            title=_line(_text(value, "title", "name")) or _first_words(shown),
            last=_moment(_of(value, "update_time", "updated_at")) or _latest(shown),
            model=_line(_text(value, "default_model_slug", "model")) or next((s.model for s in shown if s.model), ""),
        )
        yield session.block()
        # Those that are not shown are heard too: whoever answers them answers what they answered.
        for said in messages:
            yield from session.records_of(said, where, self._given)


# -- what becomes of a conversation


@dataclass(slots=True, kw_only=True)
class _Session:
    """A session while its messages are written."""

    id: str
    source: str
    title: str = ""
    last: datetime | None = None
    model: str = ""
    count: int = 0
    previous: str | None = None
    blocks: dict[str, str | None] = field(default_factory=dict)
    """Of each message's own id, its block; or the block it answers where the message itself is not taken over."""

    def block(self) -> Block:
        metadata = {"source": str(self.source)} | ({"model": self.model} if self.model else {})
        return Block(id=self.id, type=BlockType.SESSION, title=self.title, last_modified=self.last, metadata=metadata)

    def records_of(self, said: _Said, where: str, given: dict[str, int]) -> Iterator[Record]:
        answered = self._answered(said)
        if said.role not in _UNSEEN_ROLES and said.lost:
            yield Notice(where=f"{where}, message {self.count + 1}", problem=_lost(said.lost))
        # Other ids may well be those of a person or a session.
        if said.key in self.blocks and _UUID.fullmatch(said.key):
            yield Notice(where=where, problem=f"the message {storable_line(said.key)} is there twice; one was left out")
            return
        if not said.is_shown:
            self._remember(said.key, answered)
            return
        self.count += 1
        block = self._message(said, given)
        yield block
        if answered is not None:
            yield Link(source=block.id, kind=LinkKind.REPLY, target=answered)
        self._remember(said.key, block.id)
        self.previous = block.id

    def _answered(self, said: _Said) -> str | None:
        if said.answers is None:
            return self.previous
        return self.blocks.get(said.answers, self.previous) if said.answers else None

    def _message(self, said: _Said, given: dict[str, int]) -> Block:
        metadata = {"role": said.role, "name": said.name, "model": said.model}
        return Block(
            id=_message_id(said.key, self.id, self.count, given),
            type=BlockType.MESSAGE,
            parent=self.id,
            position=self.count,
            content=storable(said.text),
            last_modified=said.moment,
            metadata={name: value for name, value in metadata.items() if value},
        )

    def _remember(self, key: str, block: str | None) -> None:
        if key:
            self.blocks[key] = block


def _session_id(own: str, source: str, first: _Said, given: dict[str, int]) -> str:
    """The session's own id if that is one in all the world, else one that stays when the session grows."""
    if _UUID.fullmatch(own):
        return _unused(own, given)
    told = f"{source} {own or first.mark}"
    return _unused(f"session-{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}", given)


def _message_id(own: str, session: str, number: int, given: dict[str, int]) -> str:
    # A conversation that was copied holds the other's messages under their ids.
    if _UUID.fullmatch(own) and own not in given:
        return _unused(own, given)
    inner = f"{session}/{own}"
    return _unused(inner if _PLAIN_ID.fullmatch(own) and inner not in given else f"{session}/{number}", given)


def _unused(wanted: str, given: dict[str, int]) -> str:
    """The id, with a number behind it if it was given before; `given` holds the last number of each."""
    found, number = wanted, given.get(wanted, 1)
    while found in given:
        number += 1
        found = f"{wanted}~{number}"
    given[wanted] = number
    given.setdefault(found, 1)
    return found


def _latest(messages: list[_Said]) -> datetime | None:
    return max((said.moment for said in messages if said.moment), default=None)


def _lost(names: tuple[str, ...]) -> str:
    named = list(dict.fromkeys(names))
    more = f" and {len(named) - _NAMED_LOSSES} more" if len(named) > _NAMED_LOSSES else ""
    return f"{', '.join(named[:_NAMED_LOSSES])}{more} could not be taken over; only the text was"


def _first_words(messages: list[_Said]) -> str:
    asked = next((said for said in messages if said.role == "user"), messages[0])
    return _line(asked.text.strip().split("\n", 1)[0])


# -- exports


def _kind_of(value: Mapping[str, Any]) -> ConversationKind | None:
    if isinstance(value.get("mapping"), dict):
        return ConversationKind.CHATGPT
    return ConversationKind.CLAUDE if isinstance(value.get("chat_messages"), list) else None


def _from_chatgpt(value: dict[str, Any]) -> tuple[list[_Said], int]:
    """The messages from the root to the current node, and how many with a text stand elsewhere."""
    nodes = {key: node for key, node in value["mapping"].items() if isinstance(node, dict)}
    current = value.get("current_node")
    if not isinstance(current, str) or current not in nodes:
        current = next((key for key in reversed(nodes) if not nodes[key].get("children")), "")
    messages = {key: _chatgpt_message(key, node) for key, node in nodes.items()}
    return _branch(messages, current)


def _chatgpt_message(key: str, node: Mapping[str, Any]) -> _Said:
    message = _dict(node, "message")
    author, extra = _dict(message, "author"), _dict(message, "metadata")
    is_hidden = extra.get("is_visually_hidden_from_conversation") is True
    text, lost = _rendered(message.get("content"))
    attached = extra.get("attachments")
    names = [_file_name(one) for one in attached] if isinstance(attached, list) else []
    return _Said(
        key=key,
        answers=_text(node, "parent"),
        role="system" if is_hidden or not message else _role(_text(author, "role")),
        text=text,
        moment=_moment(_of(message, "create_time", "update_time")),
        name=_name(_text(author, "name")),
        model=_name(_text(extra, "model_slug")),
        lost=(*lost, *names),
    )


def _from_claude(value: dict[str, Any]) -> tuple[list[_Said], int]:
    """The messages up to the one that was shown last, and how many with a text stand elsewhere."""
    messages: dict[str, _Said] = {}
    last = ""
    for number, one in enumerate(value["chat_messages"]):
        if isinstance(one, dict):
            key = _text(one, "uuid") or f"{number}"
            # Older exports do not say what a message answers: it is the one before.
            messages[key] = _claude_message(key, one, last)
            last = key
    leaf = _text(value, "current_leaf_message_uuid")
    return _branch(messages, leaf if leaf in messages else last)


def _claude_message(key: str, message: Mapping[str, Any], before: str) -> _Said:
    text, lost = _rendered(message.get("content"))
    attached = [one for name in ("attachments", "files") for one in _list(message, name)]
    return _Said(
        key=key,
        answers=_text(message, "parent_message_uuid") or before,
        role=_role(_text(message, "sender", "role")),
        text=text if text.strip() else _text(message, "text"),
        moment=_moment(_of(message, "created_at", "updated_at")),
        lost=(*lost, *(_file_name(one) for one in attached)),
    )


def _branch(messages: dict[str, _Said], leaf: str) -> tuple[list[_Said], int]:
    way: dict[str, _Said] = {}
    while leaf in messages and leaf not in way:
        way[leaf] = messages[leaf]
        leaf = messages[leaf].answers or ""
    others = sum(1 for key, said in messages.items() if key not in way and said.is_shown)
    return list(reversed(way.values())), others


# -- JSON lines


class _Lines:
    """The sessions in a file of JSON lines. It is read twice: a session's title and time come before its messages."""

    def __init__(self, file: IO[bytes], name: str, kind: ConversationKind | None, given: dict[str, int]) -> None:
        self._file = file
        self._name = name
        self._kind = kind
        self._given = given
        self._sessions: dict[str, _Session] = {}
        self._begun: set[str] = set()
        self._summary = ""

    def records(self) -> Iterator[Record]:
        for value in self._values():
            self._survey(value)
        if not self._sessions:
            told = "holds no line with a role and a text; a line is {"
            raise InvalidInput("path", self._name, told + '"role": "user", "content": "…"}, or one of Claude Code\'s')
        if len(self._sessions) == 1 and self._summary:
            next(iter(self._sessions.values())).title = self._summary
        for number, value in enumerate(self._values(), start=1):
            yield from self._line(number, value)

    def _values(self) -> Iterator[Any]:
        self._file.seek(0)
        while line := self._file.readline(_MOST_LINE_BYTES + 1):
            if len(line) > _MOST_LINE_BYTES:
                raise InvalidInput("path", self._name, f"has a line of more than {_MOST_LINE_BYTES:,} bytes")
            yield _parsed(line) if line.strip() else {}

    def _survey(self, value: Any) -> None:
        found = self._said(value)
        if found is None:
            if isinstance(value, dict) and value.get("type") == "summary":
                self._summary = self._summary or _line(_text(value, "summary"))
            return
        kind, said = found
        if not said.is_shown:
            return
        key = _session_key(value)
        session = self._sessions.get(key)
        if session is None:
            made = _session_id(key, self._name, said, self._given)
            session = self._sessions[key] = _Session(id=made, source=kind)
        session.last = max(filter(None, (session.last, said.moment)), default=None)
        session.model = session.model or said.model
        if not session.title and said.role == "user":
            session.title = _first_words([said])

    def _line(self, number: int, value: Any) -> Iterator[Record]:
        where = f"{self._name}, line {number}"
        found = self._said(value)
        if found is None:
            # What Claude Code writes between the messages (snapshots, summaries) has a type.
            if value != {} and not (isinstance(value, dict) and isinstance(value.get("type"), str)):
                yield Notice(where=where, problem="is no message; it was left out")
            return
        key, said = _session_key(value), found[1]
        session = self._sessions.get(key)
        if session is None:
            return
        if key not in self._begun:
            self._begun.add(key)
            yield session.block()
        time = _of(value, *_TIMES)
        if time is not None and said.moment is None:
            yield Notice(where=where, problem="has a time that cannot be read; the message has none now")
        yield from session.records_of(said, where, self._given)

    def _said(self, value: Any) -> tuple[ConversationKind, _Said] | None:
        if not isinstance(value, dict):
            return None
        is_nested = isinstance(value.get("message"), dict)
        kind = ConversationKind.CLAUDE_CODE if is_nested else ConversationKind.JSONL
        message = value["message"] if is_nested else value
        role = _text(message, "role", "sender") or (_text(value, "type") if is_nested else "")
        if not role or self._kind not in (None, kind):
            return None
        return kind, _line_message(value, message, _role(role))


_TIMES: Final = ("timestamp", "created_at", "create_time", "time", "date")


def _line_message(value: Mapping[str, Any], message: Mapping[str, Any], role: str) -> _Said:
    content = message.get("content")
    text, lost = _rendered([content if content is not None else message.get("text"), message.get("tool_calls")])
    parts = content if isinstance(content, list) else []
    # Claude Code files what tools answered under the user's name.
    if parts and all(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts):
        role = "tool"
    return _Said(
        key=_text(value, "uuid", "id"),
        answers=_parent(value),
        role="system" if value.get("isMeta") is True else role,
        text=text,
        moment=_moment(_of(value, *_TIMES)),
        name=_name(_text(message, "name")),
        model=_name(_text(message, "model")),
        lost=lost,
    )


def _parent(value: Mapping[str, Any]) -> str | None:
    found = _text(value, "parentUuid", "parent_id", "reply_to")
    return found or ("" if "parentUuid" in value else None)


def _session_key(value: Mapping[str, Any]) -> str:
    found = _of(value, "session", "conversation_id", "sessionId", "session_id")
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""


def _parsed(line: bytes) -> Any:
    """The value of a line, or None where it is none."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


# -- the text of a message


def _rendered(content: Any) -> tuple[str, tuple[str, ...]]:
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
    kind = _text(part, "type", "content_type")
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
    lost.append(_file_name(part) if kind != "text" else "a part without a text")


def _call(part: dict[str, Any]) -> str:
    """What was asked of a tool: its name, and what it was given as JSON."""
    call = _dict(part, "function") or part
    given = _of(call, "input", "arguments")
    told = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return f"{_text(call, 'name') or 'tool'}({told})"


def _file_name(attached: Any) -> str:
    """What to call something that is no text."""
    if not isinstance(attached, dict):
        return "an attachment"
    kind = _name(_text(attached, "type", "content_type", "mime_type", "file_type"))
    name = _line(_text(attached, "file_name", "name", "filename", "title"))
    return f"the attachment {name}" if name else f"an attachment ({kind or 'of no type'})"


# -- fields from outside


def _of(value: Mapping[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _text(value: Mapping[str, Any], *names: str) -> str:
    return next((found for name in names if isinstance(found := value.get(name), str) and found), "")


def _dict(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _line(text: str) -> str:
    return storable_line(text[:_MOST_TITLE_CHARS].strip())


def _name(text: str) -> str:
    return storable_line(text[:_MOST_NAME_CHARS].strip())


def _role(said: str) -> str:
    role = _name(said.lower())
    return _ROLES.get(role, role) or "unknown"


def _moment(value: Any) -> datetime | None:
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


# -- files


def _open(path: Path, flags: int = 0) -> IO[bytes]:
    """The file, if it is one: a pipe would be waited for."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except ValueError as error:
        raise InvalidInput("path", str(path), f"is none ({error})") from None
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise InvalidInput("path", str(path), "is neither a file nor a folder")
    return file


def _export_entries(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES:
        raise InvalidInput(
            "path", str(path), f"holds more than {_MOST_ENTRIES:,} files; unpack it, and give the folder"
        )
    chosen = sorted((one for one in entries if _EXPORT_FILE.fullmatch(one.filename)), key=lambda one: one.filename)
    if not chosen:
        raise InvalidInput("path", str(path), "holds no conversations.json; is it an export of ChatGPT or Claude?")
    names = [one.filename for one in chosen]
    if len(set(names)) < len(names):
        raise InvalidInput("path", str(path), "holds a file twice under one name; unpack it, and give the folder")
    for one in chosen:
        _check_entry(one, path)
    if sum(one.file_size for one in chosen) > _MOST_ENTRY_BYTES:
        raise InvalidInput("path", str(path), f"unpacks to more than {_MOST_ENTRY_BYTES:,} bytes; take less at a time")
    return chosen


def _check_entry(entry: zipfile.ZipInfo, path: Path) -> None:
    if entry.flag_bits & 1:
        raise InvalidInput("path", str(path), "is encrypted; unpack it, and give the folder")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidInput("path", str(path), "is packed in an unusual way; unpack it, and give the folder")
    if entry.file_size > max(_SMALL_ENTRY_BYTES, entry.compress_size * _MOST_RATIO):
        raise InvalidInput("path", str(path), f"unpacks to more than {_MOST_RATIO} times its size; it is no export")


class _SmallReads:
    """A file that refuses to read much at once: an archive says itself how long its list of files is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek: Callable[..., int] = file.seek
        self.tell = file.tell
        self.seekable = file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, _MOST_DIRECTORY_BYTES + 1) if size >= 0 else _MOST_DIRECTORY_BYTES + 1)
        if len(data) > _MOST_DIRECTORY_BYTES:
            raise zipfile.BadZipFile("its list of files is too long")
        return data


class _Values:
    """The values of a JSON array one at a time, or the one value of a file without an array."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = ""
        self._at = 0

    def __iter__(self) -> Iterator[Any]:
        if self._next() == "\ufeff":
            self._at += 1
        if not self._next():
            raise self._broken("it is empty")
        if self._next() != "[":
            while self._next():
                yield self._value()
            return
        self._at += 1
        if self._next() == "]":
            self._at += 1
        else:
            yield self._value()
            while self._next() == ",":
                self._at += 1
                self._next()
                yield self._value()
            if self._next() != "]":
                raise self._broken("it breaks off, or a comma is missing")
            self._at += 1
        if self._next():
            raise self._broken("something stands after its end")

    def _next(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._is_cut(error) or not self._more():
                    raise self._broken(error.msg) from None
                continue
            except (ValueError, RecursionError) as error:
                raise self._broken(str(error)) from None
            # A number at the end of what was read may go on.
            if end < len(self._text) or isinstance(value, dict | list) or not self._more():
                self._at = end
                return value

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the value may go on beyond what was read, and not be wrong already."""
        return error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 16

    def _more(self) -> bool:
        rest = len(self._text) - self._at
        if rest > _MOST_CONVERSATION_CHARS:
            told = f"holds a conversation of more than {_MOST_CONVERSATION_CHARS:,} characters"
            raise InvalidInput("path", self._name, told)
        # As much again as there is: what is read anew after a cut is then at most twice the whole.
        data = self._file.read(max(_CHUNK_BYTES, min(rest, _MOST_CONVERSATION_CHARS - rest)))
        added = self._decoder.decode(data, final=not data)
        if not data and not added:
            return False
        self._text, self._at = self._text[self._at :] + added, 0
        return True

    def _broken(self, problem: str) -> InvalidInput:
        near = self._text[self._at : self._at + 40]
        return InvalidInput("path", self._name, f"is not whole JSON near {near!a} ({problem}); export it again")


_DECODER: Final = json.JSONDecoder()
