"""Vectors from any endpoint that speaks OpenAI's embeddings protocol.

Texts go out in batches. A busy or failing server is asked again, later and later, for as long as it says or as
patience lasts; what cannot get better (a wrong key, an unknown model) is an error at once. Redirects are not
followed: the key and your code go to the address that you named, and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import math
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidOption, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEFAULT_URL: Final = "https://api.openai.com/v1"
_WORTH_ANOTHER_TRY: Final = frozenset({408, 409, 425, 429, *range(500, 600)})
_LONGEST_WAIT: Final = 60.0
_MAX_ANSWER_BYTES: Final = 256_000_000
_MAX_REFUSAL_BYTES: Final = 64_000
_SHOWN_REFUSAL_CHARS: Final = 500
_MAX_REQUEST_CHARS: Final = 600_000
"""OpenAI takes at most 300,000 tokens in a request; code and English have more than two characters in a token."""

_HINTS: Final = {
    401: " (is the key right? SATCHEL_EMBEDDER_KEY or OPENAI_API_KEY)",
    403: " (may this key use this model?)",
    404: " (is the model's name right, and does the address end where /embeddings begins, as …/v1 does?)",
}


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
        for field, number in (("batch_size", batch_size), ("max_chars", max_chars), ("tries", tries)):
            if number < 1:
                raise InvalidOption(field, number, "must be at least 1")
        base = (url or _DEFAULT_URL).rstrip("/")
        _check_address(model, base)
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise EmbedderUnavailable(model, "the key holds characters that no key has; was it pasted whole?")
        self._model = model
        self._url = f"{base}/embeddings"
        self._key = key
        self._batch_size = batch_size
        self._max_chars = max_chars
        self._tries = tries
        self._timeout = timeout
        self._pause = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._sleep = sleep
        self._last = -math.inf
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
        rows = [self._ask(batch) for batch in self._batches(texts)]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        chars = 0
        for text in texts:
            # An empty input is an error to OpenAI, and so is a lone surrogate to every reader of JSON.
            clean = text[: self._max_chars].encode("utf-8", "replace").decode() or " "
            if batch and (len(batch) == self._batch_size or chars + len(clean) > _MAX_REQUEST_CHARS):
                yield batch
                batch, chars = [], 0
            batch.append(clean)
            chars += len(clean)
        if batch:
            yield batch

    def _ask(self, texts: Sequence[str]) -> NDArray[np.float32]:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        problem = ""
        for attempt in range(self._tries):
            self._keep_pace()
            request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 - checked
            if self._key:
                request.add_header("Authorization", f"Bearer {self._key}")
            wait = 0.0
            try:
                with self._opener.open(request, timeout=self._timeout) as answer:
                    data = _whole(answer)
            except urllib.error.HTTPError as error:
                with error:
                    problem = self._refusal(error)
                if error.code not in _WORTH_ANOTHER_TRY:
                    raise EmbedderUnavailable(self._model, problem) from None
                wait = _asked_to_wait(error.headers.get("Retry-After"))
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", "") or str(error) or repr(error)
                problem = f"the endpoint {self._url} cannot be reached: {self._printable(str(reason))}"
            else:
                return self._vectors(data, len(texts))
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

    def _refusal(self, error: urllib.error.HTTPError) -> str:
        if 300 <= error.code < 400:
            aim = self._printable(error.headers.get("Location") or "nowhere")
            return f"the endpoint answered {error.code}, a redirect to {aim}, which is not followed; give that address"
        try:
            said = error.read(_MAX_REFUSAL_BYTES).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            said = "(its explanation broke off)"
        return f"the endpoint answered {error.code}: {self._printable(said)}{_HINTS.get(error.code, '')}"

    def _printable(self, said: str) -> str:
        """What the other side said, without the key and without anything that a terminal would obey."""
        said = said.replace(self._key, "…") if self._key else said
        return "".join(c if c.isprintable() else " " for c in said)[:_SHOWN_REFUSAL_CHARS].strip()

    def _vectors(self, data: bytes, wanted: int) -> NDArray[np.float32]:
        try:
            entries = json.loads(data)["data"]
            if len(entries) != wanted:
                raise ValueError(f"{len(entries)} rows for {wanted} texts")
            rows = np.array([entry["embedding"] for entry in _in_order(entries)], np.float64)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            problem = f"the endpoint's answer makes no sense ({self._printable(repr(error))})"
            raise EmbedderUnavailable(self._model, problem) from None
        if rows.ndim != 2 or not rows.shape[1]:
            raise EmbedderUnavailable(self._model, f"the endpoint sent {rows.shape} numbers for {wanted} texts")
        if self._dimensions and rows.shape[1] != self._dimensions:
            problem = f"the endpoint sent vectors of {rows.shape[1]} numbers, and of {self._dimensions} before"
            raise EmbedderUnavailable(self._model, problem)
        if not np.isfinite(rows).all():
            raise EmbedderUnavailable(self._model, "the endpoint sent numbers that are none (NaN or infinite)")
        self._dimensions = rows.shape[1]
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-12), np.float32)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Nowhere else."""
        return


def _check_address(model: str, base: str) -> None:
    if not base.startswith(("https://", "http://")):
        raise EmbedderUnavailable(model, f"the address {shown(base)} must begin with https:// or http://")
    try:
        parts = urllib.parse.urlsplit(base)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise EmbedderUnavailable(model, f"the address is none ({error})") from None
    # The address is part of error messages; a password is not.
    if "@" in parts.netloc:
        raise EmbedderUnavailable(model, "the address holds a user or a password; use the key instead")
    if not host or not (base.isascii() and base.isprintable()) or " " in base:
        raise EmbedderUnavailable(model, f"the address {shown(base)} is none")


def _whole(answer: http.client.HTTPResponse) -> bytes:
    data = answer.read(_MAX_ANSWER_BYTES)
    # A read that names a limit does not itself complain about a connection that broke off.
    if answer.length and len(data) < _MAX_ANSWER_BYTES:
        raise http.client.IncompleteRead(data, answer.length)
    return data


def _in_order(entries: list[Any]) -> list[Any]:
    """As the texts were sent: by their `index`, or as they come from an endpoint that does not number them."""
    places = [entry.get("index") for entry in entries]
    if len(set(places)) == 1:
        return entries
    if sorted(places) != list(range(len(entries))):
        raise ValueError(f"its rows are numbered {places[:10]}")
    return sorted(entries, key=lambda entry: int(entry["index"]))


def _asked_to_wait(header: str | None) -> float:
    if not header:
        return 0.0
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
