"""The embedded store: one folder per workspace, one writer, any number of readers in any number of processes."""

from __future__ import annotations

import fcntl
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from satchel.adapters.embedded.access import Rights, default_access
from satchel.adapters.embedded.code_tree import CodeTree
from satchel.adapters.embedded.derived import Derived, Manifest
from satchel.adapters.embedded.links import Links
from satchel.adapters.embedded.node import IN_FILES, id_text, is_node, micros
from satchel.adapters.embedded.tree import DeedQuery, Tree
from satchel.adapters.embedded.truth import (
    TruthWriter,
    connect,
    fact,
    mark_of,
    moment,
    path_bytes,
    path_text,
    translated,
)
from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable
from satchel.model.access import DefaultAccess
from satchel.model.block import Action, Activity, Block, BlockType, Link, LinkKind
from satchel.ports.store import (
    SAME_AS,
    Candidate,
    FileState,
    Filters,
    Step,
    StoredPage,
    StoredPiece,
    StoreFacts,
    StoreQuery,
    steps_from,
)
from satchel.text.patterns import matches

if TYPE_CHECKING:
    from datetime import datetime

    import apsw
    import numpy as np
    from numpy.typing import NDArray

    from satchel.adapters.embedded.evidence import View
    from satchel.adapters.embedded.segment import Segment
    from satchel.model.records import Record

_TRUTH: Final = "truth.sqlite"
_AT_ONCE: Final = 500
_RELINK_SHARE: Final = 0.05
_QUICKLY_LINKED: Final = 20_000
_MOST_HOMES: Final = 3
_VIEWS_KEPT: Final = 64
"""A view takes two bytes for each block, and people who may see the same share one."""

_MOST_USERS: Final = 20
_LOOK_AGAIN_S: Final = 0.005


