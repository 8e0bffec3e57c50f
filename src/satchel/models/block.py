"""Blocks, their links and activity, and the records in which a workspace comes from outside or goes there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from satchel.errors import InvalidInput
from satchel.models.access import DefaultAccess, Grant, Group


class BlockType(StrEnum):
    """What a block is. A workspace may have types of its own beside these: see `block_type`."""

    # Code.
    FILE = "file"
    MODULE = "module"
    CLASS = "class"
    INTERFACE = "interface"
    STRUCT = "struct"
    ENUM = "enum"
    TRAIT = "trait"
    TYPE = "type"
    IMPL = "impl"
    FUNCTION = "function"
    METHOD = "method"
    CONSTANT = "constant"
    MACRO = "macro"
    FIELD = "field"

    # Documents.
    DOCUMENT = "document"
    SECTION = "section"
    REQUIREMENT = "requirement"
    FEATURE = "feature"

    # Workspaces.
    PAGE = "page"
    HEADING = "heading"
    TEXT = "text"
    LIST_ITEM = "list_item"
    TODO = "todo"
    QUOTE = "quote"
    CALLOUT = "callout"
    CODE = "code"
    TABLE = "table"
    IMAGE = "image"
    EMBED = "embed"
    DIVIDER = "divider"
    DATABASE = "database"
    DB_ROW = "db_row"
    KANBAN_BOARD = "kanban_board"
    KANBAN_CARD = "kanban_card"
    EVENT = "event"

    # Conversations.
    SESSION = "session"
    MESSAGE = "message"
    DECISION = "decision"

    @property
    def holds_members(self) -> bool:
        """Whether a function directly inside one is a method."""
        return self in _HOLDERS


_HOLDERS = frozenset(
    {BlockType.CLASS, BlockType.INTERFACE, BlockType.STRUCT, BlockType.ENUM, BlockType.TRAIT, BlockType.IMPL}
)


PAGE_TYPES: Final = frozenset(
    {BlockType.PAGE, BlockType.DATABASE, BlockType.FILE, BlockType.DOCUMENT, BlockType.SESSION, BlockType.KANBAN_BOARD}
)
"""What a reader opens as a whole: the nearest of these above a block is its page."""

TASK_TYPES: Final = frozenset({BlockType.TODO, BlockType.KANBAN_CARD})

_DONE_WORDS: Final = frozenset("done complete completed closed cancelled canceled resolved finished".split())
_YES_WORDS: Final = frozenset("true yes y x 1 done checked".split())

_OWN_TYPE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


def is_done(metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata say that something is done: by `done`, or else by `status`."""
    done, status = metadata.get("done"), metadata.get("status")
    if isinstance(done, str):
        return done.strip().lower() in _YES_WORDS
    if done is not None:
        return bool(done)
    return isinstance(status, str) and status.strip().lower() in _DONE_WORDS


def block_type(name: str) -> str:
    """The type of that name: one of ours, or one of the workspace's own (`recipe`, `acme.ticket`)."""
    try:
        return BlockType(name)
    except ValueError:
        if not isinstance(name, str) or not _OWN_TYPE.fullmatch(name):
            raise InvalidInput(
                "type", name, "must be a known type, or lower-case letters, digits, '_', '.' and '-' (at most 64)"
            ) from None
        return name


class LinkKind(StrEnum):
    """How one block is joined to another."""

    CALLS = "calls"
    IMPORTS = "imports"
    INHERITS = "inherits"
    MENTIONS = "mentions"
    TESTS = "tests"
    RELATION = "relation"
    EMBEDS = "embeds"
    REPLY = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A piece of the workspace and its place in the tree.

    In code, `id` is the path, `#` and the qualified name (`src/retry.py#Backoff.delay`): it survives changes to the
    lines above. Elsewhere it is whatever the workspace calls the block. `parent` may name a block that is not there:
    such a block is a root until its parent arrives. `inherits` says whether who may read the parent may read this.
    """

    id: str
    type: str
    source_path: str = ""
    title: str = ""
    qualified_name: str = ""
    parent: str | None = None
    position: float = 0
    start_line: int = 1
    end_line: int = 1
    signature: str = ""
    summary: str = ""
    language: str | None = None
    content: str = ""
    last_modified: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    inherits: bool = True
    page: int | None = None
    """The page of a document that it stands on, from 1."""

    @property
    def is_page(self) -> bool:
        """Whether it is opened as a whole."""
        return self.type in PAGE_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A typed join from one block to another, or to a name that nothing here defines."""

    source: str
    kind: LinkKind
    name: str = ""
    target: str | None = None


class Action(StrEnum):
    """What somebody did to a block."""

    EDIT = "edit"
    VIEW = "view"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Who did what to a block, and when. A file's block is named by its path."""

    block: str
    actor: str
    action: str
    timestamp: datetime
    detail: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may read what nothing was said about."""

    default: DefaultAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that could not be taken over as it was: where, and what was done instead."""

    where: str
    problem: str


Record = Block | Link | Activity | Grant | Group | Policy | Notice
