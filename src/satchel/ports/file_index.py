"""The store as an index of files: their texts, pieces and pages, and the search evidence for them.

Every read with filters returns only data with access for the filters' readers; access is checked before any ranking or
limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel.models.files import FileState, SkippedFile
    from satchel.models.outline import Outline, OutlineBlock, OutlinePage
    from satchel.models.search import Filters


class NewFile(NamedTuple):
    """A file to be stored, with everything parsed from the file.

    `readers` are the principals with read access; None keeps the stored access, and for a new file means everyone.
    """

    path: str
    state: FileState
    text: str
    outline: Outline
    readers: tuple[str, ...] | None = None


class WordCounts(NamedTuple):
    """How often words occur in what a caller may read."""

    pieces: int
    """The number of readable pieces."""
    with_term: Mapping[str, int]
    """For each term asked for, the number of readable pieces with the term; at least 1 for a term in a file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreQuery:
    """A question in a form for the store: weighted terms, names that may be defined here, and a vector.

    `terms` maps each term to its weight in the question; `names` are identifiers, as written. `counts` are the counts
    of the terms in all stores that are searched together; without them a store counts in what it holds itself.
    """

    terms: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    vector: NDArray[np.float32] | None = None
    counts: WordCounts | None = None


class Candidate(NamedTuple):
    """A piece with a possible answer, and the raw evidence for the piece by name."""

    piece: int
    file: int
    signals: Mapping[str, float]
    """Evidence for the piece."""
    of_file: Mapping[str, float]
    """Evidence for the piece's file; the same for all of the file's pieces, unless the piece is a passage."""
    is_passage: bool = False
    """True for a passage of a document: ranked separately, not with the file's other pieces."""


class StoredPiece(NamedTuple):
    """A piece with text and location."""

    id: int
    path: str
    language: str | None
    block: str
    block_type: str
    title: str
    summary: str
    first_line: int
    last_line: int
    text: str
    state: FileState
    page: int | None = None


class StoredPage(NamedTuple):
    """A page of a document with text, and the path and title of the document."""

    path: str
    title: str
    page: OutlinePage
    text: str
    state: FileState


class NamedMention(NamedTuple):
    """A reference to a name, as the parser saw it: its kind, and the block in which it stands.

    Outside all blocks, `inside` is empty and the lines are 0.
    """

    path: str
    kind: str
    inside: str
    first_line: int
    last_line: int


class FileIndex(Protocol):
    """Reads indexed files and searches their pieces."""

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The readable pieces with the most evidence, in a stable order."""

    def word_counts(self, terms: Sequence[str], filters: Filters) -> WordCounts:
        """Count the readable pieces with each term; words of other pieces count as unknown."""

    def files(self) -> dict[str, FileState]:
        """The state of every indexed file, by path."""

    def notes(self) -> dict[str, str]:
        """The notes on files (for instance why a file was skipped), by path."""

    def skipped(self, filters: Filters) -> list[SkippedFile]:
        """The files left out of the index that the filters' readers may read, by path."""

    def paths(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The paths of files by the numbers in candidates; the workspace's own blocks have none."""

    def titles(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The titles of the workspace's own blocks by the numbers in candidates."""

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """The readable pieces among the given ids, in the given order."""

    def pieces_of(self, path: str, filters: Filters) -> list[StoredPiece]:
        """The pieces of a file from top to bottom."""

    def pages_of(self, path: str, filters: Filters, *, number: int | None = None) -> list[StoredPage]:
        """The pages of a document from first to last, or only page `number`; empty for a document without pages."""

    def documents(self, filters: Filters) -> dict[str, bytes]:
        """The content hashes of the documents with pages, by path."""

    def paths_of(self, content_hash: bytes, filters: Filters) -> list[str]:
        """The paths of the files with exactly this content."""

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as indexed, or None."""

    def outline_of(self, path: str, filters: Filters) -> list[OutlineBlock]:
        """The definitions and sections of a file from top to bottom, outer ones first."""

    def texts(self, filters: Filters) -> Iterator[tuple[str, str | None, str]]:
        """The path, language and text of every readable file, by path."""

    def definitions(self, name: str, filters: Filters) -> list[tuple[str, OutlineBlock]]:
        """The readable blocks with a name, with the paths of their files."""

    def mentions_of(self, name: str, filters: Filters) -> list[NamedMention]:
        """The readable references to a name."""

    def embedder(self) -> str:
        """The name of the embedder behind the stored vectors, or "" while there are none."""


class FileWriter(Protocol):
    """Changes indexed files and their vectors within a commit."""

    def put(self, file: NewFile) -> None:
        """Store a file and replace any stored file with the same path."""

    def touch(self, path: str, state: FileState) -> None:
        """Record a new modification time for unchanged content."""

    def drop(self, path: str) -> None:
        """Remove a file."""

    def settle_embedder(self, name: str, dimensions: int) -> None:
        """Record the name of the embedder; a different embedder later raises EmbedderMismatch."""

    def lacking(self, text_hashes: Iterable[bytes]) -> set[bytes]:
        """The hashes of texts without a stored vector."""

    def put_vectors(self, text_hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Store the vectors of texts, by the texts' hashes."""
