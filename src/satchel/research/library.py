"""The documents and notes of a workspace as a library of pages, with text search and visual search."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from satchel.errors import IndexProblem, InvalidInput, InvalidOption
from satchel.models.checks import as_choice, as_count, as_text
from satchel.models.document import Page, PageMetadata, Unreadable, extract_page_content, whole_markdown
from satchel.models.files import FileState, PageUnit, extension_of, page_unit
from satchel.models.request import User
from satchel.models.search import Filters, SearchResult
from satchel.ports.page_embedder import PageEmbedder, PageView
from satchel.ports.page_library import PageHit, PageHits, PageShelf, SearchMode
from satchel.ports.page_vectors import PageKey, PageVectors
from satchel.research.notes import FoundSection, Note, Notes

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.indexing.changes import IndexReport
    from satchel.indexing.documents.readers import DocumentReaders
    from satchel.models.context import Context, Sufficiency
    from satchel.models.files import FileState
    from satchel.models.search import Filters, SearchResult
    from satchel.ports.embedder import Embedder
    from satchel.ports.file_index import FileIndex, StoredPage, StoredPiece
    from satchel.ports.page_library import ExcerptMaker
    from satchel.ports.store import Store
    from satchel.retrieval.freshness import Folder
    from satchel.workspace.page_cache import PageCache


_THUMBNAIL_WIDTH_PX: Final = 240  # recognizable in a list, not legible (docs/documents.md)


@dataclass(eq=False)
class PageImages:
    """Images of document pages in a folder, named after the content hash of the document."""

    source: Folder
    target: Path
    _started: DocumentReaders | None = None
    _ending: ExitStack = field(default_factory=ExitStack)
    _lock: Lock = field(default_factory=Lock)

    def place(self, doc_id: str, page: int, *, thumbnail: bool = False) -> Path:
        """The path of the image, whether the file exists or not."""
        return self.target / f"{doc_id}_page_{page:03d}{'_thumb' if thumbnail else ''}.jpg"

    def existing(self, doc_id: str, page: int, *, thumbnail: bool = False) -> str | None:
        """The path of the image, or None if the image was not made yet."""
        place = self.place(doc_id, page, thumbnail=thumbnail)
        return str(place) if place.exists() else None

    def image(self, path: str, doc_id: str, page: int, *, thumbnail: bool = False) -> Path | None:
        """The image, made if missing; None for a document without images or with changed content."""
        place = self.place(doc_id, page, thumbnail=thumbnail)
        if place.exists():
            return place

        with self.source.opened() as disk:
            data = disk.document(path, doc_id)
        if data is None:
            return None
        width = _THUMBNAIL_WIDTH_PX if thumbnail else None
        image = self._readers().render(data, path, page, width=width, format="jpeg")
        if isinstance(image, Unreadable):
            return None
        self._write(place, image)
        return place

    def close(self) -> None:
        """Stop the process that renders images."""
        self._ending.close()
        self._started = None

    def _readers(self) -> DocumentReaders:
        with self._lock:
            if self._started is None:
                from satchel.indexing.documents.readers import readers_for

                self._started = self._ending.enter_context(readers_for(self.source.documents, 1))
            return self._started

    def _write(self, place: Path, data: bytes) -> None:
        """Write the image atomically."""
        self.target.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary_file = place.with_suffix(f".{secrets.token_hex(4)}.part")
        try:
            temporary_file.write_bytes(data)
            os.replace(temporary_file, place)
        finally:
            with suppress(OSError):
                temporary_file.unlink()


T = TypeVar("T")

# About a printed page of prose. Another value renumbers the parts: page numbers cited before then mean other text.
_PAGE_CHARS: Final = 3000


class Part(NamedTuple):
    """A part of about a page, from a text without pages."""

    number: int
    pieces: tuple[StoredPiece, ...]

    @property
    def text(self) -> str:
        """The text of the part."""
        return "\n\n".join(piece.text for piece in self.pieces)

    def metadata(self, path: str) -> PageMetadata:
        """The metadata of the part in the form of page metadata."""
        heading = self.pieces[0].title.replace("/", " > ") or None
        return replace(
            _page_metadata(path, self.pieces[0].state, self.number),
            section_path=heading,
            parent_heading=heading.rpartition(" > ")[2] if heading else None,
            num_headings=len({piece.title for piece in self.pieces if piece.title}),
        )


def _parts(files: FileIndex, path: str, filters: Filters) -> list[Part]:
    """Cut a text without pages into parts of about a page, always at the same places."""
    parts: list[list[StoredPiece]] = []
    size = 0
    for piece in files.pieces_of(path, filters):
        if not parts or size + len(piece.text) > _PAGE_CHARS:
            parts.append([])
            size = 0
        parts[-1].append(piece)
        size += len(piece.text)
    return [Part(number, tuple(pieces)) for number, pieces in enumerate(parts, start=1)]


def _page_metadata(path: str, state: FileState, page: int) -> PageMetadata:
    return PageMetadata(
        doc_id=state.content_hash.hex(),
        filename=path.rpartition("/")[2],
        page=page,
        extension=extension_of(path),
        timestamp=_timestamp(state),
        source_path=path,
    )


def _timestamp(state: FileState) -> str:
    return datetime.fromtimestamp(state.read_ns // 10**9, UTC).isoformat()


_PROSE: Final = frozenset({"markdown", "rst", "text"})

# Hits asked for at most while doubling, where many hits lie on few pages: bounds the time of a search.
_MAX_TEXT_HITS: Final = 600

# Hits searched in a workspace with notes: as many as for the sections of a workspace context, which finds the same.
_MIN_NOTE_HITS: Final = 120

# Hits for the sufficiency of a context: the best ten of them are compared, and code among them is left out.
_JUDGED_HITS: Final = 30

# Candidates of the first stage, rescored exactly (docs/visual-pages.md). More miss fewer pages, and read more vectors.
_RESCORED_PAGES: Final = 100

# Pages embedded at once: bounds the memory for their images.
_PAGES_PER_BATCH: Final = 16

# A visual score is no probability: halved, a visual hit never outranks a text hit with a relevance above 0.5.
_VISUAL_WEIGHT: Final = 0.5


class SearchedWorkspace(Protocol):
    """The engine interface used by the library."""

    @property
    def store(self) -> Store:
        """The store of the workspace."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the store's vectors."""

    @property
    def folder(self) -> Folder:
        """The indexed folder."""

    @property
    def page_cache(self) -> PageCache:
        """The pages of notes that were read for earlier questions."""

    def search(self, question: str, *, top_k: int = 10, filters: Filters | None = None) -> SearchResult:
        """The best hits for a question."""

    def filters_for(self, user: User) -> Filters:
        """The filters, access included, for every read by the user."""

    def now(self) -> datetime:
        """The time, for questions about due tasks."""

    def index(self) -> IndexReport:
        """Refresh the index."""

    def close(self) -> None:
        """Release the store."""


