"""Other libraries' hits, with the real libraries."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

from satchel import EntityResult, KnowledgeChunk, assemble, from_langchain, from_llamaindex
from satchel.errors import InvalidHit, InvalidInput, InvalidOption
from satchel.integrations.frameworks.retriever_hits import hit_from_json, hits_from_bytes
from satchel.integrations.frameworks.scores import ScoreKind, relevances


class TestLangChain:
    def test_documents(self) -> None:
        document = Document(
            page_content="def f(): ...",
            metadata={"source": "src/f.py", "start_line": 3, "end_line": 3, "language": "python", "title": "f"},
            id="doc-1",
        )
        (chunk,) = from_langchain([document])
        assert chunk == KnowledgeChunk(
            "def f(): ...",
            file_path="src/f.py",
            start_line=3,
            end_line=3,
            language="python",
            id="doc-1",
            name="f",
            metadata=document.metadata,
        )

    def test_documents_with_scores(self) -> None:
        document = Document(page_content="x", metadata={"source": "a"})
        assert from_langchain([(document, 0.25)])[0].relevance == 0.25
        assert from_langchain([(document, 3.0)], scores="distance")[0].relevance == 0.25
        ranked = from_langchain([(document, 17.0), (document, 9.0), (document, 8.0)], scores=ScoreKind.RANK)
        assert [chunk.relevance for chunk in ranked] == [1.0, 0.75, 0.5]

    def test_a_score_that_is_no_relevance_says_what_to_do(self) -> None:
        with pytest.raises(InvalidHit, match="any other"):
            from_langchain([(Document(page_content="x"), 12.3)])
        with pytest.raises(InvalidOption, match="relevance, cosine, distance, rank"):
            from_langchain([], scores="dist")

    def test_metadata_of_many_kinds_of_loader(self) -> None:
        document = Document(
            page_content="x", metadata={"path": "p", "loc": {"lines": {"from": 2, "to": 4}}, "score": 0.5}
        )
        (chunk,) = from_langchain([document])
        assert (chunk.file_path, chunk.start_line, chunk.end_line, chunk.relevance) == ("p", 2, 4, 0.5)

    def test_something_else_is_refused_by_place(self) -> None:
        with pytest.raises(InvalidHit, match=r"documents\[1\]"):
            from_langchain([Document(page_content="x"), "text"])

    def test_the_result_can_be_assembled(self) -> None:
        documents = [Document(page_content=f"text {i}", metadata={"source": f"{i}.md"}) for i in range(3)]
        assert assemble(from_langchain(documents)).chunks_included == 3


class TestLlamaIndex:
    def test_nodes_with_scores(self) -> None:
        node = TextNode(
            text="def f(): ...", id_="n1", metadata={"file_path": "src/f.py", "last_modified_date": "2026-11-01"}
        )
        (chunk,) = from_llamaindex([NodeWithScore(node=node, score=0.7)])
        assert (chunk.content, chunk.file_path, chunk.relevance, chunk.id) == ("def f(): ...", "src/f.py", 0.7, "n1")
        assert chunk.last_modified == datetime(2026, 11, 1)

    def test_plain_nodes_and_missing_scores(self) -> None:
        node = TextNode(text="x")
        assert from_llamaindex([node])[0].relevance == 1.0
        assert from_llamaindex([NodeWithScore(node=node, score=None)])[0].relevance == 1.0

    def test_something_else_is_refused_by_place(self) -> None:
        with pytest.raises(InvalidHit, match=r"nodes\[0\]"):
            from_llamaindex([{"text": "x"}])


def test_neither_library_is_needed_to_import_the_adapters() -> None:
    code = (
        "import sys; sys.modules['langchain_core'] = sys.modules['llama_index'] = None\n"
        "from satchel import from_langchain, from_llamaindex\n"
        "class D: page_content = 'x'; metadata = {}\n"
        "assert from_langchain([D()])[0].content == 'x'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scores_are_read_as_the_caller_says() -> None:
    assert relevances([0.0, 1.0, None], ScoreKind.DISTANCE) == [1.0, 0.5, 1.0]
    assert relevances([1.0, 0.0, -1.0, 1.0000002], ScoreKind.COSINE) == [1.0, 0.5, 0.0, 1.0]
    assert relevances([], ScoreKind.RANK) == []
    assert relevances([5.0], ScoreKind.RANK) == [1.0]
    with pytest.raises(InvalidHit, match="distance"):
        relevances([-1.0], ScoreKind.DISTANCE)
    with pytest.raises(InvalidHit, match="not a relevance"):
        relevances([float("nan")], ScoreKind.RELEVANCE)


class TestJson:
    def test_a_chunk_by_any_name(self) -> None:
        raw = {"text": "x", "file": "a.py", "startLine": 1, "endLine": 2, "score": 0.5, "lang": "python", "id": 7}
        assert hit_from_json(raw, "hits[0]") == KnowledgeChunk(
            "x", file_path="a.py", start_line=1, end_line=2, relevance=0.5, language="python", id="7"
        )

    def test_a_document_with_its_score(self) -> None:
        hit = hit_from_json([{"page_content": "x", "metadata": {"source": "a.py"}}, 0.4], "hits[0]")
        assert isinstance(hit, KnowledgeChunk)
        assert (hit.relevance, hit.language) == (0.4, "python")

    def test_langchains_own_json(self) -> None:
        raw = {"page_content": "x", "metadata": {"source": "a.md", "start_line": 4, "end_line": 4}}
        hit = hit_from_json(raw, "hits[0]")
        assert isinstance(hit, KnowledgeChunk)
        assert (hit.file_path, hit.start_line) == ("a.md", 4)

    def test_entities(self) -> None:
        nested = {"entityId": "e", "score": 0.4, "entity": {"name": "f", "type": "function", "filePath": "a.py"}}
        flat = {"id": "e", "name": "f", "type": "function", "file": "a.py", "summary": "Does f."}
        for raw in (nested, flat):
            hit = hit_from_json(raw, "hits[0]")
            assert isinstance(hit, EntityResult)
            assert (hit.entity_id, hit.entity.name, hit.entity.file_path) == ("e", "f", "a.py")

    @pytest.mark.parametrize(
        ("raw", "field"),
        [
            ({}, "hits[3].content"),
            ({"content": None}, "hits[3].content"),
            ({"content": 5}, "hits[3].content"),
            ({"content": "x", "score": "high"}, "hits[3].relevance"),
            ({"content": "x", "start_line": 3}, "hits[3].end_line"),
            ({"content": "x", "file": ["a"]}, "hits[3].file_path"),
            ({"content": "x", "last_modified": "yesterday"}, "hits[3].last_modified"),
            ({"summary": "x"}, "hits[3].content"),
            ({"entity": {"type": "function"}}, "hits[3].name"),
            ({"entity": 3}, "hits[3].entity"),
            ("text", "hits[3]"),
        ],
    )
    def test_a_bad_hit_is_named_by_place_and_field(self, raw: Any, field: str) -> None:
        with pytest.raises(InvalidHit) as raised:
            hit_from_json(raw, "hits[3]")
        assert raised.value.field == field

    def test_lists_objects_and_lines(self) -> None:
        assert hits_from_bytes(b'[{"content": "x"}]') == [{"content": "x"}]
        assert hits_from_bytes(b'{"hits": [1]}') == [1]
        assert hits_from_bytes(b'{"content": "x"}') == [{"content": "x"}]
        assert hits_from_bytes(b'\xef\xbb\xbf{"a": 1}\n\n{"b": 2}\n') == [{"a": 1}, {"b": 2}]
        assert hits_from_bytes(b"  \n") == []

    def test_bytes_that_are_not_utf8_come_through(self) -> None:
        (raw,) = hits_from_bytes(b'[{"content": "caf\xe9"}]')
        assert raw["content"] == "caf\udce9"

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"{bad", "line 1"),
            (b'{"a":1}\n{b', "line 2"),
            (b"3", "list of hits"),
            (b"[" * 200_000, "nested too deeply"),
        ],
    )
    def test_what_is_no_json_says_where(self, data: bytes, says: str) -> None:
        with pytest.raises(InvalidInput, match=says):
            hits_from_bytes(data)
