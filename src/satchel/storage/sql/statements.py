"""The statements that searches and readers share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from satchel.models.block import Activity, BlockType
from satchel.models.file_state import SAME_AS, FileState
from satchel.models.filters import Filters
from satchel.ports.file_index import StoredPiece
from satchel.storage.sql.access import UNRESTRICTED, AccessFilter
from satchel.storage.sql.column_codecs import path_bytes, path_text, plain
from satchel.storage.sql.database import batches, marks
from satchel.storage.sql.node import activity_from, is_node, micros
from satchel.text.patterns import matches

if TYPE_CHECKING:
    from satchel.storage.sql.database import Database

_MOST_DEFINING: Final = 200

_SELECT_PIECES: Final = (
    "SELECT piece.file, piece.start, piece.finish,"
    " piece.id, file.path, file.language, block.type, block.name, block.qualified, block.signature, block.doc,"
    " piece.first_line, piece.last_line, file.hash, file.size, file.modified_ns, file.read_ns, piece.page, file.access"
    " FROM piece JOIN file ON file.workspace = piece.workspace AND file.id = piece.file"
    " LEFT JOIN block ON block.workspace = piece.workspace AND block.file = piece.file AND block.place = piece.block"
    " WHERE piece.workspace = ?"
)


def of_files(db: Database, column: str, files: Collection[int], access: AccessFilter = UNRESTRICTED) -> dict[int, Any]:
    """A column of those of the files that may be seen."""
    if not files:
        return {}
    numbers = ",".join(map(str, sorted(set(files))))
    statement = f"SELECT id, {column} FROM file WHERE workspace = ? AND id IN ({numbers}) AND {access.condition}"
    return dict(db.execute(statement, (db.workspace, *access.values)))


def allowed_files(db: Database, filters: Filters) -> list[int] | None:
    """The files that the filters let through, whoever asks; None when that is all of them."""
    where: list[str] = ["workspace = ?"]
    values: list[str | int] = [db.workspace]
    if filters.languages:
        where.append(f"language IN ({marks(filters.languages)})")
        values += list(filters.languages)
    for bound, sign in ((filters.modified_after, ">="), (filters.modified_before, "<")):
        if bound is not None:
            where.append(f"modified_ns {sign} ?")
            values.append(int(bound.timestamp() * 1e9))
    if len(where) == 1 and not filters.patterns:
        return None
    rows: list[Any] = db.execute(f"SELECT id, path, note FROM file WHERE {' AND '.join(where)}", values).fetchall()
    if not filters.patterns:
        return [row[0] for row in rows]
    fitting = [row for row in rows if not is_node(row[1]) and matches(path_text(row[1]), filters.patterns)]
    # A document that is kept as another of its content is found there.
    held = {note.removeprefix(SAME_AS) for _, _, note in fitting if note.startswith(SAME_AS)}
    numbers = {number for number, _, _ in fitting}
    return sorted(numbers | {number for number, path, _ in rows if held and path_text(path) in held})


def pieces_of_types(db: Database, types: Sequence[str]) -> list[int]:
    """The pieces of blocks of these types."""
    of_file = " OR piece.block = -1" if BlockType.FILE in types else ""
    rows = db.execute(  # only marks are put in
        "SELECT piece.id FROM piece LEFT JOIN block"
        " ON block.workspace = piece.workspace AND block.file = piece.file AND block.place = piece.block"
        f" WHERE piece.workspace = ? AND (block.type IN ({marks(types)}){of_file})",
        (db.workspace, *map(str, types)),
    )
    return [row[0] for row in rows]


def defining(db: Database, names: Sequence[str], access_filter: AccessFilter) -> dict[int, set[int]]:
    """For each file that may be seen, its pieces in which one of the names is defined."""
    found: dict[int, set[int]] = {}
    statement = defining_statement(access_filter.condition)
    for name in names:
        *owners, last = parts_of(name)
        for file, piece in exactly(
            db.execute(statement, (db.workspace, plain(last), *access_filter.values)).fetchall(), owners
        ):
            found.setdefault(file, set()).add(piece)
    return found


def parts_of(name: str) -> list[str]:
    """The parts of a name that is written with its owners: `Class.method`, `mod::f`."""
    return [part for part in name.replace("::", ".").replace("#", ".").split(".") if part] or [""]


def defining_statement(seen: str) -> str:
    """What asks for the files, pieces and full names of blocks of a name."""
    return (
        "SELECT block.file, min(piece.id), block.qualified FROM block"
        " JOIN file ON file.workspace = block.workspace AND file.id = block.file"
        " JOIN piece ON piece.workspace = block.workspace AND piece.file = block.file"
        " AND piece.first_line <= block.last_line AND piece.last_line >= block.first_line"
        f" WHERE block.workspace = ? AND block.name = ? AND {seen} GROUP BY block.file, block.place, block.qualified"
        f" ORDER BY block.file, block.place LIMIT {_MOST_DEFINING}"
    )


def exactly(rows: Sequence[Sequence[Any]], owners: Sequence[str]) -> list[tuple[int, int]]:
    """The files and pieces of those that have the owner that was named; of all of them, if none has."""
    exact = [row for row in rows if not owners or owners[-1] in row[2].split(".")]
    return [(file, piece) for file, piece, _ in exact or rows]


def pieces(db: Database, ids: Sequence[int], access: frozenset[int] | None) -> list[StoredPiece]:
    """These pieces in this order, without those that may not be seen."""
    found: dict[int, StoredPiece] = {}
    for some in batches(ids):
        statement = f"{_SELECT_PIECES} AND piece.id IN ({marks(some)}) ORDER BY piece.file"
        rows = db.execute(statement, (db.workspace, *some))
        found |= {one.id: one for one in _stored(db, rows, access)}
    return [found[one] for one in ids if one in found]


def pieces_of(db: Database, path: str, access: frozenset[int] | None) -> list[StoredPiece]:
    """The pieces of a file from top to bottom."""
    statement = f"{_SELECT_PIECES} AND file.path = ? ORDER BY piece.first_line"
    rows = db.execute(statement, (db.workspace, path_bytes(path)))
    return list(_stored(db, rows, access))


def _stored(db: Database, rows: Iterable[Sequence[Any]], access: frozenset[int] | None) -> Iterator[StoredPiece]:
    """The pieces of the rows, which stand together by file: the text of a long one is read once."""
    kept = [row for row in rows if access is None or row[-1] in access]
    texts = _texts(db, sorted({row[0] for row in kept}))
    for file, start, finish, *row, _ in kept:
        if file in texts:  # not dropped in between
            yield _piece(row, texts[file][start:finish])


def _texts(db: Database, files: Sequence[int]) -> dict[int, bytes]:
    if not files:
        return {}
    numbers = ",".join(map(str, files))
    return dict(
        db.execute(f"SELECT file, text FROM content WHERE workspace = ? AND file IN ({numbers})", (db.workspace,))
    )


def _piece(row: Sequence[Any], text: bytes) -> StoredPiece:
    number, path, language, kind, name, qualified, signature, doc, first, last, *state, page = row
    shown = path_text(path)
    block = f"{shown}#{qualified}" if qualified else shown
    if is_node(path):
        shown, block = "", shown[1:]
    summary = " — ".join(part for part in (signature or name or "", doc or "") if part)
    return StoredPiece(
        id=number,
        path=shown,
        language=language,
        block=block,
        block_type=kind or BlockType.FILE.value,
        title=qualified or "",
        summary=summary,
        first_line=first,
        last_line=last,
        text=text.decode("utf-8", "surrogateescape"),
        state=FileState(*state),
        page=page or None,
    )


def commits(
    db: Database,
    access_filter: AccessFilter,
    *,
    actor: str | None = None,
    since: datetime | None = None,
    path: str | None = None,
    limit: int,
) -> list[Activity]:
    """What history says of files, the newest first."""
    where: list[str] = ["activity.workspace = ?"]
    values: list[Any] = [db.workspace]
    for condition, value in (
        ("activity.path = ?", None if path is None else path_bytes(path)),
        ("activity.actor = ?", actor),
        ("activity.at >= ?", None if since is None else micros(since) // 10**6),
    ):
        if value is not None:
            where.append(condition)
            values.append(value)
    where.append(access_filter.condition)
    values += access_filter.values
    rows = db.execute(
        "SELECT activity.path, at, actor, action, detail, reference FROM activity"
        " JOIN file ON file.workspace = activity.workspace AND file.path = activity.path"
        f" WHERE {' AND '.join(where)} ORDER BY at DESC, activity.rowid LIMIT {max(0, limit)}",
        values,
    )
    return [activity_from(place, at * 10**6, *texts) for place, at, *texts in rows]


def last_changes(db: Database, files: Collection[int], access_filter: AccessFilter = UNRESTRICTED) -> dict[int, int]:
    """When history says that files were changed last, in seconds since 1970."""
    if not files:
        return {}
    numbers = ",".join(map(str, sorted(set(files))))
    return dict(
        db.execute(
            "SELECT file.id, max(at) FROM activity"
            " JOIN file ON file.workspace = activity.workspace AND file.path = activity.path"
            f" WHERE activity.workspace = ? AND file.id IN ({numbers}) AND {access_filter.condition} GROUP BY file.id",
            (db.workspace, *access_filter.values),
        )
    )
