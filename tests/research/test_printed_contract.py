"""A client with nothing but what S3 prints: `get_document_markdown` and `visual_collection.get`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from satchel.errors import InvalidOption, UnknownPage
from satchel.ports.page_library import PageHit
from satchel.research.builder import ContextBuilder

TEXT = "<!-- page 1 -->\nThe harbor.\n<!-- page 2 -->\nThe tide comes at nine."
METADATA = {"filename": "tides.pdf", "extension": "pdf", "thumb_path": "t/2.jpg", "timestamp": "2025-10-17"}


class VisualCollection:
    def get(self, where: dict[str, Any], include: list[str]) -> dict[str, Any]:
        assert include == ["metadatas"]
        (first, second) = where["$and"]
        known = (first["doc_id"]["$eq"], second["page"]["$eq"]) in {("tides", 1), ("tides", 2)}
        return {"ids": ["v1"], "metadatas": [METADATA]} if known else {"ids": [], "metadatas": []}


class PrintedClient:
    visual_collection = VisualCollection()

    async def get_document_markdown(self, doc_id: str) -> str | None:
        return TEXT if doc_id == "tides" else None


class Search:
    async def search(self, query: str, num_results: int = 10, search_mode: str = "hybrid") -> list[PageHit]:
        del query, num_results, search_mode
        return [{"doc_id": "tides", "page": 2, "score": 0.9, "metadata": {"extension": "pdf"}}]  # type: ignore[typeddict-item]


def builder(client: object = None) -> ContextBuilder:
    return ContextBuilder(Search(), client or PrintedClient())  # type: ignore[arg-type]


@pytest.mark.requirement("S3.builder.dependencies")
def test_a_context_is_built_from_it() -> None:
    context = asyncio.run(builder().build_context("when does the tide come"))
    assert context.formatted_text == "[Document 1: tides.pdf, Page 2]\nThe tide comes at nine."
    assert context.sources[0].thumbnail_path == "t/2.jpg"


def test_the_metadata_of_a_page_come_from_the_visual_collection() -> None:
    source = asyncio.run(builder().get_source_metadata("tides", 2))
    assert (source.filename, source.extension, source.timestamp) == ("tides.pdf", "pdf", "2025-10-17")
    assert source.markdown_content == "The tide comes at nine."
    with pytest.raises(UnknownPage):
        asyncio.run(builder().get_source_metadata("tides", 9))


def test_a_client_with_less_is_told_what_is_missing() -> None:
    class Nothing:
        async def get_document_markdown(self, doc_id: str) -> str:
            return doc_id

    with pytest.raises(InvalidOption, match="visual_collection with get"):
        asyncio.run(builder(Nothing()).get_source_metadata("tides", 2))
