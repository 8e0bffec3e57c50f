"""Everything that can be shown is a block: a file, a class, a function, a section of a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class BlockType(StrEnum):
    """What a block is."""

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
    SECTION = "section"

    @property
    def holds_members(self) -> bool:
        """Whether a function directly inside one is a method."""
        return self in _HOLDERS


_HOLDERS = frozenset(
    {BlockType.CLASS, BlockType.INTERFACE, BlockType.STRUCT, BlockType.ENUM, BlockType.TRAIT, BlockType.IMPL}
)


class LinkKind(StrEnum):
    """How one block is joined to another."""

    CALLS = "calls"
    IMPORTS = "imports"
    INHERITS = "inherits"
    MENTIONS = "mentions"
    TESTS = "tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A named piece of the workspace and its place in the tree.

    `id` is the path, `#` and the qualified name (`src/retry.py#Backoff.delay`): it survives changes to the lines above.
    """

    id: str
    type: BlockType
    source_path: str
    title: str = ""
    qualified_name: str = ""
    parent: str | None = None
    position: int = 0
    start_line: int = 1
    end_line: int = 1
    signature: str = ""
    summary: str = ""
    language: str | None = None
    content: str = ""
    last_modified: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A typed join from one block to another, or to a name that nothing here defines."""

    source: str
    kind: LinkKind
    name: str
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Who did what to a file, and when."""

    path: str
    actor: str
    action: str
    timestamp: datetime
    detail: str = ""
    reference: str = ""
