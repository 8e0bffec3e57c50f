"""What reading a file gives: its blocks, the pieces it is searched by, and the names it refers to.

Plain tuples: they cross process borders by the thousand.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

WHOLE_FILE = -1
"""The place of the file itself, where others have the position of a block."""


class OutlineBlock(NamedTuple):
    """A definition or a section: its name, its lines (from 1) and where it stands in the tree."""

    type: str
    name: str
    qualified: str
    parent: int
    first_line: int
    last_line: int
    signature: str = ""
    doc: str = ""
    page: int = 0
    """The page of a document that it stands on, from 1; 0 in what has no pages."""

    @property
    def summary(self) -> str:
        """The signature and what the documentation says first."""
        return " — ".join(part for part in (self.signature or self.name, self.doc) if part)


class OutlinePiece(NamedTuple):
    """A run of lines that is found, ranked and shown as one; the pieces of a file do not overlap.

    `block` is the innermost block that it is (a part of), `defines` are the blocks that begin in it.
    """

    first_line: int
    last_line: int
    start: int
    end: int
    block: int = WHOLE_FILE
    defines: tuple[int, ...] = ()
    page: int = 0


class Mention(NamedTuple):
    """A name that a block refers to."""

    block: int
    kind: str
    name: str


class OutlinePage(NamedTuple):
    """A page of a document: its lines in the document's text, where it stands, and what is on it."""

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
    """A file, read."""

    language: str | None
    blocks: tuple[OutlineBlock, ...] = ()
    pieces: tuple[OutlinePiece, ...] = ()
    mentions: tuple[Mention, ...] = ()
    note: str = ""
    pages: tuple[OutlinePage, ...] = ()
    title: str = ""
    """What a document calls itself."""


def embedded_text(outline: Outline, piece: OutlinePiece, text: str) -> str:
    """What of a piece an embedder is given: what it belongs to, and what it says.

    Not its path: a file that moves keeps its vectors.
    """
    if piece.block == WHOLE_FILE:
        return text
    block = outline.blocks[piece.block]
    if block.page:
        return f"{block.doc}\n{text}" if block.doc else text
    inside = block.first_line < piece.first_line
    return f"{block.qualified} {block.doc}\n{text}" if inside else f"{block.qualified}\n{text}"


def text_hash(text: str) -> bytes:
    """The hash under which a text's vector is kept."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
