"""The read side of a relational store: blocks of files and of the workspace, links, activity, rows to transfer.

The blocks of a file form the tree from parsing the file. Links between them are resolved on request: by name, against
the current definitions in the workspace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any, Final

from satchel.models.block import PAGE_TYPES, Action, Activity, Block, BlockType, Link, LinkKind, Record
from satchel.models.files import kind_of
from satchel.models.search import Filters
from satchel.ports.block_tree import Step, steps_from
from satchel.ports.transfer import TransferReader
from satchel.storage.sql.file_reader import QUERIES, FileReader, file_key, text_of_file
from satchel.storage.sql.rows import FIRST_PATH, IN_FILES, ReadableRows, conditions, decoded, encoded, known_id, marks
from satchel.storage.sql.table_transfer import SqlTransferReader, records
from satchel.storage.sql.tree import Tree, activity_from, alternating, micros

_SPAN: Final = re.compile(r":\d+(?:-\d+)?$")
_MAX_NAMED_BLOCKS: Final = 200  # bounds the sorting by nearness for very common names
_MAX_LINK_TARGETS: Final = 3  # an ambiguous name links to the nearest few: one might be the wrong one, many are noise

_LIKE_SIGN: Final = re.compile(r"[\\%_]")
"""A sign that LIKE reads as more than itself."""


class CodeTree:
    """The blocks of readable files, and their links."""

    def __init__(self, rows: ReadableRows) -> None:
        self._rows = rows
        self._read: dict[str, list[Block]] = {}

    def blocks(self, ids: Iterable[str]) -> dict[str, Block]:
        """The readable blocks among the given ids, with their content."""
        blocks: dict[str, Block] = {}
        for block_id in ids:
            block = _of_id(block_id, self._around(block_id))
            if block is not None and (text := text_of_file(self._rows, block.source_path)) is not None:
                lines = text.split("\n")[block.start_line - 1 : block.end_line]
                blocks[block_id] = replace(block, content="\n".join(lines))
        return blocks

    def blocks_of(self, path: str) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        if path not in self._read:
            self._read[path] = self._blocks_of(path)
        return self._read[path]

    def children(self, block_id: str, limit: int) -> list[Block]:
        """The first blocks directly inside a block."""
        return [block for block in self._around(block_id) if block.parent == block_id][:limit]

    def siblings(self, block_id: str, count: int) -> list[Block]:
        """The nearest blocks with the same parent, equally many before and after, nearest first."""
        around = self._around(block_id)
        own = _of_id(block_id, around)
        if own is None or own.parent is None:
            return []
        row = [block for block in around if block.parent == own.parent]
        at = row.index(own)
        return alternating(row[:at][::-1][:count], row[at + 1 :][:count])

    def descendants(self, ids: Iterable[str], limit: int, deepest: int) -> dict[str, list[Block]]:
        """For each block the blocks inside from top to bottom, at most `limit`, down to the depth `deepest`."""
        return {block_id: inside for block_id in ids if (inside := self._inside(block_id, limit, deepest))}

    def _inside(self, block_id: str, limit: int, deepest: int) -> list[Block]:
        depth = {block_id: 0}
        inside = []
        for block in self._around(block_id):
            above = depth.get(block.parent or "")
            if above is not None and above < deepest and block.id != block_id:
                depth[block.id] = above + 1
                inside.append(block)
        return inside[:limit]

    def trails(self, ids: Iterable[str]) -> dict[str, tuple[Step, ...]]:
        """For each block the path from the block itself up to the file."""
        trails: dict[str, tuple[Step, ...]] = {}
        for block_id in ids:
            by_id = {block.id: block for block in self._around(block_id)}
            above, steps = by_id.get(block_id), []
            if not by_id and _SPAN.search(block_id):
                # A range of lines (`path:10-20`) is a block too, directly below the file.
                above = next(iter(self.blocks_of(_SPAN.sub("", block_id))), None)
                steps = [Step(block_id, BlockType.FILE, "")] if above else []
            while above is not None:
                steps.append(Step(above.id, above.type, above.title))
                above = by_id.get(above.parent) if above.parent else None
            if steps:
                trails[block_id] = tuple(steps)
        return trails

    def _parted(self, block_id: str) -> tuple[str, str]:
        """The path and the qualified name in a block id; the path may contain the separator `#` too."""
        places = [i for i, sign in enumerate(block_id) if sign == "#"]
        for at in (len(block_id), *reversed(places)):
            known = "SELECT 1 FROM file WHERE workspace = ? AND path = ?"
            if self._rows.db.run(known, file_key(block_id[:at])).fetchone():
                return block_id[:at], block_id[at + 1 :]
        return block_id, ""

    def _around(self, block_id: str) -> list[Block]:
        return self.blocks_of(self._parted(block_id)[0])

    def _blocks_of(self, path: str) -> list[Block]:
        db = self._rows.db
        row = db.run(QUERIES["file_with_last_line"], db.workspace, file_key(path)).fetchone()
        if row is None or not self._rows.shows(row[3]):
            return []
        number, language, modified, _, last = row
        file = Block(
            id=path,
            type=BlockType.FILE,
            source_path=path,
            title=path,
            end_line=last or 1,
            language=language,
            last_modified=_moment(modified),
        )
        blocks = [file]
        rows = db.run(QUERIES["stored_blocks"].format(files=number))
        for place, (_, kind, name, qualified, parent, first, last_line, signature, doc, page) in enumerate(rows):
            block = Block(
                id=f"{path}#{qualified}",
                type=BlockType(kind),
                source_path=path,
                title=name,
                qualified_name=qualified,
                parent=blocks[parent + 1].id,
                position=place,
                start_line=first,
                end_line=last_line,
                signature=signature,
                summary=" — ".join(part for part in (signature, doc) if part),
                language=language,
                last_modified=file.last_modified,
                page=page or None,
            )
            blocks.append(block)
        return blocks

    # -- links

    def links_from(self, block_id: str, limit: int) -> list[Link]:
        """The links from a block; a link to an undefined name has no target."""
        return list(islice(self._going_out(block_id), limit))

    def links_to(self, block_id: str, limit: int) -> list[Link]:
        """The links to the name of a block; for a file, the links from importing files."""
        return list(islice(self._coming_in(block_id), limit))

    def _going_out(self, block_id: str) -> Iterator[Link]:
        path, qualified = self._parted(block_id)
        columns, which = "mention.kind, mention.name", "file.path = ? AND coalesce(block.qualified, '') = ?"
        rows = self._rows.run(
            QUERIES["mentions"], encoded(path), qualified, columns=columns, which=which, order=columns
        )
        for kind, name in rows.fetchall():
            targets = self._files_named(name, path) if kind == LinkKind.IMPORTS else []
            targets = targets or self._blocks_named(name, path)
            if not targets:
                yield Link(source=block_id, kind=LinkKind(kind), name=name)
            for target in targets:
                yield Link(source=block_id, kind=_link_kind(kind, path, target), name=name, target=target)

    def _coming_in(self, block_id: str) -> Iterator[Link]:
        path, qualified = self._parted(block_id)
        block = _of_id(block_id, self.blocks_of(path))
        if block is None:
            return
        name = block.title if qualified else path.rpartition("/")[2].partition(".")[0]
        which, values = "mention.name = ?", [name]
        if not qualified:
            like = f"mention.name {self._rows.db.like} ? ESCAPE '!'"
            which = f"mention.kind = 'imports' AND (mention.name = ? OR {like} OR {like})"
            escaped = name.replace("!", "!!").replace("%", "!%").replace("_", "!_")
            values += [f"%.{escaped}", f"%/{escaped}%"]
        columns, order = "file.path, block.qualified, mention.kind", "file.path, block.place"
        rows = self._rows.run(QUERIES["mentions"], *values, columns=columns, which=which, order=order)
        for stored_path, inside, kind in rows:
            origin = decoded(stored_path)
            source = f"{origin}#{inside}" if inside else origin
            if source != block_id:
                yield Link(source=source, kind=_link_kind(kind, origin, block_id), name=name, target=block_id)

    def _blocks_named(self, name: str, near: str) -> list[str]:
        """The blocks with the given name: in the same file if any, else anywhere, nearest folders first."""
        rows = self._rows.run(
            QUERIES["blocks_named"], _last_part(name), FIRST_PATH, in_files=IN_FILES, limit=_MAX_NAMED_BLOCKS
        )
        places = [(decoded(path), str(qualified)) for path, qualified in rows]
        here = [place for place in places if place[0] == near]
        ordered = here or sorted(places, key=lambda place: -_shared_folders(place[0], near))
        return [f"{path}#{qualified}" for path, qualified in ordered[:_MAX_LINK_TARGETS]]

    def _files_named(self, name: str, near: str) -> list[str]:
        """The files for a module name, nearest first: `requests.auth` and `./auth` are auth.py."""
        stem = _last_part(name.removesuffix(".js").removesuffix(".ts").removesuffix(".h").removesuffix(".hpp"))
        if not stem:
            return []
        statement = f"SELECT path FROM file WHERE workspace = ? AND {IN_FILES} AND {{readable}} ORDER BY path"
        paths = [decoded(row[0]) for row in self._rows.run(statement, FIRST_PATH)]
        fitting = [path for path in paths if path.rpartition("/")[2].partition(".")[0] == stem and path != near]
        extension = near.rpartition(".")[2]
        fitting.sort(key=lambda path: (not path.endswith(f".{extension}"), -_shared_folders(path, near)))
        return fitting[:_MAX_LINK_TARGETS]


def _of_id(block_id: str, blocks: Iterable[Block]) -> Block | None:
    return next((block for block in blocks if block.id == block_id), None)


def _moment(nanoseconds: int) -> datetime:
    with suppress(OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return datetime.fromtimestamp(0, UTC)


def _link_kind(kind: str, source: str, target: str) -> LinkKind:
    """The kind of a link; a call from a test to other code is a TESTS link."""
    is_call = kind == LinkKind.CALLS
    if is_call and kind_of(source.partition("#")[0]).test and not kind_of(target.partition("#")[0]).test:
        return LinkKind.TESTS
    return LinkKind(kind)


def _last_part(name: str) -> str:
    return name.replace("::", ".").replace("/", ".").replace("\\", ".").rpartition(".")[2]


def _shared_folders(path: str, other: str) -> int:
    """The number of leading folders common to two paths."""
    pairs = zip(path.split("/")[:-1], other.split("/")[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class RelationalReader(FileReader):
    """Reads the tables; a block id is looked up among the workspace's blocks first, then in files."""

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block with the given id, including content."""
        return self.blocks([block_id], filters).get(block_id)

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """The readable blocks among the given ids, with their content."""
        with self._readable(filters) as rows:
            blocks = Tree(rows).blocks(ids)
            return blocks | CodeTree(rows).blocks(block_id for block_id in ids if block_id not in blocks)

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        with self._readable(filters) as rows:
            return CodeTree(rows).blocks_of(path)

    def children(self, ids: Sequence[str], filters: Filters, *, limit: int) -> dict[str, list[Block]]:
        """For each readable block with children the first of them."""
        with self._readable(filters) as rows:
            children = Tree(rows).children(ids, limit)
            code = CodeTree(rows)
            inside = ((block_id, code.children(block_id, limit)) for block_id in _in_files(ids, children, rows))
            return children | {block_id: blocks for block_id, blocks in inside if blocks}

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and `count` after the block, nearest first."""
        with self._readable(filters) as rows:
            siblings = Tree(rows).siblings(block_id, count)
            if not siblings and _in_files([block_id], (), rows):
                return CodeTree(rows).siblings(block_id, count)
            return siblings

    def descendants(self, ids: Sequence[str], filters: Filters, *, limit: int, deepest: int) -> dict[str, list[Block]]:
        """For each readable block the blocks below in reading order, at most `limit`, down to the depth `deepest`."""
        with self._readable(filters) as rows:
            below = Tree(rows).descendants(ids, limit, deepest)
            return below | CodeTree(rows).descendants([each for each in ids if each not in below], limit, deepest)

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each readable block the path from the block itself up to the highest readable ancestor."""
        with self._readable(filters) as rows:
            trails = Tree(rows).trails(ids)
            return trails | CodeTree(rows).trails(block_id for block_id in ids if block_id not in trails)

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """The number of steps through the readable tree from a block to each id; unreachable blocks are left out."""
        steps = steps_from(block_id, self.trails([block_id, *ids], filters))
        return {other: steps[other] for other in ids if other in steps}

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks from a source."""
        with self._reading() as db:
            rows = db.run("SELECT id FROM node WHERE workspace = ? AND origin = ?", origin)
            return [decoded(row[0]) for row in rows]

    # -- links and activity

    def links_from(self, ids: Sequence[str], filters: Filters, *, limit: int = 50) -> dict[str, list[Link]]:
        """For each block with links the first of them, resolved by name where the workspace defines the name."""
        with self._readable(filters) as rows:
            links = Tree(rows).links_from(ids, limit)
            code = CodeTree(rows)
            going_out = ((block_id, code.links_from(block_id, limit)) for block_id in _in_files(ids, links, rows))
            return links | {block_id: more for block_id, more in going_out if more}

    def links_to(self, ids: Sequence[str], filters: Filters, *, limit: int = 50) -> dict[str, list[Link]]:
        """For each block the first links to the block or to the block's name."""
        with self._readable(filters) as rows:
            links = Tree(rows).links_to(ids, limit)
            code = CodeTree(rows)
            coming_in = ((block_id, code.links_to(block_id, limit)) for block_id in _in_files(ids, links, rows))
            return links | {block_id: more for block_id, more in coming_in if more}

    def named(self, name: str, filters: Filters, *, limit: int = 20) -> list[Block]:
        """The blocks that people call so: by title, alias or path, or by the beginning of their id."""
        key = known_id(name)
        if key is None:
            return []
        # SQLite folds ASCII letters only, and metadata hold others as escapes: the usual spellings are compared.
        ways = sorted({name, name.lower(), name.upper(), name.capitalize(), name.title()})
        quoted = {json.dumps(way)[1:-1].lower() for way in ways}
        patterns = ["%" + _LIKE_SIGN.sub(r"\\\g<0>", way) + "%" for way in sorted(quoted)]
        titles = " OR ".join(["node.title = ? OR lower(node.title) = ?"] * len(ways))
        aliases = " OR ".join(["lower(node.metadata) LIKE ? ESCAPE '\\'"] * len(patterns))
        called = f"({titles} OR node.source_path = ? OR (node.metadata LIKE ? AND ({aliases})))"
        values = [way for title in ways for way in (title, title.lower())]
        values_of_all = (*values, name.encode("utf-8", "replace"), '%"aliases"%', *patterns)
        with self._readable(filters) as rows:
            found = Tree(rows).listed(called, values_of_all, "node.id", limit)
            return found or Tree(rows).listed("substr(node.id, 1, ?) = ?", (len(key), key), "node.id", limit)

    def pages(self, filters: Filters, *, limit: int = 50) -> list[Block]:
        """The pages, databases, boards and sessions, by title."""
        types = sorted(PAGE_TYPES)
        with self._readable(filters) as rows:
            return Tree(rows).listed(f"node.type IN ({marks(types)})", types, "node.title, node.id", limit)

    def tasks(
        self,
        filters: Filters,
        *,
        done: bool | None = None,
        due_before: datetime | None = None,
        due_after: datetime | None = None,
        limit: int = 50,
    ) -> list[Block]:
        """Blocks with a due date, the longest due first."""
        where, values = conditions(
            ("node.done = ?", done if done is None else int(done)),
            ("node.due <= ?", due_before and micros(due_before)),
            ("node.due > ?", due_after and micros(due_after)),
            ("node.type IN ({})", filters.types),
        )
        with self._readable(filters) as rows:
            return Tree(rows).listed(f"node.due IS NOT NULL{where}", values, "node.due, node.id", limit)

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """The commits in the version history with changes to files, newest first."""
        with self._readable(filters) as rows:
            return _commits(rows, limit, ("activity.path = ?", None if path is None else encoded(path)))

    def recent(
        self,
        filters: Filters,
        *,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        actions: Sequence[str] = (),
        latest: bool = False,
        limit: int = 50,
    ) -> list[Activity]:
        """The activity on blocks and files, newest first; with `latest` only the newest for each block or file."""
        where, values = conditions(
            ("deed.actor = ?", actor),
            ("deed.at >= ?", since and micros(since)),
            ("deed.at <= ?", until and micros(until)),
            ("deed.action IN ({})", tuple(actions)),
        )
        with self._readable(filters) as rows:
            activity = Tree(rows).activity(where, values, latest=latest, limit=limit)
            if not actions or Action.COMMIT in actions:
                from_when = ("activity.at >= ?", since and micros(since) // 10**6)
                activity += _commits(rows, limit, ("activity.actor = ?", actor), from_when)
        activity.sort(key=lambda entry: entry.timestamp, reverse=True)
        if latest:
            activity = list({entry.block: entry for entry in reversed(activity)}.values())[::-1]
            activity.sort(key=lambda entry: entry.timestamp, reverse=True)
        return [entry for entry in activity if until is None or entry.timestamp <= until][:limit]

    # -- export for the owner

    def records(self) -> Iterator[Record]:
        """Everything in the workspace except indexed files, for the owner."""
        with self._reading() as db:
            yield from records(db)

    @property
    def transfer(self) -> TransferReader:
        """All stored rows, for another store to import."""
        return SqlTransferReader(self._reading)


def _in_files(ids: Sequence[str], found: Container[str], rows: ReadableRows) -> list[str]:
    """The ids without a readable block of the workspace, hence perhaps of blocks in files."""
    missing = [block_id for block_id in ids if block_id not in found]
    readable = set(Tree(rows).readable(missing))
    return [block_id for block_id in missing if block_id not in readable]


def _commits(rows: ReadableRows, limit: int, *requirements: tuple[str, Any]) -> list[Activity]:
    """The commits in the version history under SQL conditions, newest first."""
    where, values = conditions(*requirements)
    commits = rows.run(QUERIES["commits"], *values, where=where, limit=max(0, limit))
    return [activity_from(place, at * 10**6, *texts) for place, at, *texts in commits]
