"""The front door to a Satchel server: the same questions, asked over HTTP.

Redirects are not followed and no proxy is asked: the token goes to the address that was named, and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from threading import local
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel import errors
from satchel.errors import InvalidOption, SatchelError, ServerUnavailable
from satchel.service.auto_index import IndexState
from satchel.service.client import Indexed, Satchel, Status
from satchel.service.question import Question, as_question
from satchel.service.remote_results import expansion_from_dict, search_from_dict

if TYPE_CHECKING:
    from typing import Unpack

    from satchel.models.context import Context
    from satchel.models.request import User
    from satchel.models.search import Expansion, SearchResult
    from satchel.service.client import Told
    from satchel.service.research import ResearchAnswer

T = TypeVar("T")

_MAX_ANSWER_BYTES: Final = 256_000_000
_TIMEOUT: Final = 120.0
_LONG_TIMEOUT: Final = 3600.0


class RemoteSatchel(Satchel):
    """A server's workspace. Threads may share it: each has a connection of its own."""

    def __init__(self, url: str, *, token: str = "", user: User | None = None, timeout: float = _TIMEOUT) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise InvalidOption("url", url, "must be like http://127.0.0.1:8420, without a name or a question in it")
        if token and not (token.isascii() and token.isprintable()):
            raise InvalidOption("token", "…", "holds characters that no token has; was it pasted whole?")
        self._url = url.rstrip("/")
        self._parts = parts
        self._token = token
        self._user = user
        self._timeout = timeout
        self._local = local()
        self._connections: list[http.client.HTTPConnection] = []

    def build(self, question: str | Question, **told: Unpack[Told]) -> Context:
        """The context for a question."""
        return self._understood(Context.from_dict, self._post("/v1/context", self._asked(question, told)))

    def search(self, question: str | Question, **told: Unpack[Told]) -> SearchResult:
        """The pieces that answer a question best."""
        asked = self._asked(question, told)
        return self._understood(search_from_dict, self._post("/v1/search", asked))

    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """The exact text behind an id."""
        asked = {"id": piece_id, "lines": lines} | self._who()
        return self._understood(expansion_from_dict, self._post("/v1/expand", asked))

    def ask(self, query: str, *, num_results: int = 10, max_tokens: int = 10_000) -> ResearchAnswer:
        """An answer from the documents with its sources."""
        from satchel.service.research import ResearchAnswer

        body = {"query": query, "num_results": num_results, "max_tokens": max_tokens} | self._who()
        told = self._post("/api/research/ask", body)
        return self._understood(
            lambda fields: ResearchAnswer(
                **{**fields, "sources": tuple(fields["sources"]), "notes": tuple(fields["notes"])}
            ),
            told,
        )

    def status(self) -> Status:
        """What the index holds and how far it is."""
        return self._understood(lambda told: Status(**told), self._call("GET", "/v1/status"))

    def index(self, watch: Callable[[IndexState], None] | None = None) -> Indexed:
        """Bring the index up to the folder; how far it is, is told as it goes."""
        return self._watched(watch or (lambda _: None))

    def close(self) -> None:
        """Let go of the connections."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local = local()

    # -- asking

    def _who(self) -> dict[str, Any]:
        return {"user": _plain(self._user)} if self._user else {}

    def _asked(self, question: str | Question, told: Mapping[str, Any]) -> dict[str, Any]:
        asked = as_question(question, told)
        usual = Question(query=asked.query)
        body = {
            one.name: _plain(getattr(asked, one.name))
            for one in fields(asked)
            if one.name == "query" or getattr(asked, one.name) != getattr(usual, one.name)
        }
        return self._who() | body

    def _watched(self, watch: Callable[[IndexState], None]) -> Indexed:
        from satchel.text.server_sent_events import events

        answer = self._sent("POST", "/v1/index", {}, accept="text/event-stream", timeout=_LONG_TIMEOUT)
        for event in events(iter(lambda: self._heard(answer), b"")):
            told = _decoded(event.data.encode())
            if event.kind == "progress":
                watch(IndexState(**told))
            elif event.kind == "done":
                self._heard(answer, _MAX_ANSWER_BYTES)
                return self._understood(_indexed, told)
            elif event.kind == "problem":
                raise _error(self._url, told)
        raise ServerUnavailable(self._url, "the server broke off while it was indexing")

    def _heard(self, answer: http.client.HTTPResponse, most: int = 0) -> bytes:
        """What comes next of an answer, or as much of it as it may have."""
        try:
            return answer.read(most) if most else answer.read1(65_536)
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            raise ServerUnavailable(self._url, f"its answer broke off ({type(error).__name__})") from None

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: Any = None, *, timeout: float | None = None) -> Any:
        answer = self._sent(method, path, body, accept="application/json", timeout=timeout or self._timeout)
        data = self._heard(answer, _MAX_ANSWER_BYTES + 1)
        if len(data) > _MAX_ANSWER_BYTES:
            self._drop()
            raise ServerUnavailable(self._url, f"its answer is longer than {_MAX_ANSWER_BYTES:,} bytes")
        told = _decoded(data)
        if told is None:
            raise ServerUnavailable(self._url, f"it answered {answer.status} with something that is not JSON")
        return told

    def _sent(self, method: str, path: str, body: Any, *, accept: str, timeout: float) -> http.client.HTTPResponse:
        headers = {"Accept": accept}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        for attempt in (1, 2):
            connection, is_new = self._connection(timeout)
            try:
                connection.request(method, f"{self._parts.path.rstrip('/')}{path}", data, headers)
                answer = connection.getresponse()
                break
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                # A connection that was kept may have been closed by the server in the meantime.
                if is_new or attempt == 2 or isinstance(error, TimeoutError):
                    raise ServerUnavailable(self._url, _why(error)) from None
        if answer.status >= 300:
            told = _decoded(self._heard(answer, _MAX_ANSWER_BYTES))
            raise _error(self._url, told if isinstance(told, dict) else {"status": answer.status})
        return answer

    def _connection(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if kept is not None and kept.sock is not None:
            kept.sock.settimeout(timeout)
            return kept, False
        host = self._parts.hostname or ""
        if self._parts.scheme == "https":
            secure = ssl.create_default_context()
            kept = http.client.HTTPSConnection(host, self._parts.port, timeout=timeout, context=secure)
        else:
            kept = http.client.HTTPConnection(host, self._parts.port, timeout=timeout)
        self._local.connection = kept
        self._connections.append(kept)
        return kept, True

    def _drop(self) -> None:
        kept = getattr(self._local, "connection", None)
        if kept is not None:
            kept.close()
            if kept in self._connections:
                self._connections.remove(kept)
            self._local.connection = None

    def _understood(self, make: Callable[[Any], T], told: Any) -> T:
        try:
            return make(told)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"its answer is not understood ({type(error).__name__}); is it another version?"
            raise ServerUnavailable(self._url, reason) from None


def _indexed(told: Mapping[str, Any]) -> Indexed:
    return Indexed(**{**told, "notes": tuple(told["notes"])})


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: _plain(getattr(value, one.name))
            for one in fields(value)
            if getattr(value, one.name) != one.default
        }
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there; start one with `satchel serve`"
    return f"it cannot be reached ({error or type(error).__name__})"


def _error(url: str, problem: Mapping[str, Any]) -> SatchelError:
    """The error that a problem stands for: of the same class where that can be made, or what the server said."""
    code, detail = problem.get("code"), str(problem.get("detail") or f"it answered {problem.get('status')}")
    kind = _KINDS.get(code) if isinstance(code, str) else None
    if kind is None:
        return ServerUnavailable(url, f"{detail} [{code}]" if code else detail)
    error = kind.__new__(kind)
    error.args = (detail,)
    known = {name: value for name, value in problem.items() if name not in _OF_PROBLEMS}
    error.__dict__.update(known)
    return error


_OF_PROBLEMS: Final = frozenset({"type", "title", "status", "detail", "code", "request_id", "errors"})
_KINDS: Final = {"invalid-request": errors.InvalidInput} | {
    one.code: one
    for one in vars(errors).values()
    if isinstance(one, type) and issubclass(one, SatchelError) and one is not ServerUnavailable
}
