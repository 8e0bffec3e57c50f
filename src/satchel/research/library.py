"""The documents of a workspace as a library of pages: found by their text and by what is to be seen on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from satchel.errors import IndexProblem, InvalidInput, InvalidOption
from satchel.models.checks import as_choice, as_count, as_text
from satchel.models.document import Page, PageMetadata, PageUnit, extension_of, extract_page_content, page_unit
from satchel.models.request import User
from satchel.ports.page_embedder import PageView
from satchel.ports.page_library import PageHit, PageHits, SearchMode
from satchel.ports.page_vectors import PageKey
from satchel.research.parts import Parts, moment

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.indexing.changes import IndexReport
    from satchel.models.search import Filters, SearchResult
    from satchel.ports.file_index import StoredPage
    from satchel.ports.page_embedder import PageEmbedder
    from satchel.ports.page_library import PageShelf
    from satchel.ports.page_vectors import PageVectors
    from satchel.ports.store import Store
    from satchel.research.page_images import PageImages
    from satchel.retrieval.search import Folder

_PROSE: Final = frozenset({"markdown", "rst", "text"})
_MOST_PIECES: Final = 600
_LOOKED_AT_TWICE: Final = 100
_PAGES_AT_ONCE: Final = 16
_VISUAL_WEIGHT: Final = 0.5


class SearchedWorkspace(Protocol):
    """What a library asks of the engine of a workspace."""

    @property
    def store(self) -> Store:
        """Where the workspace is stored."""

    @property
    def folder(self) -> Folder:
        """The indexed folder."""

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The pieces that answer a question best."""

    def filters_for(self, user: User) -> Filters:
        """The filters that every read of the user goes through."""

    def index(self) -> IndexReport:
        """Refresh the index."""

    def close(self) -> None:
        """Release the store."""


