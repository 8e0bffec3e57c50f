"""Blocks from elsewhere and back: a vault, a Notion export, conversations, records as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from satchel.importers.jsonl import record_from, write_jsonl
from satchel.importers.source import SourceKind, source_at
from satchel.workspace.blocks import Edit, ImportReport, Workspace

if TYPE_CHECKING:
    from satchel.models.request import ConversationMessage

__all__ = ["Edit", "ImportReport", "export_lines", "import_source", "read_history", "record_from"]


def import_source(
    workspace: Workspace, path: Path, *, kind: str | None, prefix: str, watch: Callable[[int], None] | None
) -> tuple[str, ImportReport]:
    """Take over what is at a path; returns what it was taken for, and what was done."""
    source = source_at(path, SourceKind(kind) if kind else None, prefix)
    return source.kind.value, workspace.import_from(source, watch)


def export_lines(workspace: Workspace) -> Iterator[str]:
    """Everything that is in a workspace beside its files, as lines that an import takes."""
    return (line.rstrip("\n") for line in write_jsonl(workspace.records()))


def read_history(path: Path) -> tuple[ConversationMessage, ...]:
    """The messages of a conversation: JSON lines with role and content, or an export."""
    from satchel.importers.conversations import read_conversations
    from satchel.models.block import Block, BlockType
    from satchel.models.request import ConversationMessage

    return tuple(
        ConversationMessage(
            role=str(record.metadata.get("role") or "user"), content=record.content, timestamp=record.last_modified
        )
        for record in read_conversations(path)
        if isinstance(record, Block) and record.type == BlockType.MESSAGE
    )
