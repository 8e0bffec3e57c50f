"""Edit the blocks of a workspace (put, move, delete, link, share) in atomic commits.

with engine.workspace.edit() as edit:
    edit.put(Block(id="launch", type="page", title="Launch plan"))
    edit.put(Block(id="hall", type="todo", parent="launch", content="Book the hall", metadata={"due": "2026-12-01"}))
    edit.grant("launch", "group:staff")
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidInput, UnknownBlock
from satchel.indexing.split import cut, line_starts, paragraph_borders
from satchel.models.access import DefaultAccess, Effect, Grant, Group
from satchel.models.block import Action, Activity, Block, Link, LinkKind, Notice, Policy, Record
from satchel.models.checks import as_choice
from satchel.models.outline import Outline, OutlineBlock, OutlinePiece, embedded_text, text_hash
from satchel.text.secrets import redact
from satchel.workspace.sources import Source, SourceUpdate, fingerprint, note_hash

if TYPE_CHECKING:
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store, StoreWriter


# Texts that wait for the embedder: more would hold a large import in memory, fewer call the embedder more often.
_EMBED_BATCH_TEXTS: Final = 512

# Documented limit (docs/workspaces.md); bounds the memory for splitting and embedding a single block.
_MAX_CONTENT_CHARS: Final = 16_000_000

# Nobody reads more; an import with a problem in every record must not fill the memory with notes.
_MAX_NOTES: Final = 1000

# No text has more lines, and every store and JSON reader can represent the number (32-bit signed integer).
_LINE_NUMBER_LIMIT: Final = 2**31

# Documented limit (docs/workspaces.md): a commit waits this long for another commit, then raises IndexBusy.
_LOCK_TIMEOUT_S: Final = 30

_SOURCES_FACT: Final = "sources"
_STATE_FACT: Final = "imported "
"""The beginning of the name of the fact with a source's import state; the name of the source follows."""


