"""How a store talks to its tables: the database it asks, how values stand in columns, and a block as a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

from satchel.errors import InvalidInput
from satchel.models.block import Activity, Block, BlockType, Link, LinkKind, block_type, is_done

_Value = TypeVar("_Value")


class Rows(Protocol):
    """What a statement gives."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    @property
    def get(self) -> Any:
        """The one value of the one row, or None."""


class Database(Protocol):
    """Runs statements with `?` where values go."""

    @property
    def workspace(self) -> int:
        """The number of the workspace, which statements bind."""

    @property
    def like(self) -> str:
        """The operator that compares with a pattern and ignores case."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run it once for each row of values."""

    def changes(self) -> int:
        """How many rows the last statement changed."""


def marks(values: Sized) -> str:
    """A mark for each of the values, as `?,?,?`."""
    return ",".join("?" * len(values))


def insert(db: Database, table: str, columns: str, rows: Iterable[Sequence[Any]], on_conflict: str = "") -> None:
    """Insert rows of a workspace, whose values are in the order of the columns."""
    db.executemany(_insertion(db.workspace, table, columns, on_conflict), rows)


@lru_cache
def _insertion(workspace: int, table: str, columns: str, on_conflict: str) -> str:
    places = ",".join("?" * (columns.count(",") + 1))
    return f"INSERT INTO {table} (workspace, {columns}) VALUES ({workspace},{places}){on_conflict}"


def conditions(*wanted: tuple[str, Any]) -> tuple[list[str], list[Any]]:
    """The conditions whose value is not None, and these values."""
    chosen = [(condition, value) for condition, value in wanted if value is not None]
    return [condition for condition, _ in chosen], [value for _, value in chosen]


def batches(values: Sequence[_Value], size: int = 500) -> Iterator[Sequence[_Value]]:
    """The values, so many at a time that each batch fits into one statement."""
    for i in range(0, len(values), size):
        yield values[i : i + size]


def rows_by_file(db: Database, statement: str) -> dict[int, list[Sequence[Any]]]:
    """The rows of each file; the first column is the file's number, and the only mark the workspace's."""
    found: dict[int, list[Sequence[Any]]] = {}
    for file, *row in db.execute(statement, (db.workspace,)):
        found.setdefault(file, []).append(row)
    return found


def count(db: Database, table: str) -> int:
    """The number of rows that a workspace has in a table."""
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE workspace = ?", (db.workspace,)).get)


def path_bytes(path: str) -> bytes:
    """A path as it is kept: the bytes that the file system knows."""
    return path.encode("utf-8", "surrogateescape")


def path_text(kept: bytes) -> str:
    """A kept path as the rest of the program sees it."""
    return kept.decode("utf-8", "surrogateescape")


