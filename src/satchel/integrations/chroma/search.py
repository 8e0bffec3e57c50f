"""Search in the two collections: two stages in each, then fusion of both.

*Visual.* Chroma finds the pages whose pooled vectors are nearest; those are scored again exactly (MaxSim) with the
vectors that each page keeps.
*Text.* Chroma finds the chunks whose vectors are nearest, and those that hold the question's rarer words; these are
scored again by their words (BM25) and their vectors. A page is as good as its best chunk.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import InvalidInput
from satchel.integrations.chroma.records import vectors_in
from satchel.models.document import PageMetadata
from satchel.ports.page_library import PageHit, PageHits, SearchMode
from satchel.retrieval.late_interaction import first_stage_questions, max_sim, unit_rows
from satchel.text.words import STOP_WORDS, stem, terms, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

CANDIDATES: Final = 100
"""Of each first stage: 100 of 1,000 clustered pages hold 0.99 of the exact ten best."""

# Each is a nearest-neighbour query; the exact score (MaxSim) uses all vectors of the question.
_MAX_QUESTION_VECTORS: Final = 16
_MAX_QUESTION_WORDS: Final = 10  # each word costs a lookup (16 ms in 10,000 chunks, docs/chroma.md)
# A word in more chunks than this selects too little: its chunks are found by their vectors only.
_COMMON_WORD_CHUNKS: Final = 200
_MAX_LEXICAL_CHUNKS: Final = 400  # bounds the chunks that are fetched and scored for their words alone

_BM25_K1: Final = 1.2  # the usual value for BM25's term saturation
_BM25_B: Final = 0.75  # the usual value for BM25's length normalisation
WORDS_WEIGHT: Final = 0.85
"""Share of BM25 in a chunk's score, the rest is vector similarity: a static embedder is the weaker evidence.

With both weights, on pages cut from the development prose (150 questions, 685 pages) recall@5 is 0.92, as is that of
BM25 over pages; on FinanceBench (15 questions, 1,147 pages) recall@10 is 0.27 against 0.07. Fusing ranks instead gives
0.77 to 0.91 on the prose.
"""
VISUAL_WEIGHT: Final = 0.35
"""Share of the visual score in a page's score in hybrid search: the look of a page supports its text."""

Scored = dict[tuple[str, int], tuple[float, PageMetadata]]


def search_visual(
    collection: Any, question: NDArray[np.float32], name: str, num_results: int, notes: list[str]
) -> Scored:
    """The best pages by look: nearest pooled vectors, scored again by MaxSim."""
    asks = first_stage_questions(question)[: 1 + _MAX_QUESTION_VECTORS]
    count = collection.count()
    if not len(asks) or not count:
        return {}
    most = min(count, max(CANDIDATES, 4 * num_results))
    nearest = collection.query(query_embeddings=asks, n_results=most, include=["distances"])
    near = _nearness(nearest["ids"], nearest["distances"])
    candidates = sorted(near, key=lambda page: (-near[page], page))[:most]
    records = collection.get(ids=candidates, include=["uris"])
    uris = dict(zip(records["ids"], records["uris"] or [None] * len(records["ids"]), strict=True))
    vectors = {page: vectors_in(uris.get(page), question.shape[1]) for page in candidates}
    exact = {page: rows for page, rows in vectors.items() if rows is not None}
    scores = dict(zip(exact, max_sim(question, list(exact.values())).tolist(), strict=True))
    pooled_only = [page for page in candidates if page not in exact]
    if pooled_only:
        notes.append(
            f"{len(pooled_only)} pages have no full vectors of {name}; they were scored by their pooled vector"
        )
        scores.update(_pooled_scores(collection, pooled_only, asks[0]))
    best = sorted((page for page in scores if scores[page] > 0), key=lambda page: (-scores[page], page))
    if not best:
        return {}
    records = collection.get(ids=best[: 2 * num_results + 8], include=["metadatas"])
    return _by_page(records["ids"], records["metadatas"], scores, notes)


def _nearness(ids: Sequence[Sequence[str]], distances: Sequence[Sequence[float]]) -> dict[str, float]:
    """Nearness of each page to the whole question plus to the nearest question vector (unknown: the farthest)."""
    whole = {page: -distance for page, distance in zip(ids[0], distances[0], strict=True)}
    least = min(whole.values(), default=0.0)
    best: dict[str, float] = {}
    for row, far in zip(ids[1:], distances[1:], strict=True):
        for page, distance in zip(row, far, strict=True):
            best[page] = max(best.get(page, -math.inf), -distance)
    worst = min(best.values(), default=0.0)
    return {page: whole.get(page, least) + best.get(page, worst) for page in whole.keys() | best.keys()}


def _pooled_scores(collection: Any, ids: list[str], question: NDArray[np.float32]) -> dict[str, float]:
    records = collection.get(ids=ids, include=["embeddings"])
    cosines = unit_rows(np.asarray(records["embeddings"], np.float32)) @ question
    return dict(zip(records["ids"], np.clip(cosines, 0, 1).tolist(), strict=True))