class EmbeddedStore:
    """A store in a folder; made when it is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            # It holds copies of files that others may not be allowed to read.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise IndexUnwritable(str(folder), error.strerror or str(error)) from error
        self._connections = threading.local()
        self._open: list[apsw.Connection] = []
        self._derived = Derived(folder / "derived")
        self._lock = RLock()
        self._segments: list[Segment] = []
        self._gone: set[int] = set()
        self._derived_generation = -1
        self._stamp: tuple[int, int] | None = None
        self._writing = threading.local()
        self._rights = Rights()
        self._views_of: tuple[Any, ...] = ()
        self._seen_views: dict[tuple[Any, ...], list[View]] = {}
        self._of_types: dict[tuple[str, ...], list[NDArray[np.bool_]]] = {}
        self._db.pragma("user_version")  # whatever is wrong with it is said at once

    @property
    def _db(self) -> apsw.Connection:
        """This thread's connection: nobody sees what another thread has not committed."""
        connection: apsw.Connection | None = getattr(self._connections, "mine", None)
        if connection is None:
            connection = self._connections.mine = connect(self._folder / _TRUTH)
            self._open.append(connection)
        return connection

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._folder

    @property
    def generation(self) -> int:
        """Grows with every commit that changes what can be found."""
        return int(fact(self._db, "generation") or 0)

    def fact(self, name: str) -> Any:
        """A fact about the whole index, or None."""
        return fact(self._db, name)

    def seen(self) -> tuple[object, ...]:
        """What changes whenever a search could answer differently."""
        return self.generation, self._derived.stamp()

    def notes(self) -> dict[str, str]:
        """What there is to say of files, by path."""
        rows = self._db.execute(f"SELECT path, note FROM file WHERE note != '' AND {IN_FILES}")
        return {path_text(path): str(note) for path, note in rows}

    def files(self) -> dict[str, FileState]:
        """Every file that is kept, by path."""
        with translated(self._folder):
            rows: list[Any] = self._db.execute(
                f"SELECT path, hash, size, modified_ns, read_ns FROM file WHERE {IN_FILES}"
            ).fetchall()
        return {path_text(path): FileState(*state) for path, *state in rows}

    # -- writing

    @contextmanager
    def lock(self, *, wait: float = 0) -> Iterator[None]:
        """Be the one writer, for as long as several commits take; wait so many seconds for another to end."""
        if getattr(self._writing, "now", False):
            yield
            return
        path = self._folder / "write.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise IndexUnwritable(str(path), error.strerror or str(error)) from error
        try:
            try:
                _locked(handle, wait)
            except BlockingIOError:
                owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                raise IndexBusy(str(self._folder), f" ({owner})" if owner else "") from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()}".encode(), 0)
            self._writing.now = True
            try:
                yield
            finally:
                self._writing.now = False
                os.ftruncate(handle, 0)
        finally:
            os.close(handle)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Whatever this thread reads meanwhile is of one moment."""
        db = self._db
        if db.in_transaction:
            yield
            return
        db.execute("BEGIN")
        try:
            yield
        finally:
            db.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[TruthWriter]:
        """One commit: all of it becomes visible, or nothing."""
        with self.lock(), translated(self._folder), self._db:
            following = self.generation + 1
            writer = TruthWriter(self._db, following)
            yield writer
            if writer.changed:
                writer.seal()

    def catch_up(self) -> bool:
        """Bring the segments up to the truth; whether there was anything to do."""
        with self.lock(), translated(self._folder):
            try:
                with self._db:
                    self._weigh_links()
                    done = self._derived.catch_up(self._db, self.generation, self._dimensions())
            except OSError as error:
                raise IndexUnwritable(str(self._folder), error.strerror or str(error)) from error
            self._db.execute("DELETE FROM gone WHERE generation <= ?", (self._derived.manifest().generation,))
            return done

    def _weigh_links(self) -> None:
        """How much each file's definitions are used; not anew for every small change."""
        held = int(self._db.execute("SELECT count(*) FROM file").get)
        since = fact(self._db, "linked") or 0
        fresh = int(self._db.execute("SELECT count(*) FROM file WHERE generation > ?", (since,)).get)
        known = int(self._db.execute("SELECT count(*) FROM mention").get)
        if fresh <= _RELINK_SHARE * held and known > _QUICKLY_LINKED:
            return
        self._db.execute("UPDATE file SET central = 0 WHERE central != 0")
        users = dict(self._db.execute("SELECT name, count(DISTINCT file) FROM mention GROUP BY name"))
        homes: dict[str, set[int]] = {}
        for file, name in self._db.execute("SELECT file, name FROM block"):
            homes.setdefault(name, set()).add(file)
        used: dict[int, float] = {}
        for name, files in homes.items():
            # A name that many files define says little about any of them.
            if len(files) <= _MOST_HOMES and name in users:
                for file in files:
                    used[file] = used.get(file, 0.0) + min(users[name], _MOST_USERS) / len(files)
        self._db.executemany(
            "UPDATE file SET central = ? WHERE id = ?", ((math.log1p(value), file) for file, value in used.items())
        )
        self._db.execute("INSERT OR REPLACE INTO fact VALUES ('linked', ?)", (self.generation,))

    def tidy(self) -> None:
        """Drop vectors that no piece uses any more, and give back the room."""
        with self.lock(), translated(self._folder):
            with self._db:
                self._db.execute("DELETE FROM vector WHERE hash NOT IN (SELECT hash FROM piece)")
            self._db.pragma("wal_checkpoint(truncate)")

    def _dimensions(self) -> int:
        return int(fact(self._db, "dimensions") or 1)

    # -- reading

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The pieces with the most evidence, of what the readers may see, in a stable order."""
        from satchel.adapters.embedded.evidence import gather

        with self._lock:
            views = self._views(filters)
        try:
            with translated(self._folder):
                defining = self._defining(query.names, filters)
            found = gather(views, query, top_k, defining)
        except (IndexError, ValueError) as error:
            self._derived.forget()
            raise IndexDamaged(str(self._folder), f"its search arrays make no sense: {error}") from error
        else:
            # How much a file is used is counted over everybody's files.
            column = "central" if filters.readers is None else "0.0"
            central = self._of_files(column, {candidate.file for candidate in found})
            return [
                one._replace(of_file={**one.of_file, "central": central[one.file]})
                for one in found
                if one.file in central
            ]

    def paths(self, files: Sequence[int]) -> dict[int, str]:
        """The paths of files by the numbers that candidates carry."""
        kept = self._of_files("path", set(files))
        return {file: path_text(path) for file, path in kept.items() if not is_node(path)}

    def titles(self, files: Sequence[int]) -> dict[int, str]:
        """The titles of workspace blocks by the numbers that candidates carry."""
        numbers = ",".join(map(str, sorted(set(files))))
        return dict(self._db.execute(f"SELECT file, title FROM node WHERE file IN ({numbers})"))

    def _of_files(self, column: str, files: set[int]) -> dict[int, Any]:
        numbers = ",".join(map(str, sorted(files)))
        return dict(self._db.execute(f"SELECT id, {column} FROM file WHERE id IN ({numbers})"))

    def _views(self, filters: Filters) -> list[View]:
        """The segments with what may be seen of each, kept until something changes or is granted."""
        generation = self._refresh()
        rights = self._rights.of(self._db, generation, filters.readers)
        now = (generation, self._stamp)
        if self._views_of != now:
            self._views_of = now
            self._seen_views.clear()
            self._of_types.clear()
        key = (rights, replace(filters, readers=None))
        views = self._seen_views.get(key)
        if views is None:
            views = self._made_views(filters, generation, rights)
            # The time of a file may change without anything else changing.
            if filters.modified_after is None and filters.modified_before is None:
                if len(self._seen_views) >= _VIEWS_KEPT:
                    self._seen_views.pop(next(iter(self._seen_views)))
                self._seen_views[key] = views
        return views

    def _made_views(self, filters: Filters, generation: int, rights: frozenset[int] | None) -> list[View]:
        import numpy as np

        from satchel.adapters.embedded.evidence import View
        from satchel.adapters.embedded.segment import among

        allowed = self._allowed_files(filters)
        if filters.types and filters.types not in self._of_types:
            ids = self._pieces_of_types(filters.types)
            self._of_types[filters.types] = [among(segment.piece_ids, ids) for segment in self._segments]
        views = []
        for i, segment in enumerate(self._segments):
            visible = np.ones(len(segment.files), bool) if allowed is None else among(segment.files, allowed)
            if rights is not None:
                visible &= self._rights.visible(self._db, generation, segment.files, rights)
            if self._gone:
                visible &= ~among(segment.files, self._gone)
            views.append(View(segment, visible, self._of_types[filters.types][i] if filters.types else None))
        return views

    def _refresh(self) -> int:
        """See what the last writer left; its generation."""
        generation = self.generation
        stamp = self._derived.stamp()
        if stamp != self._stamp or self._derived_generation < 0:
            manifest, self._segments = self._derived.open()
            if manifest.mark != mark_of(self._db, manifest.generation):
                manifest, self._segments = Manifest(), []
            self._gone = set(manifest.gone)
            self._derived_generation = manifest.generation
            self._stamp = stamp
        if self._derived_generation < generation:
            rows = self._db.execute("SELECT file FROM gone WHERE generation > ?", (self._derived_generation,))
            self._gone |= {row[0] for row in rows}
        return generation

    def _allowed_files(self, filters: Filters) -> list[int] | None:
        """The files that the filters let through, whoever asks; None when that is all of them."""
        where: list[str] = ["1"]
        values: list[str | int] = []
        if filters.languages:
            where.append(f"language IN ({','.join('?' * len(filters.languages))})")
            values += list(filters.languages)
        for bound, sign in ((filters.modified_after, ">="), (filters.modified_before, "<")):
            if bound is not None:
                where.append(f"modified_ns {sign} ?")
                values.append(int(bound.timestamp() * 1e9))
        if len(where) == 1 and not filters.patterns:
            return None
        rows: list[Any] = self._db.execute(
            f"SELECT id, path, note FROM file WHERE {' AND '.join(where)}", values
        ).fetchall()
        if not filters.patterns:
            return [row[0] for row in rows]
        fitting = [row for row in rows if not is_node(row[1]) and matches(path_text(row[1]), filters.patterns)]
        # A document that is kept as another of its content is found there.
        held = {note.removeprefix(SAME_AS) for _, _, note in fitting if note.startswith(SAME_AS)}
        numbers = {number for number, _, _ in fitting}
        return sorted(numbers | {number for number, path, _ in rows if held and path_text(path) in held})

    def rights(self, filters: Filters) -> object:
        """What the readers may see, such that those who may see the same have the same."""
        return self._allowed(filters)

    def _allowed(self, filters: Filters) -> frozenset[int] | None:
        """The access lists that let the readers in; None when all do."""
        return self._rights.of(self._db, self.generation, filters.readers)

    def _seen_by(self, filters: Filters) -> str:
        """The condition on `file` under which the readers may see it."""
        access = self._allowed(filters)
        return "1" if access is None else f"file.access IN ({','.join(map(str, sorted(access))) or 'NULL'})"

    def _pieces_of_types(self, types: Sequence[str]) -> list[int]:
        marks = ",".join("?" * len(types))
        of_file = " OR piece.block = -1" if BlockType.FILE in types else ""
        return [
            row[0]
            for row in self._db.execute(  # only marks are put in
                "SELECT piece.id FROM piece LEFT JOIN block ON block.file = piece.file AND block.place = piece.block"
                f" WHERE block.type IN ({marks}){of_file}",
                tuple(types),
            )
        ]

    def _defining(self, names: Sequence[str], filters: Filters) -> dict[int, set[int]]:
        """For each file, its pieces in which one of the names is defined."""
        found: dict[int, set[int]] = {}
        seen = self._seen_by(filters)
        for name in names:
            *owners, last = [part for part in name.replace("::", ".").replace("#", ".").split(".") if part] or [""]
            rows: list[Any] = self._db.execute(
                "SELECT block.file, piece.id, block.qualified FROM block JOIN file ON file.id = block.file"
                " JOIN piece ON piece.file = block.file"
                " AND piece.first_line <= block.last_line AND piece.last_line >= block.first_line"
                f" WHERE block.name = ? AND {seen} GROUP BY block.file, block.place"
                " HAVING piece.id = min(piece.id) LIMIT 200",
                (last,),
            ).fetchall()
            exact = [row for row in rows if not owners or owners[-1] in row[2].split(".")]
            for file, piece, _ in exact or rows:
                found.setdefault(file, set()).add(piece)
        return found

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """These pieces, in this order, without those that the readers may not see."""
        access = self._allowed(filters)
        found: dict[int, StoredPiece] = {}
        for i in range(0, len(ids), _AT_ONCE):
            some = ids[i : i + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._db.execute(f"{_SELECT_PIECES} WHERE piece.id IN ({marks}) ORDER BY piece.file", tuple(some))
            found |= {one.id: one for one in self._stored(rows, access)}
        return [found[one] for one in ids if one in found]

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""
        access = self._allowed(filters)
        rows = self._db.execute(f"{_SELECT_PIECES} WHERE file.path = ? ORDER BY piece.first_line", (path_bytes(path),))
        return list(self._stored(rows, access))

    def _stored(self, rows: Iterable[Sequence[Any]], access: frozenset[int] | None) -> Iterator[StoredPiece]:
        """The pieces of the rows, which stand together by file: the text of a long one is read once."""
        of: int | None = None
        text: bytes | None = None
        for file, start, finish, *row, sees in rows:
            if access is not None and sees not in access:
                continue
            if file != of:
                of, text = file, self._db.execute("SELECT text FROM content WHERE file = ?", (file,)).get
            if text is not None:  # dropped in between
                yield self._piece(row, text[start:finish])

    def _piece(self, row: Sequence[Any], text: bytes) -> StoredPiece:
        (number, path, language, kind, name, qualified, signature, doc, first, last, kept, size,
         modified, read, page) = row  # fmt: skip
        shown = path_text(path)
        block = f"{shown}#{qualified}" if qualified else shown
        if is_node(path):
            shown, block = "", shown[1:]
        summary = " — ".join(part for part in (signature or name or "", doc or "") if part)
        return StoredPiece(
            number, shown, language, block, kind or BlockType.FILE.value, qualified or "", summary, first, last,
            text.decode("utf-8", "surrogateescape"), FileState(kept, size, modified, read), page or None,
        )  # fmt: skip

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as it was read, or None."""
        return self._code(filters).text_of(path)

    def pages_of(self, path: str, filters: Filters, *, number: int | None = None) -> list[StoredPage]:
        """The pages of a document from first to last, or that one of them; none of what has no pages."""
        return self._code(filters).pages_of(path, number)

    def documents(self, filters: Filters) -> dict[str, bytes]:
        """The documents that have pages, by path, with the hashes of their content."""
        seen = self._seen_by(filters)
        rows = self._db.execute(
            f"SELECT path, hash FROM file WHERE {seen} AND id IN (SELECT DISTINCT file FROM page) ORDER BY path"
        )
        return {path_text(path): kept for path, kept in rows}

    def paths_of(self, content_hash: bytes, filters: Filters) -> list[str]:
        """The files of that very content."""
        seen = self._seen_by(filters)
        rows = self._db.execute(
            f"SELECT path FROM file WHERE hash = ? AND {seen} AND {IN_FILES} ORDER BY path", (content_hash,)
        )
        return [path_text(row[0]) for row in rows]

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""
        return self.blocks([block_id], filters).get(block_id)

    def blocks(self, ids: Sequence[str], filters: Filters) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""
        found = self._tree(filters).blocks(ids)
        missing = [one for one in ids if one not in found]
        return found | self._code(filters).blocks(missing) if missing else found

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        return self._code(filters).blocks_of(path)

    def children(self, block_id: str, filters: Filters, *, limit: int) -> list[Block]:
        """The first children of a block."""
        return self._tree_of(block_id, filters).children(block_id, limit)

    def siblings(self, block_id: str, filters: Filters, *, count: int) -> list[Block]:
        """The nearest siblings of a block, `count` before and as many after it, the nearest first."""
        return self._tree_of(block_id, filters).siblings(block_id, count)

    def descendants(self, block_id: str, filters: Filters, *, limit: int, deepest: int) -> list[Block]:
        """What is below a block in reading order."""
        return self._tree_of(block_id, filters).descendants(block_id, limit, deepest)

    def trails(self, ids: Sequence[str], filters: Filters) -> dict[str, tuple[Step, ...]]:
        """For each block the way up from itself, as far as the readers may see."""
        found = self._tree(filters).trails(ids)
        missing = [one for one in ids if one not in found]
        return found | self._code(filters).trails(missing) if missing else found

    def distances(self, block_id: str, ids: Sequence[str], filters: Filters) -> dict[str, int]:
        """How many steps through the tree lead from a block to others; those that none lead to are left out."""
        steps = steps_from(block_id, self.trails([block_id, *ids], filters))
        return {one: steps[one] for one in ids if one in steps}

    def _tree(self, filters: Filters) -> Tree:
        return Tree(self._db, self._allowed(filters))

    def _code(self, filters: Filters) -> CodeTree:
        return CodeTree(self._db, self._allowed(filters))

    def _tree_of(self, block_id: str, filters: Filters) -> Tree | CodeTree:
        tree = self._tree(filters)
        return tree if tree.shows(block_id) else self._code(filters)

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """What a block refers to, resolved by name where the workspace defines it."""
        tree = self._tree(filters)
        if tree.shows(block_id):
            return tree.links_from([block_id], limit)
        path, qualified = self._code(filters).parted(block_id)
        return list(islice(Links(self._db, self._seen_by(filters)).going_out(block_id, path, qualified), limit))

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """What refers to a block, or to its name."""
        tree = self._tree(filters)
        if tree.shows(block_id):
            return [link for link in tree.links_to(block_id, limit) if kind is None or link.kind is kind]
        code = self._code(filters)
        path, qualified = code.parted(block_id)
        block = next((one for one in code.blocks_of(path) if one.id == block_id), None)
        if block is None:
            return []
        name = block.title if qualified else path.rpartition("/")[2].partition(".")[0]
        coming = Links(self._db, self._seen_by(filters)).coming_in(block_id, name, is_file=not qualified)
        return list(islice((link for link in coming if kind is None or link.kind is kind), limit))

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
        return self._tree(filters).tasks(
            done=done,
            due_before=None if due_before is None else micros(due_before),
            due_after=None if due_after is None else micros(due_after),
            types=filters.types,
            limit=limit,
        )

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
        deeds = self._tree(filters).deeds(DeedQuery(actor, since, until, tuple(actions), latest), limit)
        commits = self._commits(filters, actor, since, limit) if not actions or Action.COMMIT in actions else []
        found = sorted([*deeds, *commits], key=lambda one: one.timestamp, reverse=True)
        if latest:
            found = list({one.block: one for one in reversed(found)}.values())[::-1]
            found.sort(key=lambda one: one.timestamp, reverse=True)
        return [one for one in found if until is None or one.timestamp <= until][:limit]

    def groups_of(self, user: str) -> frozenset[str]:
        """The groups that a user is in."""
        return frozenset(row[0] for row in self._db.execute("SELECT team FROM member WHERE person = ?", (user,)))

    def default_access(self) -> DefaultAccess:
        """Who may read what nothing was said about."""
        return default_access(self._db)

    def holds_blocks(self) -> bool:
        """Whether there are blocks that were not read from files."""
        return self._db.execute("SELECT 1 FROM node LIMIT 1").fetchone() is not None

    def blocks_from(self, origin: str) -> list[str]:
        """The ids of the blocks that came from a source."""
        return [id_text(row[0]) for row in self._db.execute("SELECT id FROM node WHERE origin = ?", (origin,))]

    def records(self) -> Iterator[Record]:
        """Everything in the workspace that is not read from files, for whoever owns it."""
        from satchel.adapters.embedded.export import records

        return records(self._db)

    def last_changes(self, files: Sequence[int]) -> dict[int, int]:
        """When history says that files were changed last, in seconds since 1970."""
        numbers = ",".join(map(str, sorted(set(files))))
        return dict(
            self._db.execute(
                "SELECT file.id, max(at) FROM activity JOIN file ON file.path = activity.path"
                f" WHERE file.id IN ({numbers}) GROUP BY file.id"
            )
        )

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """What history says, the newest first."""
        return self._commits(filters, None, None, limit, path)

    def _commits(
        self, filters: Filters, actor: str | None, since: datetime | None, limit: int, path: str | None = None
    ) -> list[Activity]:
        access = self._allowed(filters)
        where: list[str] = ["1"]
        values: list[str | bytes | int] = []
        for condition, value in (
            ("activity.path = ?", None if path is None else path_bytes(path)),
            ("activity.actor = ?", actor),
            ("activity.at >= ?", None if since is None else micros(since) // 10**6),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        rows = self._db.execute(
            "SELECT activity.path, at, actor, action, detail, reference, file.access FROM activity"
            f" JOIN file ON file.path = activity.path WHERE {' AND '.join(where)} ORDER BY at DESC, activity.rowid",
            values,
        )
        found = []
        for place, at, who, action, detail, reference, kept in rows:
            if access is None or kept in access:
                found.append(
                    Activity(
                        block=path_text(place), actor=who, action=action, timestamp=moment(at * 10**9), detail=detail,
                        reference=reference,
                    )
                )  # fmt: skip
            if len(found) == limit:
                break
        return found

    def embedder(self) -> str:
        """Who made the vectors, or nothing while there are none."""
        return str(fact(self._db, "embedder") or "")

    def history_head(self) -> str:
        """The commit up to which history was read, or nothing."""
        return str(fact(self._db, "history") or "")

    def facts(self) -> StoreFacts:
        """What is in it."""
        with translated(self._folder):
            files, blocks, pieces, mentions = (
                int(self._db.execute(f"SELECT count(*) FROM {table}").get)
                for table in (f"file WHERE {IN_FILES}", "block", "piece", "mention")
            )
            behind = self.generation - self._derived.reflected(self._db)
            generation, embedder = self.generation, self.embedder()
        return StoreFacts(generation, files, blocks, pieces, mentions, _bytes_below(self._folder), embedder, behind)

    def check(self) -> str:
        """What is wrong with the files, or nothing."""
        with translated(self._folder):
            found = str(self._db.pragma("quick_check"))
        if found != "ok":
            return found
        manifest, segments = self._derived.manifest(), self._derived.open()[1]
        if len(segments) != len(manifest.segments):
            return "the search index is damaged; the next index run makes it anew"
        return ""

    def close(self) -> None:
        """Let go of files."""
        while self._open:
            self._open.pop().close()
        self._connections = threading.local()


def _locked(handle: int, wait: float) -> None:
    """Take the lock; whoever has it may take a while."""
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_AGAIN_S)


def _bytes_below(folder: Path) -> int:
    """How much room a folder takes; what a writer removes meanwhile takes none."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


_SELECT_PIECES: Final = (
    "SELECT piece.file, piece.start, piece.finish,"
    " piece.id, file.path, file.language, block.type, block.name, block.qualified, block.signature, block.doc,"
    " piece.first_line, piece.last_line, file.hash, file.size, file.modified_ns, file.read_ns, piece.page, file.access"
    " FROM piece JOIN file ON file.id = piece.file JOIN content ON content.file = piece.file"
    " LEFT JOIN block ON block.file = piece.file AND block.place = piece.block"
)
