"""What a client finds for a question, in the shape that retrievers of frameworks give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from satchel.errors import InvalidOption
from satchel.models.checks import as_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.models.context import Context
    from satchel.models.search import SearchResult


class Asked(Protocol):
    """What a retriever needs of a client."""

    @property
    def search(self) -> Callable[..., SearchResult]:
        """Finds the hits for a question."""
        ...

    @property
    def build(self) -> Callable[..., Context]:
        """Builds the context for a question."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPiece:
    """A piece of text with its place; `number` is its citation number in a context, and 0 for a hit of a search."""

    id: str
    text: str
    path: str
    first_line: int | None
    last_line: int | None
    relevance: float
    name: str
    page: int | None
    number: int = 0

    def metadata(self) -> dict[str, Any]:
        """The known facts under the names that `from_langchain` and `from_llamaindex` read."""
        facts = {
            "id": self.id,
            "file_path": self.path,
            "source": self.path or self.name,
            "title": self.name,
            "start_line": self.first_line,
            "end_line": self.last_line,
            "page_label": str(self.page) if self.page else None,
            "relevance_score": self.relevance,
            "number": self.number or None,
        }
        return {name: value for name, value in facts.items() if value not in (None, "")}


def pieces_for(
    client: Asked, question: str, *, k: int, token_budget: int | None = None, user: str | None = None
) -> list[FoundPiece]:
    """At most `k` pieces: of a context within the token budget, or else the hits of a search."""
    as_count(InvalidOption, "k", k, 1)
    asker: dict[str, Any] = {"user": user} if user else {}
    if token_budget is None:
        hits = client.search(question, top_k=k, **asker).hits
        return [
            FoundPiece(
                id=hit.id,
                text=hit.content,
                path=hit.path,
                first_line=hit.start_line,
                last_line=hit.end_line,
                relevance=hit.relevance,
                name=hit.title,
                page=hit.page,
            )
            for hit in hits
        ]
    context = client.build(question, token_budget=token_budget, **asker)
    return [
        FoundPiece(
            id=source.id,
            text=source.text,
            path=source.path or "",
            first_line=source.line,
            last_line=source.end_line,
            relevance=source.relevance,
            name=getattr(source, "name", ""),
            page=source.page,
            number=source.number,
        )
        for source in context.sources[:k]
    ]
