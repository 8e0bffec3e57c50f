"""A Haystack component over a Satchel client: a retriever for pipelines.

from satchel.integrations.frameworks.haystack_retriever import SatchelRetriever

pipeline.add_component("retriever", SatchelRetriever("path/to/folder", satchel.open, top_k=5))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import deserialize_callable, serialize_callable

from satchel.integrations.frameworks.found_pieces import pieces_for


@component
class SatchelRetriever:
    """The best pieces for a query as documents, with path, lines and score.

    With a token budget the documents are the pieces of a context within it; without one the hits of a search. Given are
    an open client, or a folder or a server's address with what opens it; only the latter can be saved with a pipeline.
    """

    def __init__(
        self,
        client: Any,
        opens: Callable[[str], Any] | None = None,
        *,
        top_k: int = 10,
        token_budget: int | None = None,
        user: str | None = None,
    ) -> None:
        if isinstance(client, str) and opens is None:
            raise TypeError("a folder or an address needs what opens it: SatchelRetriever(folder, satchel.open)")
        self.client = client
        self.opens = opens
        self.top_k = top_k
        self.token_budget = token_budget
        self.user = user
        self._opened: Any = None if isinstance(client, str) else client

    def warm_up(self) -> None:
        """Open the folder or the server."""
        if self._opened is None and self.opens is not None:
            self._opened = self.opens(self.client)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Find the documents for a query."""
        self.warm_up()
        pieces = pieces_for(self._opened, query, k=top_k or self.top_k, token_budget=self.token_budget, user=self.user)
        documents = [
            Document(id=piece.id, content=piece.text, meta=piece.metadata(), score=piece.relevance) for piece in pieces
        ]
        return {"documents": documents}

    def to_dict(self) -> dict[str, Any]:
        """The component for a pipeline's file."""
        if self.opens is None:
            raise TypeError("a SatchelRetriever with an open client cannot be serialized: give the folder or the URL")
        asked = {"top_k": self.top_k, "token_budget": self.token_budget, "user": self.user}
        described: dict[str, Any] = default_to_dict(
            self, client=self.client, opens=serialize_callable(self.opens), **asked
        )
        return described

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SatchelRetriever:
        """The component from a pipeline's file."""
        given = data["init_parameters"]
        given = given | {"opens": deserialize_callable(given["opens"])}
        made: SatchelRetriever = default_from_dict(cls, data | {"init_parameters": given})
        return made
