"""Who keeps the pages of documents and finds them: what research asks of the world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

if TYPE_CHECKING:
    from satchel.models.document import Page, PageMetadata
    from satchel.models.outline import OutlinePage


class SearchMode(StrEnum):
    """Where pages are looked for."""

    HYBRID = "hybrid"
    VISUAL = "visual"
    TEXT = "text"


class PageHit(TypedDict):
    """A page that was found, and how well it answers (0..1)."""

    doc_id: str
    page: int
    score: float
    filename: str
    metadata: dict[str, Any]


class PageHits(list[PageHit]):
    """The hits, best first, and in `notes` what could not be searched or shown, and why."""

    def __init__(self, hits: Iterable[PageHit] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(hits)
        self.notes = tuple(notes)


@runtime_checkable
class SearchEngine(Protocol):
    """Finds pages."""

    def search(self, query: str, num_results: int = 10, search_mode: str = SearchMode.HYBRID) -> list[PageHit]:
        """The best pages, best first; a page that is found by its text and by its look may come twice."""


@runtime_checkable
class PageLibrary(Protocol):
    """Keeps pages."""

    def get_document_markdown(self, doc_id: str) -> str | None:
        """A document's whole Markdown with its page borders, or None."""

    def get_page_metadata(self, doc_id: str, page: int) -> PageMetadata | None:
        """What is kept of a page, or None."""

    def get_page_markdown(self, doc_id: str, page: int) -> str | None:
        """The text of one page where it is at hand by itself; None leaves it to the whole document's."""


@runtime_checkable
class PageShelf(Protocol):
    """Where documents can be put."""

    def is_whole(self, doc_id: str) -> bool:
        """Whether all of a document is there."""

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
        """Keep a document's pages in place of what is kept under its id; `images` gives the picture of a page."""