def search_text(collection: Any, vector: NDArray[np.float32], query: str, num_results: int, notes: list[str]) -> Scored:
    """The best pages by text: BM25 and vector scores of their chunks."""
    count = collection.count()
    if not count:
        return {}
    question = unit_rows(vector[np.newaxis])
    near: list[str] = []
    if question.any():
        most = min(count, max(CANDIDATES, 4 * num_results))
        near = collection.query(query_embeddings=question, n_results=most, include=[])["ids"][0]
    holding = _chunks_with_words(collection, query)
    votes = Counter(chunk for ids in holding.values() if len(ids) <= _COMMON_WORD_CHUNKS for chunk in ids)
    lexical = sorted(votes, key=lambda chunk: (-votes[chunk], chunk))[:_MAX_LEXICAL_CHUNKS]
    candidates = list(dict.fromkeys([*near, *lexical]))
    if not candidates:
        return {}
    records = collection.get(ids=candidates, include=["documents", "metadatas", "embeddings"])
    documents = list(map(_searchable_text, records["documents"], records["metadatas"]))
    spoken = _bm25(documents, {word: len(ids) for word, ids in holding.items()}, count)
    cosines = np.clip(unit_rows(np.asarray(records["embeddings"], np.float32)) @ question[0], 0, 1)
    mixed = WORDS_WEIGHT * spoken + (1 - WORDS_WEIGHT) * cosines if question.any() else spoken
    scores = dict(zip(records["ids"], mixed.tolist(), strict=True))
    return _by_page(records["ids"], records["metadatas"], scores, notes)


def _chunks_with_words(collection: Any, query: str) -> dict[str, list[str]]:
    """Ids of chunks with each stem of the question, up to the limit for a common word."""
    stems = list(dict.fromkeys(stem(word) for word in words(query) if word not in STOP_WORDS))[:_MAX_QUESTION_WORDS]
    return {
        term: collection.get(where_document={"$regex": f"(?i){term}"}, include=[], limit=_COMMON_WORD_CHUNKS + 1)["ids"]
        for term in stems
    }


def _searchable_text(document: str | None, metadata: Mapping[str, Any] | None) -> str:
    """A chunk's text below the file name and section path, because a question may name either."""
    above = [(metadata or {}).get(field) for field in ("filename", "section_path")]
    return "\n".join([*(text for text in above if isinstance(text, str)), document or ""])


def _bm25(documents: Sequence[str], chunks_with: Mapping[str, int], count: int) -> NDArray[np.float32]:
    """BM25 of each text as a share of the highest possible score for the question's terms: 0..1."""
    weights = {term: math.log1p((count - chunks + 0.5) / (chunks + 0.5)) for term, chunks in chunks_with.items()}
    most = sum(weights.values()) * (_BM25_K1 + 1)
    counts = [Counter(terms(text)) for text in documents]
    lengths = np.array([term_counts.total() for term_counts in counts], np.float32)
    usual = float(lengths.mean()) or 1.0
    scores = np.zeros(len(documents), np.float32)
    for i, term_counts in enumerate(counts):
        for term, weight in weights.items():
            if times := term_counts[term]:
                scores[i] += (
                    weight * times * (_BM25_K1 + 1) / (times + _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths[i] / usual))
                )
    return scores / most if most > 0 else scores


def _by_page(ids: Sequence[str], metadatas: Any, scores: Mapping[str, float], notes: list[str]) -> Scored:
    """Each page with the score of the best record; records without a page (doc_id, page) are left out."""
    pages: Scored = {}
    strangers = 0
    for record_id, metadata in zip(ids, metadatas, strict=True):
        try:
            page = PageMetadata.from_mapping(metadata or {})
        except InvalidInput:
            strangers += 1
            continue
        key = (page.doc_id, page.page)
        if key not in pages or scores[record_id] > pages[key][0]:
            pages[key] = (scores[record_id], page)
    if strangers:
        notes.append(f"{strangers} records without a document and page (doc_id, page) were left out")
    return pages


def hits_of(pages: Mapping[SearchMode, Scored], num_results: int, notes: Sequence[str]) -> PageHits:
    """The hits of either or both collections, best first.

    A page's score is its collection's; where both found some, the weighted mean of the two, so that a page found both
    ways is ahead of one found only one way. Its second hit takes only room that no other page wants.
    """
    weights = {SearchMode.VISUAL: VISUAL_WEIGHT, SearchMode.TEXT: 1 - VISUAL_WEIGHT}
    total = sum(weights[mode] for mode in pages if pages[mode]) or 1.0
    shares: dict[tuple[str, int], list[tuple[float, SearchMode]]] = {}
    for mode, scored in pages.items():
        for key, (score, _) in scored.items():
            if score > 0:
                shares.setdefault(key, []).append((weights[mode] / total * score, mode))
    fused = {key: sum(share for share, _ in modes) for key, modes in shares.items()}
    order = sorted(fused, key=lambda key: (-fused[key], key))
    firsts = [(key, max(shares[key])[1]) for key in order]
    seconds = [(key, min(shares[key])[1]) for key in order if len(shares[key]) > 1]
    chosen = [*firsts, *seconds][:num_results]
    hits = [_hit(pages[mode][key][1], fused[key], mode) for key, mode in chosen]
    return PageHits(sorted(hits, key=lambda hit: -hit["score"]), notes)


def _hit(page: PageMetadata, score: float, mode: SearchMode) -> PageHit:
    metadata = {name: value for name, value in asdict(page).items() if name != "full_markdown_compressed"}
    return PageHit(
        doc_id=page.doc_id,
        page=page.page,
        score=min(1.0, max(0.0, score)),
        filename=page.filename,
        metadata={**metadata, "collection": mode.value},
    )
