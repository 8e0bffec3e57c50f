"""Storage and search of document pages, as research needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, runtime_checkable

if TYPE_CHECKING:
    from satchel.models.document import Page, PageMetadata
    from satchel.models.outline import OutlinePage


class SearchMode(StrEnum):
    """The kind of page search: by text, by visual appearance, or both."""

    HYBRID = "hybrid"
    VISUAL = "visual"
    TEXT = "text"


class PageHit(TypedDict):
    """A page from a search, with a score (0..1)."""

    doc_id: str
    page: int
    score: float
    filename: str
    metadata: dict[str, Any]


class PageHits(list[PageHit]):
    """The hits, best first; `notes` says what could not be searched or shown, and why."""

    def __init__(self, hits: Iterable[PageHit] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(hits)
        self.notes = tuple(notes)


@runtime_checkable
class SearchEngine(Protocol):
    """Searches pages."""

    def search(self, query: str, num_results: int = 10, search_mode: str = SearchMode.HYBRID) -> list[PageHit]:
        """The best pages, best first; a page may come twice, from the text search and from the visual search."""


@runtime_checkable
class PageLibrary(Protocol):
    """Reads stored pages."""

    def get_document_markdown(self, doc_id: str) -> str | None:
        """A document's whole Markdown with page borders, or None."""

    def get_page_metadata(self, doc_id: str, page: int) -> PageMetadata | None:
        """The stored metadata of a page, or None."""

    def get_page_markdown(self, doc_id: str, page: int) -> str | None:
        """The text of a page if stored separately; None means the text is only in the whole document's Markdown."""


class PageExcerpt(NamedTuple):
    """A part of a page, with elision lines, and the number of lines left out."""

    text: str
    elided: int


ExcerptMaker = Callable[[int], PageExcerpt]
"""Returns the best excerpt of a page in about the given number of characters."""


class PageExcerpts(Protocol):
    """Shortens long pages to their best sections; a library may have it."""

    def excerpt_maker(self, hit: PageHit, query: str) -> ExcerptMaker | None:
        """The function that shortens a found page; None for a page that is shown whole or not at all."""


@runtime_checkable
class PageShelf(Protocol):
    """Stores documents page by page."""

    def is_whole(self, doc_id: str) -> bool:
        """True if all pages of a document are stored."""

    def add_document(
        self,
        doc_id: str,
        filename: str,
        pages: Sequence[Page],
        *,
        timestamp: str,
        source_path: str | None = None,
        outline: Sequence[OutlinePage] = (),
        images: Callable[[int], bytes] | None = None,
    ) -> None:
        """Store a document's pages and replace any with the same id; `images` returns the image of a page."""