class WorkspaceLibrary:
    """A search engine and a library of pages over an engine's workspace, as far as a user may read it.

    Documents are known by their content: two files of the same content are one document. What has no pages (Markdown,
    plain text) is cut into parts of about a page.
    """

    def __init__(
        self,
        engine: SearchedWorkspace,
        *,
        user: User | None = None,
        page_embedder: PageEmbedder | None = None,
        page_vectors: PageVectors | None = None,
        images: PageImages | None = None,
    ) -> None:
        self._engine = engine
        self._user = user
        self._page_embedder = page_embedder
        self._vectors = page_vectors
        self._images = images

    @property
    def engine(self) -> SearchedWorkspace:
        """The workspace."""
        return self._engine

    def seen_by(self, user: User) -> WorkspaceLibrary:
        """The same library as a user may read it."""
        if not isinstance(user, User):
            raise InvalidOption("user", user, "must be a satchel.User")
        library = copy(self)
        library._user = user
        return library

    def close(self) -> None:
        """Let go of everything."""
        self.close_pages()
        self._engine.close()

    def close_pages(self) -> None:
        """Let go of everything but the engine, which others may use."""
        if self._vectors is not None:
            self._vectors.close()
        if self._images is not None:
            self._images.close()

    def __enter__(self) -> WorkspaceLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- searching

    def search(self, query: str, num_results: int = 10, search_mode: str = SearchMode.HYBRID) -> PageHits:
        """The best pages, best first; one that is found by its text and by its look comes twice.

        If one of their files has changed, the index is brought up first.
        """
        as_count(InvalidOption, "num_results", num_results, 1)
        as_text(InvalidOption, "query", query)
        mode = as_choice(InvalidOption, "search_mode", search_mode, SearchMode)
        notes: list[str] = []
        hits = self._found(query, num_results, mode, notes)
        stale = self._stale(hits)
        if stale:
            # What has changed is read before it is shown.
            with suppress(IndexProblem):
                self._engine.index()
            hits = self._found(query, num_results, mode, notes)
            stale = self._stale(hits)
        notes += [f"{path} has changed since it was indexed; index it again" for path in sorted(stale)]
        return PageHits((hit for hit in hits if hit["metadata"]["source_path"] not in stale), dict.fromkeys(notes))

    def _found(self, query: str, num_results: int, mode: SearchMode, notes: list[str]) -> list[PageHit]:
        hits: list[PageHit] = []
        if mode is not SearchMode.VISUAL:
            hits += self._by_text(query, num_results)
        if mode is not SearchMode.TEXT:
            try:
                hits += self._by_look(query, num_results)
            except IndexProblem as problem:
                # What is derived may be missing where nothing can be written.
                notes.append(f"pages were not looked at: {problem}")
        hits.sort(key=lambda hit: -hit["score"])
        return hits

    def _stale(self, hits: Iterable[PageHit]) -> set[str]:
        """The files among the hits' that no longer say what was indexed."""
        from satchel.retrieval.freshness import Verdict

        known = self._engine.store.files()
        paths = {hit["metadata"]["source_path"] for hit in hits}
        with self._engine.folder.opened() as disk:
            return {path for path in paths if path not in known or disk.judge(path, known[path]) is not Verdict.SAME}

    def _by_text(self, query: str, num_results: int) -> list[PageHit]:
        found: dict[PageKey, PageHit] = {}
        filters, parts = self._filters(), Parts(self._engine.store)
        asked = 3 * num_results
        while True:
            result = self._engine.search(query, top_k=asked, filters=filters)
            for hit in result.hits:
                if not hit.path or (hit.page is None and hit.language not in _PROSE):
                    continue
                page = hit.page or parts.at(hit.path, hit.start_line, filters)
                kept = self._page(hit.path, page, filters)
                key = PageKey(kept.doc_id, kept.page) if kept else None
                if kept is not None and key is not None and key not in found:
                    found[key] = _hit(kept, hit.relevance, SearchMode.TEXT)
            if len(found) >= num_results or len(result.hits) < asked or asked >= _MOST_PIECES:
                return list(found.values())[:num_results]
            asked *= 2

    def _by_look(self, query: str, num_results: int) -> list[PageHit]:
        if self._page_embedder is None or self._vectors is None:
            return []
        from satchel.retrieval.late_interaction import two_stage

        self.look_at_pages()
        filters = self._filters()
        paths = self.doc_ids()
        vectors = self._vectors
        keys, pooled = vectors.pooled(paths)
        question = self._page_embedder.embed_query(query)
        found = two_stage(
            question,
            pooled,
            lambda rows: vectors.fetch([keys[row] for row in rows]),
            first=max(_LOOKED_AT_TWICE, num_results),
            top_k=max(_LOOKED_AT_TWICE, num_results),
        )
        # Any page is a little like any question: what counts is how much more this one is.
        usual = found[(len(found) - 1) // 2][1] if len(found) > 2 else 0.0
        hits = []
        for row, score in found[:num_results]:
            key = keys[row]
            kept = self._page(paths[key.doc_id], key.page, filters)
            if kept is not None:
                above = max(0.0, (score - usual) / (1 - usual)) if usual < 1 else 0.0
                hits.append(_hit(kept, _VISUAL_WEIGHT * above, SearchMode.VISUAL))
        return hits

    def look_at_pages(self, watcher: Callable[[int, int], None] | None = None) -> int:
        """Make the vectors of pages that may be read and have none yet; how many documents that were."""
        if self._page_embedder is None or self._vectors is None:
            return 0
        filters = self._filters()
        documents = self.doc_ids()
        known = self._vectors.documents()
        self._vectors.drop(known - {state.content_hash.hex() for state in self._engine.store.files().values()})
        lacking = sorted(documents.keys() - known)
        for done, doc_id in enumerate(lacking):
            if watcher is not None:
                watcher(done, len(lacking))
            pages = self._engine.store.pages_of(documents[doc_id], filters)
            self._vectors.put(doc_id, dict(self._looked_at(doc_id, pages)))
        return len(lacking)

    def _looked_at(self, doc_id: str, pages: list[StoredPage]) -> Iterable[tuple[int, Any]]:
        assert self._page_embedder is not None
        for first in range(0, len(pages), _PAGES_AT_ONCE):
            some = pages[first : first + _PAGES_AT_ONCE]
            views = [PageView(self._picture(doc_id, one), one.text, one.page.captions) for one in some]
            for one, rows in zip(some, self._page_embedder.embed_pages(views), strict=True):
                yield one.page.number, rows

    def _picture(self, doc_id: str, page: StoredPage) -> bytes:
        assert self._page_embedder is not None
        if not self._page_embedder.needs_images or self._images is None:
            return b""
        picture = self._images.image(page.path, doc_id, page.page.number)
        return picture.read_bytes() if picture is not None else b""

    # -- the library

    def get_document_markdown(self, doc_id: str) -> str | None:
        """A document's whole Markdown, each page under a line with its number; None for one that is not here."""
        path = self._path(doc_id)
        return None if path is None else self._engine.store.text_of(path, self._filters())

    def get_page_metadata(self, doc_id: str, page: int) -> PageMetadata | None:
        """What is known of a page, or None."""
        number = as_count(InvalidInput, "page", page, 1)
        path = self._path(doc_id)
        return None if path is None else self._page(path, number, self._filters())

    def get_page_markdown(self, doc_id: str, page: int) -> str | None:
        """The text of a page, or None."""
        as_count(InvalidInput, "page", page, 1)
        path = self._path(doc_id)
        if path is None:
            return None
        filters = self._filters()
        pages = self._engine.store.pages_of(path, filters, number=page)
        if pages:
            # A line of the page that looks like a border was marked as none.
            return extract_page_content(f"<!-- page {page} -->\n{pages[0].text}", page)
        part = Parts(self._engine.store).part(path, page, filters)
        return part.text if part else None

    def page_image(self, doc_id: str, page: int, *, thumbnail: bool = False) -> Path | None:
        """A picture of the page, made now if there is none yet; None for what has no pictures."""
        as_count(InvalidInput, "page", page, 1)
        path = self._path(doc_id)
        if path is None or self._images is None:
            return None
        return self._images.image(path, doc_id, page, thumbnail=thumbnail)

    def make_images(self, watcher: Callable[[int, int], None] | None = None) -> int:
        """Make the pictures and thumbnails of all pages that have none yet; how many pages that were.

        What has no pictures is passed over.
        """
        if self._images is None:
            return 0
        filters = self._filters()
        lacking = [
            (path, doc_id, one.page.number)
            for doc_id, path in self.doc_ids().items()
            if page_unit(path) in (PageUnit.PAGE, PageUnit.PICTURE)
            for one in self._engine.store.pages_of(path, filters)
            if not all(self._images.existing(doc_id, one.page.number, thumbnail=small) for small in (False, True))
        ]
        made = 0
        for done, (path, doc_id, number) in enumerate(lacking):
            if watcher is not None:
                watcher(done, len(lacking))
            both = [self._images.image(path, doc_id, number, thumbnail=small) for small in (False, True)]
            made += all(both)
        return made

    def doc_ids(self) -> dict[str, str]:
        """The documents that may be read, with the path of each."""
        return {kept.hex(): path for path, kept in self._engine.store.documents(self._filters()).items()}

    def copy_to(self, shelf: PageShelf, watcher: Callable[[int, int], None] | None = None) -> int:
        """Put the documents that may be read into another library; how many were not there yet."""
        filters = self._filters()
        documents = {doc_id: path for doc_id, path in self.doc_ids().items() if not shelf.is_whole(doc_id)}
        for done, (doc_id, path) in enumerate(documents.items()):
            if watcher is not None:
                watcher(done, len(documents))
            stored = self._engine.store.pages_of(path, filters)
            shelf.add_document(
                doc_id,
                path.rpartition("/")[2],
                [
                    Page(
                        one.page.number,
                        self.get_page_markdown(doc_id, one.page.number) or "",
                        one.page.name,
                        one.page.captions,
                        pictures=one.page.pictures,
                        is_recognized=one.page.is_recognized,
                    )
                    for one in stored
                ],
                timestamp=moment(stored[0].state.read_ns),
                source_path=path,
                outline=[one.page for one in stored],
                images=partial(self._bytes_of, doc_id),
            )
        return len(documents)

    def _bytes_of(self, doc_id: str, page: int) -> bytes:
        picture = self.page_image(doc_id, page)
        return picture.read_bytes() if picture is not None else b""

    def _page(self, path: str, page: int, filters: Filters) -> PageMetadata | None:
        stored = self._engine.store.pages_of(path, filters, number=page)
        if stored:
            return self._metadata(stored[0])
        part = Parts(self._engine.store).part(path, page, filters)
        return part.metadata(path) if part else None

    def _metadata(self, stored: StoredPage) -> PageMetadata:
        page, doc_id = stored.page, stored.state.content_hash.hex()
        image = thumb = None
        if self._images is not None:
            image, thumb = (self._images.existing(doc_id, page.number, thumbnail=small) for small in (False, True))
        return PageMetadata(
            doc_id=doc_id,
            filename=stored.path.rpartition("/")[2],
            page=page.number,
            extension=extension_of(stored.path),
            timestamp=moment(stored.state.read_ns),
            source_path=stored.path,
            image_path=image,
            thumb_path=thumb,
            section_path=page.section_path or None,
            parent_heading=page.parent_heading or None,
            num_headings=page.headings,
            num_tables=page.tables,
            num_pictures=page.pictures,
        )

    def _path(self, doc_id: str) -> str | None:
        try:
            kept = bytes.fromhex(doc_id)
        except (ValueError, TypeError):
            return None
        paths = self._engine.store.paths_of(kept, self._filters())
        # Of several files with one content, one holds the text.
        return next((one for one in paths if self._engine.store.text_of(one, self._filters())), None)

    def _filters(self) -> Filters:
        from satchel.models.search import Filters

        return Filters() if self._user is None else self._engine.filters_for(self._user)


def _hit(kept: PageMetadata, score: float, mode: SearchMode) -> PageHit:
    return PageHit(
        doc_id=kept.doc_id,
        page=kept.page,
        score=score,
        filename=kept.filename,
        metadata={**kept.to_dict(), "collection": mode.value},
    )