def _redacted(value: Any) -> Any:
    """A value of metadata with marks in place of secrets, in lists and mappings too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(name)): _redacted(each) for name, each in value.items()}
    return [_redacted(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(slots=True)
class ImportReport:
    """Counts of imported records by kind, and notes on records that were changed or left out."""

    kind: str = ""
    """The importer that read the source."""
    counts: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    notes: list[str] = field(default_factory=list)
    generation: int = 0


class Workspace:
    """Blocks of a workspace that do not come from indexed files: editing, importing, exporting."""

    def __init__(self, store: Store, embedder: Embedder, root: Path | None = None) -> None:
        self._root = root
        self._store = store
        self._embedder = embedder

    @contextmanager
    def edit(self) -> Iterator[Edit]:
        """Open an atomic commit: searches see all of the edit or nothing. Waits for a running commit."""
        with self._store.lock(wait=_LOCK_TIMEOUT_S):
            with self._store.write() as writer:
                writer.settle_embedder(self._embedder.name, self._embedder.dimensions)
                edit = Edit(writer, self._embedder)
                yield edit
                edit.embed()
            self._store.catch_up()

    def record(self, user: str, action: Action | str, block_id: str, at: datetime | None = None) -> None:
        """Store the activity of a user who edited or viewed a block."""
        when = _moment(at)
        with self._store.lock(wait=_LOCK_TIMEOUT_S), self._store.write() as writer:
            writer.blocks.record(Activity(block=block_id, actor=user, action=str(action), timestamp=when))

    def load(self, records: Iterable[Record], *, watch: Callable[[int], None] | None = None) -> ImportReport:
        """Import records in one commit."""
        with self.edit() as edit:
            report = self._load(edit, SourceUpdate(records), None, watch)
        report.generation = self._store.generation
        return report

    def _load(
        self, edit: Edit, update: SourceUpdate, origin: str | None, watch: Callable[[int], None] | None
    ) -> ImportReport:
        """Import records; remove blocks of `origin` that are neither among the records nor kept."""
        report = ImportReport()
        loader = _Loader(edit, report, origin)
        for count, record in enumerate(update.records, start=1):
            loader.take(record)
            if watch is not None:
                watch(count)
        earlier_ids, kept = self._store.blocks_from(origin) if origin else [], update.kept()
        if earlier_ids and not report.counts["block"] and not kept:
            problem = f"contains no blocks now; the {len(earlier_ids):,} blocks of its last import were not removed."
            remedy = "Check the source, or remove the blocks with `satchel workspace forget`"
            raise InvalidInput("source", origin, f"{problem} {remedy}")
        loader.finish(earlier_ids, kept)
        return report

    def records(self) -> Iterator[Record]:
        """All records of the workspace: blocks, links, activity, grants, groups and policy, without indexed files."""
        return self._store.records()

    def sources(self) -> dict[str, Source]:
        """The imported sources by name, with their fingerprints at import time."""
        stored = json.loads(self._store.fact(_SOURCES_FACT) or "{}")
        lists = ("replaces", "told")
        return {
            name: Source(**fields | {field: tuple(fields.get(field, ())) for field in lists})
            for name, fields in stored.items()
        }

    def import_state(self, source: Source) -> str:
        """What the importer of a source noted at the last import; "" if nothing."""
        return str(self._store.fact(_STATE_FACT + source.name) or "")

    def load_source(
        self, source: Source, update: SourceUpdate, watch: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Import the records of a source in one commit and store the source.

        Blocks of an earlier import that the source no longer contains are removed. Notes told before are left out.
        """
        imported = replace(source, fingerprint=fingerprint(source.path), imported_ns=time.time_ns())
        with self.edit() as edit:
            report = self._load(edit, update, source.name, watch)
            hashes = [note_hash(note) for note in report.notes]
            report.notes = [note for note, key in zip(report.notes, hashes, strict=True) if key not in source.told]
            imported = replace(imported, told=tuple(dict.fromkeys((*source.told, *hashes)))[-_MAX_NOTES:])
            sources = self.sources()
            if report.counts["block"] or source.name in sources:
                edit.set_fact(_SOURCES_FACT, _as_json(sources | {source.name: imported}))
                edit.set_fact(_STATE_FACT + source.name, update.state())
                edit.drop_files(self._replaced_files(source))
        report.generation = self._store.generation
        return report

    def _replaced_files(self, source: Source) -> list[str]:
        """Paths of indexed files that the source replaces by blocks with access lists of their own."""
        if not source.replaces or self._root is None:
            return []
        inside = os.path.relpath(source.path, self._root)
        if inside.startswith(os.pardir):
            return []
        prefix = "" if inside == os.curdir else f"{inside}/"
        return [
            path
            for path in self._store.files()
            if (path == inside or path.startswith(prefix)) and path.endswith(source.replaces)
        ]

    def forget(self, name: str) -> int:
        """Remove a source with its blocks; returns the number of removed blocks."""
        known = self.sources()
        remaining = {key: source for key, source in known.items() if name not in (source.name, source.path)}
        if len(remaining) == len(known):
            raise InvalidInput(
                "source", name, f"no imported source has this name or path; known sources: {', '.join(known) or 'none'}"
            )
        with self.edit() as edit:
            blocks = [block for key in known.keys() - remaining.keys() for block in self._store.blocks_from(key)]
            for block in blocks:
                edit.remove(block)
            edit.set_fact(_SOURCES_FACT, _as_json(remaining))
            for key in known.keys() - remaining.keys():
                edit.set_fact(_STATE_FACT + key, "")
        return len(blocks)

    def changed_sources(self) -> list[Source]:
        """Sources whose files changed after the import."""
        return [
            source
            for source in self.sources().values()
            if source.is_there and fingerprint(source.path) != source.fingerprint
        ]

    def changed_since(self, paths: Iterable[str]) -> list[str]:
        """The paths, as named by blocks, of files that changed after their import."""
        if not (asked := dict.fromkeys(paths)):
            return []
        sources = [source for source in self.sources().values() if os.path.isdir(source.path)]
        changed = []
        for path in asked:
            holders = [source for source in sources if os.path.lexists(os.path.join(source.path, path))]
            if not holders or any(source.has_changed(path) for source in holders):
                changed.append(path)
        return changed if sources else []


def _as_json(sources: Mapping[str, Source]) -> str:
    return json.dumps({name: asdict(source) for name, source in sources.items()}, sort_keys=True)


