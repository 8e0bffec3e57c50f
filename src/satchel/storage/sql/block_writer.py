"""Writes a workspace's blocks: tree positions, links, grants and activity.

All changes happen within the commit of the owning writer. The access of a block is computed at every change, for the
block and everything below, hence no read has to climb the tree.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from satchel.errors import InvalidInput, UnknownBlock
from satchel.models.access import CLOSED, ROOT, DefaultAccess, Effect, Grant, Group, principal
from satchel.models.block import Activity, Block, Link, LinkKind
from satchel.models.files import FileState
from satchel.models.outline import Outline
from satchel.ports.file_index import NewFile
from satchel.storage.sql.file_writer import (
    SqlFileWriter,
    granted_files,
    grants_of,
    is_file_key,
    known_path_key,
    path_key,
)
from satchel.storage.sql.rows import NODE_PATH, Database, conditions, decoded, default_access, id_bytes, known_id, plain
from satchel.storage.sql.table_transfer import SqlTransferWriter
from satchel.storage.sql.tree import FROM_NODES, NODE_COLUMNS, micros, node_row

_MAX_DEPTH: Final = 100_000  # far deeper than any real tree; stops the climb through a cycle in damaged data
_POSITION_STEP: Final = 1.0  # positions are fractions, so a block can be put between two siblings
_MAX_NS: Final = 2**63 - 1  # the largest value of a 64-bit integer column


class SqlBlockWriter:
    """Changes a workspace's blocks within a commit."""

    def __init__(self, db: Database, writer: SqlFileWriter) -> None:
        self._db = db
        self._writer = writer
        self._changed_access: dict[bytes, None] = {}
        self._changed_links: set[bytes] = set()
        """The blocks with links that were added or removed in this commit."""
        self._parents: dict[bytes, bytes | None] = {}
        """The parents of blocks stored or moved in this commit."""
        self._was_empty: bool | None = None
        self._bonds: set[tuple[bytes, str, bytes | None, str]] = set()

    # -- the tree

    def put(self, block: Block, outline: Outline, origin: str = "") -> None:
        """Store a block and replace any stored block with the same id; children, links and grants stay.

        `origin` names the source of the block. A block with inheritance switched off stays without: only `set_inherits`
        switches inheritance on again.
        """
        key = id_bytes(block.id)
        parent = self._checked_parent(key, block.parent)
        text = plain(block.content)
        modified = None if block.last_modified is None else micros(block.last_modified)
        digest = blake2b(f"{block.title}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
        state = FileState(digest, len(text), max(-_MAX_NS, min((modified or 0) * 1000, _MAX_NS)), 0)
        before = self._row(key)
        self._refuse_another_origin(block, before, origin)
        inherits = block.inherits and (before is None or bool(before[3]))
        fields = node_row(block, inherits=inherits, origin=origin or (before[4] if before else ""))
        if before is not None and before[1] == digest and before[2] == fields[0]:
            where = (self._db.workspace, int(before[0]))
            stamp = "UPDATE file SET modified_ns = ? WHERE workspace = ? AND id = ?"
            self._db.execute(stamp, (state.modified_ns, *where))
            changes = ", ".join(f"{column} = ?" for column in NODE_COLUMNS.split(", "))
            self._db.execute(f"UPDATE node SET {changes} WHERE workspace = ? AND file = ?", (*fields, *where))
            self._writer.changed_files.add(int(before[0]))
        else:
            if before is not None:
                self._db.run("DELETE FROM node WHERE workspace = ? AND file = ?", before[0])
            number = self._writer.keep(NewFile(_path(block.id), state, text, outline), is_new=before is None)
            self._db.insert("node", f"file, id, {NODE_COLUMNS}", [(number, key, *fields)])
        self._parents[key] = parent
        self._changed_access[key] = None
        self._writer.changed = True

    def move(self, block_id: str, parent: str | None, position: float | None = None) -> None:
        """Move a block with everything below to another parent; without `position`, after the last sibling."""
        key = self._existing(block_id)
        new = self._checked_parent(key, parent)
        if position is None:
            children = "FROM node WHERE workspace = ? AND parent IS NOT DISTINCT FROM ?"
            last = self._db.run(f"SELECT max(position) {children} AND id != ?", new, key).get
            position = 0.0 if last is None else last + _POSITION_STEP
        values = (new, float(position), self._db.workspace, key)
        self._db.execute("UPDATE node SET parent = ?, position = ? WHERE workspace = ? AND id = ?", values)
        self._parents[key] = new
        self._changed_access[key] = None
        self._writer.changed = True

    def delete(self, block_id: str) -> int:
        """Remove a block and everything below; return the number of removed blocks."""
        key = self._existing(block_id)
        keys = [key, *self._below(key)]
        for dropped in reversed(keys):
            self._drop(dropped)
        return len(keys)

    def remove(self, block_id: str) -> None:
        """Remove a block alone; the children become roots with the same access restrictions as before."""
        key = self._existing(block_id)
        statement = f"SELECT file.access{FROM_NODES} WHERE node.workspace = ? AND node.id = ?"
        access = self._writer.access_of(self._db.run(statement, key).get)
        for child in self._children(key):
            self._changed_access[child] = None
            if access != ROOT:
                self._db.run("UPDATE node SET inherits = 0 WHERE workspace = ? AND id = ?", child)
        self._drop(key)

    def _drop(self, key: bytes) -> None:
        self._bonds.clear()
        for table, column in (("bond", "source"), ("permit", "block"), ("deed", "block"), ("node", "id")):
            self._db.run(f"DELETE FROM {table} WHERE workspace = ? AND {column} = ?", key)
        self._parents.pop(key, None)
        self._writer.drop(_path(decoded(key)))

    # -- links and activity

    def link(self, link: Link) -> None:
        """Link a block to another block, or to a name without a block; a repeated link is stored once."""
        source = self._existing(link.source)
        target = None if link.target is None else id_bytes(link.target)
        values = (source, LinkKind(link.kind).value, target, plain(link.name))
        known = (
            "SELECT 1 FROM bond WHERE workspace = ? AND source = ? AND kind = ?"
            " AND target IS NOT DISTINCT FROM ? AND name = ?"
        )
        is_there = values in self._bonds
        if not is_there and not (self._was_empty and source in self._parents):
            is_there = self._db.run(known, *values).fetchone() is not None
        self._bonds.add(values)
        if not is_there:
            self._db.insert("bond", "source, kind, target, name", [values])
            self._writer.changed = True
            self._changed_links.add(source)

    def unlink(self, block_id: str, *, kind: LinkKind | None = None, target: str | None = None) -> int:
        """Remove a block's links, optionally only of a kind or to a target; return the number of removed links."""
        source = self._existing(block_id)
        where, values = conditions(
            ("kind = ?", None if kind is None else LinkKind(kind).value),
            ("target = ?", None if target is None else id_bytes(target)),
        )
        self._bonds.clear()
        self._db.run(f"DELETE FROM bond WHERE workspace = ? AND source = ?{where}", source, *values)
        removed = self._db.changes()
        if removed:
            self._writer.changed = True
            self._changed_links.add(source)
        return removed

    def record(self, activity: Activity) -> None:
        """Record an activity on a block or a file."""
        self._known(activity.block)
        texts = map(plain, (activity.actor, activity.action, activity.detail, activity.reference))
        row = (id_bytes(activity.block), micros(activity.timestamp), *texts)
        self._db.insert("deed", "block, at, actor, action, detail, reference", [row])

    # -- access

    def grant(self, grant: Grant) -> None:
        """Allow or deny a principal access at a block and everything below, at a file, or at a folder of files.

        The first grant turns a single-user workspace into a multi-user workspace with the default access "deny".
        """
        who = principal(grant.principal)
        for key in [path_key(grant.block)] if grant.is_path else self._granted_at(grant.block):
            replaces = " ON CONFLICT (workspace, block, principal) DO UPDATE SET effect = excluded.effect"
            self._db.insert("permit", "block, principal, effect", [(key, who, Effect(grant.effect).value)], replaces)
            self._changed_access[key] = None
        if default_access(self._db) is DefaultAccess.OWNER:
            self.set_default(DefaultAccess.DENY)
        self._writer.changed = True

    def revoke(self, block_id: str, who: str) -> None:
        """Remove a principal's grant at exactly this block, file or folder."""
        keys = self._granted_at(block_id)
        name = principal(who)
        revoked = 0
        for key in keys:
            self._db.run("DELETE FROM permit WHERE workspace = ? AND block = ? AND principal = ?", key, name)
            revoked += self._db.changes()
            self._changed_access[key] = None
        if not revoked:
            hint = "there is no grant to revoke"
            if above := self._granted_above(keys[0], name):
                hint = f"the grant is at {above!r}: revoke it there, or deny access here"
            raise InvalidInput("principal", name, f"has no grant or denial at {block_id!r}; {hint}")
        self._writer.changed = True

    def set_inherits(self, block_id: str, inherits: bool) -> None:
        """Set whether a block inherits access from the parent block."""
        key = self._existing(block_id)
        values = (int(inherits), self._db.workspace, key)
        self._db.execute("UPDATE node SET inherits = ? WHERE workspace = ? AND id = ?", values)
        self._changed_access[key] = None
        self._writer.changed = True

    def set_default(self, default: DefaultAccess) -> None:
        """Set who may read files and blocks without a grant."""
        default = DefaultAccess(default)
        self._writer.set_fact("multi_user", int(default is not DefaultAccess.OWNER))
        self._writer.set_fact("default_access", default.value)
        self._writer.changed = self._writer.concerns_all = True

    def put_group(self, group: Group) -> None:
        """Store a group and replace any stored group of the same name; a group without members is removed."""
        name = principal(f"group:{group.name}").removeprefix("group:")
        self._db.run("DELETE FROM member WHERE workspace = ? AND team = ?", name)
        people = {principal(f"user:{member}").removeprefix("user:") for member in group.members}
        self._db.insert("member", "team, person", [(name, person) for person in sorted(people)])
        self._writer.changed = self._writer.concerns_all = True

    # -- steps

    def is_closed(self, block_id: str) -> bool:
        """True if a block denies access that the parent block allows."""
        key = self._existing(block_id)
        closed = (
            "SELECT 1 FROM node WHERE workspace = ? AND id = ? AND inherits = 0"
            " UNION SELECT 1 FROM permit WHERE workspace = ? AND block = ? AND effect = ?"
        )
        return self._db.run(closed, key, self._db.workspace, key, Effect.DENY.value).fetchone() is not None

    def _refuse_another_origin(self, block: Block, before: Sequence[Any] | None, origin: str) -> None:
        """Raise for a block from another source: two vaults may both have a `Home`, each with own readers."""
        if before is None or not origin or before[4] == origin:
            return
        *_, known_origin, known_path = before
        source_path = block.source_path.encode("utf-8", "replace")
        # The same note from a moved vault or through an export: replacing is safe.
        place = known_origin.partition(":")[2].partition(" as ")[0]
        if known_path and known_path == source_path and not (place and os.path.exists(place)):
            return
        if known_origin or known_path != source_path:
            whose = f"from {known_origin}" if known_origin else "of the workspace"
            reason = f"a block {whose} has this id; import this source with a prefix for its ids (--prefix)"
            raise InvalidInput("id", block.id, reason)

    def _row(self, key: bytes) -> Any:
        """The number, hash, type, inheritance, origin and source path of a stored block, or None."""
        if self._was_empty is None:
            self._was_empty = self._db.run("SELECT 1 FROM node WHERE workspace = ? LIMIT 1").fetchone() is None
        if self._was_empty and key not in self._parents:
            return None
        columns = "node.file, file.hash, node.type, node.inherits, node.origin, node.source_path"
        statement = f"SELECT {columns}{FROM_NODES} WHERE node.workspace = ? AND node.id = ?"
        return self._db.run(statement, key).fetchone()

    def _granted_at(self, block_id: str) -> list[bytes]:
        """The grant keys for a name, of a block, a file or a folder; several if the name is ambiguous."""
        keys = [key for key in (known_id(block_id), known_path_key(self._db, block_id)) if key is not None]
        if keys and not is_file_key(keys[0]) and not self._is_block(keys[0]):
            del keys[0]
        if not keys:
            raise UnknownBlock(block_id)
        return keys

    def _is_block(self, key: bytes) -> bool:
        known = "SELECT 1 FROM node WHERE workspace = ? AND id = ?"
        return key in self._parents or self._db.run(known, key).fetchone() is not None

    def _existing(self, block_id: str) -> bytes:
        key = known_id(block_id)
        if key is None or not self._is_block(key):
            raise UnknownBlock(block_id)
        return key

    def _known(self, block_id: str) -> None:
        """Raise UnknownBlock unless the id is of a block, a file or a place in a file."""
        key = known_id(block_id) or b""
        a_file = "SELECT 1 FROM file WHERE workspace = ? AND path = ?"
        if not (self._is_block(key) or self._db.run(a_file, key.partition(b"#")[0]).fetchone()):
            raise UnknownBlock(block_id)

    def _checked_parent(self, key: bytes, parent: str | None) -> bytes | None:
        """The key of the parent; raises if the new position would make a cycle."""
        if parent is None:
            return None
        parent_key = id_bytes(parent)
        for depth, above in enumerate(chain([parent_key], self._above(parent_key))):
            if depth >= _MAX_DEPTH:
                raise InvalidInput("parent", parent, f"lies more than {_MAX_DEPTH:,} levels deep")
            if above == key:
                raise InvalidInput("parent", parent, f"{decoded(key)!r} would be its own ancestor")
        return parent_key

    def _above(self, key: bytes) -> Iterator[bytes]:
        """The ancestors of a block, nearest first; endless for a cycle."""
        while True:
            if key in self._parents:
                parent = self._parents[key]
            else:
                parent = self._db.run("SELECT parent FROM node WHERE workspace = ? AND id = ?", key).get
            if parent is None:
                return
            yield parent
            key = parent

    def _below(self, key: bytes) -> Iterator[bytes]:
        waiting = [key]
        while waiting:
            children = self._children(waiting.pop())
            waiting += children
            yield from children

    def _children(self, key: bytes) -> list[bytes]:
        return [row[0] for row in self._db.run("SELECT id FROM node WHERE workspace = ? AND parent = ?", key)]

    def settle_access(self) -> None:
        """Recompute the access of blocks and files changed in this commit, and of everything affected below.

        Blocks are handled in batches from the top down: a block waits until the access of the parent is computed.
        """
        fresh, self._changed_access = set(self._changed_access), {}
        changed = {key for key in fresh if not is_file_key(key)} | self._changed_links
        self._writer.changed_files.update(row.file for row in self._access_rows(changed).values())
        self._changed_links.clear()
        for key in filter(is_file_key, fresh):
            self._recompute_file_access(key)
        waiting = {key for key in fresh if not is_file_key(key)}
        known: dict[bytes, _AccessRow] = {}
        while waiting:
            known |= self._access_rows(waiting - known.keys())
            waiting &= known.keys()  # without blocks deleted in the same commit
            ready = [key for key in waiting if known[key].parent not in waiting]
            waiting -= set(ready)
            waiting |= self._recompute_access(ready, known, fresh)

    def _access_rows(self, keys: Collection[bytes]) -> dict[bytes, _AccessRow]:
        statement = (
            f"SELECT node.id, node.file, node.parent, node.inherits, file.access{FROM_NODES}"
            " WHERE node.workspace = ? AND node.id IN ({keys})"
        )
        return {key: _AccessRow(*row) for key, *row in self._db.run_in(statement, sorted(keys))}

    def _recompute_access(self, keys: Sequence[bytes], known: dict[bytes, _AccessRow], fresh: set[bytes]) -> set[bytes]:
        """Recompute blocks with up-to-date parents; return the keys of the blocks to check next."""
        parents = {parent for key in keys if (parent := known[key].parent) is not None}
        above = known | self._access_rows(parents - known.keys())
        grants = grants_of(self._db, keys)
        below: list[bytes] = []
        changed: list[tuple[int, int]] = []
        for key in keys:
            number, parent, inherits, old = known[key]
            inherited = self._writer.access_of(above[parent].access) if parent in above else ROOT
            access = self._writer.access_number((inherited if inherits else CLOSED).changed_by(grants.get(key, ())))
            if access != old:
                changed.append((number, access))
                known[key] = known[key]._replace(access=access)
            if access != old or key in fresh:
                fresh.discard(key)
                below.append(key)
        if changed:
            self._writer.regrant(changed)
        children = "SELECT id FROM node WHERE workspace = ? AND parent IN ({keys})"
        return {row[0] for row in self._db.run_in(children, below)} - fresh

    def _recompute_file_access(self, key: bytes) -> None:
        files = granted_files(self._db, key)
        known = [(number, old, self._writer.access_number(access)) for number, old, access in files]
        changed = [(number, access) for number, old, access in known if access != old]
        if changed:
            self._writer.regrant(changed)

    def _granted_above(self, key: bytes, who: str) -> str | None:
        granted = "SELECT 1 FROM permit WHERE workspace = ? AND block = ? AND principal = ?"
        for above in islice(self._above(key), _MAX_DEPTH):
            if self._db.run(granted, above, who).fetchone():
                return decoded(above)
        return None


class _AccessRow(NamedTuple):
    """A block with access to be recomputed."""

    file: int
    parent: bytes | None
    inherits: int
    access: int


def _path(block_id: str) -> str:
    return NODE_PATH.decode() + block_id


class RelationalWriter(SqlFileWriter):
    """An open commit: files, blocks of the workspace, and rows of another store."""

    @cached_property
    def blocks(self) -> SqlBlockWriter:
        """The writer of the workspace's blocks."""
        return SqlBlockWriter(self._db, self)

    @property
    def transfer(self) -> SqlTransferWriter:
        """The writer of rows from another store."""
        return SqlTransferWriter(self._db, self)

    def settle_access(self) -> None:
        """Write the access changes deferred to the end of the commit."""
        if "blocks" in self.__dict__:
            self.blocks.settle_access()