def plain(text: str) -> str:
    """Without what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def moment(nanoseconds: int) -> datetime:
    """A file's time."""
    with suppress(OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return datetime.fromtimestamp(0, UTC)


class Lines:
    """Where the lines of a text begin and end, in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._starts = [0]
        position = data.find(b"\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = data.find(b"\n", position + 1)
        self._starts.append(len(data))

    def start(self, line: int) -> int:
        """Where a line begins; the first is 1."""
        return self._starts[line - 1]

    def end(self, line: int) -> int:
        """Where it ends, without its line feed."""
        end = self._starts[line]
        return end - 1 if end and self._data[end - 1 : end] == b"\n" else end


_MOST_ID_CHARS: Final = 2000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

NODE_PATH: Final = b"\0"
"""How the path of a block begins where files have theirs: with what no file's name can hold."""

IN_FILES: Final = "file.path >= ?"
"""The condition under which a row of `file` is a file's; bound to FIRST_PATH."""

FIRST_PATH: Final = b"\x01"
"""No file has a path below this, and every block has."""

FROM_NODES: Final = " FROM node JOIN file ON file.workspace = node.workspace AND file.id = node.file"
FROM_TEXTS: Final = f"{FROM_NODES} JOIN content ON content.workspace = node.workspace AND content.file = node.file"

NODE_COLUMNS: Final = (
    "type, title, parent, position, summary, source_path, first_line, last_line, modified, metadata, due, done,"
    " inherits, origin"
)
"""What a block's row says of it, beside its number and its id."""

COLUMNS: Final = (
    "node.id, node.type, node.title, node.parent, node.position, node.summary, node.source_path, node.first_line,"
    " node.last_line, node.modified, node.metadata, node.inherits, file.language, file.access"
)
"""What a block is made from; whether it may be read is the last of them."""


def is_node(path: bytes) -> bool:
    """Whether what is kept under this path is a block of the workspace's own, and not a file."""
    return path.startswith(NODE_PATH)


def id_bytes(block_id: str) -> bytes:
    """An id as it is kept."""
    if not isinstance(block_id, str) or not 0 < len(block_id) <= _MOST_ID_CHARS:
        raise InvalidInput("id", block_id, f"must be text of 1 to {_MOST_ID_CHARS} characters")
    try:
        return block_id.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidInput("id", block_id, "holds characters that UTF-8 cannot hold") from None


def known_id(block_id: str) -> bytes | None:
    """An id as it may be kept, or None for what cannot be one."""
    with suppress(InvalidInput):
        return id_bytes(block_id)
    return None


def id_text(kept: bytes) -> str:
    """A kept id as the rest of the program sees it."""
    return kept.decode("utf-8", "surrogateescape")


def micros(moment: datetime) -> int:
    """A moment as it is kept: microseconds since 1970."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(kept: int) -> datetime:
    """A kept moment."""
    return _EPOCH + kept * _MICROSECOND


def due_of(metadata: Mapping[str, Any]) -> int | None:
    """The end of the day or the moment at which something is due, if its metadata say so."""
    given = metadata.get("due")
    if not isinstance(given, str):
        return None
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(given)
        return micros(datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1))
    with suppress(ValueError, OverflowError):
        return micros(datetime.fromisoformat(given))
    return None


def block_from(row: Sequence[Any], content: str = "") -> Block:
    """The block that `COLUMNS` describe."""
    kept, kind, title, parent, position, summary, source, first, last, *rest = row
    modified, metadata, inherits, language, _ = rest
    return Block(
        id=id_text(kept),
        type=_type(kind),
        title=title,
        parent=None if parent is None else id_text(parent),
        position=position,
        summary=summary,
        source_path=id_text(source),
        start_line=first,
        end_line=last,
        last_modified=None if modified is None else moment_of(modified),
        metadata=json.loads(metadata),
        inherits=bool(inherits),
        language=language,
        content=content,
    )


def node_row(block: Block, *, parent: bytes | None, inherits: bool, origin: str) -> tuple[Any, ...]:
    """The values of `NODE_COLUMNS` for a block."""
    modified = None if block.last_modified is None else micros(block.last_modified)
    return (
        str(block_type(block.type)),
        plain(block.title),
        parent,
        float(block.position),
        plain(block.summary),
        block.source_path.encode("utf-8", "replace"),
        block.start_line,
        block.end_line,
        modified,
        metadata_text(block.metadata),
        due_of(block.metadata),
        int(is_done(block.metadata)),
        int(inherits),
        origin,
    )


def activity_from(block: bytes, at: int, *texts: str) -> Activity:
    """The activity that a row describes: its block or path, its moment, and four texts."""
    actor, action, detail, reference = texts
    return Activity(
        block=id_text(block), actor=actor, action=action, timestamp=moment_of(at), detail=detail, reference=reference
    )


def link_from(source: bytes, kind: str, target: bytes | None, name: str) -> Link:
    """The link that a row describes."""
    other = None if target is None else id_text(target)
    return Link(source=id_text(source), kind=LinkKind(kind), target=other, name=name)


def _type(kind: str) -> str:
    with suppress(ValueError):
        return BlockType(kind)
    return kind


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Metadata as it is kept."""
    try:
        return json.dumps(dict(metadata), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("metadata", metadata, f"must be what JSON can hold ({error})") from None
