"""A cross-encoder of the sentence-transformers library (the extra `cross-encoder`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class SentenceTransformersCrossEncoder:
    """Scores with a cross-encoder from a folder on disk, or from the hub where the network is allowed."""

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 32) -> None:
        from sentence_transformers import CrossEncoder

        self._model: Any = CrossEncoder(model, device=device)
        self._batch_size = batch_size

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One relevance from 0 to 1 for each text."""
        import torch

        if not texts:
            return []
        # The raw logits: which squashing a model's card asks for varies, and ours must be monotone in 0..1.
        logits = self._model.predict(
            [(query, text) for text in texts],
            batch_size=self._batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )
        return [1 / (1 + math.exp(-max(-60.0, min(60.0, float(logit))))) for logit in logits]
