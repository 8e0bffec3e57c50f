"""Conversations as sessions with messages below: exports of ChatGPT and Claude, logs of agents, JSON lines.

Imported is the text that a reader of the conversation saw, including tool calls and results, but without system
messages, hidden messages and the model's reasoning. Exports of ChatGPT and Claude are trees, because messages can be
edited and answers regenerated: the branch shown last is imported, and a notice gives the number of messages on the
remaining branches. Sessions in JSON lines are imported line by line, with all branches. Each message has a REPLY link
to the message it answers; pictures and further attachments become notices.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final

from satchel.errors import InvalidInput
from satchel.importers.archive import SmallReads, first_names
from satchel.importers.chat_messages import (
    TIME_FIELDS,
    ChatMessage,
    ConversationKind,
    export_kind,
    line_message,
    messages_of,
    time_of,
    title_line,
)
from satchel.importers.json_values import Values, dict_of, field_of, first_value, text_of
from satchel.importers.storable import storable, storable_line, unused
from satchel.indexing.walk import NOTE_FILES
from satchel.models.block import Block, BlockType, Link, LinkKind, Notice, Record
from satchel.text.zip_entries import BROKEN_ZIP
from satchel.workspace.sources import list_files

_MAX_LINE_BYTES: Final = 16_000_000  # a line is parsed in memory as a whole; a file with a longer line is refused
_MAX_NAMED_LOSSES: Final = 5  # a notice names these and counts the rest, to stay readable

_MOST_ENTRIES: Final = 100_000  # the list of entries is held in memory; an archive with more is refused
_MOST_DIRECTORY_BYTES: Final = 32_000_000  # zipfile reads the central directory into memory; a longer one is refused
# For all files of an export; conversations are streamed, so this bounds time and not memory.
_MAX_UNPACKED_BYTES: Final = 8_000_000_000
_MAX_UNPACK_RATIO: Final = 200  # text shrinks to a tenth, a zip bomb to a thousandth
_SMALL_ENTRY_BYTES: Final = 10_000_000  # a file that unpacks to less does no harm at any ratio

_BLANK_BYTES: Final = b" \t\r\n\xef\xbb\xbf"
_EXPORT_FILE: Final = re.compile(r"(?:[^/\\]+/)?conversations(?:-\d+)?\.json")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

UsedIds = dict[str, int]
"""The ids in use, to avoid duplicates (see `unused`)."""


def is_conversations(path: Path) -> bool:
    """True for an export, a file with messages, or a folder of message files without notes."""
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


def read_conversations(path: Path) -> Iterator[Record]:
    """The conversations in a file, in an export's .zip, or in a folder of conversation files."""
    try:
        yield from _read(path, {})
    except InvalidInput:
        raise
    except BROKEN_ZIP as error:  # a damaged archive or disk, or too deeply nested JSON
        raise InvalidInput("path", str(path), _reason(error)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, InvalidInput):
        return error.problem
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be read ({storable_line(reason)})"


# -- files


def _read(path: Path, used: UsedIds) -> Iterator[Record]:
    if path.is_dir():
        yield from _folder(path, used)
        return
    with _open(path) as file:
        if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
            yield from _archive(file, path, used)
            return
        file.seek(0)
        yield from _file(file, path.name, used)


def _open(path: Path, flags: int = 0) -> IO[bytes]:
    """The opened regular file; a pipe is refused, because reading a pipe would block."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except ValueError as error:
        raise InvalidInput("path", str(path), f"is not a zip file ({error})") from None
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise InvalidInput("path", str(path), "is neither a file nor a folder")
    return file


def _folder(path: Path, used: UsedIds) -> Iterator[Record]:
    exports = sorted(name for name in os.listdir(path) if _EXPORT_FILE.fullmatch(name))
    for name in exports:
        with _open(path / name, os.O_NOFOLLOW) as file:
            yield from _file(file, name, used)
    if not exports:
        # Agents file sessions by project or by day.
        found = (name for name, _ in islice(list_files(str(path)), _MOST_ENTRIES))
        yield from _folder_of_lines(path, sorted(name for name in found if name.endswith(".jsonl")), used)


def _folder_of_lines(path: Path, names: list[str], used: UsedIds) -> Iterator[Record]:
    """Records from a folder of JSON-lines sessions; Claude Code's files without a message are skipped with a notice."""
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
                yield from _Lines(file, where, used).records()
                read += 1
            except InvalidInput as error:
                yield Notice(where=where, problem=f"{error.problem}; the file was left out")
    if not read:
        raise InvalidInput("path", str(path), "contains neither conversations.json nor a .jsonl file with messages")


def _archive(file: IO[bytes], path: Path, used: UsedIds) -> Iterator[Record]:
    with zipfile.ZipFile(SmallReads(file, _MOST_DIRECTORY_BYTES)) as archive:
        entries = archive.infolist()
        exports = [entry for entry in entries if _EXPORT_FILE.fullmatch(entry.filename)]
        exports.sort(key=attrgetter("filename"))
        if problem := _archive_problem(exports, len(entries)):
            raise InvalidInput("path", str(path), problem)
        for entry in exports:
            with archive.open(entry) as inner:
                yield from _file(inner, entry.filename, used)


