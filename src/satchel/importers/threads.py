"""Threads of messages between people as records: a session for each thread, with a message for each post.

Shared by the importers of chats and mail. A post answers another by its key; a post whose answered post is missing
answers nothing. Ids contain the source's own keys, so that they are the same after the next import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from satchel.importers.storable import storable, storable_line, unused
from satchel.models.block import Block, BlockType, Link, LinkKind, Record

_MAX_TITLE_CHARS: Final = 120  # a title is a line in a list; the first message is not cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message of a thread: who wrote what and when, and the key of the post that it answers."""

    key: str
    author: str
    text: str
    time: datetime | None = None
    answers: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Posts that a reader opens as a whole, oldest first, and where they stand."""

    id: str
    title: str
    posts: Iterable[Post]
    parent: str | None = None
    position: float = 0
    last_modified: datetime | None = None
    """The time of the last post, which is known before the posts are read."""
    source_path: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def thread_records(thread: Thread, used: dict[str, int]) -> Iterator[Record]:
    """The session of a thread, its messages, and a link from each answer to what it answers."""
    session = unused(thread.id, used)
    yield Block(
        id=session,
        type=BlockType.SESSION,
        title=title_of(thread.title),
        parent=thread.parent,
        position=thread.position,
        last_modified=thread.last_modified,
        source_path=thread.source_path,
        metadata=thread.metadata,
    )
    written: dict[str, str] = {}
    for number, post in enumerate(thread.posts, start=1):
        message = unused(f"{session}/{storable_line(post.key) or number}", used)
        yield Block(
            id=message,
            type=BlockType.MESSAGE,
            parent=session,
            position=number,
            content=storable(post.text),
            last_modified=post.time,
            source_path=thread.source_path,
            metadata={"author": storable_line(post.author)} | dict(post.metadata),
        )
        if post.answers in written:
            yield Link(source=message, kind=LinkKind.REPLY, target=written[post.answers])
        written[post.key] = message


def title_of(text: str) -> str:
    """The first line of a text as a title, cut at a word."""
    line = storable_line(text.strip().partition("\n")[0].strip())
    if len(line) <= _MAX_TITLE_CHARS:
        return line
    return line[:_MAX_TITLE_CHARS].rpartition(" ")[0].rstrip(" ,.;:") + "…"
