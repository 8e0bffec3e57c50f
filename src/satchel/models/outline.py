"""Parse result of a file: blocks, pieces for the search, and referenced names.

Plain tuples, because thousands of them are sent between processes.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

WHOLE_FILE = -1
"""Stands for the file itself in place of a block index."""


class OutlineBlock(NamedTuple):
    """A definition or section: name, lines (from 1) and parent in the tree."""

    type: str
    name: str
    qualified: str
    parent: int
    first_line: int
    last_line: int
    signature: str = ""
    doc: str = ""
    page: int = 0
    """The page number in the document, from 1; 0 in files without pages."""

    @property
    def summary(self) -> str:
        """The signature (or name) and the beginning of the documentation."""
        return " — ".join(part for part in (self.signature or self.name, self.doc) if part)


class OutlinePiece(NamedTuple):
    """A run of lines as the unit of search, ranking and rendering; the pieces of a file do not overlap.

    `block` is the innermost block that contains the piece, `defines` are the blocks that begin in the piece.
    """

    first_line: int
    last_line: int
    start: int
    end: int
    block: int = WHOLE_FILE
    defines: tuple[int, ...] = ()
    page: int = 0


class Mention(NamedTuple):
    """A reference from a block to a name."""

    block: int
    kind: str
    name: str


class OutlinePage(NamedTuple):
    """A page of a document: lines in the document's text, headings above, and counts of its elements."""

    number: int
    first_line: int
    last_line: int
    name: str = ""
    section_path: str = ""
    parent_heading: str = ""
    headings: int = 0
    tables: int = 0
    pictures: int = 0
    captions: tuple[str, ...] = ()
    is_recognized: bool = False


class Outline(NamedTuple):
    """The parse result of a file."""

    language: str | None
    blocks: tuple[OutlineBlock, ...] = ()
    pieces: tuple[OutlinePiece, ...] = ()
    mentions: tuple[Mention, ...] = ()
    note: str = ""
    pages: tuple[OutlinePage, ...] = ()
    title: str = ""
    """The document's own title."""


def embedded_text(outline: Outline, piece: OutlinePiece, text: str) -> str:
    """The embedder input for a piece: the name of the enclosing block and the text.

    The path is not included, so that a moved file keeps its vectors.
    """
    if piece.block == WHOLE_FILE:
        return text
    block = outline.blocks[piece.block]
    if block.page:
        return f"{block.doc}\n{text}" if block.doc else text
    inside = block.first_line < piece.first_line
    return f"{block.qualified} {block.doc}\n{text}" if inside else f"{block.qualified}\n{text}"


def text_hash(text: str) -> bytes:
    """The hash of a text, the key of its stored vector."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
