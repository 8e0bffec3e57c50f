"""The blocks that files are made of: definitions and sections, in the tree that reading the file gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from satchel.models.block import Block, BlockType
from satchel.models.files import FileState
from satchel.models.outline import OutlinePage
from satchel.ports.block_tree import Step
from satchel.ports.file_index import StoredPage
from satchel.storage.sql.rows import known_id, moment
from satchel.storage.sql.statements import QUERIES

if TYPE_CHECKING:
    from satchel.storage.sql.rows import Database


_MOST_PAGES: Final = 2**62
_SPAN: Final = re.compile(r":\d+(?:-\d+)?$")


class CodeTree:
    """The blocks of the files that may be read; `allowed` are the access lists that let the reader in."""

    def __init__(self, db: Database, allowed: frozenset[int] | None) -> None:
        self._db = db
        self._allowed = allowed
        self._read: dict[str, list[Block]] = {}

    def text_of(self, path: str) -> str | None:
        """The whole text of a file as it was read, or None."""
        row = self._db.execute(QUERIES["text_of_file"], (self._db.workspace, _kept(path))).fetchone()
        if row is None or (self._allowed is not None and row[0] not in self._allowed):
            return None
        return str(row[1].decode("utf-8", "surrogateescape"))

    def parted(self, block_id: str) -> tuple[str, str]:
        """The path and the name that an id is made of; a path may have the sign between them too."""
        places = [i for i, sign in enumerate(block_id) if sign == "#"]
        for at in (len(block_id), *reversed(places)):
            path = block_id[:at]
            known = "SELECT 1 FROM file WHERE workspace = ? AND path = ?"
            if self._db.execute(known, (self._db.workspace, _kept(path))).fetchone():
                return path, block_id[at + 1 :]
        return block_id, ""

    def blocks(self, ids: Iterable[str]) -> dict[str, Block]:
        """Those of the blocks that may be read, with their content."""
        found: dict[str, Block] = {}
        for one in ids:
            path, _ = self.parted(one)
            block = next((block for block in self.blocks_of(path) if block.id == one), None)
            text = self.text_of(path) if block is not None else None
            if block is not None and text is not None:
                lines = text.split("\n")[block.start_line - 1 : block.end_line]
                found[one] = replace(block, content="\n".join(lines))
        return found

    def blocks_of(self, path: str) -> list[Block]:
        """The blocks of a file, the file itself first, without their content, from top to bottom."""
        if path not in self._read:
            self._read[path] = self._blocks_of(path)
        return self._read[path]

    def children(self, block_id: str, limit: int) -> list[Block]:
        """The first blocks directly inside a block."""
        return [block for block in self._around(block_id) if block.parent == block_id][:limit]

    def siblings(self, block_id: str, count: int) -> list[Block]:
        """The nearest blocks inside the same one, as many before as after, the nearest first."""
        around = self._around(block_id)
        own = next((block for block in around if block.id == block_id), None)
        if own is None or own.parent is None:
            return []
        row = [block for block in around if block.parent == own.parent]
        at = row.index(own)
        before, after = row[:at][::-1][:count], row[at + 1 :][:count]
        return [block for pair in zip_longest(before, after) for block in pair if block is not None]

    def descendants(self, block_id: str, limit: int, deepest: int) -> list[Block]:
        """What is inside a block from top to bottom, as deep and as much as asked for."""
        depth = {block_id: 0}
        found = []
        for block in self._around(block_id):
            above = depth.get(block.parent or "")
            if above is not None and above < deepest and block.id != block_id:
                depth[block.id] = above + 1
                found.append(block)
        return found[:limit]

    def trails(self, ids: Iterable[str]) -> dict[str, tuple[Step, ...]]:
        """For each block the way up from itself to its file."""
        found: dict[str, tuple[Step, ...]] = {}
        for one in ids:
            by_id = {block.id: block for block in self._around(one)}
            above, steps = by_id.get(one), []
            if not by_id and _SPAN.search(one):
                # Some lines of a file are a block too, and stand directly below it.
                path = _SPAN.sub("", one)
                above = next(iter(self.blocks_of(path)), None)
                steps = [Step(one, BlockType.FILE, "")] if above else []
            while above is not None:
                steps.append(Step(above.id, above.type, above.title))
                above = by_id.get(above.parent) if above.parent else None
            if steps:
                found[one] = tuple(steps)
        return found

    def _around(self, block_id: str) -> list[Block]:
        return self.blocks_of(self.parted(block_id)[0])

    def _blocks_of(self, path: str) -> list[Block]:
        here = self._db.workspace
        row = self._db.execute(QUERIES["file_with_last_line"], (here, here, _kept(path))).fetchone()
        if row is None or (self._allowed is not None and row[3] not in self._allowed):
            return []
        number, language, modified, _, last = row
        when = moment(modified)
        file = Block(id=path, type=BlockType.FILE, source_path=path, title=path, end_line=last or 1)
        blocks = [replace(file, language=language, last_modified=when)]
        rows = self._db.execute(QUERIES["stored_blocks"].format(files=number), (here,))
        for place, (_, kind, name, qualified, parent, first, last_line, signature, doc, page) in enumerate(rows):
            blocks.append(
                Block(
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
                    last_modified=when,
                    page=page or None,
                )
            )
        return blocks

    def pages_of(self, path: str, number: int | None) -> list[StoredPage]:
        """The pages of a document with their text, or that one of them."""
        statement = QUERIES["pages"].format(and_number="" if number is None else " AND number = ?")
        page = () if number is None else (min(max(number, 0), _MOST_PAGES),)
        rows: list[Any] = self._db.execute(statement, (self._db.workspace, _kept(path), *page)).fetchall()
        return [
            StoredPage(
                path,
                title,
                OutlinePage._make((*facts, tuple(json.loads(captions)), bool(recognized))),
                (text or b"").decode("utf-8", "surrogateescape"),
                FileState(kept, size, modified, read),
            )
            for access, title, kept, size, modified, read, text, *facts, captions, recognized in rows
            if self._allowed is None or access in self._allowed
        ]


def _kept(path: str) -> bytes:
    # What begins with NUL is a block of the workspace's own, and no file.
    return b"" if path.startswith("\0") else known_id(path) or b""
