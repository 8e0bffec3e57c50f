"""For LlamaIndex: a retriever over a Satchel client, and a post-processor that packs any retriever's nodes.

from satchel.integrations.frameworks.llamaindex_retriever import SatchelPacker, SatchelNodeRetriever

engine = RetrieverQueryEngine.from_args(SatchelNodeRetriever(satchel.open(".")), node_postprocessors=[SatchelPacker()])
"""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from satchel.assembly.assemble import assemble
from satchel.integrations.frameworks.found_pieces import Asked, pieces_for
from satchel.integrations.frameworks.retriever_hits import from_llamaindex
from satchel.integrations.frameworks.scores import ScoreKind
from satchel.models.options import ContextBuildOptions, OverflowPolicy


class SatchelNodeRetriever(BaseRetriever):  # type: ignore[misc]
    """The best pieces for a question as nodes, with path, lines and page label in the metadata.

    With a token budget the nodes are the pieces of a context within it; without one, the hits of a search.
    """

    def __init__(
        self, client: Asked, *, k: int = 10, token_budget: int | None = None, user: str | None = None, **more: Any
    ) -> None:
        self._client = client
        self._k = k
        self._token_budget = token_budget
        self._user = user
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        pieces = pieces_for(
            self._client, query_bundle.query_str, k=self._k, token_budget=self._token_budget, user=self._user
        )
        return [
            NodeWithScore(
                node=TextNode(id_=piece.id, text=piece.text, metadata=piece.metadata()), score=piece.relevance
            )
            for piece in pieces
        ]


class SatchelPacker(BaseNodePostprocessor):  # type: ignore[misc]
    """Keeps the nodes that fit into a token budget together, joined where they touch, trimmed where that helps.

    The nodes keep their metadata, with the citation `number` and, for trimmed ones, `trimmed`.
    """

    token_budget: int = Field(default=4000, ge=1)
    model: str | None = Field(default=None, description="Model whose tokens are counted.")
    scores: str = Field(default=ScoreKind.RANK.value, description="What the nodes' scores are.")

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex stores the component."""
        return "SatchelPacker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        options = ContextBuildOptions(
            max_tokens=self.token_budget,
            max_chunks=len(nodes),
            min_relevance=0.0,
            overflow=OverflowPolicy.TRUNCATE,
            include_citations=True,
        )
        hits = from_llamaindex(nodes, scores=self.scores)
        query = query_bundle.query_str if query_bundle else None
        context = assemble(hits, options, query=query, counter=self.model)
        given = {node.node.node_id: node for node in nodes}
        kept = []
        for source in context.sources:
            node = given[source.id]
            metadata = {**node.node.metadata, "number": source.number}
            if source.text != node.node.get_content():
                metadata["trimmed"] = True
            kept.append(
                NodeWithScore(node=TextNode(id_=source.id, text=source.text, metadata=metadata), score=node.score)
            )
        return kept