def _archive_problem(exports: list[zipfile.ZipInfo], entries: int) -> str:
    """The reason not to read an archive; empty if the archive is acceptable."""
    if entries > _MOST_ENTRIES:
        return f"contains more than {_MOST_ENTRIES:,} files; unpack it, and import the folder"
    if not exports:
        return "contains no conversations.json; is it an export of ChatGPT or Claude?"
    if len({entry.filename for entry in exports}) < len(exports):
        return "contains two files with the same name; unpack it, and import the folder"
    for entry in exports:
        if entry.flag_bits & 1:
            return "is encrypted; unpack it, and import the folder"
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return "uses an unsupported compression; unpack it, and import the folder"
        if entry.file_size > max(_SMALL_ENTRY_BYTES, entry.compress_size * _MAX_UNPACK_RATIO):
            return f"unpacks to more than {_MAX_UNPACK_RATIO} times its size (zip bomb)"
    if sum(entry.file_size for entry in exports) > _MAX_UNPACKED_BYTES:
        return f"unpacks to more than {_MAX_UNPACKED_BYTES:,} bytes; import it in parts"
    return ""


def _file(file: IO[bytes], name: str, used: UsedIds) -> Iterator[Record]:
    name = storable_line(name)
    line = b"\n"
    while line and not line.strip(_BLANK_BYTES):
        line = file.readline(_MAX_LINE_BYTES)
    file.seek(0)
    if line.lstrip(_BLANK_BYTES)[:1] not in (b"[", b"{"):
        kinds = ", ".join(ConversationKind)
        raise InvalidInput("path", name, f"is not a known kind of conversation; it must be one of {kinds}")
    first = _parsed(line)
    if isinstance(first, dict) and export_kind(first) is None:
        yield from _Lines(file, name, used).records()
    else:
        yield from _export(file, name, used)


def _parsed(line: bytes) -> Any:
    """The JSON value of a line; None if the line is not JSON."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


# -- records of a conversation


def _export(file: IO[bytes], name: str, used: UsedIds) -> Iterator[Record]:
    number = known = 0
    for number, value in enumerate(Values(file, name), start=1):
        where = f"{name}, conversation {number}"
        kind = export_kind(value)
        if kind is None:
            yield Notice(where=where, problem="is not a conversation; it was left out")
            continue
        known += 1
        yield from _conversation(kind, value, where, used)
    if number and not known:
        raise InvalidInput(
            "path", name, "contains no conversation of ChatGPT, Claude or opencode; is it the right file?"
        )


def _conversation(kind: ConversationKind, value: dict[str, Any], where: str, used: UsedIds) -> Iterator[Record]:
    messages, others = messages_of(kind, value)
    visible = [message for message in messages if message.is_shown]
    if others:
        yield Notice(where=where, problem=f"messages on inactive branches were left out: {others}")
    if not visible:
        yield Notice(where=where, problem="has no message with text; it was left out")
        return
    head = dict_of(value, "info") if kind is ConversationKind.OPENCODE else value
    models = [title_line(text_of(head, "default_model_slug", "model")), *(message.model for message in visible)]
    times = [message.time for message in visible if message.time]
    session = _Session(
        id=_session_id(text_of(head, "conversation_id", "uuid", "id"), kind, visible[0], used),
        source=kind,
        title=title_line(text_of(head, "title", "name")) or _first_words(visible),
        last=time_of(field_of(head, "update_time", "updated_at")) or max(times, default=None),
        model=next(filter(None, models), ""),
    )
    # Hidden messages are passed too: a reply to a hidden message links to the message that the hidden one answers.
    for message in messages:
        yield from session.records_of(message, where, used)


@dataclass(slots=True, kw_only=True)
class _Session:
    """State of a session while messages are converted to records."""

    id: str
    source: ConversationKind
    title: str = ""
    last: datetime | None = None
    model: str = ""
    count: int = 0
    previous: str | None = None
    is_begun: bool = False
    blocks: dict[str, str | None] = field(default_factory=dict)
    """Block id for each message key; for a message without a block, the block that the message answers."""

    def records_of(self, message: ChatMessage, where: str, used: UsedIds) -> Iterator[Record]:
        """Records for the next message: notices, block and link; the session's own block comes before the first."""
        if not self.is_begun:
            self.is_begun = True
            metadata = {"source": str(self.source)} | ({"model": self.model} if self.model else {})
            yield Block(
                id=self.id, type=BlockType.SESSION, title=self.title, last_modified=self.last, metadata=metadata
            )
        answered = self._answered(message)
        if not message.is_hidden and message.left_out:
            yield Notice(where=f"{where}, message {self.count + 1}", problem=_loss(message.left_out))
        # Only a UUID identifies a message; a shorter key may be the id of a person or a session.
        if message.key in self.blocks and _UUID.fullmatch(message.key):
            key = storable_line(message.key)
            yield Notice(where=where, problem=f"the message {key} is a duplicate; it was left out")
            return
        block_id = answered
        if message.is_shown:
            self.count += 1
            block = self._block(message, _message_id(message.key, self.id, self.count, used))
            yield block
            if answered is not None:
                yield Link(source=block.id, kind=LinkKind.REPLY, target=answered)
            block_id = self.previous = block.id
        if message.key:
            self.blocks[message.key] = block_id

    def _answered(self, message: ChatMessage) -> str | None:
        if message.answers is None:
            return self.previous
        return self.blocks.get(message.answers, self.previous) if message.answers else None

    def _block(self, message: ChatMessage, block_id: str) -> Block:
        metadata = {"role": message.role, "name": message.name, "model": message.model}
        return Block(
            id=block_id,
            type=BlockType.MESSAGE,
            parent=self.id,
            position=self.count,
            content=storable(message.text),
            last_modified=message.time,
            metadata={name: value for name, value in metadata.items() if value},
        )


