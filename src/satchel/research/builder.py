"""The recipe for pages (S3): turns a question into a context of numbered document pages."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from importlib import resources
from numbers import Integral, Real
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from satchel.assembly.layout import PageLayout
from satchel.assembly.pack import Cost, PackingRules, Trimmed, Trimmer
from satchel.assembly.pipeline import Admitted, Formed, Merged, Recipe, build
from satchel.errors import InvalidInput, InvalidOption, SatchelError, UnknownPage
from satchel.models.checks import as_count, as_text, check_fields
from satchel.models.chunk import Candidate, CandidateKind, Trim, alone
from satchel.models.context import BuildStatistics, ContextKind, Reason, SourceDocument
from satchel.models.document import PageMetadata, extract_page_content
from satchel.models.files import page_words
from satchel.models.options import ContextBuildOptions, ContextFormat, OverflowPolicy, as_format
from satchel.models.results import ResearchContext
from satchel.ports.page_library import ExcerptMaker, PageHit, PageLibrary, SearchEngine, SearchMode
from satchel.text.secrets import redact

if TYPE_CHECKING:
    from satchel.tokens.counter import TokenCounter


RESEARCH_SYSTEM_PROMPT: Final = (
    resources.files("satchel.research").joinpath("system_prompt.md").read_text("utf-8").removesuffix("\n")
)
"""Demands a citation for every statement; `verify` then checks the citations of the answer."""


T = TypeVar("T")

# About a line of text; a shorter excerpt of a page answers nothing, and the page is left out.
_MIN_EXCERPT_CHARS: Final = 80

# Each further try is a fifth shorter: smaller steps waste less room and count more often.
_SHRINK_FACTOR: Final = 0.8

# Length of the first excerpt tried: more characters than a token usually has, hence rather too long than too short.
_FIRST_CHARS_PER_TOKEN: Final = 5

# Pages fetched at once: more than the default of `max_sources`, so one slow page does not hold up the rest.
_FETCH_THREADS: Final = 16

# A document rewritten between search and fetch is searched again; after three rounds the page is reported as gone.
_MAX_SEARCHES: Final = 3

# Of the budget for the best page, if it can be shortened. On 96 questions over notes with 2,000 tokens, 53 answers are
# whole with 0.25, 63 with 0.4, 69 with 0.6; with 4,000 tokens 71, 77 and 78.
_BEST_PAGE_SHARE: Final = 0.6

# A page is not shortened below this: a small section with its heading. Later pages are left out instead.
_MIN_SHARE_TOKENS: Final = 250

# Below this best relevance a note says that no page seems to answer. Higher: false alarms; lower: pages that are only
# the nearest pass for an answer.
_MIN_ANSWER_RELEVANCE: Final = 0.06


@dataclass(eq=False)
class ContextBuilder:
    """Builds contexts of pages from a search engine and a library of documents.

    `max_tokens` is a hard limit on the finished text, headers and blank lines included; set it to about 80 % of what
    the model can take. `search_engine` and `chroma_client` may be blocking (they are called in threads) or async.
    """

    search_engine: SearchEngine
    chroma_client: PageLibrary
    max_sources: int = 10
    max_tokens: int = 10_000
    _: KW_ONLY
    counter: TokenCounter | None = None
    model: str = "gpt-4o"
    format: ContextFormat | str = ContextFormat.MARKDOWN
    notice: str = ""
    """The first line of the text, within the budget."""

    def __post_init__(self) -> None:
        check_fields(self, InvalidOption, partial(as_count, least=1), "max_sources", "max_tokens")
        self.format = as_format("format", self.format)

    async def build_context(
        self, query: str, num_results: int = 10, include_text: bool = True, include_visual: bool = True
    ) -> ResearchContext:
        """The best pages for a question, numbered, within the budget."""
        if not isinstance(query, str) or not query.strip():
            raise InvalidOption("query", query, "must not be empty")
        as_count(InvalidOption, "num_results", num_results, 1)
        if not (include_text or include_visual):
            raise InvalidOption("include_text", include_text, "include_text or include_visual must be True")
        mode = SearchMode.TEXT if include_text else SearchMode.VISUAL
        mode = SearchMode.HYBRID if include_text and include_visual else mode
        started = perf_counter()
        for _ in range(_MAX_SEARCHES):
            hits = await _answered(self.search_engine.search, query, num_results=num_results, search_mode=mode)
            best = self.deduplicate_results(cast("list[dict[str, Any]]", hits))[: min(num_results, self.max_sources)]
            place_of = {id(hit): place for place, hit in enumerate(hits)}
            places = [place_of[id(hit)] for hit in best]
            texts = _PageTexts(self.chroma_client)
            fetched = await asyncio.gather(*(self._source(hits[place], texts) for place in places))
            makers = await asyncio.gather(*(self._excerpt_maker(hits[place], query) for place in places))
            # A document rewritten between search and fetch has other pages now: search again.
            if not any(isinstance(page, _Gone) for page in fetched):
                break
        excerpts = {place: maker for place, maker in zip(places, makers, strict=True) if maker is not None}
        return await _answered(self._context, query, hits, dict(zip(places, fetched, strict=True)), excerpts, started)

    def _context(
        self,
        query: str,
        hits: Sequence[PageHit],
        fetched: Mapping[int, SourceDocument | str],
        excerpts: Mapping[int, ExcerptMaker],
        started: float,
    ) -> ResearchContext:
        """Build the context from the fetched pages (keyed by hit position); slow, because long pages are counted."""
        pages = _named_apart({place: page for place, page in fetched.items() if isinstance(page, SourceDocument)})
        candidates = [_candidate(place, hit, pages.get(place)) for place, hit in enumerate(hits)]
        admitted = _admit(candidates, hits, pages)
        layout = self._layout()
        recipe = Recipe(
            kind=ContextKind.RESEARCH,
            layouts=[layout],
            form=partial(_fit_shares, excerpts, self.max_tokens, layout.cost_of),
            rules=PackingRules(
                max_tokens=self.max_tokens,
                max_pieces=self.max_sources,
                overflow=OverflowPolicy.STOP,
                trimmer=_keep_excerpt(query, excerpts),
            ),
        )
        built = build(candidates, admitted, recipe)
        sources = [
            replace(pages[piece.lead.place], markdown_content=piece.text, number=piece.number)
            for piece in built.packed.draft.pieces
        ]
        notes = [*getattr(hits, "notes", ()), *(note for note in fetched.values() if isinstance(note, str))]
        if pages and not sources:
            notes.append(f"not even an excerpt of the best page fits into {self.max_tokens} tokens; raise the budget")
        if pages and max(page.relevance_score for page in pages.values()) < _MIN_ANSWER_RELEVANCE:
            notes.append("no page seems to answer the question; these pages are only the nearest matches")
        return ResearchContext(
            **built.fields,
            sources=sources,
            truncated=len(sources) < len(pages)
            or any(piece.trim or piece.lead.elided for piece in built.packed.draft.pieces),
            notes=(*notes, *built.common_notes()),
            originals={candidate.id: candidate.text for candidate in candidates},
            statistics=BuildStatistics(build_time=timedelta(seconds=perf_counter() - started)),
        )

    def _layout(self) -> PageLayout:
        options = ContextBuildOptions(format=self.format, include_citations=True, context_header=self.notice or None)
        return PageLayout(options, self._count())

    async def get_source_metadata(self, doc_id: str, page: int) -> SourceDocument:
        """The library's metadata and text of a page; a ValueError for an unknown page."""
        metadata = await _stored_metadata(self.chroma_client, doc_id, page)
        if metadata is None:
            raise UnknownPage(doc_id, page)
        text = await _PageTexts(self.chroma_client).text(doc_id, page)
        return SourceDocument.from_metadata(metadata, markdown=text or "")

    def format_source_citation(self, source: SourceDocument, citation_num: int) -> str:
        """Render a page under its citation number."""
        _checked_source("source", source)
        as_count(InvalidOption, "citation_num", citation_num, 1)
        return "".join(self._layout().format.piece(alone(_page(0, source), citation_num)))

    def deduplicate_results(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The best-scored result of each page, best first."""
        if not isinstance(results, list | tuple):
            raise InvalidInput("results", results, "must be a list of results")
        best: dict[tuple[str, int], dict[str, Any]] = {}
        for i, result in enumerate(results):
            key, score = _checked(i, result)
            known = best.get(key)
            if known is None or score > known["score"]:
                best[key] = result
        return sorted(best.values(), key=lambda result: -float(result["score"]))

    def truncate_to_budget(self, sources: list[SourceDocument], max_tokens: int) -> list[SourceDocument]:
        """The longest prefix of the sources whose rendered text fits into `max_tokens`."""
        if not isinstance(sources, list | tuple):
            raise InvalidInput("sources", sources, "must be a list of sources")
        for i, source in enumerate(sources):
            _checked_source(f"sources[{i}]", source)
        as_count(InvalidOption, "max_tokens", max_tokens, 0)
        # Token counts do not add up over a join: each prefix is rendered and counted whole.
        for taken in range(len(sources)):
            if self.estimate_tokens(self.format_truncated_context(sources[: taken + 1])) > max_tokens:
                return sources[:taken]
        return sources[:]

    def format_truncated_context(self, sources: Sequence[SourceDocument]) -> str:
        """Render the sources, renumbered from 1."""
        pages = [_page(place, source) for place, source in enumerate(sources)]
        return self._layout().draft(pages).text

    def estimate_tokens(self, text: str) -> int:
        """The number of tokens in the text: exact, unless the builder has an estimating counter."""
        return self._count().count(as_text(InvalidInput, "text", text))

    def _count(self) -> TokenCounter:
        if self.counter is None:
            from satchel.tokens.registry import counter_for

            self.counter = counter_for(self.model)
        return self.counter

    async def _source(self, hit: PageHit, texts: _PageTexts) -> SourceDocument | str:
        """The source of a hit, or a note if the page cannot be read."""
        doc_id, page = hit["doc_id"], hit["page"]
        try:
            metadata = await self._metadata(hit)
            text = await texts.text(doc_id, page)
        except SatchelError as error:
            return f"document {doc_id}, page {page} could not be read: {error}"
        if metadata is not None and text is None:
            # A page without text may be a picture; a page without metadata is gone.
            metadata = metadata if await _stored_metadata(self.chroma_client, doc_id, page) else None
        if metadata is None:
            return _Gone(f"document {doc_id}, page {page} was removed from the library after the search")
        score = min(1.0, max(0.0, float(hit["score"])))
        return SourceDocument.from_metadata(metadata, markdown=text or "", score=score)

    async def _excerpt_maker(self, hit: PageHit, query: str) -> ExcerptMaker | None:
        """The function that shortens the page of a hit, if the library has one."""
        make = getattr(self.chroma_client, "excerpt_maker", None)
        if make is None:
            return None
        with suppress(SatchelError):  # the page is shown whole, or a note says that it could not be read
            return cast("ExcerptMaker | None", await _answered(make, hit, query))
        return None

    async def _metadata(self, hit: PageHit) -> PageMetadata | None:
        """The metadata of the hit, completed from the library where fields are missing."""
        from_search = hit.get("metadata") or {}
        if all(name in from_search for name in ("doc_id", "filename", "page", "extension", "timestamp")):
            return PageMetadata.from_mapping(from_search)
        stored = await _stored_metadata(self.chroma_client, hit["doc_id"], hit["page"])
        if stored is None and not from_search:
            return None
        known = stored.to_dict() if stored is not None else {}
        filename = {"filename": hit["filename"]} if hit.get("filename") else {}
        return PageMetadata.from_mapping(
            {**filename, **from_search, **known, "doc_id": hit["doc_id"], "page": hit["page"]}
        )


async def _stored_metadata(library: PageLibrary, doc_id: str, page: int) -> PageMetadata | None:
    """The library's metadata of a page; of a client with no more than S3 prints, from its visual collection."""
    get_metadata = getattr(library, "get_page_metadata", None)
    if get_metadata is not None:
        return cast("PageMetadata | None", await _answered(get_metadata, doc_id, page))
    collection = getattr(library, "visual_collection", None)
    if collection is None:
        needed = "must have get_page_metadata(doc_id, page), or a visual_collection with get(where, include)"
        raise InvalidOption("chroma_client", library, needed)
    where = {"$and": [{"doc_id": {"$eq": doc_id}}, {"page": {"$eq": page}}]}
    found = await _answered(partial(collection.get, where=where, include=["metadatas"]))
    if not found["ids"]:
        return None
    return PageMetadata.from_mapping({**found["metadatas"][0], "doc_id": doc_id, "page": page})


class _Gone(str):
    """The note on a page removed from the library between the search and the fetch."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _PageTexts:
    """Fetches the texts of pages, and each document at most once."""

    library: PageLibrary
    documents: dict[str, asyncio.Task[str | None]] = field(default_factory=dict)

    async def text(self, doc_id: str, page: int) -> str | None:
        """The text of a page; None if the library has no text of the page."""
        get_page = getattr(self.library, "get_page_markdown", None)
        text = await _answered(get_page, doc_id, page) if get_page is not None else None
        if text is not None:
            return str(text)
        if doc_id not in self.documents:
            self.documents[doc_id] = asyncio.ensure_future(_answered(self.library.get_document_markdown, doc_id))
        whole = await self.documents[doc_id]
        if whole is None:
            return None
        text = extract_page_content(whole, page)
        if text is None and page == 1 and extract_page_content(whole, 2) is None:
            return whole  # a document of a single page, without page markers
        return text or ""


def _named_apart(pages: Mapping[int, SourceDocument]) -> dict[int, SourceDocument]:
    """The pages, with the path as file name where different documents share a file name and the path is known."""
    documents = Counter(filename for filename, _ in {(page.filename, page.doc_id) for page in pages.values()})
    return {
        place: replace(page, filename=(documents[page.filename] > 1 and page.source_path) or page.filename)
        for place, page in pages.items()
    }


def _candidate(place: int, hit: PageHit, page: SourceDocument | None) -> Candidate:
    """The candidate of a hit, without text if the page was not fetched."""
    candidate = _page(place, page) if page else Candidate(place=place, id="", kind=CandidateKind.PAGE)
    collector = str((hit.get("metadata") or {}).get("collection", "search"))
    return candidate._replace(id=_name(hit), relevance=float(hit["score"]), collector=collector)


def _page(place: int, page: SourceDocument) -> Candidate:
    return Candidate(
        place=place,
        id=page.doc_id,
        kind=CandidateKind.PAGE,
        path=page.path,
        name=page.filename,
        type="page",
        text=redact(page.markdown_content),
        relevance=page.relevance_score,
        page=page.page,
        origin=page,
    )


def _admit(candidates: Sequence[Candidate], hits: Sequence[PageHit], pages: Mapping[int, SourceDocument]) -> Admitted:
    """Admit the fetched pages, merge duplicate hits of a page, and drop pages beyond the maximum."""
    keys = [(hit["doc_id"], hit["page"]) for hit in hits]
    by_score = sorted(range(len(hits)), key=lambda place: (hits[place]["score"], -place))
    best = {keys[place]: place for place in by_score}
    merged = {
        place: Merged(candidates[best[key]], Reason.SAME_BLOCK) for place, key in enumerate(keys) if best[key] != place
    }
    dropped = {page.place: Reason.MAX_CHUNKS for page in candidates if page.place not in {*pages, *merged}}
    return Admitted([candidates[place] for place in sorted(pages)], dropped, merged)


def _fit_shares(
    excerpts: Mapping[int, ExcerptMaker], max_tokens: int, cost: Cost, pages: Sequence[Candidate]
) -> Formed:
    """The pages, of which those that can be shortened take no more than their share of the budget.

    Shares are equal, and what a short page leaves goes to the others; the best page may take more.
    """
    costs = {page.place: cost(page) for page in pages}
    if not excerpts or sum(costs.values()) <= max_tokens:
        return Formed(pages)
    best = min(pages, key=lambda page: (-page.score, page.place))
    others = [costs[page.place] for page in pages if page is not best and page.place in excerpts]
    whole = sum(costs[page.place] for page in pages if page.place not in excerpts)
    best_share = max(int(_BEST_PAGE_SHARE * max_tokens), _equal_share([*others, costs[best.place]], max_tokens - whole))
    share = _equal_share(others, max_tokens - whole - (best.place in excerpts) * min(costs[best.place], best_share))
    units = []
    for page in pages:
        room = max(_MIN_SHARE_TOKENS, best_share if page is best else share)
        is_long = page.place in excerpts and costs[page.place] > room
        units.append(_shortened(page, excerpts[page.place], room, cost) or page if is_long else page)
    return Formed(units)


def _equal_share(costs: Sequence[int], room: int) -> int:
    """The largest share of the room for each page, where pages that cost less leave their rest to the others."""
    for taken, cost in enumerate(sorted(costs)):
        if cost * (len(costs) - taken) > room:
            return max(0, room // (len(costs) - taken))
        room -= cost
    return max(costs, default=0)


def _shortened(page: Candidate, make_excerpt: ExcerptMaker, room: int, cost: Cost) -> Candidate | None:
    """The page shortened to its best sections, within the tokens; None if too little text would be left."""
    max_chars = len(page.text) * room // max(1, cost(page))
    while max_chars >= _MIN_EXCERPT_CHARS:
        excerpt = make_excerpt(max_chars)
        shorter = page._replace(text=excerpt.text, elided=excerpt.elided)
        if cost(shorter) <= room:
            return shorter
        max_chars = int(max_chars * _SHRINK_FACTOR)
    return None


def _keep_excerpt(query: str, excerpts: Mapping[int, ExcerptMaker]) -> Trimmer:
    """Return a trimmer that keeps the excerpt of a page about the query, with a receipt for the rest."""
    from satchel.retrieval.query import understand
    from satchel.retrieval.search import excerpt

    def trim(page: Candidate, room: int, cost: Cost) -> Trimmed | None:
        if page.place in excerpts and (shorter := _shortened(page, excerpts[page.place], room, cost)):
            return Trimmed(shorter)
        text, terms = page.text, understand(query).terms
        max_chars = min(len(text), room * _FIRST_CHARS_PER_TOKEN)
        while max_chars >= _MIN_EXCERPT_CHARS:
            part = _at_a_word(excerpt(text, terms, max_chars).text, max_chars)
            missing = len(text) - len(part)
            receipt = f"[truncated: {missing} of {len(text)} characters of this page are not shown]"
            missing_lines = text.count("\n") - part.count("\n")
            shorter = page._replace(text=f"{part}\n{receipt}", trim=Trim(page.id, missing_lines, missing))
            if cost(shorter) <= room:
                return Trimmed(shorter)
            max_chars = int(max_chars * _SHRINK_FACTOR)
        return None

    return trim


def _checked_source(name: str, source: object) -> None:
    if not isinstance(source, SourceDocument):
        raise InvalidInput(name, source, "must be a SourceDocument")


def _at_a_word(text: str, max_chars: int) -> str:
    """The first `most` characters of the text, cut at the end of a word."""
    if len(text) <= max_chars:
        return text.rstrip()
    cut = text[:max_chars]
    return (cut[: max(cut.rfind(" "), cut.rfind("\n"))] if re.search(r"\s", cut.strip()) else cut).rstrip()


def _name(hit: PageHit) -> str:
    """The id of a page in the ledger: `reports/q3.pdf#page-3`, with the document's id if the path is unknown.

    A note has the id of its block.
    """
    metadata = hit.get("metadata") or {}
    if "block_id" in metadata:
        return str(metadata["block_id"])
    path = str(metadata.get("source_path") or hit["doc_id"])
    return f"{path}#{page_words(path, hit['page']).replace(' ', '-')}"


def _checked(i: int, result: Mapping[str, Any]) -> tuple[tuple[str, int], float]:
    """The key (document, page) and the score of a result; `InvalidInput` for a missing or wrong field."""
    try:
        doc_id, page, score = result["doc_id"], result["page"], result["score"]
    except (KeyError, TypeError):
        raise InvalidInput(f"results[{i}]", result, "must have doc_id, page and score") from None
    if not isinstance(doc_id, str) or isinstance(page, bool) or not isinstance(page, Integral):
        raise InvalidInput(f"results[{i}]", (doc_id, page), "doc_id must be text, and page must be a whole number")
    if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
        raise InvalidInput(f"results[{i}].score", score, "must be a number")
    return (doc_id, int(page)), float(score)


@cache
def _threads() -> ThreadPoolExecutor:
    """A thread pool large enough for the pages of a context; the event loop's pool may have as few as five."""
    return ThreadPoolExecutor(_FETCH_THREADS, "satchel-research")


async def _answered(ask: Callable[..., T | Awaitable[T]], *args: Any, **more: Any) -> T:
    """Call a blocking or an async port, the blocking port in a thread."""
    if inspect.iscoroutinefunction(ask):
        return cast("T", await ask(*args, **more))
    answer = await asyncio.get_running_loop().run_in_executor(_threads(), partial(ask, *args, **more))
    return cast("T", await answer if inspect.isawaitable(answer) else answer)
