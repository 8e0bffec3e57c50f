"""Vectors from any endpoint that speaks OpenAI's embeddings protocol.

Texts go out in batches. A busy or failing server is asked again, later and later, for as long as it says or as
patience lasts; what cannot get better (a wrong key, an unknown model) is an error at once. Redirects are not
followed: the key and your code go to the address that you named, and nowhere else.
"""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_WORTH_ANOTHER_TRY: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT: Final = 60.0
_MAX_ANSWER_BYTES: Final = 256_000_000


class OpenAIEmbedder:
    """`url` is the endpoint's base (…/v1)."""

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
        base = (url or _DEFAULT_URL).rstrip("/")
        if not base.startswith(("https://", "http://")):
            raise EmbedderUnavailable(model, f"the address {base!r} must begin with https:// or http://")
        self._model = model
        self._url = f"{base}/embeddings"
        self._key = key
        self._batch_size = batch_size
        self._max_chars = max_chars
        self._tries = tries
        self._timeout = timeout
        self._pause = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._sleep = sleep
        self._last = 0.0
        self._dimensions = 0
        self._opener = urllib.request.build_opener(_NoRedirects)

    @property
    def name(self) -> str:
        """The endpoint's model."""
        return f"openai:{self._model}"

    @property
    def dimensions(self) -> int:
        """How long the vectors are; the endpoint is asked once."""
        if not self._dimensions:
            self.embed_query("length")
        return self._dimensions

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question."""
        row: NDArray[np.float32] = self.embed_texts([text])[0]
        return row

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, batch by batch."""
        rows = [
            self._ask([text[: self._max_chars] or " " for text in texts[i : i + self._batch_size]])
            for i in range(0, len(texts), self._batch_size)
        ]
        if not rows:
            return np.zeros((0, self._dimensions), np.float32)
        return np.concatenate(rows)

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        body = json.dumps({"model": self._model, "input": clean, "encoding_format": "float"}).encode()
        problem = ""
        for attempt in range(self._tries):
            self._keep_pace()
            request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 - checked
            if self._key:
                request.add_header("Authorization", f"Bearer {self._key}")
            wait = 0.0
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    return self._vectors(answer.read(_MAX_ANSWER_BYTES), len(texts))
            except urllib.error.HTTPError as error:
                problem = f"the endpoint answered {error.code}: {self._said(error)}"
                if error.code not in _WORTH_ANOTHER_TRY:
                    raise EmbedderUnavailable(self._model, problem) from None
                wait = _asked_to_wait(error.headers.get("Retry-After"))
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                problem = f"the endpoint cannot be reached: {getattr(error, 'reason', error)}"
            if attempt + 1 < self._tries:
                backoff = min(_LONGEST_WAIT, 0.5 * 2**attempt) * (0.5 + random.random() / 2)  # noqa: S311 - jitter
                self._sleep(min(_LONGEST_WAIT, max(wait, backoff)))
        raise EmbedderUnavailable(self._model, f"{problem} (after {self._tries} tries)")

    def _keep_pace(self) -> None:
        if self._pause:
            due = self._last + self._pause - time.monotonic()
            if due > 0:
                self._sleep(due)
        self._last = time.monotonic()

    def _said(self, error: urllib.error.HTTPError) -> str:
        said = error.read(500).decode("utf-8", "replace")
        return said.replace(self._key, "…") if self._key else said

    def _vectors(self, data: bytes, wanted: int) -> NDArray[np.float32]:
        try:
            entries: list[Any] = json.loads(data)["data"]
            ordered = sorted(entries, key=lambda entry: entry.get("index", 0))
            rows = np.array([entry["embedding"] for entry in ordered], np.float32)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EmbedderUnavailable(self._model, f"the endpoint's answer makes no sense ({error!r})") from None
        if rows.ndim != 2 or len(rows) != wanted or (self._dimensions and rows.shape[1] != self._dimensions):
            raise EmbedderUnavailable(self._model, f"the endpoint sent {rows.shape} numbers for {wanted} texts")
        if not np.isfinite(rows).all():
            raise EmbedderUnavailable(self._model, "the endpoint sent numbers that are none")
        self._dimensions = rows.shape[1]
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), np.float32)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Nowhere else."""
        return


def _asked_to_wait(header: str | None) -> float:
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