class Edit:
    """The edits of a single commit."""

    def __init__(self, writer: StoreWriter, embedder: Embedder) -> None:
        self._writer = writer
        self._blocks = writer.blocks
        self._embedder = embedder
        self._texts: dict[bytes, str] = {}

    def put(self, block: Block, origin: str = "") -> None:
        """Store a block, replacing the block with the same id; children, links and grants stay."""
        _check(block)
        block = replace(
            block,
            content=redact(block.content),
            title=redact(block.title),
            summary=redact(block.summary),
            source_path=redact(block.source_path),
            metadata=_redacted(block.metadata),
        )
        if len(block.content) > _MAX_CONTENT_CHARS:
            raise InvalidInput(
                "content", block.id, f"is longer than {_MAX_CONTENT_CHARS:,} characters; split it into several blocks"
            )
        outline = outline_of(block)
        for piece in outline.pieces:
            text = embedded_text(outline, piece, block.content[piece.start : piece.end])
            self._texts[text_hash(text)] = text
        self._blocks.put(block, outline, origin)
        if len(self._texts) >= _EMBED_BATCH_TEXTS:
            self.embed()

    def move(self, block_id: str, parent: str | None, position: float | None = None) -> None:
        """Move a block and its descendants below another parent, by default as the last sibling."""
        self._blocks.move(block_id, parent, position)

    def delete(self, block_id: str) -> int:
        """Remove a block and its descendants; returns the number of removed blocks."""
        return self._blocks.delete(block_id)

    def is_closed(self, block_id: str) -> bool:
        """True if the block denies access to somebody who may read its parent."""
        return self._blocks.is_closed(block_id)

    def remove(self, block_id: str) -> None:
        """Remove a block without its descendants; the children become roots, as restricted as before."""
        self._blocks.remove(block_id)

    def link(self, source: str, target: str | None, kind: LinkKind = LinkKind.MENTIONS, name: str = "") -> None:
        """Link a block to another block; the target may be stored later."""
        self._blocks.link(
            Link(source=source, kind=as_choice(InvalidInput, "kind", kind, LinkKind), target=target, name=redact(name))
        )

    def unlink(self, source: str, *, kind: LinkKind | None = None, target: str | None = None) -> int:
        """Remove links that start at a block; returns the number of removed links."""
        return self._blocks.unlink(source, kind=kind, target=target)

    def record(self, user: str, action: Action | str, block_id: str, at: datetime) -> None:
        """Store the activity of a user who edited or viewed a block."""
        self._blocks.record(Activity(block=block_id, actor=user, action=str(action), timestamp=_moment(at)))

    def add(self, record: Link | Activity | Grant | Group | Policy) -> None:
        """Store a record; only secrets in it are replaced."""
        match record:
            case Link():
                self._blocks.link(replace(record, name=redact(record.name)))
            case Activity():
                detail, reference = redact(record.detail), redact(record.reference)
                self._blocks.record(replace(record, detail=detail, reference=reference))
            case Grant():
                self._blocks.grant(record)
            case Group():
                self._blocks.put_group(record)
            case Policy():
                self._blocks.set_default(record.default)

    def grant(self, block_id: str, principal: str, effect: Effect = Effect.ALLOW) -> None:
        """Allow or deny a principal (`user:ann`, `group:staff`, `*`) to read a block and its descendants."""
        self._blocks.grant(Grant(block=block_id, principal=principal, effect=effect))

    def deny(self, block_id: str, principal: str) -> None:
        """Deny a principal access to a block and its descendants."""
        self.grant(block_id, principal, Effect.DENY)

    def revoke(self, block_id: str, principal: str) -> None:
        """Remove the grant or denial of a principal at this block (not at ancestors)."""
        self._blocks.revoke(block_id, principal)

    def set_inherits(self, block_id: str, inherits: bool) -> None:
        """Set whether a block inherits the access of its parent; if not, only its own grants count."""
        self._blocks.set_inherits(block_id, inherits)

    def set_default(self, default: DefaultAccess | str) -> None:
        """Set who may read blocks without any grant."""
        self._blocks.set_default(DefaultAccess(default))

    def put_group(self, name: str, members: Iterable[str]) -> None:
        """Store a group with its members."""
        self._blocks.put_group(Group(name=name, members=tuple(members)))

    def set_fact(self, name: str, value: str) -> None:
        """Store a fact (a named text) about the workspace."""
        self._writer.set_fact(name, value)

    def drop_files(self, paths: Iterable[str]) -> None:
        """Remove indexed files."""
        for path in paths:
            self._writer.drop(path)

    def embed(self) -> None:
        """Embed and store the vectors that the new blocks lack."""
        lacking = sorted(self._writer.lacking(self._texts))
        if lacking:
            self._writer.put_vectors(lacking, self._embedder.embed_texts([self._texts[key] for key in lacking]))
        self._texts = {}


