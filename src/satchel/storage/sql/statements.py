"""The statements that searches and readers share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from satchel.models.block import Activity, BlockType
from satchel.models.files import SAME_AS, FileState
from satchel.models.search import Filters
from satchel.ports.file_index import StoredPiece
from satchel.storage.sql.access import UNRESTRICTED, AccessFilter
from satchel.storage.sql.rows import (
    Database,
    activity_from,
    batches,
    conditions,
    is_node,
    marks,
    micros,
    path_bytes,
    path_text,
    plain,
)
from satchel.text.patterns import matches

_, *_NAMED = Path(__file__).with_name("queries.sql").read_text().split("-- name: ")
QUERIES: Final = {name: statement.strip() for name, _, statement in (query.partition("\n") for query in _NAMED)}
"""The long statements by name; `format` puts our own conditions and marks into them."""


_MOST_DEFINING: Final = 200


def of_files(db: Database, column: str, files: Collection[int], access: AccessFilter = UNRESTRICTED) -> dict[int, Any]:
    """A column of those of the files that may be seen."""
    if not files:
        return {}
    numbers = ",".join(map(str, sorted(set(files))))
    statement = f"SELECT id, {column} FROM file WHERE workspace = ? AND id IN ({numbers}) AND {access.condition}"
    return dict(db.execute(statement, (db.workspace, *access.values)))


def allowed_files(db: Database, filters: Filters) -> list[int] | None:
    """The files that the filters let through, whoever asks; None when that is all of them."""
    after, before = filters.modified_after, filters.modified_before
    where, values = conditions(
        ("workspace = ?", db.workspace),
        ("modified_ns >= ?", None if after is None else int(after.timestamp() * 1e9)),
        ("modified_ns < ?", None if before is None else int(before.timestamp() * 1e9)),
    )
    if filters.languages:
        where.append(f"language IN ({marks(filters.languages)})")
        values += filters.languages
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
    or_file = " OR piece.block = -1" if BlockType.FILE in types else ""
    statement = QUERIES["pieces_of_types"].format(types=marks(types), or_file=or_file)
    return [row[0] for row in db.execute(statement, (db.workspace, *map(str, types)))]


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
    return QUERIES["defining"].format(readable=seen, limit=_MOST_DEFINING)


def exactly(rows: Sequence[Sequence[Any]], owners: Sequence[str]) -> list[tuple[int, int]]:
    """The files and pieces of those that have the owner that was named; of all of them, if none has."""
    exact = [row for row in rows if not owners or owners[-1] in row[2].split(".")]
    return [(file, piece) for file, piece, _ in exact or rows]


def pieces(db: Database, ids: Sequence[int], access: frozenset[int] | None) -> list[StoredPiece]:
    """These pieces in this order, without those that may not be seen."""
    found: dict[int, StoredPiece] = {}
    for some in batches(ids):
        statement = QUERIES["pieces"].format(which=f"piece.id IN ({marks(some)}) ORDER BY piece.file")
        rows = db.execute(statement, (db.workspace, *some))
        found |= {one.id: one for one in _stored(db, rows, access)}
    return [found[one] for one in ids if one in found]


def pieces_of(db: Database, path: str, access: frozenset[int] | None) -> list[StoredPiece]:
    """The pieces of a file from top to bottom."""
    statement = QUERIES["pieces"].format(which="file.path = ? ORDER BY piece.first_line")
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
    where, values = conditions(
        ("activity.workspace = ?", db.workspace),
        ("activity.path = ?", None if path is None else path_bytes(path)),
        ("activity.actor = ?", actor),
        ("activity.at >= ?", None if since is None else micros(since) // 10**6),
    )
    which = " AND ".join([*where, access_filter.condition])
    statement = QUERIES["commits"].format(which=which, limit=max(0, limit))
    rows = db.execute(statement, (*values, *access_filter.values))
    return [activity_from(place, at * 10**6, *texts) for place, at, *texts in rows]


def last_changes(db: Database, files: Collection[int], access_filter: AccessFilter = UNRESTRICTED) -> dict[int, int]:
    """When history says that files were changed last, in seconds since 1970."""
    if not files:
        return {}
    numbers = ",".join(map(str, sorted(set(files))))
    statement = QUERIES["last_changes"].format(files=numbers, readable=access_filter.condition)
    return dict(db.execute(statement, (db.workspace, *access_filter.values)))
