"""Links between blocks, resolved when they are asked for: by name, against what the workspace defines now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from satchel.models.block import Link, LinkKind
from satchel.models.files import kind_of
from satchel.storage.sql.access import AccessFilter
from satchel.storage.sql.rows import FIRST_PATH, IN_FILES, path_bytes, path_text
from satchel.storage.sql.statements import QUERIES

if TYPE_CHECKING:
    from satchel.storage.sql.rows import Database

_LOOKED_AT: Final = 200
_TARGETS: Final = 3


class Links:
    """The links that somebody may see: those of files that they may see."""

    def __init__(self, db: Database, access_filter: AccessFilter) -> None:
        self._db = db
        self._seen, self._values = access_filter

    def going_out(self, block_id: str, path: str, qualified: str) -> Iterator[Link]:
        """What a block refers to; a name that nothing here defines has no target."""
        columns = "mention.kind, mention.name"
        which = f"file.path = ? AND coalesce(block.qualified, '') = ? AND {self._seen}"
        statement = QUERIES["mentions"].format(columns=columns, which=which, order=columns)
        values = (self._db.workspace, path_bytes(path), qualified, *self._values)
        rows: list[Any] = self._db.execute(statement, values).fetchall()
        for kind, name in rows:
            targets = self._files_named(name, path) if kind == LinkKind.IMPORTS else []
            targets = targets or self._named(name, path)
            if not targets:
                yield Link(source=block_id, kind=LinkKind(kind), name=name)
            for target in targets:
                yield Link(source=block_id, kind=_kind(kind, path, target), name=name, target=target)

    def coming_in(self, block_id: str, name: str, *, is_file: bool) -> Iterator[Link]:
        """What refers to a name; a file is referred to by whoever imports it."""
        wanted = "mention.name = ?"
        values: tuple[str, ...] = (name,)
        if is_file:
            matches = f"mention.name {self._db.like} ? ESCAPE '!'"
            wanted = f"mention.kind = 'imports' AND (mention.name = ? OR {matches} OR {matches})"
            escaped = name.replace("!", "!!").replace("%", "!%").replace("_", "!_")
            values = (name, f"%.{escaped}", f"%/{escaped}%")
        columns, which = "file.path, block.qualified, mention.kind", f"{wanted} AND {self._seen}"
        statement = QUERIES["mentions"].format(columns=columns, which=which, order="file.path, block.place")
        rows = self._db.execute(statement, (self._db.workspace, *values, *self._values))
        for where, inside, kind in rows:
            path = path_text(where)
            source = f"{path}#{inside}" if inside else path
            if source != block_id:
                yield Link(source=source, kind=_kind(kind, path, block_id), name=name, target=block_id)

    def _named(self, name: str, near: str) -> list[str]:
        """The blocks of that name: in the same file if there, else anywhere, the nearest folders first."""
        statement = QUERIES["blocks_named"].format(in_files=IN_FILES, readable=self._seen, limit=_LOOKED_AT)
        rows = self._db.execute(statement, (self._db.workspace, _last_part(name), FIRST_PATH, *self._values))
        found = [(path_text(path), str(qualified)) for path, qualified in rows]
        here = [entry for entry in found if entry[0] == near]
        ordered = here or sorted(found, key=lambda entry: -_shared_folders(entry[0], near))
        return [f"{path}#{qualified}" for path, qualified in ordered[:_TARGETS]]

    def _files_named(self, name: str, near: str) -> list[str]:
        """The files that a module's name stands for: `requests.auth` and `./auth` are auth.py, the nearest first."""
        stem = _last_part(name.removesuffix(".js").removesuffix(".ts").removesuffix(".h").removesuffix(".hpp"))
        if not stem:
            return []
        rows = self._db.execute(
            f"SELECT path FROM file WHERE workspace = ? AND {IN_FILES} AND {self._seen} ORDER BY path",
            (self._db.workspace, FIRST_PATH, *self._values),
        )
        paths = [path_text(row[0]) for row in rows]
        fitting = [path for path in paths if path.rpartition("/")[2].partition(".")[0] == stem and path != near]
        extension = near.rpartition(".")[2]
        fitting.sort(key=lambda path: (not path.endswith(f".{extension}"), -_shared_folders(path, near)))
        return fitting[:_TARGETS]


def _kind(kind: str, source: str, target: str) -> LinkKind:
    """What a test calls, it tests."""
    is_call = kind == LinkKind.CALLS
    if is_call and kind_of(source.partition("#")[0]).test and not kind_of(target.partition("#")[0]).test:
        return LinkKind.TESTS
    return LinkKind(kind)


def _last_part(name: str) -> str:
    return name.replace("::", ".").replace("/", ".").replace("\\", ".").rpartition(".")[2]


def _shared_folders(one: str, other: str) -> int:
    """How many folders two paths have in common."""
    count = 0
    for mine, theirs in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if mine != theirs:
            break
        count += 1
    return count
