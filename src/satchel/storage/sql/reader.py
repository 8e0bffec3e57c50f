"""The reading half of a store over tables: every read goes through the access lists that let the readers in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from satchel.models.access import DefaultAccess
from satchel.models.block import Action, Activity, Block, Link, LinkKind
from satchel.models.files import FileState
from satchel.models.search import Filters
from satchel.ports.block_tree import Step, steps_from
from satchel.ports.file_index import StoredPage, StoredPiece
from satchel.ports.store import StoreFacts
from satchel.storage.sql import statements as selecting
from satchel.storage.sql.access import AccessFilter, default_access, filter_by_lists
from satchel.storage.sql.code_tree import CodeTree
from satchel.storage.sql.file_writer import fact
from satchel.storage.sql.links import Links
from satchel.storage.sql.rows import FIRST_PATH, IN_FILES, count, id_text, is_node, micros, path_text
from satchel.storage.sql.statements import QUERIES
from satchel.storage.sql.tree import ActivityQuery, Tree

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.block import Record
    from satchel.ports.transfer import TransferReader
    from satchel.storage.sql.rows import Database


NOBODY: Final = Filters(readers=frozenset())
"""One who may read nothing in particular: what everybody may know is for them, too."""


class RelationalReader(ABC):
    """Reads the tables; a store says where they are, and who is let in by which lists."""

    @abstractmethod
    def _reading(self, filters: Filters | None = None) -> AbstractContextManager[Database]:
        """The tables as the readers may see them; without filters, as the workspace's owner does."""

    @abstractmethod
    def _allowed(self, db: Database, filters: Filters) -> frozenset[int] | None:
        """The access lists that let the readers in; None when all do."""

    def _condition(self, allowed: frozenset[int] | None) -> AccessFilter:
        """The access lists as a condition of statements."""
        return filter_by_lists(allowed)

    def _access_filter(self, db: Database, filters: Filters) -> AccessFilter:
        return self._condition(self._allowed(db, filters))

    # -- the whole

    @property
    def generation(self) -> int:
        """Grows with every commit that changes what can be found."""
        with self._reading(NOBODY) as db:
            return int(fact(db, "generation") or 0)

    def fact(self, name: str) -> Any:
        """A fact about the whole index, or None."""
        with self._reading() as db:
            return fact(db, name)

    def embedder(self) -> str:
        """Who made the vectors, or nothing while there are none."""
        with self._reading(NOBODY) as db:
            return str(fact(db, "embedder") or "")

    def history_head(self) -> str:
        """The commit up to which history was read, or nothing."""
        return str(self.fact("history") or "")

    def access_key(self, filters: Filters) -> object:
        """What the readers may see, such that those who may see the same have the same."""
        with self._reading(filters) as db:
            return self._allowed(db, filters)

    def notes(self) -> dict[str, str]:
        """What there is to say of files, by path."""
        with self._reading() as db:
            noted = f"SELECT path, note FROM file WHERE workspace = ? AND note != '' AND {IN_FILES}"
            rows = db.execute(noted, (db.workspace, FIRST_PATH)).fetchall()
        return {path_text(path): str(note) for path, note in rows}

    def files(self) -> dict[str, FileState]:
        """Every file that is kept, by path."""
        with self._reading() as db:
            states = f"SELECT path, hash, size, modified_ns, read_ns FROM file WHERE workspace = ? AND {IN_FILES}"
            rows = db.execute(states, (db.workspace, FIRST_PATH)).fetchall()
        return {path_text(path): FileState(*state) for path, *state in rows}

    def groups_of(self, user: str) -> frozenset[str]:
        """The groups that a user is in."""
        with self._reading(Filters(readers=frozenset({f"user:{user}"}))) as db:
            rows = db.execute("SELECT team FROM member WHERE workspace = ? AND person = ?", (db.workspace, user))
            return frozenset(row[0] for row in rows)

    def default_access(self) -> DefaultAccess:
        """Who may read what nothing was said about."""
        with self._reading(NOBODY) as db:
            return default_access(db)

    def holds_blocks(self) -> bool:
        """Whether there are blocks that were not read from files."""
        with self._reading() as db:
            return db.execute("SELECT 1 FROM node WHERE workspace = ? LIMIT 1", (db.workspace,)).fetchone() is not None

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks that came from a source."""
        with self._reading() as db:
            rows = db.execute("SELECT id FROM node WHERE workspace = ? AND origin = ?", (db.workspace, origin))
            return [id_text(row[0]) for row in rows]

    def records(self) -> Iterator[Record]:
        """Everything in the workspace that is not read from files, for whoever owns it."""
        from satchel.storage.sql.transfer import records

        with self._reading() as db:
            yield from records(db)

    @property
    def transfer(self) -> TransferReader:
        """Everything that is kept, for another store to take over."""
        from satchel.storage.sql.transfer import SqlTransferReader

        return SqlTransferReader(self._reading)

    def _counted(self, db: Database, *, bytes_on_disk: int, behind: int = 0) -> StoreFacts:
        files, own_blocks, blocks, pieces, mentions = (
            count(db, table) for table in ("file", "node", "block", "piece", "mention")
        )
        return StoreFacts(
            generation=int(fact(db, "generation") or 0),
            files=files - own_blocks,
            blocks=blocks,
            pieces=pieces,
            mentions=mentions,
            bytes_on_disk=bytes_on_disk,
            embedder=str(fact(db, "embedder") or ""),
            behind=behind,
        )

    # -- what was found

    def paths(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The paths of files by the numbers that candidates carry."""
        with self._reading(filters) as db:
            kept = selecting.of_files(db, "path", files, self._access_filter(db, filters))
        return {file: path_text(path) for file, path in kept.items() if not is_node(path)}

    def titles(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The titles of workspace blocks by the numbers that candidates carry."""
        numbers = ",".join(map(str, sorted(set(files))))
        if not numbers:
            return {}
        with self._reading(filters) as db:
            access_filter = self._access_filter(db, filters)
            statement = QUERIES["titles"].format(files=numbers, readable=access_filter.condition)
            return dict(db.execute(statement, (db.workspace, *access_filter.values)))

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """When history says that files were changed last, in seconds since 1970."""
        with self._reading(filters) as db:
            return selecting.last_changes(db, files, self._access_filter(db, filters))

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """These pieces, in this order, without those that the readers may not see."""
        with self._reading(filters) as db:
            return selecting.pieces(db, ids, self._allowed(db, filters))

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""
        with self._reading(filters) as db:
            return selecting.pieces_of(db, path, self._allowed(db, filters))

    # -- files and documents

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as it was read, or None."""
        with self._reading(filters) as db:
            return self._code(db, filters).text_of(path)

    def pages_of(self, path: str, filters: Filters, *, number: int | None = None) -> list[StoredPage]:
        """The pages of a document from first to last, or that one of them; none of what has no pages."""
        with self._reading(filters) as db:
            return self._code(db, filters).pages_of(path, number)

    def documents(self, filters: Filters) -> dict[str, bytes]:
        """The documents that have pages, by path, with the hashes of their content."""
        with self._reading(filters) as db:
            access_filter = self._access_filter(db, filters)
            statement = QUERIES["documents"].format(readable=access_filter.condition)
            rows = db.execute(statement, (db.workspace, db.workspace, *access_filter.values))
            return {path_text(path): kept for path, kept in rows}

    def paths_of(self, content_hash: bytes, filters: Filters) -> list[str]:
        """The files of that very content."""
        with self._reading(filters) as db:
            access_filter = self._access_filter(db, filters)
            rows = db.execute(
                f"SELECT path FROM file WHERE workspace = ? AND hash = ? AND {IN_FILES} AND {access_filter.condition}"
                " ORDER BY path",
                (db.workspace, content_hash, FIRST_PATH, *access_filter.values),
            )
            return [path_text(row[0]) for row in rows]

    # -- the tree

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""
        return self.blocks([block_id], filters).get(block_id)

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""
        with self._reading(filters) as db:
            found = self._tree(db, filters).blocks(ids)
            missing = [one for one in ids if one not in found]
            return found | self._code(db, filters).blocks(missing) if missing else found

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        with self._reading(filters) as db:
            return self._code(db, filters).blocks_of(path)

    def children(self, block_id: str, filters: Filters, *, limit: int) -> list[Block]:
        """The first children of a block."""
        with self._reading(filters) as db:
            return self._tree_of(db, block_id, filters).children(block_id, limit)

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and as many after it, the nearest first."""
        with self._reading(filters) as db:
            return self._tree_of(db, block_id, filters).siblings(block_id, count)

    def descendants(self, block_id: str, filters: Filters, *, limit: int, deepest: int) -> list[Block]:
        """What is below a block in reading order."""
        with self._reading(filters) as db:
            return self._tree_of(db, block_id, filters).descendants(block_id, limit, deepest)

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each block the way up from itself, as far as the readers may see."""
        with self._reading(filters) as db:
            found = self._tree(db, filters).trails(ids)
            missing = [one for one in ids if one not in found]
            return found | self._code(db, filters).trails(missing) if missing else found

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """How many steps through the tree lead from a block to others; those that none lead to are left out."""
        steps = steps_from(block_id, self.trails([block_id, *ids], filters))
        return {one: steps[one] for one in ids if one in steps}

    def _tree(self, db: Database, filters: Filters) -> Tree:
        allowed = self._allowed(db, filters)
        return Tree(db, allowed, self._condition(allowed))

    def _code(self, db: Database, filters: Filters) -> CodeTree:
        return CodeTree(db, self._allowed(db, filters))

    def _tree_of(self, db: Database, block_id: str, filters: Filters) -> Tree | CodeTree:
        tree = self._tree(db, filters)
        return tree if tree.shows(block_id) else self._code(db, filters)

    # -- links and what was done

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """What a block refers to, resolved by name where the workspace defines it."""
        with self._reading(filters) as db:
            tree = self._tree(db, filters)
            if tree.shows(block_id):
                return tree.links_from([block_id], limit)
            path, qualified = self._code(db, filters).parted(block_id)
            return list(islice(self._links(db, filters).going_out(block_id, path, qualified), limit))

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """What refers to a block, or to its name."""
        with self._reading(filters) as db:
            tree = self._tree(db, filters)
            if tree.shows(block_id):
                return [link for link in tree.links_to(block_id, limit) if kind is None or link.kind is kind]
            code = self._code(db, filters)
            path, qualified = code.parted(block_id)
            block = next((one for one in code.blocks_of(path) if one.id == block_id), None)
            if block is None:
                return []
            name = block.title if qualified else path.rpartition("/")[2].partition(".")[0]
            coming = self._links(db, filters).coming_in(block_id, name, is_file=not qualified)
            return list(islice((link for link in coming if kind is None or link.kind is kind), limit))

    def _links(self, db: Database, filters: Filters) -> Links:
        return Links(db, self._access_filter(db, filters))

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
        with self._reading(filters) as db:
            return self._tree(db, filters).tasks(
                done=done,
                due_before=None if due_before is None else micros(due_before),
                due_after=None if due_after is None else micros(due_after),
                types=filters.types,
                limit=limit,
            )

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """What history says, the newest first."""
        with self._reading(filters) as db:
            return selecting.commits(db, self._access_filter(db, filters), path=path, limit=limit)

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
        """What was done to blocks and files, by one or by anybody, the newest first; with `latest` once for each."""
        with self._reading(filters) as db:
            query = ActivityQuery(actor, since, until, tuple(actions), latest)
            found = self._tree(db, filters).activity(query, limit)
            if not actions or Action.COMMIT in actions:
                found += selecting.commits(db, self._access_filter(db, filters), actor=actor, since=since, limit=limit)
        found.sort(key=lambda one: one.timestamp, reverse=True)
        if latest:
            found = list({one.block: one for one in reversed(found)}.values())[::-1]
            found.sort(key=lambda one: one.timestamp, reverse=True)
        return [one for one in found if until is None or one.timestamp <= until][:limit]
