"""Conversations as sessions with messages below: exports of ChatGPT and Claude, Claude Code's files, JSON lines.

What is taken over of a conversation is what its reader saw, as text: tools' calls and results too, but neither system
messages nor hidden ones, nor what a model thought before it spoke. Exports of ChatGPT and Claude are trees, because
messages can be edited and answers asked for again: the branch that was last shown is taken over, and a notice says how
many messages stand on others. Sessions in JSON lines are taken over line by line, all branches included. Each message
has a REPLY link to the one it answers; pictures and other attachments become notices.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

from satchel.errors import InvalidInput, InvalidOption
from satchel.importers.archive import SmallReads
from satchel.importers.detection import first_names, first_value
from satchel.importers.json_values import Values
from satchel.importers.message_parts import (
    UNSEEN_ROLES,
    Said,
    dict_of,
    field_of,
    file_name,
    line_of,
    list_of,
    moment_of,
    name_of,
    rendered,
    role_of,
    text_of,
)
from satchel.importers.storable import storable, storable_line, unused
from satchel.indexing.walk import NOTE_FILES
from satchel.models.block import Block, BlockType, Link, LinkKind, Notice, Record


class ConversationKind(StrEnum):
    """Who wrote a conversation down."""

    JSONL = "jsonl"
    CLAUDE_CODE = "claude-code"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


_LINE_KINDS: Final = (ConversationKind.JSONL, ConversationKind.CLAUDE_CODE)

_MOST_LINE_BYTES: Final = 16_000_000
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


def is_conversations(path: Path) -> bool:
    """True for an export, a file with messages, and a folder of such files without notes."""
    if path.is_dir():
        return (path / "conversations.json").is_file() or _holds_sessions(first_names(path))
    if zipfile.is_zipfile(path):
        return any(name.rpartition("/")[2] == "conversations.json" for name in first_names(path))
    value = first_value(path)
    return isinstance(value, list) or (isinstance(value, dict) and "record" not in value)


def _holds_sessions(names: list[str]) -> bool:
    from satchel.importers.notion import has_notion_names

    has_notes = any(name.endswith(NOTE_FILES) for name in names)
    return any(name.endswith(".jsonl") for name in names) and not has_notes and not has_notion_names(names)


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
            archive = zipfile.ZipFile(SmallReads(file, _MOST_DIRECTORY_BYTES))
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
        for number, value in enumerate(Values(file, name), start=1):
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
            id=_session_id(text_of(value, "conversation_id", "uuid", "id"), kind, shown[0], self._given),
            source=kind,
            title=line_of(text_of(value, "title", "name")) or _first_words(shown),
            last=moment_of(field_of(value, "update_time", "updated_at")) or _latest(shown),
            model=line_of(text_of(value, "default_model_slug", "model"))
            or next((s.model for s in shown if s.model), ""),
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

    def records_of(self, said: Said, where: str, given: dict[str, int]) -> Iterator[Record]:
        answered = self._answered(said)
        if said.role not in UNSEEN_ROLES and said.lost:
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

    def _answered(self, said: Said) -> str | None:
        if said.answers is None:
            return self.previous
        return self.blocks.get(said.answers, self.previous) if said.answers else None

    def _message(self, said: Said, given: dict[str, int]) -> Block:
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


def _session_id(own: str, source: str, first: Said, given: dict[str, int]) -> str:
    """The session's own id if that is one in all the world, else one that stays when the session grows."""
    if _UUID.fullmatch(own):
        return unused(own, given, "~")
    told = f"{source} {own or first.mark}"
    return unused(f"session-{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}", given, "~")


def _message_id(own: str, session: str, number: int, given: dict[str, int]) -> str:
    # A conversation that was copied holds the other's messages under their ids.
    if _UUID.fullmatch(own) and own not in given:
        return unused(own, given, "~")
    inner = f"{session}/{own}"
    return unused(inner if _PLAIN_ID.fullmatch(own) and inner not in given else f"{session}/{number}", given, "~")


def _latest(messages: list[Said]) -> datetime | None:
    return max((said.moment for said in messages if said.moment), default=None)


def _lost(names: tuple[str, ...]) -> str:
    named = list(dict.fromkeys(names))
    more = f" and {len(named) - _NAMED_LOSSES} more" if len(named) > _NAMED_LOSSES else ""
    return f"{', '.join(named[:_NAMED_LOSSES])}{more} could not be taken over; only the text was"


def _first_words(messages: list[Said]) -> str:
    asked = next((said for said in messages if said.role == "user"), messages[0])
    return line_of(asked.text.strip().split("\n", 1)[0])


# -- exports


def _kind_of(value: Mapping[str, Any]) -> ConversationKind | None:
    if isinstance(value.get("mapping"), dict):
        return ConversationKind.CHATGPT
    return ConversationKind.CLAUDE if isinstance(value.get("chat_messages"), list) else None


