"""A LangChain retriever over a Satchel client: a folder, several, or a workspace.

from satchel.integrations.frameworks.langchain_retriever import SatchelRetriever

retriever = SatchelRetriever(client=satchel.open("."), k=5)
documents = retriever.invoke("how are retries delayed?")
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from satchel.errors import InvalidOption
from satchel.integrations.frameworks.found_pieces import FoundPiece, pieces_for

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun


class SatchelRetriever(BaseRetriever):
    """The best pieces for a question as documents, with path, lines and relevance in the metadata.

    With a token budget the documents are the pieces of a context within it, each standing on its own; without one they
    are the hits of a search. `user` is the asking user of a client that serves several.
    """

    client: Any
    """A client: `satchel.open(folder)`, or `satchel.connect(url)`."""
    k: int = Field(default=10, ge=1)
    """The most documents."""
    token_budget: int | None = Field(default=None, ge=1)
    user: str | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, **options: Any
    ) -> list[Document]:
        del run_manager  # the caller of LangChain is told of the run's beginning and end, and there is nothing between
        k = options.pop("k", self.k)
        budget = options.pop("token_budget", self.token_budget)
        if options:
            raise InvalidOption("options", ", ".join(options), "is unknown; k and token_budget may be given")
        return [_document(piece) for piece in pieces_for(self.client, query, k=k, token_budget=budget, user=self.user)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun | None = None, **options: Any
    ) -> list[Document]:
        del run_manager
        return await asyncio.to_thread(self._get_relevant_documents, query, **options)


def _document(piece: FoundPiece) -> Document:
    return Document(page_content=piece.text, metadata=piece.metadata(), id=piece.id)
