"""What the contract suites of a store share: how a store is made and filled, and files and blocks to fill it with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np

from satchel.models.access import Effect, Grant, Group, readers_for
from satchel.models.block import Activity, Block, Link, LinkKind
from satchel.models.document import whole_markdown
from satchel.models.files import FileState
from satchel.models.outline import (
    WHOLE_FILE,
    Mention,
    Outline,
    OutlineBlock,
    OutlinePage,
    OutlinePiece,
    embedded_text,
    text_hash,
)
from satchel.models.search import Filters
from satchel.ports.block_tree import Step
from satchel.ports.file_index import FileWriter, NewFile, StoreQuery
from satchel.ports.store import BlockWriter, Store
from satchel.workspace.blocks import outline_of

EVERYTHING = Filters()
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOON_NS = int(NOON.timestamp()) * 10**9
DAY_NS = 86_400 * 10**9


def file_of(
    path: str,
    functions: Sequence[str],
    *,
    calls: Sequence[str] = (),
    readers: tuple[str, ...] | None = None,
    language: str = "python",
    modified_ns: int = NOON_NS,
) -> NewFile:
    """A file with one function, one piece and one block for each name, as a reader would hand it over."""
    texts = [f"def {name}():\n    return '{name}'" for name in functions]
    text = "\n".join(texts) + "\n"
    blocks, pieces, at = [], [], 0
    for i, (name, body) in enumerate(zip(functions, texts, strict=True)):
        first = 2 * i + 1
        blocks.append(OutlineBlock("function", name, name, WHOLE_FILE, first, first + 1, signature=f"def {name}()"))
        pieces.append(OutlinePiece(first, first + 1, at, at + len(body), i, (i,)))
        at += len(body) + 1
    mentions = tuple(Mention(0, LinkKind.CALLS.value, name) for name in calls)
    outline = Outline(language, tuple(blocks), tuple(pieces), mentions)
    return NewFile(path, _state_of(text, modified_ns), text, outline, readers)


def document_of(path: str, pages: Sequence[str], *, readers: tuple[str, ...] | None = None) -> NewFile:
    """A document with one piece and one block for each page, each below its border."""
    text = whole_markdown(list(enumerate(pages, start=1)))
    blocks, pieces, outlined, at, line = [], [], [], 0, 1
    for number, page in enumerate(pages, start=1):
        start = text.index("\n", at) + 1
        first, last = line + 1, line + 1 + page.count("\n")
        blocks.append(OutlineBlock("page", f"page {number}", f"page-{number}", WHOLE_FILE, first, last, page=number))
        pieces.append(OutlinePiece(first, last, start, start + len(page), number - 1, page=number))
        outlined.append(OutlinePage(number, first, last, captions=(f"Figure {number}",), tables=number))
        at, line = start + len(page) + 1, last + 1
    outline = Outline("markdown", tuple(blocks), tuple(pieces), pages=tuple(outlined), title="A report")
    return NewFile(path, _state_of(path + text, NOON_NS), text, outline, readers)


def _state_of(text: str, modified_ns: int) -> FileState:
    data = text.encode()
    return FileState(blake2b(data, digest_size=16).digest(), len(data), modified_ns, modified_ns + DAY_NS)


def put(writer: FileWriter, file: NewFile) -> None:
    """Keep a file and vectors for its pieces."""
    outline = file.outline
    embedded = [embedded_text(outline, piece, file.text[piece.start : piece.end]) for piece in outline.pieces]
    texts = {text_hash(text): text for text in embedded}
    lacking = sorted(writer.lacking(texts))
    if lacking:
        writer.put_vectors(lacking, np.array([vector_of(texts[key]) for key in lacking], np.float32))
    writer.put(file)


def vector_of(text: str) -> list[float]:
    """A unit vector of four numbers that depends on whether the text speaks of retries, sockets or neither."""
    raw = [float("retry" in text), float("socket" in text), 0.1, 0.0]
    length = sum(x * x for x in raw) ** 0.5
    return [x / length for x in raw]


def put_blocks(writer: BlockWriter, *blocks: Block) -> None:
    """Store blocks as an edit does."""
    for block in blocks:
        writer.put(block, outline_of(block))


def note(name: str, parent: str | None = None, position: float = 0, **more: object) -> Block:
    """A block with a text of its own."""
    return Block(id=name, type="text", content=f"text of {name}", parent=parent, position=position, **more)  # type: ignore[arg-type]


def commit_of(path: str, day: int = 1) -> Activity:
    """A commit of the version history that changed a file."""
    at = datetime(2026, 11, day, tzinfo=UTC)
    return Activity(block=path, actor="ann", action="commit", timestamp=at, detail="did it")


def mention(source: str, target: str) -> Link:
    """A link from one block to another that it mentions."""
    return Link(source=source, kind=LinkKind.MENTIONS, target=target)


def allow(block: str, principal: str) -> Grant:
    """A grant that lets a principal in."""
    return Grant(block=block, principal=principal)


def deny(block: str, principal: str) -> Grant:
    """A grant that keeps a principal out."""
    return Grant(block=block, principal=principal, effect=Effect.DENY)


def ids(blocks: Iterable[Block | Step]) -> list[str]:
    """The ids of blocks, or of the steps of a trail."""
    return [block.id for block in blocks]


def read_by(user: str, *groups: str) -> Filters:
    """The filters of a user."""
    return Filters(readers=readers_for(user, groups))


Change = NewFile | Grant | Link | Activity | Group | Callable[[BlockWriter], object]


class StoreSuite(ABC):
    """The part of a suite that makes stores."""

    @abstractmethod
    def make_store(self, folder: Path) -> Store:
        """The store in this folder; called twice with the same folder, the same store."""

    @contextmanager
    def filled(self, folder: Path, *content: NewFile | Block) -> Iterator[Store]:
        """A store that holds these files and blocks and has caught up."""
        store = self.make_store(folder)
        try:
            self.commit(store, *content)
            yield store
        finally:
            store.close()

    def commit(self, store: Store, *content: NewFile | Block) -> None:
        """Store files and blocks in one commit and catch up."""
        with store.write() as writer:
            writer.settle_embedder("four", 4)
            for item in content:
                if isinstance(item, Block):
                    put_blocks(writer.blocks, item)
                else:
                    put(writer, item)
        store.catch_up()

    def change(self, store: Store, *changes: Change) -> None:
        """One commit of files without vectors, of records beside the blocks, and of other work on the blocks."""
        with store.write() as writer:
            for change in changes:
                match change:
                    case NewFile():
                        writer.put(change)
                    case Grant():
                        writer.blocks.grant(change)
                    case Link():
                        writer.blocks.link(change)
                    case Activity():
                        writer.blocks.record(change)
                    case Group():
                        writer.blocks.put_group(change)
                    case _:
                        change(writer.blocks)

    def found(self, store: Store, terms: str = "", filters: Filters = EVERYTHING, **query: object) -> list[str]:
        """The paths that a search returns, best first."""
        question = StoreQuery(terms=dict.fromkeys(terms.split(), 1.0), **query)  # type: ignore[arg-type]
        files = [candidate.file for candidate in store.search(question, filters, top_k=20)]
        paths = store.paths(files, filters)
        return list(dict.fromkeys(paths[file] for file in files))
