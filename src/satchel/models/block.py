"""Blocks, links and activity, and the records for importing and exporting a workspace."""

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
    """Known block types. A workspace may add its own types: see `block_type`."""

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
        """True if a function directly inside a block of this type is a method."""
        return self in _HOLDERS


_HOLDERS = frozenset(
    {BlockType.CLASS, BlockType.INTERFACE, BlockType.STRUCT, BlockType.ENUM, BlockType.TRAIT, BlockType.IMPL}
)


PAGE_TYPES: Final = frozenset(
    {BlockType.PAGE, BlockType.DATABASE, BlockType.FILE, BlockType.DOCUMENT, BlockType.SESSION, BlockType.KANBAN_BOARD}
)
"""Types that a reader opens as a whole; the page of a block is its nearest ancestor of these types."""

TASK_TYPES: Final = frozenset({BlockType.TODO, BlockType.KANBAN_CARD})

_DONE_WORDS: Final = frozenset("done complete completed closed cancelled canceled resolved finished".split())
_YES_WORDS: Final = frozenset("true yes y x 1 done checked".split())

_OWN_TYPE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


def is_done(metadata: Mapping[str, Any]) -> bool:
    """True if the metadata mark a task as done, by `done` or else by `status`."""
    done, status = metadata.get("done"), metadata.get("status")
    if isinstance(done, str):
        return done.strip().lower() in _YES_WORDS
    if done is not None:
        return bool(done)
    return isinstance(status, str) and status.strip().lower() in _DONE_WORDS


def block_type(name: str) -> str:
    """The block type for a name: a `BlockType`, or a valid custom name (`recipe`, `acme.ticket`)."""
    try:
        return BlockType(name)
    except ValueError:
        if not isinstance(name, str) or not _OWN_TYPE.fullmatch(name):
            raise InvalidInput(
                "type",
                name,
                "must be a known block type, or a name of at most 64 lower-case letters, digits, '_', '.' and '-'",
            ) from None
        return name


class LinkKind(StrEnum):
    """The kind of a link between two blocks."""

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
    """A unit of the workspace (page, task, function …) and its position in the tree.

    In code, `id` is the path, `#` and the qualified name (`src/retry.py#Backoff.delay`): such an id survives changes to
    the lines above. Elsewhere the workspace chooses the id. `parent` may name a missing block: then the block is a root
    until the parent is stored. `inherits` is true if the access of the parent applies to the block, too.
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
    """The page number in the document, from 1."""

    @property
    def is_page(self) -> bool:
        """True if readers open the block as a whole."""
        return self.type in PAGE_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A typed link from a block to another block, or to a name without a definition in the workspace."""

    source: str
    kind: LinkKind
    name: str = ""
    target: str | None = None


class Action(StrEnum):
    """The kind of an activity on a block."""

    EDIT = "edit"
    VIEW = "view"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """An action of an actor on a block, with the time. The block of a file is named by the path."""

    block: str
    actor: str
    action: str
    timestamp: datetime
    detail: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The default access of a workspace: who may read blocks without any grant."""

    default: DefaultAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A problem with an imported record: the location, and the handling of the record."""

    where: str
    problem: str


Record = Block | Link | Activity | Grant | Group | Policy | Notice
