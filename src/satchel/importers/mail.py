"""Mail as people export it: mbox files and folders of .eml, a session for each thread of messages.

A mailbox is read twice: first its headers, to find threads by Message-ID, In-Reply-To and References; then each message
at its place, thread by thread, so that a mailbox of any size needs memory for its headers alone.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Final, NamedTuple

from satchel.errors import InvalidInput
from satchel.importers.archive import first_names
from satchel.importers.storable import Notices, storable_line
from satchel.importers.threads import Post, Thread, thread_records
from satchel.indexing.walk import PassedOver, read_bytes, walk
from satchel.models.block import Record

MAX_MESSAGES: Final = 500_000
"""Headers of all messages are held in memory; the messages beyond are not read, and a notice reports the limit."""

_MAX_MESSAGE_BYTES: Final = 50_000_000  # a message is parsed in memory; mail servers refuse larger ones
_MAX_HEADER_BYTES: Final = 262_144  # headers after that many bytes are not read
_MAX_TEXT_CHARS: Final = 1_000_000  # a longer body is no letter; the rest is left out, with a notice
_MAX_PARTS: Final = 500  # parts of a message looked at: attached messages may hold any number
_MAX_LINE_BYTES: Final = 1_000_000  # read at once
_MAX_REFERENCES: Final = 100  # the newest ancestors decide the thread
_MAX_NAMED: Final = 20  # names of attachments and addresses kept with a message

_MBOX_START: Final = re.compile(rb"From \S+.*\d{4}")
_QUOTED_FROM: Final = re.compile(rb"^>(>*From )", re.MULTILINE)
_MESSAGE_ID: Final = re.compile(r"<([^<>\s]{1,500})>")
_PREFIX: Final = re.compile(r"^(?:\s*(?:re|aw|fwd?|wg|sv|antw|tr|rif)\s*(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)
_HEADERS: Final = (b"message-id", b"in-reply-to", b"references", b"subject", b"date", b"from")
_EMAIL_SUFFIXES: Final = (".eml",)
_MBOX_SUFFIXES: Final = (".mbox", ".mbx")

# `On 1 January Ann wrote:` has a date and is often broken into two lines; `Ann wrote:` is one line.
_DATED_INTRODUCTION: Final = re.compile(
    r"[ \t]*(?:on|am|le|el|il|op|den|em)\b(?=[^:]*\d).{4,300}:\s*", re.IGNORECASE | re.DOTALL
)
_INTRODUCTION: Final = re.compile(r".{1,200}\b(?:wrote|schrieb|a écrit|escribió|ha scritto)\s*:\s*", re.IGNORECASE)


class _Place(NamedTuple):
    """Where a message is: the file, and its first byte and length there."""

    path: str
    start: int
    length: int


@dataclass(slots=True)
class _Head:
    """What the first reading of a message keeps."""

    place: _Place
    key: str
    references: tuple[str, ...]
    subject: str
    time: datetime | None
    thread: str = ""

    @property
    def order(self) -> tuple[float, str, int]:
        """Oldest first; messages without a date by their place."""
        return (self.time.timestamp() if self.time else 0.0, self.place.path, self.place.start)


def is_mail(path: Path) -> bool:
    """True for an mbox file, an .eml file, and a folder with more of them than of other files."""
    if path.is_dir():
        names = first_names(path)
        mails = sum(name.lower().endswith((*_EMAIL_SUFFIXES, *_MBOX_SUFFIXES)) for name in names)
        return mails > len(names) / 2
    if not path.is_file():
        return False
    if path.name.lower().endswith(_EMAIL_SUFFIXES):
        return True
    with path.open("rb") as file:
        return bool(_MBOX_START.match(file.readline(1_000)))


def read_mail(path: Path) -> Iterator[Record]:
    """The threads of a mailbox, of an .eml file, or of all mailboxes in a folder; a Notice for anything left out."""
    folder = path if path.is_dir() else path.parent
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield from _Mail(root, "" if path.is_dir() else path.name).records(str(path))
    finally:
        os.close(root)


@dataclass(slots=True)
class _Mail:
    root: int
    only: str
    """The one file that is read; empty for all in the folder."""
    heads: list[_Head] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)
    attachments: Counter[str] = field(default_factory=Counter)

    def records(self, source: str) -> Iterator[Record]:
        for name in self._names():
            self._survey(name)
            yield from self.notices.take()
        if not self.heads:
            raise InvalidInput("path", source, "contains no message; it must be an mbox file or .eml files")
        used: dict[str, int] = {}
        for position, heads in enumerate(self._threads()):
            thread = Thread(
                id=f"mail/{storable_line(heads[0].key)}",
                title=_PREFIX.sub("", heads[0].subject) or "(no subject)",
                posts=self._posts(heads),
                position=position,
                last_modified=max((head.time for head in heads if head.time), default=None),
                source_path=storable_line(heads[0].place.path),
                metadata={"source": "mail"},
            )
            yield from thread_records(thread, used)
            yield from self.notices.take()
        if self.attachments:
            self.notices.add_unread(self.attachments, "attachments")
            yield from self.notices.take()

    def _names(self) -> list[str]:
        if self.only:
            return [self.only]
        names = []
        for entry in walk(self.root, max_file_bytes=1 << 62):
            if not isinstance(entry, PassedOver) and entry.path.lower().endswith((*_EMAIL_SUFFIXES, *_MBOX_SUFFIXES)):
                names.append(entry.path)
        return sorted(names)

    # -- first reading: headers

    def _survey(self, name: str) -> None:
        """Keep the headers of each message of a file."""
        where = storable_line(name)
        if name.lower().endswith(_EMAIL_SUFFIXES):
            data = read_bytes(self.root, name, _MAX_MESSAGE_BYTES)
            if isinstance(data, bytes):
                self._keep(_Place(name, 0, len(data)), data[:_MAX_HEADER_BYTES])
            else:
                self.notices.add(where, f"not read: {data}")
            return
        try:
            with self._open(name) as file:
                for place, head in _messages_of(file, name):
                    if len(self.heads) >= MAX_MESSAGES:
                        self.notices.add(where, f"only the first {MAX_MESSAGES:,} messages were read")
                        return
                    self._keep(place, head)
        except OSError as error:
            self.notices.add(where, f"not read: {error.strerror}")

    def _open(self, name: str) -> IO[bytes]:
        return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.root), "rb")

    def _keep(self, place: _Place, head: bytes) -> None:
        message = _parsed(_only_known(head))
        (key, *_), references = _ids(message, "Message-ID") or [""], _ids(message, "References", "In-Reply-To")
        self.heads.append(
            _Head(
                place=place,
                key=key or f"{storable_line(place.path)}:{place.start}",
                references=tuple(references[-_MAX_REFERENCES:]),
                subject=_header(message, "Subject"),
                time=_time(message),
            )
        )

    def _threads(self) -> list[list[_Head]]:
        """The messages thread by thread, newest thread first, each thread oldest message first."""
        first_of: dict[str, str] = {}

        def first(key: str) -> str:
            trail = []
            while (above := first_of.setdefault(key, key)) != key:
                trail.append(key)
                key = above
            for passed in trail:
                first_of[passed] = key
            return key

        for head in self.heads:
            for reference in head.references:
                first_of[first(head.key)] = first(reference)
        threads: dict[str, list[_Head]] = {}
        seen: set[str] = set()
        for head in sorted(self.heads, key=lambda head: head.order):
            if head.key not in seen:  # the same message lies in several folders
                seen.add(head.key)
                threads.setdefault(first(head.key), []).append(head)
        return sorted(threads.values(), key=lambda heads: (-heads[-1].order[0], heads[0].key))

    # -- second reading: texts

    def _posts(self, heads: list[_Head]) -> Iterator[Post]:
        keys = {head.key for head in heads}
        for head in heads:
            data = self._bytes(head.place)
            if data is None:
                continue
            message = _parsed(data)
            body = _Body(message)
            where = f"{storable_line(head.place.path)}, message {head.key}"
            for problem in body.problems:
                self.notices.add(where, problem)
            self.attachments.update(os.path.splitext(name)[1].lower() or "no ending" for name in body.attachments)
            answered = [key for key in reversed(head.references) if key in keys]
            text = body.text if not answered else _without_quote(body.text)
            yield Post(
                key=head.key,
                author=_people(message, "From"),
                text=text,
                time=head.time,
                answers=answered[0] if answered else "",
                metadata=_facts(message, body),
            )

    def _bytes(self, place: _Place) -> bytes | None:
        if place.length > _MAX_MESSAGE_BYTES:
            self.notices.add(storable_line(place.path), f"a message has more than {_MAX_MESSAGE_BYTES:,} bytes")
            return None
        try:
            with self._open(place.path) as file:
                file.seek(place.start)
                data = file.read(place.length)
        except OSError as error:
            self.notices.add(storable_line(place.path), f"not read: {error.strerror}")
            return None
        return _QUOTED_FROM.sub(rb"\1", data) if place.start else data


def _messages_of(file: IO[bytes], name: str) -> Iterator[tuple[_Place, bytes]]:
    """The place and the headers of each message of an mbox, one line in memory at a time."""
    start, at = -1, 0
    head, in_head, is_after_blank = bytearray(), False, True
    while line := file.readline(_MAX_LINE_BYTES):
        if is_after_blank and _MBOX_START.match(line):
            if start >= 0:
                yield _Place(name, start, at - start), bytes(head)
            start, head, in_head = at + len(line), bytearray(), True
        elif in_head:
            in_head = bool(line.strip()) and len(head) < _MAX_HEADER_BYTES
            head += line
        is_after_blank = not line.strip()
        at += len(line)
    if start >= 0:
        yield _Place(name, start, at - start), bytes(head)


def _only_known(head: bytes) -> bytes:
    """The headers that threads are made of: some messages have thousands of others."""
    kept, is_known = [], False
    for line in head.splitlines():
        if not line.strip():
            break
        if not line[:1].isspace():
            is_known = line.partition(b":")[0].strip().lower() in _HEADERS
        if is_known:
            kept.append(line)
    return b"\n".join(kept) + b"\n\n"


def _parsed(data: bytes) -> Message:
    try:
        return message_from_bytes(data)
    except (ValueError, LookupError, RecursionError, AttributeError, TypeError):  # headers no server would accept
        return Message()


def _header(message: Message, name: str) -> str:
    """A header as text; undecodable parts as they stand."""
    value = str(message.get(name) or "")
    try:
        parts = decode_header(value)
        decoded = [
            part.decode(charset or "ascii", "replace") if isinstance(part, bytes) else part for part, charset in parts
        ]
    except (ValueError, LookupError):
        decoded = [value]
    return storable_line(" ".join("".join(decoded).split()))


def _ids(message: Message, *names: str) -> list[str]:
    """The message ids in some headers, oldest first."""
    return [storable_line(key) for name in names for key in _MESSAGE_ID.findall(str(message.get(name) or ""))]


def _time(message: Message) -> datetime | None:
    try:
        moment = parsedate_to_datetime(str(message.get("Date") or ""))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _people(message: Message, *names: str) -> str:
    """The names of the people in some headers, or their addresses."""
    try:
        pairs = getaddresses([_header(message, name) for name in names])
    except (ValueError, TypeError, IndexError):
        return ""
    return ", ".join(storable_line(name or address) for name, address in pairs[:_MAX_NAMED] if name or address)


def _facts(message: Message, body: _Body) -> dict[str, object]:
    facts = {"to": _people(message, "To", "Cc"), "attachments": body.attachments[:_MAX_NAMED]}
    return {name: value for name, value in facts.items() if value}


class _Body:
    """The text of a message, and the names of its attachments."""

    def __init__(self, message: Message) -> None:
        self.attachments: list[str] = []
        self.problems: list[str] = []
        plain: list[str] = []
        rich: list[str] = []
        for part in self._parts(message):
            kind = part.get_content_type()
            name = part.get_filename()
            if name is not None or part.get_content_disposition() == "attachment":
                self.attachments.append(storable_line(_decoded_name(name)) or f"an attachment ({kind})")
            elif kind == "text/plain":
                plain.append(self._text(part))
            elif kind == "text/html":
                rich.append(_html_text(self._text(part)))
        text = "\n".join(plain if any(part.strip() for part in plain) else rich).strip()
        if len(text) > _MAX_TEXT_CHARS:
            self.problems.append(f"only the first {_MAX_TEXT_CHARS:,} characters were read")
        self.text = text[:_MAX_TEXT_CHARS]

    def _parts(self, message: Message) -> Iterator[Message]:
        """The parts without parts, in order; walks with a list, since messages may be nested to any depth."""
        waiting, seen = [message], 0
        while waiting:
            part = waiting.pop()
            seen += 1
            if seen > _MAX_PARTS:
                self.problems.append(f"only the first {_MAX_PARTS} parts were read")
                return
            inner = part.get_payload()
            if part.is_multipart() and isinstance(inner, list):
                waiting += reversed([each for each in inner if isinstance(each, Message)])
            else:
                yield part

    def _text(self, part: Message) -> str:
        try:
            data = part.get_payload(decode=True)
            charset = part.get_content_charset() or "utf-8"
        except (ValueError, LookupError, AttributeError):
            self.problems.append("a part could not be decoded")
            return ""
        if not isinstance(data, bytes):
            return ""
        try:
            text = data.decode(charset, "replace")
        except (LookupError, ValueError):
            text = data.decode("utf-8", "replace")
        text = text.replace("\r\n", "\n")
        return _unflowed(text) if part.get_param("format") == "flowed" else text


def _decoded_name(name: str | None) -> str:
    message = Message()
    message["Subject"] = (name or "").replace("\n", " ").replace("\r", " ")
    return _header(message, "Subject")


def _unflowed(text: str) -> str:
    """Paragraphs of `format=flowed` on one line each: a line that ends in a space goes on."""
    lines: list[str] = []
    is_open = False
    for line in text.split("\n"):
        if is_open and not line.startswith(">"):
            lines[-1] += line
        else:
            lines.append(line)
        is_open = line.endswith(" ") and line != "-- " and not line.startswith(">")
    return "\n".join(lines)


def _without_quote(text: str) -> str:
    """An answer without the quoted message at its end, which stands in the thread already."""
    lines = text.rstrip().split("\n")
    end = len(lines)
    while end and (lines[end - 1].startswith(">") or not lines[end - 1].strip()):
        end -= 1
    if end == len(lines):
        return text
    if end and _DATED_INTRODUCTION.fullmatch("\n".join(lines[max(0, end - 2) : end])):
        end = max(0, end - 2)
    elif end and (_DATED_INTRODUCTION.fullmatch(lines[end - 1]) or _INTRODUCTION.fullmatch(lines[end - 1])):
        end -= 1
    return "\n".join(lines[:end]).rstrip() or text


class _TextOfHtml(HTMLParser):
    """Collects the visible text of a message in HTML, a line for each block."""

    _BLOCKS: Final = frozenset("p div br tr li ul ol table h1 h2 h3 h4 h5 h6 blockquote pre hr".split())
    _UNSEEN: Final = frozenset("script style head title template".split())

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 (the parser passes it)
        self._unseen += tag in self._UNSEEN
        if tag in self._BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in self._UNSEEN and self._unseen > 0
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(re.sub(r"\s+", " ", data))


def _html_text(html: str) -> str:
    parser = _TextOfHtml()
    parser.feed(html[: 4 * _MAX_TEXT_CHARS])
    lines = [line.strip() for line in "".join(parser.parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
