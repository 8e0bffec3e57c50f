"""LlamaIndex: SimpleDirectoryReader, a splitter, BM25 and vectors, fused by reciprocal ranks.

`llamaindex_hybrid.py MODEL`
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llama_index.core import Settings, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import CodeSplitter, SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.utils import get_tokenizer
from llama_index.retrievers.bm25 import BM25Retriever

from benchmarks.scoreboard.workers.hosting import Json, Tool, files_below, lines_of, passage, ranked, serve

_RESULTS = 50
_CODE_CHARACTERS = 800
_PROSE_TOKENS, _PROSE_OVERLAP = 128, 16
_LANGUAGES = {
    ".py": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".tsx": "tsx", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".go": "go", ".rs": "rust",
    ".c": "c", ".h": "cpp", ".cc": "cpp", ".cpp": "cpp", ".hpp": "cpp", ".inc": "cpp", ".cs": "csharp", ".rb": "ruby",
    ".rake": "ruby", ".php": "php", ".lua": "lua", ".hs": "haskell", ".ex": "elixir", ".exs": "elixir",
    ".swift": "swift", ".zig": "zig", ".sh": "bash", ".bash": "bash", ".bats": "bash",
}  # fmt: skip


class LocalEmbedding(BaseEmbedding):  # type: ignore[misc]
    """A model2vec folder as LlamaIndex wants its embedders."""

    def __init__(self, folder: str) -> None:
        super().__init__(model_name=folder, embed_batch_size=2048)
        self._model: Any = import_module("model2vec").StaticModel.from_pretrained(folder)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode(texts, max_length=None, use_multiprocessing=False).tolist()
        return vectors

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class LlamaIndex(Tool):
    """CodeSplitter where its parser knows the language, SentenceSplitter for all else."""

    version = version("llama-index-core")

    def __init__(self, model: str) -> None:
        Settings.llm = MockLLM()  # none is asked: num_queries is 1
        Settings.embed_model = LocalEmbedding(model)
        self._prose = SentenceSplitter(chunk_size=_PROSE_TOKENS, chunk_overlap=_PROSE_OVERLAP)
        self._splitters: dict[str, Any] = {}
        self._folder = Path()
        self._texts: dict[str, str] = {}
        self._retriever: Any = None

    def index(self, folder: Path, kind: str) -> None:  # noqa: ARG002
        """Read, split, embed and weigh."""
        self._folder, self._texts = folder, {}
        files = [str(path) for path in files_below(folder)]
        documents = SimpleDirectoryReader(input_files=files, errors="ignore").load_data()
        for document in documents:
            # How the documentation has it: the path helps the search, sizes and dates do not.
            document.metadata = {"file_path": self._relative(document.metadata["file_path"])}
            self._texts[document.id_] = document.text
        nodes = self._split(documents)
        vectors = VectorStoreIndex(nodes).as_retriever(similarity_top_k=_RESULTS)
        words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=_RESULTS)
        self._retriever = QueryFusionRetriever(
            [vectors, words], similarity_top_k=_RESULTS, num_queries=1, mode="reciprocal_rerank", use_async=False
        )

    def ask(self, question: str, budgets: Sequence[int]) -> Json:  # noqa: ARG002
        """What the fusion ranks."""
        return ranked([self._passage(found.node) for found in self._retriever.retrieve(question)])

    def count(self, texts: Sequence[str]) -> list[int | None]:
        """By the tokenizer that LlamaIndex counts with unless told otherwise."""
        tokens = get_tokenizer()
        return [len(tokens(text)) for text in texts]

    def _relative(self, path: str) -> str:
        return Path(path).relative_to(self._folder).as_posix()

    def _split(self, documents: list[Any]) -> list[Any]:
        nodes: list[Any] = []
        for document in documents:
            try:
                made = self._splitter(document).get_nodes_from_documents([document])
            except ValueError:  # a file that the parser does not understand
                made = self._prose.get_nodes_from_documents([document])
            nodes += [node for node in made if node.get_content().strip()]
        return nodes

    def _splitter(self, document: Any) -> Any:
        language = _LANGUAGES.get(Path(document.metadata["file_path"]).suffix.lower())
        if language is None:
            return self._prose
        if language not in self._splitters:
            parser = import_module("tree_sitter_language_pack").get_parser(language)
            self._splitters[language] = CodeSplitter(language=language, max_chars=_CODE_CHARACTERS, parser=parser)
        return self._splitters[language]

    def _passage(self, node: Any) -> Json:
        path, text = node.metadata["file_path"], node.get_content()
        first, last = None, None
        whole = self._texts.get(node.ref_doc_id, "")
        # A Markdown file is read as its sections: their characters are counted from the section's beginning.
        if node.start_char_idx is not None and not path.endswith(".md"):
            first, last = lines_of(whole, node.start_char_idx, len(text))
        return passage(path, first, last, text)


if __name__ == "__main__":
    serve(lambda: LlamaIndex(sys.argv[1]))
