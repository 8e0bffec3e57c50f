"""Vectors from any endpoint with OpenAI's embeddings protocol.

Texts are sent in batches; `satchel.integrations.openai.endpoint` retries them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidOption
from satchel.http_client import HttpProblem
from satchel.integrations.openai.endpoint import OpenAIEndpoint
from satchel.text.visible import replace_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A batch of 128 vectors of 4,096 numbers as JSON has about 12 MB; the limit leaves room for larger batches.
_MAX_ANSWER_BYTES: Final = 256_000_000
_SMALLEST_NORM: Final = 1e-12  # a row of zeros stays one, instead of being divided by its length of 0
# OpenAI takes at most 300,000 tokens in a request; code and English have more than two characters in a token.
_MAX_REQUEST_CHARS: Final = 600_000

_HINTS: Final = {
    0: " (is it running? SATCHEL_EMBEDDER_URL sets the URL; --embedder static needs no endpoint)",
    401: " (is the key right? SATCHEL_EMBEDDER_KEY or OPENAI_API_KEY)",
    403: " (may this key use this model?)",
    404: " (is the model's name right, and does the URL end where /embeddings begins, as …/v1 does?)",
}


class OpenAIEmbedder:
    """Embedder behind an OpenAI-compatible endpoint; `url` is the endpoint's base (…/v1)."""

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        key: str = "",
        batch_size: int = 128,
        max_chars: int = 24_000,
        tries: int = 6,
        timeout: float = 60.0,
        requests_per_minute: float = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        for field, number in (("batch_size", batch_size), ("max_chars", max_chars)):
            if number < 1:
                raise InvalidOption(field, number, "must be at least 1")
        self.name = f"openai:{model}"
        self._model = model
        self._batch_size = batch_size
        self._max_chars = max_chars
        self._pause = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._sleep = sleep
        self._last_request = -math.inf
        self._dimensions = 0
        try:
            self._endpoint = OpenAIEndpoint(
                "embeddings",
                url=url,
                key=key,
                timeout=timeout,
                tries=tries,
                hints=_HINTS,
                sleep=sleep,
                before_each_try=self._wait_for_rate_limit,
            )
        except HttpProblem as problem:
            raise EmbedderUnavailable(model, problem.reason) from None

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector, from a single request to the endpoint."""
        if not self._dimensions:
            self.embed_query("length")
        return self._dimensions

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self.embed_texts([text])[0]
        return row

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, requested in batches."""
        rows = [self._embed(batch) for batch in self._batches(texts)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        chars = 0
        for text in texts:
            # OpenAI rejects an empty input, and JSON parsers reject a lone surrogate.
            clean = replace_surrogates(text[: self._max_chars]) or " "
            if batch and (len(batch) == self._batch_size or chars + len(clean) > _MAX_REQUEST_CHARS):
                yield batch
                batch, chars = [], 0
            batch.append(clean)
            chars += len(clean)
        if batch:
            yield batch

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        request = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            data = self._endpoint.ask(request, max_bytes=_MAX_ANSWER_BYTES)
        except HttpProblem as problem:
            raise EmbedderUnavailable(self._model, problem.reason) from None
        return self._vectors(data, len(texts))

    def _wait_for_rate_limit(self) -> None:
        wait = self._last_request + self._pause - time.monotonic()
        if self._pause and wait > 0:
            self._sleep(wait)
        self._last_request = time.monotonic()

    def _vectors(self, data: bytes, expected: int) -> NDArray[np.float32]:
        """The vectors of an answer, each of length 1; raises EmbedderUnavailable unless every text has a vector."""
        try:
            entries = json.loads(data)["data"]
            if len(entries) != expected:
                raise ValueError(f"{len(entries)} rows for {expected} texts")
            rows = np.array([entry["embedding"] for entry in _in_order(entries)], np.float64)
            self._check(rows)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            problem = f"the endpoint's answer is invalid ({self._endpoint.client.printable(repr(error))})"
            raise EmbedderUnavailable(self._model, problem) from None
        self._dimensions = rows.shape[1]
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, _SMALLEST_NORM), np.float32)

    def _check(self, rows: NDArray[np.float64]) -> None:
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"vectors of shape {rows.shape}")
        if self._dimensions and rows.shape[1] != self._dimensions:
            raise ValueError(f"vectors of {rows.shape[1]} numbers, and of {self._dimensions} before")
        if not np.isfinite(rows).all():
            raise ValueError("vectors with NaN or infinite values")


def _in_order(entries: list[Any]) -> list[Any]:
    """The rows in the order of the texts: sorted by `index`, or unchanged if the endpoint sends no numbers."""
    places = [entry.get("index") for entry in entries]
    if len(set(places)) == 1:
        return entries
    if sorted(places) != list(range(len(entries))):
        raise ValueError(f"its rows are numbered {places[:10]}")
    return sorted(entries, key=lambda entry: int(entry["index"]))
