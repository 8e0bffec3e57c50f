"""Client of a Satchel server: the same questions and answers, over HTTP.

No proxy is used: the token must reach no host but the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel import errors
from satchel.errors import SatchelError, ServerUnavailable
from satchel.http_client import HttpClient, HttpProblem, events
from satchel.models.context import Context
from satchel.models.search import Expansion, SearchResult
from satchel.service.auto_index import IndexState
from satchel.service.client import Indexed, Satchel, Status, names_options, record_from_dict, search_from_dict
from satchel.service.question import Question, ResearchQuestion, question_from

if TYPE_CHECKING:
    from typing import Unpack

    from satchel.models.find import FindKind, Found
    from satchel.models.request import User
    from satchel.models.search import Expansion, SearchResult
    from satchel.service.question import QuestionOptions, ResearchOptions
    from satchel.service.research import ResearchAnswer

T = TypeVar("T")

_MAX_ANSWER_BYTES: Final = 256_000_000
"""Protects the memory from a broken or hostile server; a context of the largest budget is far smaller."""
_TIMEOUT_SECONDS: Final = 120.0
"""Covers the server's wait for a first index run (`PATIENCE_S`) and a language model's answer; a longer time-out would
keep callers waiting for a dead server."""
_INDEX_TIMEOUT_SECONDS: Final = 3600.0
"""An index run may report nothing for long while a large file is read; a shorter time-out would give up too early."""


class RemoteSatchel(Satchel):
    """Client of a workspace on a Satchel server. Threads may share a client."""

    def __init__(
        self, url: str, *, token: str = "", user: User | None = None, timeout: float = _TIMEOUT_SECONDS
    ) -> None:
        self._client = HttpClient(url, key=token, timeout=timeout, uses_proxies=False)
        self._user = user

    @names_options(Question)
    def build(self, question: str | Question, **options: Unpack[QuestionOptions]) -> Context:
        """Build the context for a question."""
        return self._call(
            Context.from_dict, "POST", "v1/context", _json_value(question_from(Question, question, options))
        )

    @names_options(Question)
    def search(self, question: str | Question, **options: Unpack[QuestionOptions]) -> SearchResult:
        """Return the pieces with the highest relevance to a question."""
        return self._call(
            search_from_dict, "POST", "v1/search", _json_value(question_from(Question, question, options))
        )

    def find(
        self,
        what: str,
        kind: FindKind | str = "definition",
        *,
        limit: int = 100,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> Found:
        """Find a symbol, a text or an outline."""
        from satchel.models.find import Found

        body = {"what": what, "kind": str(kind), "limit": limit, "include": list(include), "exclude": list(exclude)}
        return self._call(Found.from_dict, "POST", "v1/find", body)

    def expand(self, piece_id: str, *, lines: int = 0) -> Expansion:
        """Return the exact text behind an id."""
        return self._call(partial(record_from_dict, Expansion), "POST", "v1/expand", {"id": piece_id, "lines": lines})

    @names_options(ResearchQuestion)
    def research(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> Context:
        """Build a context of numbered document pages for a question, within the budget."""
        full_question = question_from(ResearchQuestion, question, options)
        return self._call(Context.from_dict, "POST", "v1/research", _json_value(full_question))

    @names_options(ResearchQuestion)
    def ask(self, question: str | ResearchQuestion, **options: Unpack[ResearchOptions]) -> ResearchAnswer:
        """Answer a question from the documents with the configured language model, with sources."""
        from satchel.service.research import ResearchAnswer

        full_question = question_from(ResearchQuestion, question, options)
        body = {
            "query": full_question.query,
            "num_results": full_question.num_results,
            "max_sources": full_question.max_sources,
            "max_tokens": full_question.token_budget,
            "include_text": full_question.by != "visual",
            "include_visual": full_question.by != "text",
            "answer_tokens": full_question.answer_tokens,
        }
        if full_question.min_sufficiency is not None:
            body["min_sufficiency"] = full_question.min_sufficiency
        if full_question.user:
            body["user"] = _json_value(full_question.user)
        return self._call(partial(record_from_dict, ResearchAnswer), "POST", "api/research/ask", body)

    def status(self) -> Status:
        """Return the state and the size of the index."""
        return self._call(partial(record_from_dict, Status), "GET", "v1/status")

    def index(self, watch: Callable[[IndexState], None] | None = None) -> Indexed:
        """Refresh the index; `watch` receives the progress."""
        with closing(self._events("v1/index", timeout=_INDEX_TIMEOUT_SECONDS)) as progress:
            for kind, data in progress:
                if kind == "progress" and watch:
                    watch(self._read(partial(record_from_dict, IndexState), data))
                elif kind == "done":
                    return self._read(partial(record_from_dict, Indexed), data)
                elif kind == "problem":
                    raise _error(self._client.url, data)
        raise ServerUnavailable(self._client.url, "the connection was lost while the server was indexing")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _call(self, read: Callable[[Any], T], method: str, path: str, body: dict[str, Any] | None = None) -> T:
        """Send a request; returns the JSON answer converted by `read`."""
        if body is not None and self._user:
            body = {"user": _json_value(self._user)} | body
        with self._problems_mapped():
            response = self._client.request(method, path, body, accept="application/json", max_bytes=_MAX_ANSWER_BYTES)
            content = response.read()
        if response.status >= 300:
            raise _error(self._client.url, _decoded(content), response.status)
        return self._read(read, _decoded(content))

    def _events(self, path: str, *, timeout: float) -> Generator[tuple[str, Any], None, None]:
        """Send a request; yields the kind and the data of each server-sent event."""
        with (
            self._problems_mapped(),
            self._client.request(
                "POST", path, {}, accept="text/event-stream", max_bytes=_MAX_ANSWER_BYTES, timeout=timeout
            ) as response,
        ):
            if response.status >= 300:
                raise _error(self._client.url, _decoded(response.read()), response.status)
            for event in events(response):
                yield event.kind, _decoded(event.data)

    @contextmanager
    def _problems_mapped(self) -> Iterator[None]:
        try:
            yield
        except HttpProblem as problem:
            if problem.status:
                raise ServerUnavailable(self._client.url, problem.reason) from None
            reason = f"no answer ({problem.reason}); is `satchel serve` running there?"
            raise ServerUnavailable(self._client.url, reason) from None

    def _read(self, read: Callable[[Any], T], data: Any) -> T:
        try:
            return read(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"the answer is not valid ({type(error).__name__}); does the server have another version?"
            raise ServerUnavailable(self._client.url, reason) from None


def _decoded(content: str | bytes) -> Any:
    """Parse a JSON text; invalid JSON becomes None, a value refused by every reader."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _json_value(value: Any) -> Any:
    """Convert a value to JSON values; of a dataclass, only the fields different from their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return {field.name: _json_value(own[field.name]) for field in fields(value) if own[field.name] != field.default}
    if isinstance(value, tuple | list):
        return [_json_value(element) for element in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _error(url: str, problem: Any, status: int = 0) -> SatchelError:
    """Create an error from a problem document (RFC 9457): the error class with this `code`, or ServerUnavailable."""
    problem = problem if isinstance(problem, dict) else {}
    code, detail = (
        problem.get("code"),
        str(problem.get("detail") or f"the server answered {problem.get('status', status)}"),
    )
    kind = _ERRORS_BY_CODE.get(code) if isinstance(code, str) else None
    if kind is None:
        return ServerUnavailable(url, f"{detail} [{code}]" if code else detail)
    error = kind.__new__(kind)
    error.args = (detail,)
    error.__dict__.update({name: value for name, value in problem.items() if name not in _PROBLEM_FIELDS})
    return error


_PROBLEM_FIELDS: Final = frozenset({"type", "title", "status", "detail", "code", "request_id", "errors"})
_ERRORS_BY_CODE: Final = {"invalid-request": errors.InvalidInput} | {
    error.code: error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, SatchelError) and error is not ServerUnavailable
}
