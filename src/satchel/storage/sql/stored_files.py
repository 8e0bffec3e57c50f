"""Files and blocks with everything that is stored of them, for a transfer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from satchel.models.access import Access
from satchel.models.files import FileState
from satchel.models.outline import Mention, Outline, OutlineBlock, OutlinePage, OutlinePiece
from satchel.ports.file_index import NewFile
from satchel.ports.transfer import StoredFile
from satchel.storage.sql.access import access_of
from satchel.storage.sql.rows import COLUMNS, FROM_NODES, block_from, path_text, rows_by_file
from satchel.storage.sql.statements import QUERIES

if TYPE_CHECKING:
    from satchel.storage.sql.rows import Database

_MOST_BYTES: Final = 8_000_000
"""So much text is given out at once, unless one file alone has more."""


def next_numbers(db: Database, column: str, after: object, limit: int) -> list[int]:
    """The numbers of the next files, no more than can be held at once."""
    rows: list[Any] = db.execute(
        "SELECT file.id, length(content.text) FROM file"
        " LEFT JOIN content ON content.workspace = file.workspace AND content.file = file.id"
        f" WHERE file.workspace = ? AND file.{column} > ? ORDER BY file.{column} LIMIT {limit:d}",
        (db.workspace, after),
    ).fetchall()
    chosen: list[int] = []
    room = _MOST_BYTES
    for number, size in rows:
        room -= size or 0
        if chosen and room < 0:
            break
        chosen.append(number)
    return chosen


def stored_files(db: Database, numbers: Sequence[int]) -> list[StoredFile]:
    """Files by their numbers, in this order."""
    if not numbers:
        return []
    inside = ",".join(map(str, numbers))
    here = (db.workspace,)
    rows = {number: row for number, *row in db.execute(QUERIES["stored_files"].format(files=inside), here)}
    own = f"SELECT node.file, node.origin, {COLUMNS}{FROM_NODES} WHERE node.workspace = ? AND node.file IN ({inside})"
    nodes = {number: (block_from(row), origin) for number, origin, *row in db.execute(own, here)}
    parts = _Parts(db, inside)
    lists: dict[int, Access] = {}
    found = []
    for number in filter(rows.__contains__, numbers):
        path, *state, language, note, called, access, has_own_readers, data = rows[number]
        data = data or b""
        pieces, hashes = parts.pieces(number, data)
        outline = Outline(
            language=language,
            blocks=parts.blocks(number),
            pieces=pieces,
            mentions=parts.mentions(number),
            note=note,
            pages=parts.pages(number),
            title=called,
        )
        if access not in lists:
            lists[access] = access_of(db, access)
        block, origin = nodes.get(number, (None, ""))
        file = NewFile(path_text(path), FileState(*state), data.decode("utf-8", "surrogateescape"), outline)
        if has_own_readers:
            file = file._replace(readers=tuple(sorted(lists[access].allow)))
        found.append(
            StoredFile(
                number=number,
                file=file,
                hashes=hashes,
                access=lists[access],
                has_own_readers=bool(has_own_readers),
                block=block,
                origin=origin,
            )
        )
    return found


class _Parts:
    """What some files consist of, by their numbers."""

    def __init__(self, db: Database, files: str) -> None:
        self._blocks, self._pieces, self._pages, self._mentions = (
            rows_by_file(db, QUERIES[f"stored_{part}"].format(files=files))
            for part in ("blocks", "pieces", "pages", "mentions")
        )

    def blocks(self, number: int) -> tuple[OutlineBlock, ...]:
        return tuple(OutlineBlock(*row) for row in self._blocks.get(number, ()))

    def pieces(self, number: int, data: bytes) -> tuple[tuple[OutlinePiece, ...], tuple[bytes, ...]]:
        """The pieces, and the hash of each."""
        place = _Characters(data)
        pieces, hashes = [], []
        for first, last, start, finish, block, defines, kept, page in self._pieces.get(number, ()):
            defined = tuple(int(one) for one in defines.split(",") if one)
            pieces.append(OutlinePiece._make((first, last, place.of(start), place.of(finish), block, defined, page)))
            hashes.append(kept)
        return tuple(pieces), tuple(hashes)

    def pages(self, number: int) -> tuple[OutlinePage, ...]:
        return tuple(
            OutlinePage._make((*row, tuple(json.loads(captions)), bool(recognized)))
            for *row, captions, recognized in self._pages.get(number, ())
        )

    def mentions(self, number: int) -> tuple[Mention, ...]:
        return tuple(Mention(*row) for row in self._mentions.get(number, ()))


class _Characters:
    """How many characters stand before a byte; asked for from the start to the end, each byte is looked at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._is_plain = data.isascii()
        self._byte = self._character = 0

    def of(self, byte: int) -> int:
        if self._is_plain:
            return byte
        if byte < self._byte:
            self._byte = self._character = 0
        self._character += len(self._data[self._byte : byte].decode("utf-8", "surrogateescape"))
        self._byte = byte
        return self._character
