"""LlamaIndex's nodes as chunks. LlamaIndex itself is not imported: anything shaped like its nodes will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidHit
from satchel.integrations.frameworks.foreign import Foreign, chunks_from
from satchel.integrations.frameworks.scores import ScoreKind, score_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from satchel.models.chunk import KnowledgeChunk


def from_llamaindex(nodes: Iterable[Any], *, scores: ScoreKind | str = ScoreKind.RELEVANCE) -> list[KnowledgeChunk]:
    """A chunk for each `NodeWithScore` as a retriever gives them, or for each plain node."""
    return chunks_from([_read(i, given) for i, given in enumerate(nodes)], score_kind(scores))


def _read(index: int, given: Any) -> Foreign:
    node = getattr(given, "node", given)
    get_content = getattr(node, "get_content", None)
    text = get_content() if callable(get_content) else None
    if not isinstance(text, str):
        raise InvalidHit(f"nodes[{index}]", given, "must be a LlamaIndex NodeWithScore or a node with text")
    metadata = dict(getattr(node, "metadata", None) or {})
    return Foreign(text, metadata, getattr(given, "score", None), getattr(node, "node_id", None))
