"""The embedded store: one folder per workspace, one writer, any number of readers in any number of processes."""

from __future__ import annotations

import fcntl
import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from satchel.adapters.embedded.derived import Derived, Manifest
from satchel.adapters.embedded.links import Links
from satchel.adapters.embedded.truth import (
    TruthWriter,
    connect,
    fact,
    mark_of,
    moment,
    path_bytes,
    path_text,
    readable,
    translated,
)
from satchel.errors import IndexBusy, IndexDamaged, IndexUnwritable
from satchel.model.block import Activity, Block, BlockType, Link, LinkKind
from satchel.ports.store import Candidate, FileState, Filters, StoredPiece, StoreFacts, StoreQuery
from satchel.text.patterns import matches

if TYPE_CHECKING:
    import apsw

    from satchel.adapters.embedded.evidence import View
    from satchel.adapters.embedded.segment import Segment

_TRUTH: Final = "truth.sqlite"
_AT_ONCE: Final = 500
_RELINK_SHARE: Final = 0.05
_QUICKLY_LINKED: Final = 20_000
_MOST_HOMES: Final = 3
_MOST_USERS: Final = 20


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
        rows = self._db.execute("SELECT path, note FROM file WHERE note != ''")
        return {path_text(path): str(note) for path, note in rows}

    def files(self) -> dict[str, FileState]:
        """Every file that is kept, by path."""
        with translated(self._folder):
            rows: list[Any] = self._db.execute("SELECT path, hash, size, modified_ns, read_ns FROM file").fetchall()
        return {path_text(path): FileState(*state) for path, *state in rows}

    # -- writing

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one writer, for as long as several commits take."""
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
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
            views = list(self._views(filters))
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
        return {file: path_text(path) for file, path in self._of_files("path", set(files)).items()}

    def _of_files(self, column: str, files: set[int]) -> dict[int, Any]:
        numbers = ",".join(map(str, sorted(files)))
        return dict(self._db.execute(f"SELECT id, {column} FROM file WHERE id IN ({numbers})"))

    def _views(self, filters: Filters) -> Iterator[View]:
        import numpy as np

        from satchel.adapters.embedded.evidence import View
        from satchel.adapters.embedded.segment import among

        self._refresh()
        allowed = self._allowed_files(filters)
        of_types = self._pieces_of_types(filters.types) if filters.types else None
        for segment in self._segments:
            everything = np.ones(len(segment.files), bool)
            visible = everything if allowed is None else among(segment.files, allowed)
            if self._gone:
                visible &= ~among(segment.files, self._gone)
            pieces = None if of_types is None else among(segment.piece_ids, of_types)
            yield View(segment, visible, pieces)

    def _refresh(self) -> None:
        """See what the last writer left."""
        stamp = self._derived.stamp()
        if stamp != self._stamp or self._derived_generation < 0:
            manifest, self._segments = self._derived.open()
            if manifest.mark != mark_of(self._db, manifest.generation):
                manifest, self._segments = Manifest(), []
            self._gone = set(manifest.gone)
            self._derived_generation = manifest.generation
            self._stamp = stamp
        if self._derived_generation < self.generation:
            rows = self._db.execute("SELECT file FROM gone WHERE generation > ?", (self._derived_generation,))
            self._gone |= {row[0] for row in rows}

    def _allowed_files(self, filters: Filters) -> list[int] | None:
        """The files that the filters let through; None when that is all of them."""
        access = readable(self._db, filters.readers)
        where: list[str] = ["1"]
        values: list[str | int] = []
        if access is not None:
            where.append(f"access IN ({','.join(map(str, sorted(access))) or 'NULL'})")
        if filters.languages:
            where.append(f"language IN ({','.join('?' * len(filters.languages))})")
            values += list(filters.languages)
        for bound, sign in ((filters.modified_after, ">="), (filters.modified_before, "<")):
            if bound is not None:
                where.append(f"modified_ns {sign} ?")
                values.append(int(bound.timestamp() * 1e9))
        if len(where) == 1 and not filters.patterns:
            return None
        rows = self._db.execute(f"SELECT id, path FROM file WHERE {' AND '.join(where)}", values)
        if not filters.patterns:
            return [row[0] for row in rows]
        return [number for number, path in rows if matches(path_text(path), filters.patterns)]

    def _seen_by(self, filters: Filters) -> str:
        """The condition on `file` under which the readers may see it."""
        access = readable(self._db, filters.readers)
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
        access = readable(self._db, filters.readers)
        found: dict[int, StoredPiece] = {}
        for i in range(0, len(ids), _AT_ONCE):
            some = ids[i : i + _AT_ONCE]
            marks = ",".join("?" * len(some))
            for row in self._db.execute(f"{_SELECT_PIECES} WHERE piece.id IN ({marks})", tuple(some)):
                if access is None or row[-1] in access:
                    found[row[0]] = self._stored(row)
        return [found[one] for one in ids if one in found]

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""
        access = readable(self._db, filters.readers)
        rows = self._db.execute(f"{_SELECT_PIECES} WHERE file.path = ? ORDER BY piece.first_line", (path_bytes(path),))
        return [self._stored(row) for row in rows if access is None or row[-1] in access]

    def _stored(self, row: Sequence[Any]) -> StoredPiece:
        (number, path, language, kind, name, qualified, signature, doc, first, last, text, kept, size,
         modified, read, _) = row  # fmt: skip
        shown = path_text(path)
        block = f"{shown}#{qualified}" if qualified else shown
        summary = " — ".join(part for part in (signature or name or "", doc or "") if part)
        return StoredPiece(
            number, shown, language, block, kind or BlockType.FILE.value, qualified or "", summary, first, last,
            text.decode("utf-8", "surrogateescape"), FileState(kept, size, modified, read),
        )  # fmt: skip

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as it was read, or None."""
        access = readable(self._db, filters.readers)
        row = self._db.execute(
            "SELECT access, content.text FROM file JOIN content ON content.file = file.id WHERE path = ?",
            (path_bytes(path),),
        ).fetchone()
        if row is None or (access is not None and row[0] not in access):
            return None
        return str(row[1].decode("utf-8", "surrogateescape"))

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block of that id, with its content."""
        path, qualified = self._parted(block_id)
        text = self.text_of(path, filters)
        if text is None:
            return None
        lines = text.split("\n")
        found = next((block for block in self.blocks_of(path, filters) if block.qualified_name == qualified), None)
        if found is None:
            return None
        content = "\n".join(lines[found.start_line - 1 : found.end_line])
        return Block(**{name: getattr(found, name) for name in Block.__slots__ if name != "content"}, content=content)

    def _parted(self, block_id: str) -> tuple[str, str]:
        """The path and the name that an id is made of; a path may have the sign between them too."""
        places = [i for i, sign in enumerate(block_id) if sign == "#"]
        for at in (len(block_id), *reversed(places)):
            path = block_id[:at]
            if self._db.execute("SELECT 1 FROM file WHERE path = ?", (path_bytes(path),)).fetchone():
                return path, block_id[at + 1 :]
        return block_id, ""

    def blocks_of(self, path: str, filters: Filters) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        access = readable(self._db, filters.readers)
        row = self._db.execute(
            "SELECT file.id, language, modified_ns, access, (SELECT max(last_line) FROM piece WHERE file = file.id)"
            " FROM file WHERE path = ?",
            (path_bytes(path),),
        ).fetchone()
        if row is None or (access is not None and row[3] not in access):
            return []
        number, language, modified, _, last = row
        when = moment(modified)
        blocks = [
            Block(
                id=path, type=BlockType.FILE, source_path=path, title=path, end_line=last or 1, language=language,
                last_modified=when,
            )
        ]  # fmt: skip
        for place, (kind, name, qualified, parent, first, last_line, signature, doc) in enumerate(
            self._db.execute(
                "SELECT type, name, qualified, parent, first_line, last_line, signature, doc FROM block"
                " WHERE file = ? ORDER BY place",
                (number,),
            )
        ):
            blocks.append(
                Block(
                    id=f"{path}#{qualified}", type=BlockType(kind), source_path=path, title=name,
                    qualified_name=qualified, parent=blocks[parent + 1].id, position=place, start_line=first,
                    end_line=last_line, signature=signature, summary=" — ".join(p for p in (signature, doc) if p),
                    language=language, last_modified=when,
                )
            )  # fmt: skip
        return blocks

    def links_from(self, block_id: str, filters: Filters, *, limit: int = 50) -> list[Link]:
        """What a block refers to, resolved by name where the workspace defines it."""
        path, qualified = self._parted(block_id)
        return list(islice(Links(self._db, self._seen_by(filters)).going_out(block_id, path, qualified), limit))

    def links_to(self, block_id: str, filters: Filters, *, kind: LinkKind | None = None, limit: int = 50) -> list[Link]:
        """What refers to a block's name."""
        path, qualified = self._parted(block_id)
        block = next((one for one in self.blocks_of(path, filters) if one.id == block_id), None)
        if block is None:
            return []
        name = block.title if qualified else path.rpartition("/")[2].partition(".")[0]
        found = Links(self._db, self._seen_by(filters)).coming_in(block_id, name, is_file=not qualified)
        return list(islice((link for link in found if kind is None or link.kind is kind), limit))

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
        """What happened, the newest first."""
        access = readable(self._db, filters.readers)
        where, values = ("WHERE activity.path = ?", (path_bytes(path),)) if path is not None else ("", ())
        rows = self._db.execute(
            "SELECT activity.path, at, actor, action, detail, reference, file.access FROM activity"
            f" JOIN file ON file.path = activity.path {where} ORDER BY at DESC, activity.rowid",
            values,
        )
        found = []
        for place, at, actor, action, detail, reference, kept in rows:
            if access is None or kept in access:
                found.append(
                    Activity(
                        path=path_text(place), actor=actor, action=action, timestamp=moment(at * 10**9), detail=detail,
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
                for table in ("file", "block", "piece", "mention")
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


def _bytes_below(folder: Path) -> int:
    """How much room a folder takes; what a writer removes meanwhile takes none."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


_SELECT_PIECES: Final = (
    "SELECT piece.id, file.path, file.language, block.type, block.name, block.qualified, block.signature, block.doc,"
    " piece.first_line, piece.last_line, substr(content.text, piece.start + 1, piece.finish - piece.start),"
    " file.hash, file.size, file.modified_ns, file.read_ns, file.access"
    " FROM piece JOIN file ON file.id = piece.file JOIN content ON content.file = piece.file"
    " LEFT JOIN block ON block.file = piece.file AND block.place = piece.block"
)
