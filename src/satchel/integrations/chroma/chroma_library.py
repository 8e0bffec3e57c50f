"""`ChromaLibrary`: stores the pages of documents in two Chroma collections, and searches both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidInput, InvalidOption, LibraryMismatch, shown
from satchel.integrations.chroma.connect import address_of, chroma_errors, open_folder, open_remote, shut
from satchel.integrations.chroma.records import CHUNK, CHUNKS, PAGES, STAMP, DocumentToStore, records_of
from satchel.integrations.chroma.search import hits_of, search_text, search_visual
from satchel.integrations.embedders.page_embedders import WrittenPageEmbedder
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.checks import as_choice, as_count
from satchel.models.document import PageMetadata, expand_markdown, extract_page_content, whole_markdown
from satchel.ports.page_library import PageHits, SearchMode
from satchel.text.visible import replace_surrogates

if TYPE_CHECKING:
    from satchel.models.document import Page
    from satchel.models.outline import OutlinePage
    from satchel.ports.embedder import Embedder
    from satchel.ports.page_embedder import PageEmbedder

# Per request: more need fewer requests but more memory, as a record may hold a packed document.
_BATCH_RECORDS: Final = 64
_MAX_RESULTS: Final = 1_000  # a larger `num_results` is lowered to this: all candidates are scored in memory
_CLOUD_FIELD_CHARS: Final = 4_096  # Chroma Cloud's limit for a field (docs/chroma.md)
_EMBEDDER: Final = "satchel_embedder"  # the field of a collection that says whose vectors it holds


class ChromaLibrary:
    """Pages in Chroma: a `PageLibrary` and a `SearchEngine` over a visual and a text collection.

    All calls block and may come from several threads. Collections that another program filled can be read, as far as
    their records have `doc_id` and `page`; to be searched, their vectors must be those of the embedders given here.
    A field longer than `most_field_chars` is not written: a document's text is then put together from its chunks, and
    a page is scored by its pooled vector.
    Chroma is never the only copy of anything: keep the documents, and add them again when its folder is lost.
    """

    def __init__(
        self,
        client: Any,
        *,
        visual: str = "visual",
        text: str = "text",
        embedder: Embedder | None = None,
        page_embedder: PageEmbedder | None = None,
        create: bool = True,
        most_field_chars: int | None = None,
    ) -> None:
        self._embedder: Embedder = embedder or StaticEmbedder()
        self._page_embedder: PageEmbedder = page_embedder or WrittenPageEmbedder(self._embedder)
        self._client = client
        self._is_own = False
        self._most_field_chars = most_field_chars
        self._where = address_of(client)
        self._visual = self._open_collection(visual, self._page_embedder.name, create)
        self._text = self._open_collection(text, self._embedder.name, create)
        self._checked_collections: set[str] = set()
        self._writing = Lock()

    @classmethod
    def persistent(cls, path: str | Path, **options: Any) -> ChromaLibrary:
        """The library in a local folder; `options` are arguments of the class."""
        return cls._owning(open_folder(path), options)

    @classmethod
    def server(
        cls,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        ssl: bool = False,
        headers: Mapping[str, str] | None = None,
        tenant: str = "default_tenant",
        database: str = "default_database",
        timeout_s: float = 30.0,
        **options: Any,
    ) -> ChromaLibrary:
        """The library on a server started by `chroma run`; `options` are arguments of the class."""

        def connect(chroma: Any, settings: Any) -> Any:
            return chroma.HttpClient(host, port, ssl, dict(headers or {}), settings, tenant=tenant, database=database)

        client = open_remote(connect, host, port, ssl=ssl, timeout_s=timeout_s, headers=headers)
        return cls._owning(client, options)

    @classmethod
    def cloud(
        cls,
        *,
        tenant: str | None = None,
        database: str | None = None,
        api_key: str | None = None,
        host: str = "api.trychroma.com",
        port: int = 443,
        ssl: bool = True,
        timeout_s: float = 30.0,
        **options: Any,
    ) -> ChromaLibrary:
        """The library on Chroma Cloud; fields beyond the service's limit are left out (`most_field_chars`).

        What is not given comes from CHROMA_TENANT, CHROMA_DATABASE and CHROMA_API_KEY.
        """

        def connect(chroma: Any, settings: Any) -> Any:
            return chroma.CloudClient(
                tenant, database, api_key, settings, cloud_host=host, cloud_port=port, enable_ssl=ssl
            )

        client = open_remote(connect, host, port, ssl=ssl, timeout_s=timeout_s)
        return cls._owning(client, {"most_field_chars": _CLOUD_FIELD_CHARS, **options})

    @classmethod
    def _owning(cls, client: Any, options: dict[str, Any]) -> ChromaLibrary:
        try:
            library = cls(client, **options)
        except BaseException:
            shut(client)
            raise
        library._is_own = True
        return library

    def close(self) -> None:
        """Close Chroma's client, unless the caller provided the client."""
        if self._is_own:
            shut(self._client)

    def __enter__(self) -> ChromaLibrary:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def client(self) -> Any:
        """Chroma's own client."""
        return self._client

    @property
    def visual_collection(self) -> Any:
        """Chroma's own collection of page looks: a record for each page."""
        return self._visual

    @property
    def text_collection(self) -> Any:
        """Chroma's own collection of page texts: a record for each chunk."""
        return self._text

    # -- finding

    def search(self, query: str, num_results: int = 10, search_mode: str = SearchMode.HYBRID) -> PageHits:
        """The best pages, best first, each at most once per collection; `notes` name anything not searched."""
        most = min(as_count(InvalidOption, "num_results", num_results, 1), _MAX_RESULTS)
        chosen = as_choice(InvalidOption, "search_mode", search_mode, SearchMode)
        modes = [SearchMode.VISUAL, SearchMode.TEXT] if chosen is SearchMode.HYBRID else [chosen]
        notes: list[str] = []
        pages = {}
        for mode in modes if query.strip() else ():
            try:
                pages[mode] = self._best_pages(mode, query, most, notes)
            except LibraryMismatch as problem:
                if mode is modes[-1] and not pages:
                    raise
                notes.append(str(problem))
        return hits_of(pages, most, notes)

    def _best_pages(self, mode: SearchMode, query: str, most: int, notes: list[str]) -> Any:
        is_visual = mode is SearchMode.VISUAL
        collection = self._visual if is_visual else self._text
        embedder = self._page_embedder if is_visual else self._embedder
        question = embedder.embed_query(query)
        with chroma_errors(self._where):
            self._check_vectors(collection, embedder)
            if is_visual:
                return search_visual(collection, question, embedder.name, most, notes)
            return search_text(collection, question, query, most, notes)

    def _check_vectors(self, collection: Any, embedder: Embedder | PageEmbedder) -> None:
        """Raise LibraryMismatch if the collection's vectors are not comparable with the embedder's."""
        if collection.name in self._checked_collections:
            return
        made_by = (collection.metadata or {}).get(_EMBEDDER, embedder.name)
        first = collection.get(limit=1, include=["embeddings"])["embeddings"]
        if first is None or not len(first):
            return
        if len(first[0]) != embedder.dimensions or made_by != embedder.name:
            raise LibraryMismatch(
                f"chroma {self._where}",
                f"collection {shown(collection.name)} holds vectors of {len(first[0])} numbers"
                f"{f' by {shown(made_by)}' if made_by != embedder.name else ''}, and {shown(embedder.name)} makes "
                f"vectors of {embedder.dimensions}; give ChromaLibrary the embedder that filled it, or another name "
                "for the collection and add the documents again",
            )
        self._checked_collections.add(collection.name)

    # -- reading

    def get_page_metadata(self, doc_id: str, page: int) -> PageMetadata | None:
        """The stored metadata of a page, or None; from the text collection if the visual collection lacks the page."""
        which = _records_of_page(doc_id, as_count(InvalidInput, "page", page, 1))
        with chroma_errors(self._where):
            for collection in (self._visual, self._text):
                for metadata in collection.get(where=which, include=["metadatas"])["metadatas"]:
                    try:
                        return PageMetadata.from_mapping(metadata)
                    except InvalidInput:
                        continue
        return None

    def get_document_markdown(self, doc_id: str) -> str | None:
        """The whole Markdown of a document with page borders, or None."""
        harmed: InvalidInput | None = None
        with chroma_errors(self._where):
            for collection in (self._visual, self._text):
                for metadata in self._all_metadata(collection, _records_of(doc_id)):
                    field = metadata.get("full_markdown_compressed")
                    if not isinstance(field, str) or not field or (harmed and harmed.value == field[:40]):
                        continue
                    try:
                        return expand_markdown(field)
                    except InvalidInput as problem:
                        harmed = problem
            pages = self._pages_from_chunks(_records_of(doc_id))
        if harmed and not pages:
            raise harmed
        return whole_markdown(sorted(pages.items())) if pages else None

    def get_page_markdown(self, doc_id: str, page: int) -> str | None:
        """The text of a page: from the whole document's text, else from the stored chunks."""
        number = as_count(InvalidInput, "page", page, 1)
        whole = self.get_document_markdown(doc_id)
        content = None if whole is None else extract_page_content(whole, number)
        if content is not None:
            return content
        with chroma_errors(self._where):
            return self._pages_from_chunks(_records_of_page(doc_id, number)).get(number)

    def _all_metadata(self, collection: Any, which: dict[str, Any] | None) -> Iterator[Mapping[str, Any]]:
        """The metadata of records; the first request asks for a single record, because this often suffices."""
        offset, limit = 0, 1
        while True:
            records = collection.get(where=which, include=["metadatas"], limit=limit, offset=offset)["metadatas"]
            yield from (metadata or {} for metadata in records)
            if len(records) < limit:
                return
            offset, limit = offset + limit, _BATCH_RECORDS

    def _pages_from_chunks(self, which: dict[str, Any]) -> dict[int, str]:
        """Pages joined from chunks: Satchel's by chunk number, foreign chunks in stored order."""
        records = self._text.get(where=which, include=["documents", "metadatas"])
        parts: dict[int, list[tuple[int, str]]] = {}
        for place, (document, metadata) in enumerate(zip(records["documents"], records["metadatas"], strict=True)):
            try:
                number = PageMetadata.from_mapping(metadata or {}).page
            except InvalidInput:
                continue
            order = metadata.get(CHUNK)
            parts.setdefault(number, []).append((order if isinstance(order, int) else place, document or ""))
        is_own = any(STAMP in (metadata or {}) for metadata in records["metadatas"])
        between = "" if is_own else "\n\n"
        return {number: between.join(text for _, text in sorted(chunks)) for number, chunks in parts.items()}

    # -- writing

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
        image_path: Callable[[int], str | None] | None = None,
        thumb_path: Callable[[int], str | None] | None = None,
    ) -> None:
        """Write a document's pages in place of any stored under the id; repeating the call changes nothing.

        `images` returns the picture of a page by its number, for a page embedder that needs pictures; `outline` gives
        the position of each page, by default derived from its headings. Chroma has no transactions: an interrupted call
        leaves an incomplete document, which `is_whole` detects and adding the document again repairs.
        """
        if not doc_id:
            raise InvalidInput("doc_id", doc_id, "must not be empty")
        if len({page.number for page in pages}) != len(pages) or any(page.number < 1 for page in pages):
            raise InvalidInput("pages", [page.number for page in pages][:20], "must have distinct numbers from 1")
        source = DocumentToStore(
            doc_id=doc_id,
            filename=filename,
            pages=pages,
            timestamp=timestamp,
            source_path=source_path,
            outline=outline,
            images=images,
            image_path=image_path,
            thumb_path=thumb_path,
        )
        with chroma_errors(self._where):
            self._check_vectors(self._visual, self._page_embedder)
            self._check_vectors(self._text, self._embedder)
        visual, text = records_of(source, self._embedder, self._page_embedder, self._most_field_chars)
        with self._writing:
            self._replace(self._text, doc_id, text)
            self._replace(self._visual, doc_id, visual)

    def _replace(self, collection: Any, doc_id: str, batches: Iterator[Mapping[str, Any]]) -> None:
        with chroma_errors(self._where):
            before = set(collection.get(where=_records_of(doc_id), include=[])["ids"])
        for batch in batches:
            with chroma_errors(self._where):
                collection.upsert(**batch)
            before -= set(batch["ids"])
        # Delete only records that existed before: a concurrent writer of the same document keeps new records.
        left = sorted(before)
        with chroma_errors(self._where):
            for start in range(0, len(left), _BATCH_RECORDS):
                collection.delete(ids=left[start : start + _BATCH_RECORDS])

    def is_whole(self, doc_id: str) -> bool:
        """True if both collections hold a single writing of the document completely, and nothing of another."""
        with chroma_errors(self._where):
            visual = list(self._all_metadata(self._visual, _records_of(doc_id)))
            text = list(self._all_metadata(self._text, _records_of(doc_id)))
        stamps = {metadata.get(STAMP) for metadata in (*visual, *text)}
        if len(stamps) != 1 or None in stamps or not visual:
            return False
        return len(visual) == visual[0].get(PAGES) and len(text) == visual[0].get(CHUNKS)

    def delete_document(self, doc_id: str) -> None:
        """Delete a document; an unknown id is no error."""
        with chroma_errors(self._where):
            for collection in (self._visual, self._text):
                collection.delete(where=_records_of(doc_id))

    def doc_ids(self) -> list[str]:
        """The sorted ids of all documents with any stored record."""
        ids: set[str] = set()
        with chroma_errors(self._where):
            for collection in (self._text, self._visual):
                # Page records are large: from the second collection, read only documents missing in the first.
                which = {"doc_id": {"$nin": sorted(ids)}} if ids else None
                records = self._all_metadata(collection, which)
                ids |= {metadata["doc_id"] for metadata in records if isinstance(metadata.get("doc_id"), str)}
        return sorted(ids)

    def _open_collection(self, name: str, embedder_name: str, create: bool) -> Any:
        with chroma_errors(self._where):
            try:
                return self._client.get_collection(name, embedding_function=None)
            except Exception as error:
                if type(error).__name__ != "NotFoundError" or not create:
                    raise
            # get_or_create: another process may have created the collection meanwhile.
            return self._client.get_or_create_collection(
                name,
                embedding_function=None,
                metadata={_EMBEDDER: embedder_name},
                configuration={"hnsw": {"space": "cosine"}},
            )


def _records_of(doc_id: str) -> dict[str, Any]:
    """The condition for all records of a document; any of these may hold the document's text."""
    return {"doc_id": {"$eq": replace_surrogates(doc_id)}}


def _records_of_page(doc_id: str, page: int) -> dict[str, Any]:
    return {"$and": [_records_of(doc_id), {"page": {"$eq": page}}]}
