"""LangChain's documents as chunks. LangChain itself is not imported: anything shaped like its documents will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidHit
from satchel.integrations.frameworks.foreign import Foreign, chunks_from
from satchel.integrations.frameworks.scores import ScoreKind, score_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from satchel.models.chunk import KnowledgeChunk


def from_langchain(documents: Iterable[Any], *, scores: ScoreKind | str = ScoreKind.RELEVANCE) -> list[KnowledgeChunk]:
    """A chunk for each `Document`, or for each `(Document, score)` as `similarity_search_with_score` gives them."""
    return chunks_from([_read(i, given) for i, given in enumerate(documents)], score_kind(scores))


def _read(index: int, given: Any) -> Foreign:
    document, score = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    text = getattr(document, "page_content", None)
    if not isinstance(text, str):
        raise InvalidHit(f"documents[{index}]", given, "must be a LangChain Document or a (Document, score) pair")
    metadata = dict(getattr(document, "metadata", None) or {})
    if score is None:
        score = metadata.get("relevance_score", metadata.get("score"))
    return Foreign(text, metadata, score, getattr(document, "id", None))
