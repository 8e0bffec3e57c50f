"""The store as a question reads it: the search, the texts behind the hits, and what makes a cached ranking outdated.

Every `Store` is one; several stores that are searched together are one, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from satchel.models.block import Activity, Block
    from satchel.models.files import FileState
    from satchel.models.outline import OutlineBlock
    from satchel.models.search import Filters
    from satchel.ports.file_index import Candidate, NamedMention, StoredPiece, StoreQuery, WordCounts


class SearchedStore(Protocol):
    """Searches pieces and reads what stands around them; the methods are those of `Store`."""

    @property
    def generation(self) -> int:
        """The number of the last commit; grows with every commit."""

    def generation_for(self, filters: Filters) -> int:
        """The number of the last commit with an effect that these readers can see; every commit for the owner."""

    def search_version(self, filters: Filters) -> tuple[object, ...]:
        """A value that changes whenever search results for these readers could change."""

    def snapshot(self) -> AbstractContextManager[None]:
        """A context in which all reads of the calling thread see the same state."""

    def access_key(self, filters: Filters) -> object:
        """A value that is equal for two readers if and only if both have the same read access."""

    def embedder(self) -> str:
        """The name of the embedder behind the stored vectors, or "" while there are none."""

    def holds_blocks(self) -> bool:
        """True if the store has blocks beside the blocks of indexed files."""

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The readable pieces with the most evidence, in a stable order."""

    def files(self) -> dict[str, FileState]:
        """The state of every indexed file, by path, whoever may read it."""

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """The commits in the version history with changes to files, newest first."""

    def texts(self, filters: Filters) -> Iterator[tuple[str, str | None, str]]:
        """The path, language and text of every readable file, by path."""

    def definitions(self, name: str, filters: Filters) -> list[tuple[str, OutlineBlock]]:
        """The readable blocks with a name, with the paths of their files."""

    def mentions_of(self, name: str, filters: Filters) -> list[NamedMention]:
        """The readable references to a name."""

    def word_counts(self, terms: Sequence[str], filters: Filters) -> WordCounts:
        """Count the readable pieces with each term; words of other pieces count as unknown."""

    def paths(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The paths of files by the numbers in candidates; the workspace's own blocks have none."""

    def titles(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The titles of the workspace's own blocks by the numbers in candidates."""

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """When files last changed in the version history, in seconds since 1970, by the numbers in candidates."""

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """The readable pieces among the given ids, in the given order."""

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as indexed, or None."""

    def outline_of(self, path: str, filters: Filters) -> list[OutlineBlock]:
        """The definitions and sections of a file from top to bottom, outer ones first."""

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block with an id, or None."""