def _from_chatgpt(value: dict[str, Any]) -> tuple[list[Said], int]:
    """The messages from the root to the current node, and how many with a text stand elsewhere."""
    nodes = {key: node for key, node in value["mapping"].items() if isinstance(node, dict)}
    current = value.get("current_node")
    if not isinstance(current, str) or current not in nodes:
        current = next((key for key in reversed(nodes) if not nodes[key].get("children")), "")
    messages = {key: _chatgpt_message(key, node) for key, node in nodes.items()}
    return _branch(messages, current)


def _chatgpt_message(key: str, node: Mapping[str, Any]) -> Said:
    message = dict_of(node, "message")
    author, extra = dict_of(message, "author"), dict_of(message, "metadata")
    is_hidden = extra.get("is_visually_hidden_from_conversation") is True
    text, lost = rendered(message.get("content"))
    attached = extra.get("attachments")
    names = [file_name(one) for one in attached] if isinstance(attached, list) else []
    return Said(
        key=key,
        answers=text_of(node, "parent"),
        role="system" if is_hidden or not message else role_of(text_of(author, "role")),
        text=text,
        moment=moment_of(field_of(message, "create_time", "update_time")),
        name=name_of(text_of(author, "name")),
        model=name_of(text_of(extra, "model_slug")),
        lost=(*lost, *names),
    )


def _from_claude(value: dict[str, Any]) -> tuple[list[Said], int]:
    """The messages up to the one that was shown last, and how many with a text stand elsewhere."""
    messages: dict[str, Said] = {}
    last = ""
    for number, one in enumerate(value["chat_messages"]):
        if isinstance(one, dict):
            key = text_of(one, "uuid") or f"{number}"
            # Older exports do not say what a message answers: it is the one before.
            messages[key] = _claude_message(key, one, last)
            last = key
    leaf = text_of(value, "current_leaf_message_uuid")
    return _branch(messages, leaf if leaf in messages else last)


def _claude_message(key: str, message: Mapping[str, Any], before: str) -> Said:
    text, lost = rendered(message.get("content"))
    attached = [one for name in ("attachments", "files") for one in list_of(message, name)]
    return Said(
        key=key,
        answers=text_of(message, "parent_message_uuid") or before,
        role=role_of(text_of(message, "sender", "role")),
        text=text if text.strip() else text_of(message, "text"),
        moment=moment_of(field_of(message, "created_at", "updated_at")),
        lost=(*lost, *(file_name(one) for one in attached)),
    )


def _branch(messages: dict[str, Said], leaf: str) -> tuple[list[Said], int]:
    way: dict[str, Said] = {}
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
                self._summary = self._summary or line_of(text_of(value, "summary"))
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
        time = field_of(value, *_TIMES)
        if time is not None and said.moment is None:
            yield Notice(where=where, problem="has a time that cannot be read; the message has none now")
        yield from session.records_of(said, where, self._given)

    def _said(self, value: Any) -> tuple[ConversationKind, Said] | None:
        if not isinstance(value, dict):
            return None
        is_nested = isinstance(value.get("message"), dict)
        kind = ConversationKind.CLAUDE_CODE if is_nested else ConversationKind.JSONL
        message = value["message"] if is_nested else value
        role = text_of(message, "role", "sender") or (text_of(value, "type") if is_nested else "")
        if not role or self._kind not in (None, kind):
            return None
        return kind, _line_message(value, message, role_of(role))


_TIMES: Final = ("timestamp", "created_at", "create_time", "time", "date")


def _line_message(value: Mapping[str, Any], message: Mapping[str, Any], role: str) -> Said:
    content = message.get("content")
    text, lost = rendered([content if content is not None else message.get("text"), message.get("tool_calls")])
    parts = content if isinstance(content, list) else []
    # Claude Code files what tools answered under the user's name.
    if parts and all(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts):
        role = "tool"
    return Said(
        key=text_of(value, "uuid", "id"),
        answers=_parent(value),
        role="system" if value.get("isMeta") is True else role,
        text=text,
        moment=moment_of(field_of(value, *_TIMES)),
        name=name_of(text_of(message, "name")),
        model=name_of(text_of(message, "model")),
        lost=lost,
    )


def _parent(value: Mapping[str, Any]) -> str | None:
    found = text_of(value, "parentUuid", "parent_id", "reply_to")
    return found or ("" if "parentUuid" in value else None)


def _session_key(value: Mapping[str, Any]) -> str:
    found = field_of(value, "session", "conversation_id", "sessionId", "session_id")
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""


def _parsed(line: bytes) -> Any:
    """The value of a line, or None where it is none."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


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