def _session_id(own: str, source: str, first: ChatMessage, used: UsedIds) -> str:
    """The session's UUID, else a hash of the session's id or first message: stable when the session grows."""
    if _UUID.fullmatch(own):
        return unused(own, used, "~")
    identity = f"{source} {own or f'{first.role} {first.time} {first.text}'}"
    digest = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return unused(f"session-{digest}", used, "~")


def _message_id(own: str, session: str, number: int, used: UsedIds) -> str:
    # A copied conversation repeats the message ids of the original.
    if _UUID.fullmatch(own) and own not in used:
        return unused(own, used, "~")
    inner = f"{session}/{own}"
    return unused(inner if _PLAIN_ID.fullmatch(own) and inner not in used else f"{session}/{number}", used, "~")


def _loss(names: tuple[str, ...]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _MAX_NAMED_LOSSES} more" if len(distinct) > _MAX_NAMED_LOSSES else ""
    return f"{', '.join(distinct[:_MAX_NAMED_LOSSES])}{more} could not be imported; only the text was"


def _first_words(messages: list[ChatMessage]) -> str:
    question = next((message for message in messages if message.role == "user"), messages[0])
    return title_line(question.text.strip().split("\n", 1)[0])


# -- JSON lines


@dataclass(slots=True)
class _Lines:
    """The sessions in a JSON-lines file, read twice: a session's title and time come before the messages."""

    file: IO[bytes]
    name: str
    used: UsedIds
    sessions: dict[str, _Session] = field(default_factory=dict)
    summary: str = ""
    own_id: str = ""
    """The id of the session whose file this is, as Codex states it."""

    def records(self) -> Iterator[Record]:
        for value in self._values():
            self._survey(value)
        if not self.sessions:
            expected = '{"role": "user", "content": "…"}, or one of Claude Code\'s'
            raise InvalidInput("path", self.name, f"contains no line with a role and text; a line is {expected}")
        if len(self.sessions) == 1 and self.summary:
            next(iter(self.sessions.values())).title = self.summary
        for number, value in enumerate(self._values(), start=1):
            yield from self._line(f"{self.name}, line {number}", value)

    def _values(self) -> Iterator[Any]:
        self.file.seek(0)
        while line := self.file.readline(_MAX_LINE_BYTES + 1):
            if len(line) > _MAX_LINE_BYTES:
                raise InvalidInput("path", self.name, f"has a line of more than {_MAX_LINE_BYTES:,} bytes")
            yield _parsed(line) if line.strip() else {}

    def _survey(self, value: Any) -> None:
        message = line_message(value)
        if message is None:
            if isinstance(value, dict) and value.get("type") == "summary":
                self.summary = self.summary or title_line(text_of(value, "summary"))
            if isinstance(value, dict) and value.get("type") == "session_meta":
                self.own_id = self.own_id or text_of(dict_of(value, "payload"), "id")
            return
        if not message.is_shown:
            return
        key = _session_key(value) or self.own_id
        session = self.sessions.get(key)
        if session is None:
            session_id = _session_id(key, self.name, message, self.used)
            session = self.sessions[key] = _Session(id=session_id, source=message.source)
        session.last = max(filter(None, (session.last, message.time)), default=None)
        session.model = session.model or message.model
        if not session.title and message.role == "user":
            session.title = _first_words([message])

    def _line(self, where: str, value: Any) -> Iterator[Record]:
        message = line_message(value)
        if message is None:
            # What Claude Code writes between the messages (snapshots, summaries) has a type.
            if value != {} and not (isinstance(value, dict) and isinstance(value.get("type"), str)):
                yield Notice(where=where, problem="is not a message; it was left out")
            return
        session = self.sessions.get(_session_key(value) or self.own_id)
        if session is None:
            return
        if message.time is None and field_of(value, *TIME_FIELDS) is not None:
            yield Notice(where=where, problem="has an invalid time; the message was imported without a time")
        yield from session.records_of(message, where, self.used)


def _session_key(value: Mapping[str, Any]) -> str:
    key = field_of(value, "session", "conversation_id", "sessionId", "session_id")
    return str(key) if isinstance(key, str | int) and not isinstance(key, bool) else ""
