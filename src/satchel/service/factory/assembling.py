"""JSON input from callers: hits to assemble into a context, and contexts to check answers against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from satchel.assembly.citations.verify import citable_sources, verify
from satchel.errors import InvalidHit
from satchel.integrations.frameworks.json_context import sources_from_document, sources_from_json
from satchel.integrations.frameworks.scores import ScoreKind

if TYPE_CHECKING:
    from satchel.models.chunk import EntityResult, KnowledgeChunk
    from satchel.models.options import ContextBuildOptions
    from satchel.models.results import ContextBuildResult

__all__ = [
    "ScoreKind",
    "assemble_hits",
    "citable_sources",
    "read_hits",
    "sources_from_document",
    "sources_from_json",
    "verify",
]


def read_hits(
    given: bytes | list[Any], scores: str, *, name: str = "hits", skip: Callable[[InvalidHit], None] | None = None
) -> Iterator[KnowledgeChunk | EntityResult]:
    """Read hits from JSON, JSON lines or a list of objects; `skip` receives the error of each invalid hit."""
    from satchel.integrations.frameworks.retriever_hits import hit_from_json, hits_from_bytes, with_relevances

    objects = hits_from_bytes(given) if isinstance(given, bytes) else given
    for i, hit in enumerate(with_relevances(objects, ScoreKind(scores))):
        try:
            yield hit_from_json(hit, f"{name}[{i}]")
        except InvalidHit as error:
            if skip is None:
                raise
            skip(error)


def assemble_hits(
    hits: list[KnowledgeChunk | EntityResult], options: ContextBuildOptions, *, query: str | None
) -> ContextBuildResult:
    """Assemble a context from hits."""
    from satchel.assembly.assemble import assemble

    return assemble(hits, options, query=query)