class _Loader:
    """Imports records; links, activity and grants wait until all blocks are stored."""

    def __init__(self, edit: Edit, report: ImportReport, source: str | None) -> None:
        self._edit = edit
        self._report = report
        self._source = source
        self._waiting: list[Link | Activity | Grant] = []
        self._seen: set[str] = set()

    def take(self, record: Record) -> None:
        match record:
            case Notice():
                self._note(f"{record.where}: {record.problem}" if record.where else record.problem)
                return
            case Block():
                self._take_block(record)
            case Group() | Policy():
                self._edit.add(record)
            case _:
                self._waiting.append(record)
        self._report.counts[type(record).__name__.lower()] += 1

    def finish(self, earlier_ids: Iterable[str], kept: Collection[str]) -> None:
        unlinked = set(self._seen)
        for record in self._waiting:
            try:
                if self._source is not None and isinstance(record, Link) and record.source not in unlinked:
                    # A kept block with links to other blocks than before comes with all its links.
                    unlinked.add(record.source)
                    self._edit.unlink(record.source)
                self._edit.add(record)
            except UnknownBlock as error:
                kind = type(record).__name__.lower()
                self._report.counts[kind] -= 1
                self._note(f"the {kind} was left out: {error}")
        there = self._seen.union(kept)
        gone = [block_id for block_id in earlier_ids if block_id not in there]
        closed = [block_id for block_id in gone if self._edit.is_closed(block_id)]
        for block_id in gone:
            self._edit.remove(block_id)
        self._report.removed = len(gone)
        for block_id in closed:
            self._note(
                f"{block_id!r} was removed, and its access restrictions with it; check who may read its text now"
            )

    def _take_block(self, block: Block) -> None:
        if self._source is not None and block.id not in self._seen:
            with suppress(UnknownBlock):
                self._edit.unlink(block.id)
        self._seen.add(block.id)
        try:
            self._edit.put(block, self._source or "")
        except InvalidInput as error:
            if error.field != "parent":
                raise
            self._note(f"{block.id!r} was stored without a parent: {error}")
            self._edit.put(replace(block, parent=None), self._source or "")

    def _note(self, text: str) -> None:
        notes = self._report.notes
        if len(notes) <= _MAX_NOTES:
            notes.append(text if len(notes) < _MAX_NOTES else "… and further notes")


def _check(block: Block) -> None:
    """Raise InvalidInput for a block that could not be stored or exported."""
    for name in ("title", "content", "summary", "source_path", "qualified_name", "signature"):
        if not isinstance(getattr(block, name), str):
            raise InvalidInput(name, getattr(block, name), f"must be text (block {block.id!r})")
    if (
        isinstance(block.position, bool)
        or not isinstance(block.position, (int, float))
        or not math.isfinite(block.position)
    ):
        raise InvalidInput("position", block.position, f"must be a finite number (block {block.id!r})")
    for name in ("start_line", "end_line"):
        value = getattr(block, name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LINE_NUMBER_LIMIT:
            raise InvalidInput(name, value, f"must be a line number, a whole number of at least 0 (block {block.id!r})")
    if block.last_modified is not None and not isinstance(block.last_modified, datetime):
        raise InvalidInput("last_modified", block.last_modified, f"must be a datetime (block {block.id!r})")


def _moment(at: datetime | None) -> datetime:
    if at is not None and not isinstance(at, datetime):
        raise InvalidInput("at", at, "must be a datetime")
    return at or datetime.now(UTC)


def outline_of(block: Block) -> Outline:
    """The search outline of a block: title and pieces of the content."""
    text = block.content
    starts = line_starts(text)
    whole = OutlineBlock(str(block.type), block.title, block.title, -1, 1, max(1, len(starts) - 1), doc="")
    pieces = cut(text, starts, paragraph_borders(text.split("\n")), (whole,))
    if not pieces:
        pieces = (OutlinePiece(1, 1, 0, 0, 0),)
    return Outline(block.language, (whole,), tuple(piece._replace(block=0, defines=()) for piece in pieces))
