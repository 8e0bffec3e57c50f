"""The sentence-transformers adapter, on a tiny model made on the spot."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel import ContextBuildOptions, KnowledgeChunk, assemble
from satchel.integrations.embedders.model_embedders import SentenceTransformersCrossEncoder
from satchel.models.options import RerankingStrategy


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "retry", "backoff", "login", "page", "the"]
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_a_real_cross_encoder_loads_scores_and_reranks(model_folder: Path) -> None:
    encoder = SentenceTransformersCrossEncoder(str(model_folder))
    scores = encoder.score("retry backoff", ["the retry", "login page", "the retry"])
    assert all(0 < score < 1 for score in scores)
    assert scores[0] == pytest.approx(scores[2], abs=1e-5)
    assert scores[0] != pytest.approx(scores[1], abs=1e-7)
    assert encoder.score("retry", []) == []
    hits = [KnowledgeChunk("the retry", file_path="a"), KnowledgeChunk("login page", file_path="b")]
    options = ContextBuildOptions(reranking=RerankingStrategy.CROSS_ENCODER)
    result = assemble(hits, options, query="retry backoff", cross_encoder=encoder)
    best = max(result.ledger, key=lambda entry: entry.score)
    assert result.sources[0].entity_id == best.id