@dataclass(eq=False)
class WorkspaceLibrary(AbstractContextManager["WorkspaceLibrary"]):
    """A search engine and a library of pages over the workspace of an engine, limited to the access of a user.

    Documents are identified by their content: two files of the same content are one document. Texts without pages
    (Markdown, plain text) are cut into parts of about a page. A note of the workspace is a document of one page,
    identified by the id of its block; it has no picture.
    """

    engine: SearchedWorkspace
    page_embedder: PageEmbedder
    page_vectors: PageVectors
    images: PageImages
    user: User | None = None

    def seen_by(self, user: User) -> WorkspaceLibrary:
        """The library limited to the access of the user."""
        if not isinstance(user, User):
            raise InvalidOption("user", user, "must be a satchel.User")
        return replace(self, user=user)

    def close(self) -> None:
        """Close the page vectors, the images and the engine."""
        self.close_pages()
        self.engine.close()

    def close_pages(self) -> None:
        """Close the page vectors and the images, but not the engine, which may be shared."""
        self.page_vectors.close()
        self.images.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- searching

    def search(self, query: str, num_results: int = 10, search_mode: str = SearchMode.HYBRID) -> PageHits:
        """The best pages, best first; a page found by text and by visual search is listed twice.

        If a file of the pages has changed, the index is refreshed and the search repeated.
        """
        as_count(InvalidOption, "num_results", num_results, 1)
        as_text(InvalidOption, "query", query)
        mode = as_choice(InvalidOption, "search_mode", search_mode, SearchMode)
        notes: list[str] = []
        hits = self._search(query, num_results, mode, notes)
        stale = self._stale(hits)
        if stale:
            # Changed files are indexed again before their pages are shown.
            with suppress(IndexProblem):
                self.engine.index()
            hits = self._search(query, num_results, mode, notes)
            stale = self._stale(hits)
        notes += [
            f"{path} has changed since it was indexed and was left out; index the folder again"
            for path in sorted(stale)
        ]
        fresh = [hit for hit in hits if _is_note(hit) or hit["metadata"]["source_path"] not in stale]
        return PageHits(fresh, dict.fromkeys(notes))

    def _search(self, query: str, num_results: int, mode: SearchMode, notes: list[str]) -> list[PageHit]:
        hits: list[PageHit] = []
        if mode is not SearchMode.VISUAL:
            hits += self._by_text(query, num_results)
        if mode is not SearchMode.TEXT:
            try:
                hits += self._by_look(query, num_results)
            except IndexProblem as problem:
                # Page vectors may be missing where the index folder is read-only.
                notes.append(f"the visual search of pages was skipped: {problem}")
        hits.sort(key=lambda hit: -hit["score"])
        return hits

    def _stale(self, hits: Iterable[PageHit]) -> set[str]:
        """The paths of the hits whose files changed or vanished since indexing."""
        from satchel.retrieval.freshness import Verdict

        indexed_files = self.engine.store.files()
        paths = {hit["metadata"]["source_path"] for hit in hits if not _is_note(hit)}
        with self.engine.folder.opened() as disk:
            return {
                path
                for path in paths
                if path not in indexed_files or disk.judge(path, indexed_files[path]) is not Verdict.SAME
            }

    def _by_text(self, query: str, num_results: int) -> list[PageHit]:
        pages: dict[PageKey, PageHit] = {}
        notes: list[Note] | None = None
        filters = self._filters()
        parts_of = cache(lambda path: _parts(self.engine.store, path, filters))
        top_k = 3 * num_results
        if self.engine.store.holds_blocks():
            top_k = max(top_k, _MIN_NOTE_HITS)
        while True:
            result = self.engine.search(query, top_k=top_k, filters=filters)
            if notes is None:
                with self.engine.store.snapshot():
                    notes = self._notes().ranked(query, result.hits, self.engine, num_results=num_results)
            for hit in result.hits:
                if not hit.path or (hit.page is None and hit.language not in _PROSE):
                    continue
                number = hit.page or sum(part.pieces[0].first_line <= hit.start_line for part in parts_of(hit.path))
                page = self._page(hit.path, max(1, number), filters)
                if page is not None:
                    pages.setdefault(PageKey(page.doc_id, page.page), _hit(page, hit.relevance, SearchMode.TEXT))
            is_enough = len(pages) + len(notes) >= num_results
            if is_enough or len(result.hits) < top_k or top_k >= _MAX_TEXT_HITS:
                return [*list(pages.values())[:num_results], *map(_note_hit, notes)]
            top_k *= 2

    def _by_look(self, query: str, num_results: int) -> list[PageHit]:
        from satchel.retrieval.late_interaction import two_stage

        self.look_at_pages()
        filters = self._filters()
        paths = self.doc_ids()
        keys, pooled = self.page_vectors.pooled(paths)
        page_limit = max(_RESCORED_PAGES, num_results)
        ranked = two_stage(
            self.page_embedder.embed_query(query),
            pooled,
            lambda rows: self.page_vectors.fetch([keys[row] for row in rows]),
            first=page_limit,
            top_k=page_limit,
        )
        # Every page is somewhat similar to every question: only similarity above the median counts.
        median_score = ranked[(len(ranked) - 1) // 2][1] if len(ranked) > 2 else 0.0
        hits = []
        for row, score in ranked[:num_results]:
            page = self._page(paths[keys[row].doc_id], keys[row].page, filters)
            if page is not None:
                above = max(0.0, (score - median_score) / (1 - median_score)) if median_score < 1 else 0.0
                hits.append(_hit(page, _VISUAL_WEIGHT * above, SearchMode.VISUAL))
        return hits

    def look_at_pages(self, watcher: Callable[[int, int], None] | None = None) -> int:
        """Embed the readable pages without vectors; return the number of documents embedded."""
        filters = self._filters()
        documents = self.doc_ids()
        embedded_documents = self.page_vectors.documents()
        self.page_vectors.drop(
            embedded_documents - {state.content_hash.hex() for state in self.engine.store.files().values()}
        )
        lacking = sorted(documents.keys() - embedded_documents)
        for doc_id in _watched(lacking, watcher):
            pages = self.engine.store.pages_of(documents[doc_id], filters)
            self.page_vectors.put(doc_id, dict(self._looked_at(doc_id, pages)))
        return len(lacking)

    def _looked_at(self, doc_id: str, pages: list[StoredPage]) -> Iterable[tuple[int, Any]]:
        needs_images = self.page_embedder.needs_images
        for first in range(0, len(pages), _PAGES_PER_BATCH):
            batch = pages[first : first + _PAGES_PER_BATCH]
            pictures = [self._picture(page.path, doc_id, page.page.number) if needs_images else b"" for page in batch]
            views = [
                PageView(picture, page.text, page.page.captions) for picture, page in zip(pictures, batch, strict=True)
            ]
            for page, rows in zip(batch, self.page_embedder.embed_pages(views), strict=True):
                yield page.page.number, rows

    def _picture(self, path: str, doc_id: str, page: int) -> bytes:
        picture = self.images.image(path, doc_id, page)
        return picture.read_bytes() if picture is not None else b""

    def judge(self, query: str, context: Context) -> Sufficiency | None:
        """How likely the pages of a context answer the question, from what the user may read."""
        from satchel.retrieval.sufficiency import judge

        filters = self._filters()
        hits = self.engine.search(query, top_k=_JUDGED_HITS, filters=filters).hits
        pages = [hit for hit in hits if not hit.path or hit.page is not None or hit.language in _PROSE]
        return judge(query, context, pages, self.engine.store, filters)

    # -- the library

    def get_document_markdown(self, doc_id: str) -> str | None:
        """The whole Markdown of a document, each page below a line with its number; None for an unknown document."""
        path = self._path(doc_id)
        if path is not None:
            return self.engine.store.text_of(path, self._filters())
        note = self._notes().get(doc_id)
        return None if note is None else whole_markdown([(1, note.markdown)])

    def get_page_metadata(self, doc_id: str, page: int) -> PageMetadata | None:
        """The metadata of a page, or None."""
        number = as_count(InvalidInput, "page", page, 1)
        path = self._path(doc_id)
        if path is not None:
            return self._page(path, number, self._filters())
        note = self._notes().get(doc_id) if number == 1 else None
        return None if note is None else note.metadata()

    def get_page_markdown(self, doc_id: str, page: int) -> str | None:
        """The text of a page, or None."""
        as_count(InvalidInput, "page", page, 1)
        path = self._path(doc_id)
        if path is None:
            note = self._notes().get(doc_id) if page == 1 else None
            return None if note is None else note.markdown
        filters = self._filters()
        pages = self.engine.store.pages_of(path, filters, number=page)
        if pages:
            # Lines of the page that look like a page border were escaped; extraction unescapes them.
            return extract_page_content(f"<!-- page {page} -->\n{pages[0].text}", page)
        parts = _parts(self.engine.store, path, filters)[page - 1 : page]
        return parts[0].text if parts else None

    def excerpt_maker(self, hit: PageHit, query: str) -> ExcerptMaker | None:
        """The function that shortens a found note to its best sections; None for a page of a document."""
        if not _is_note(hit):
            return None
        sections = [FoundSection(*section) for section in hit["metadata"].get("sections", ())]
        return self._notes().excerpt_maker(hit["doc_id"], query, sections)

    def page_image(self, doc_id: str, page: int, *, thumbnail: bool = False) -> Path | None:
        """The image of the page, made if missing; None for documents without images."""
        as_count(InvalidInput, "page", page, 1)
        path = self._path(doc_id)
        return None if path is None else self.images.image(path, doc_id, page, thumbnail=thumbnail)

    def make_images(self, watcher: Callable[[int, int], None] | None = None) -> int:
        """Make the missing images and thumbnails of all pages; return the number of pages done.

        Documents without images are skipped.
        """
        filters = self._filters()
        lacking = [
            (path, doc_id, stored.page.number)
            for doc_id, path in self.doc_ids().items()
            if page_unit(path) in (PageUnit.PAGE, PageUnit.PICTURE)
            for stored in self.engine.store.pages_of(path, filters)
            if not all(self.images.existing(doc_id, stored.page.number, thumbnail=small) for small in (False, True))
        ]
        page_count = 0
        for page in _watched(lacking, watcher):
            images = [self.images.image(*page, thumbnail=small) for small in (False, True)]
            page_count += all(images)
        return page_count

    def doc_ids(self) -> dict[str, str]:
        """The readable documents: path by document id."""
        documents = self.engine.store.documents(self._filters())
        return {content_hash.hex(): path for path, content_hash in documents.items()}

    def copy_to(self, shelf: PageShelf, watcher: Callable[[int, int], None] | None = None) -> int:
        """Copy the readable documents into another library; return the number of documents copied."""
        filters = self._filters()
        documents = [(doc_id, path) for doc_id, path in self.doc_ids().items() if not shelf.is_whole(doc_id)]
        for doc_id, path in _watched(documents, watcher):
            stored = self.engine.store.pages_of(path, filters)
            outline = [entry.page for entry in stored]
            shelf.add_document(
                doc_id,
                path.rpartition("/")[2],
                [
                    Page(
                        page.number,
                        self.get_page_markdown(doc_id, page.number) or "",
                        page.name,
                        page.captions,
                        pictures=page.pictures,
                        is_recognized=page.is_recognized,
                    )
                    for page in outline
                ],
                timestamp=_timestamp(stored[0].state),
                source_path=path,
                outline=outline,
                images=partial(self._picture, path, doc_id),
            )
        return len(documents)

    def _page(self, path: str, page: int, filters: Filters) -> PageMetadata | None:
        stored = self.engine.store.pages_of(path, filters, number=page)
        if stored:
            return self._metadata(stored[0])
        parts = _parts(self.engine.store, path, filters)[page - 1 : page]
        return parts[0].metadata(path) if parts else None

    def _metadata(self, stored: StoredPage) -> PageMetadata:
        page, metadata = stored.page, _page_metadata(stored.path, stored.state, stored.page.number)
        return replace(
            metadata,
            image_path=self.images.existing(metadata.doc_id, page.number),
            thumb_path=self.images.existing(metadata.doc_id, page.number, thumbnail=True),
            section_path=page.section_path or None,
            parent_heading=page.parent_heading or None,
            num_headings=page.headings,
            num_tables=page.tables,
            num_pictures=page.pictures,
        )

    def _path(self, doc_id: str) -> str | None:
        try:
            content_hash = bytes.fromhex(doc_id)
        except (ValueError, TypeError):
            return None
        paths = self.engine.store.paths_of(content_hash, self._filters())
        # Of several files with the same content, only one stores the text.
        return next((path for path in paths if self.engine.store.text_of(path, self._filters())), None)

    def _notes(self) -> Notes:
        return Notes(self.engine.store, self._filters())

    def _filters(self) -> Filters:
        return Filters() if self.user is None else self.engine.filters_for(self.user)


def _watched(items: Sequence[T], watcher: Callable[[int, int], None] | None) -> Iterator[T]:
    """Yield the items, calling the watcher with (done, total) before each."""
    for done, item in enumerate(items):
        if watcher is not None:
            watcher(done, len(items))
        yield item


def _hit(page: PageMetadata, score: float, mode: SearchMode) -> PageHit:
    return PageHit(
        doc_id=page.doc_id,
        page=page.page,
        score=score,
        filename=page.filename,
        metadata={**page.to_dict(), "collection": mode.value},
    )


def _is_note(hit: PageHit) -> bool:
    return "block_id" in hit["metadata"]


def _note_hit(note: Note) -> PageHit:
    hit = _hit(note.metadata(), note.relevance, SearchMode.TEXT)
    hit["metadata"] |= {"block_id": hit["doc_id"], "sections": note.sections}
    return hit
