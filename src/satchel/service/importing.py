"""Import of sources by the installed importers, and export of a workspace as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from satchel.errors import InvalidInput
from satchel.importers import IMPORTERS, detect_importer, read_update
from satchel.importers.jsonl import record_from, write_jsonl
from satchel.workspace.blocks import Edit, ImportReport, Workspace
from satchel.workspace.sources import Source

if TYPE_CHECKING:
    from satchel.models.request import ConversationMessage

__all__ = ["Edit", "ImportReport", "export_lines", "import_again", "import_source", "read_history", "record_from"]


def import_source(
    workspace: Workspace,
    path: str | Path,
    *,
    kind: str | None = None,
    prefix: str = "",
    watch: Callable[[int], None] | None = None,
) -> ImportReport:
    """Import the source at a path; `kind` names the importer (default: the importer recognizing the path)."""
    place = Path(path)
    if not place.exists():
        raise InvalidInput("path", str(path), "the file or folder does not exist")
    name = kind or detect_importer(place)
    source = Source(kind=name, path=str(place.resolve()), prefix=prefix, replaces=IMPORTERS.get(name).replaces)
    report = import_again(workspace, source, watch)
    if kind is None:
        report.notes += IMPORTERS.problems.values()
    return report


def import_again(
    workspace: Workspace, source: Source, watch: Callable[[int], None] | None = None, *, only_changes: bool = False
) -> ImportReport:
    """Import the current state of a source; blocks no longer in the source are removed.

    With `only_changes`, importers that can do so read only what changed since the last import.
    """
    importer = IMPORTERS.get(source.kind)
    state = workspace.import_state(source) if only_changes else ""
    update = read_update(source.kind, Path(source.path), source.prefix, state)
    if importer.only_adds:
        report = workspace.load(update.records, watch=watch)
    else:
        report = workspace.load_source(source, update, watch)
    report.kind = source.kind
    return report


def export_lines(workspace: Workspace) -> Iterator[str]:
    """Export all records of a workspace beside its files as JSON lines, readable by `import_source`."""
    return (line.rstrip("\n") for line in write_jsonl(workspace.records()))


def read_history(path: Path) -> tuple[ConversationMessage, ...]:
    """Read the messages of a conversation: JSON lines with role and content, or an export."""
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
