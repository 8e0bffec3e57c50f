"""A Slack export: a page for each channel, below it a session for each thread and for each day without threads.

An export is a folder or a zip with `channels.json`, `users.json` and a folder of days for each channel. Direct messages
and private channels are in it only where the export says so; they are imported like channels, marked `private`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from satchel.errors import InvalidInput
from satchel.importers.archive import Export, ExportFile, first_names, open_export
from satchel.importers.json_values import dict_of, list_of, text_of
from satchel.importers.storable import Notices, storable_line
from satchel.importers.threads import Post, Thread, thread_records, title_of
from satchel.models.block import Block, BlockType, Notice, Record

_MAX_DAY_BYTES: Final = 64_000_000  # a day of a busy channel has some megabytes; the day is parsed in memory
_MAX_CHANNEL_POSTS: Final = 2_000_000  # bounds the memory of a channel, which is sorted as a whole
_MAX_NAMED_FILES: Final = 20  # names of attachments kept with a message

_DAY: Final = re.compile(r"(?:[^/]+/)?([^/]+)/(\d{4}-\d{2}-\d{2})\.json")
_LIST: Final = re.compile(r"(?:[^/]+/)?(channels|groups|dms|mpims|users)\.json")
_PRIVATE_LISTS: Final = frozenset({"groups", "dms", "mpims"})
_TIMESTAMP: Final = re.compile(r"\d{1,12}\.\d{1,9}")
_MARKUP: Final = re.compile(r"<([@#!]?)([^<>|]{1,2000})(?:\|([^<>]{0,2000}))?>")

# Who joined, left or renamed what: no reader looks for it.
_SILENT: Final = frozenset(
    "channel_join channel_leave channel_topic channel_purpose channel_name channel_archive channel_unarchive "
    "group_join group_leave group_topic group_purpose group_name group_archive pinned_item unpinned_item "
    "bot_add bot_remove tombstone reminder_add sh_room_created".split()
)


def is_slack_export(path: Path) -> bool:
    """True for a folder or zip with a list of channels and at least one day of messages."""
    names = first_names(path)
    lists = {match[1] for name in names if (match := _LIST.fullmatch(name))}
    return bool(lists & {"channels", *_PRIVATE_LISTS}) and ("users" in lists or any(map(_DAY.fullmatch, names)))


def read_slack(path: Path) -> Iterator[Record]:
    """The channels of an export with their threads; a Notice for anything left out."""
    with open_export(path, _MAX_DAY_BYTES) as export:
        reader = _Slack(export)
        yield from reader.records(str(path))


@dataclass(slots=True)
class _Channel:
    """A channel or conversation: its id and name, and its days in order."""

    id: str
    name: str
    about: str = ""
    is_private: bool = False
    days: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Slack:
    export: Export
    people: dict[str, str] = field(default_factory=dict)
    """Shown names by user id."""
    channels: dict[str, _Channel] = field(default_factory=dict)
    """Channels by the name of their folder."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of channels by id, for mentions."""
    used: dict[str, int] = field(default_factory=dict)
    notices: Notices = field(default_factory=Notices)

    def records(self, source: str) -> Iterator[Record]:
        lists: dict[str, str] = {}
        days: list[ExportFile] = []
        for file in self.export.files():
            if isinstance(file, Notice):
                yield file
            elif match := _LIST.fullmatch(file.path):
                lists[match[1]] = file.path
            elif _DAY.fullmatch(file.path):
                days.append(file)
        for name in ("users", "channels", "groups", "mpims", "dms"):
            if name in lists:
                self._read_list(name, lists[name])
        for file in sorted(days):
            folder = _folder(file.path)
            self.channels.setdefault(folder, _Channel(folder, folder)).days.append(file.path)
        if not days:
            raise InvalidInput("path", source, "contains no day of messages (CHANNEL/2026-11-01.json)")
        for position, folder in enumerate(sorted(self.channels)):
            yield from self._channel(self.channels[folder], position)
            yield from self.notices.take()
        if hidden := sum(channel.is_private and bool(channel.days) for channel in self.channels.values()):
            problem = f"{hidden} private channels and direct conversations were imported; grant access only to members"
            yield Notice(where="", problem=problem)

    # -- lists

    def _read_list(self, kind: str, path: str) -> None:
        for entry in self._values(path):
            if kind == "users":
                self.people[text_of(entry, "id")] = _shown_name(entry)
                continue
            identifier = text_of(entry, "id")
            name = text_of(entry, "name") or self._members(entry) or identifier
            about = text_of(dict_of(entry, "purpose"), "value") or text_of(dict_of(entry, "topic"), "value")
            # The folder of a direct conversation is called like its id, that of a channel like its name.
            folder = identifier if kind == "dms" else text_of(entry, "name") or identifier
            is_private = kind in _PRIVATE_LISTS
            self.channels[folder] = _Channel(identifier or name, name, self._plain(about), is_private)
            self.names[identifier] = name

    def _members(self, entry: Mapping[str, Any]) -> str:
        members = [self._person(member) for member in list_of(entry, "members") if isinstance(member, str)]
        return ", ".join(members)

    def _values(self, path: str) -> list[dict[str, Any]]:
        """The objects in a JSON file; nothing but a notice if it cannot be read."""
        data = self.export.read(path)
        if isinstance(data, Notice):
            self.notices.append(data)
            return []
        try:
            values = json.loads(data.decode("utf-8", "surrogateescape").lstrip("\ufeff"))
        except (ValueError, RecursionError) as error:
            self.notices.add(storable_line(path), f"not read: not valid JSON ({error}); export it again")
            return []
        if not isinstance(values, list):
            self.notices.add(storable_line(path), "not read: not a list of messages")
            return []
        return [value for value in values if isinstance(value, dict)]

    # -- messages

    def _channel(self, channel: _Channel, position: int) -> Iterator[Record]:
        if not channel.days:
            return
        page = f"slack/{storable_line(channel.id)}"
        posts = self._posts(channel)
        private = {"private": True} if channel.is_private else {}
        yield Block(
            id=page,
            type=BlockType.PAGE,
            title=("" if channel.is_private else "#") + storable_line(channel.name),
            content=channel.about,
            position=position,
            last_modified=max((post.time for post in posts.values() if post.time), default=None),
            source_path=storable_line(channel.name),
            metadata={"source": "slack"} | private,
        )
        for number, thread in enumerate(self._threads(channel, posts)):
            thread_of_page = Thread(
                id=f"{page}/{thread[0]}",
                title=thread[1],
                posts=thread[2],
                parent=page,
                position=number,
                last_modified=thread[2][-1].time,
                source_path=storable_line(channel.name),
                metadata={"source": "slack", "channel": storable_line(channel.name)},
            )
            yield from thread_records(thread_of_page, self.used)

    def _threads(self, channel: _Channel, posts: Mapping[str, Post]) -> Iterator[tuple[str, str, list[Post]]]:
        """Name, title and posts: each thread by its first post, and the other posts of each day together."""
        answered: dict[str, list[Post]] = {}
        for post in posts.values():
            if post.answers in posts:
                answered.setdefault(post.answers, []).append(post)
        days: dict[str, list[Post]] = {}
        for key, post in posts.items():
            if key in answered:
                yield key, post.text or post.author, [post, *answered[key]]
            elif post.answers not in posts:
                days.setdefault(post.time.date().isoformat() if post.time else "undated", []).append(post)
        for day, alone in days.items():
            yield day, f"{'' if channel.is_private else '#'}{channel.name}, {day}", alone

    def _posts(self, channel: _Channel) -> dict[str, Post]:
        """The posts of a channel by time stamp, oldest first."""
        posts: dict[str, Post] = {}
        for path in channel.days:
            for number, value in enumerate(self._values(path), start=1):
                post = self._post(channel, value)
                if post is None or value.get("subtype") in _SILENT:
                    if post is None:
                        self.notices.add(f"{storable_line(path)}, message {number}", "has no time stamp; left out")
                    continue
                if len(posts) >= _MAX_CHANNEL_POSTS:
                    self.notices.add(storable_line(path), f"only the first {_MAX_CHANNEL_POSTS:,} messages were read")
                    return posts
                if post.text or post.metadata.get("attachments"):
                    posts[post.key] = post
        return dict(sorted(posts.items(), key=lambda item: _seconds(item[0])))

    def _post(self, channel: _Channel, value: Mapping[str, Any]) -> Post | None:
        key = text_of(value, "ts")
        if not _TIMESTAMP.fullmatch(key):
            return None
        first = text_of(value, "thread_ts")
        files = [title_of(text_of(file, "title", "name")) for file in list_of(value, "files") if isinstance(file, dict)]
        metadata: dict[str, Any] = {}
        if named := [name for name in files if name][:_MAX_NAMED_FILES]:
            metadata["attachments"] = named
        if channel.id and re.fullmatch(r"[A-Z0-9]{6,20}", channel.id):
            metadata["permalink"] = f"/archives/{channel.id}/p{key.replace('.', '')}"
        return Post(
            key=key,
            author=self._author(value),
            text=self._text(value),
            time=_moment(key),
            answers=first if first != key else "",
            metadata=metadata,
        )

    def _author(self, value: Mapping[str, Any]) -> str:
        user = text_of(value, "user")
        if user in self.people:
            return self.people[user]
        profile = dict_of(value, "user_profile")
        return _shown_name(profile) or text_of(value, "username") or self._person(user or text_of(value, "bot_id"))

    def _person(self, identifier: str) -> str:
        return self.people.get(identifier) or identifier or "unknown"

    def _text(self, value: Mapping[str, Any]) -> str:
        """The message as its reader saw it; the texts of attachments below."""
        parts = [text_of(value, "text")]
        for attachment in list_of(value, "attachments"):
            if isinstance(attachment, dict):
                parts += [text_of(attachment, "title"), text_of(attachment, "text", "fallback")]
        shown = [self._plain(part).strip() for part in dict.fromkeys(parts) if part.strip()]
        return "\n".join(part for part in shown if part)

    def _plain(self, text: str) -> str:
        """Text with names in place of ids, and labels before addresses."""
        return html.unescape(_MARKUP.sub(self._readable, text))

    def _readable(self, match: re.Match[str]) -> str:
        sign, target, label = match.groups()
        if sign == "@":
            return f"@{label or self._person(target)}"
        if sign == "#":
            return f"#{label or self.names.get(target, target)}"
        if sign == "!":
            return f"@{label or target.partition('^')[0]}".replace("@@", "@")
        shown = target.removeprefix("mailto:")
        return f"{label} ({shown})" if label and label != shown else shown


def _shown_name(person: Mapping[str, Any]) -> str:
    """What other members saw as a person's name."""
    profile = dict_of(person, "profile")
    return (
        text_of(profile, "display_name", "real_name")
        or text_of(person, "display_name", "real_name")
        or text_of(person, "name", "id")
    )


def _folder(path: str) -> str:
    match = _DAY.fullmatch(path)
    assert match is not None
    return match[1]


def _seconds(key: str) -> tuple[int, int]:
    """A time stamp in order; exact, where a float would merge posts."""
    whole, _, part = key.partition(".")
    return int(whole), int(part.ljust(9, "0"))


def _moment(key: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(key.partition(".")[0]), UTC)
    except (ValueError, OverflowError, OSError):
        return None
