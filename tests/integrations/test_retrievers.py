"""The retrievers for LangChain and LlamaIndex, with the real packages and LangChain's own standard tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_tests.integration_tests import RetrieversIntegrationTests
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import satchel
from satchel import ContextBuildOptions, assemble, from_langchain, from_llamaindex
from satchel.errors import InvalidOption
from satchel.integrations.frameworks.langchain_retriever import SatchelRetriever
from satchel.integrations.frameworks.llamaindex_retriever import SatchelNodeRetriever, SatchelPacker
from tests.support.oracle import true_count

QUESTION = "how is a ship moored"


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[satchel.Satchel]:
    folder = tmp_path_factory.mktemp("harbor") / "work"
    folder.mkdir()
    for number in range(6):
        body = "".join(f"    rope_{line} = ship.throw(rope, bollard_{number}, {line})\n" for line in range(8))
        (folder / f"pier_{number}.py").write_text(f'def moor_{number}(ship):\n    """Moor a ship."""\n{body}')
    (folder / "guide.md").write_text("# Mooring\n\nA ship is moored with four ropes.\n")
    with satchel.open(folder, index_dir=folder.parent / "index") as client:
        yield client


class TestLangChainsOwnTests(RetrieversIntegrationTests):
    """What LangChain asks of every retriever."""

    @pytest.fixture(autouse=True)
    def _with_client(self, harbor: satchel.Satchel) -> None:
        type(self).client = harbor  # type: ignore[attr-defined]

    @property
    def retriever_constructor(self) -> type[SatchelRetriever]:
        return SatchelRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client, "k": 3}  # type: ignore[attr-defined]

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def test_a_document_says_where_it_is_from(harbor: satchel.Satchel) -> None:
    documents = SatchelRetriever(client=harbor, k=2).invoke(QUESTION)
    first = documents[0]
    assert isinstance(first, Document)
    hit = harbor.search(QUESTION, top_k=2).hits[0]
    assert first.id == first.metadata["id"] == hit.id
    assert (first.metadata["file_path"], first.metadata["start_line"]) == (hit.path, hit.start_line)
    assert first.page_content == hit.content


def test_with_a_budget_the_documents_are_the_pieces_of_a_context(harbor: satchel.Satchel) -> None:
    documents = SatchelRetriever(client=harbor, token_budget=400).invoke(QUESTION)
    assert [document.metadata["number"] for document in documents] == list(range(1, len(documents) + 1))
    assert sum(true_count(document.page_content, "o200k_base") for document in documents) <= 400


def test_what_goes_out_comes_back_in(harbor: satchel.Satchel) -> None:
    documents = SatchelRetriever(client=harbor, k=3).invoke(QUESTION)
    nodes = SatchelNodeRetriever(harbor, k=3).retrieve(QUESTION)
    for chunks in (from_langchain(documents), from_llamaindex(nodes)):
        assert {chunk.file_path for chunk in chunks} == {document.metadata["file_path"] for document in documents}
        assert "### " in assemble(chunks, ContextBuildOptions(min_relevance=0)).context


def test_an_unknown_option_is_refused(harbor: satchel.Satchel) -> None:
    with pytest.raises(InvalidOption, match="is unknown"):
        SatchelRetriever(client=harbor).invoke(QUESTION, top_p=3)


def test_llamaindex_gets_nodes_with_scores(harbor: satchel.Satchel) -> None:
    nodes = SatchelNodeRetriever(harbor, k=2).retrieve(QUESTION)
    assert len(nodes) == 2
    assert nodes[0].score == harbor.search(QUESTION, top_k=2).hits[0].relevance
    assert nodes[0].node.metadata["file_path"]


def test_nodes_of_any_retriever_are_packed_into_a_budget() -> None:
    words = "The ship is moored at the pier with four ropes. "
    nodes = [
        NodeWithScore(
            node=TextNode(id_=f"n{i}", text=f"{i} {words * 12}", metadata={"file_path": f"{i}.md"}), score=9 - i
        )
        for i in range(8)
    ]
    kept = SatchelPacker(token_budget=400).postprocess_nodes(nodes, QueryBundle(QUESTION))
    assert 1 < len(kept) < 8
    assert sum(true_count(node.node.get_content(), "o200k_base") for node in kept) <= 400
    assert [node.node.metadata["number"] for node in kept] == list(range(1, len(kept) + 1))
    assert kept[0].node.node_id == "n0"
    assert all("trimmed" in node.node.metadata for node in kept if len(node.node.get_content()) < len(words) * 12)
    assert SatchelPacker().postprocess_nodes([]) == []
