"""Errors and refusals as RFC 9457 problems; problems.toml holds status, title and detail of each."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from satchel import errors
from satchel.errors import SatchelError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from satchel.service.client import Caller

_TABLES: Final = tomllib.loads(Path(__file__).with_name("problems.toml").read_text("utf-8"))
STATUSES: Final[Mapping[type[SatchelError], tuple[int, str]]] = {
    getattr(errors, name): (status, title) for name, (status, title) in _TABLES["errors"].items()
}
_INDEX_BUSY_SECONDS: Final = 5  # an index run's commit takes less
_MAX_RETRY_SECONDS: Final = 60  # of a long first run: more can be searched by then
_ASK_THE_OWNER: Final = "The server's log has the reason; ask its owner, or try again later."

# Attributes sent beside the detail. All further attributes stay on the server: paths, addresses, values.
_SENT_ATTRIBUTES: Final[Mapping[type[SatchelError], tuple[str, ...]]] = {
    errors.InvalidInput: ("field", "problem"),
    errors.BudgetCannotBeMet: ("max_tokens", "needed_tokens"),
    errors.UnknownTokenizer: ("name", "near"),
    errors.UnknownPiece: ("piece_id",),
    errors.UnknownBlock: ("block_id",),
    errors.AmbiguousBlock: ("near",),
    errors.UnknownPage: ("doc_id", "page"),
}
# Errors whose messages hold only the caller's own input, unless `_detail_for_users` replaces the message.
_WITHOUT_SECRETS: Final = (*_SENT_ATTRIBUTES, errors.RerankerMissing, errors.ExtraMissing)

_VALIDATION_TEXTS: Final = {
    "extra_forbidden": "unknown field (/v1/openapi.json lists the fields)",
    "missing": "is missing",
}
_MAX_FIELD_PROBLEMS: Final = 20  # a body with thousands of wrong fields gets a short response
_MAX_FIELDS_IN_DETAIL: Final = 3  # the detail is a line to read; `errors` lists more fields


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal or failure, also an ASGI application for the response. Must not hold indexed content."""

    status: int
    code: str
    title: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self, request_id: str = "") -> dict[str, Any]:
        """The members of the problem as a dict; `more` cannot replace members of RFC 9457."""
        members = {
            "type": f"urn:satchel:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
        }
        return {**members, **self.more, **members}

    def encode(self, request_id: str = "") -> tuple[list[tuple[bytes, bytes]], bytes]:
        """The headers and the body of the response."""
        body = json.dumps(self.as_dict(request_id), separators=(",", ":")).encode("ascii")
        headers = {"content-type": "application/problem+json", "content-length": str(len(body)), **self.headers}
        return [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()], body

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the problem as the response."""
        state = scope.setdefault("state", {})
        state["problem"] = self.code
        headers, body = self.encode(state.get("request_id", ""))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Refused(Exception):
    """The request is refused; `problem` is the response."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def refusal(key: str, more: Mapping[str, Any] | None = None, /, **values: Any) -> Problem:
    """The problem of a key in the table of refusals, with `values` filled into the detail."""
    status, title, detail, *headers = _TABLES["refusals"][key]
    return Problem(status, key.partition("/")[0], title, detail.format(**values), dict(*headers), more or {})


def refused(key: str, more: Mapping[str, Any] | None = None, /, **values: Any) -> Refused:
    """The exception to raise for a refusal; the arguments are those of `refusal`."""
    return Refused(refusal(key, more, **values))


def problem_for(error: SatchelError, caller: Caller | None = None) -> Problem:
    """The problem for an error. Only owners get paths and reasons of the server."""
    kind = next(kind for kind in type(error).__mro__ if kind in STATUSES)
    status, title = STATUSES[kind]
    detail = str(error) if caller is not None and caller.is_owner else _detail_for_users(error)
    headers = {"Retry-After": str(_retry_after(error))} if _retry_after(error) else {}
    return Problem(status, error.code, title, _encodable(detail), headers, _sent_attributes(error))


def problem_for_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """The problem for a bare status (a router's 404 or 405), with Satchel's texts instead of the router's."""
    statuses = _TABLES["statuses"]
    code, title, detail = statuses.get(str(status)) or statuses["500" if status >= 500 else "400"]
    return Problem(status, code, title, detail, headers or {})


def install_handlers(app: Starlette) -> None:
    """Install exception handlers: Satchel's errors, invalid requests, 404, 405 and exceptions become problems."""
    for kind in (HTTPException, RequestValidationError, SatchelError, Exception):
        # Starlette raises an unexpected exception again after the response; the guard then logs the exception.
        app.add_exception_handler(kind, _respond)  # type: ignore[arg-type]  # a problem is an ASGI application


async def _respond(request: Request, error: Exception) -> Problem:
    match error:
        case RequestValidationError():
            return _invalid_request(error)
        case HTTPException():
            return problem_for_status(error.status_code, error.headers)
        case SatchelError():
            return problem_for(error, request.scope.get("state", {}).get("caller"))
        case _:
            return problem_for_status(500)


def _invalid_request(error: RequestValidationError) -> Problem:
    """The problem with a reason per invalid field; values are not repeated."""
    problems = [
        {"field": _field_name(detail["loc"]), "problem": _VALIDATION_TEXTS.get(detail["type"], detail["msg"])}
        for detail in error.errors()[:_MAX_FIELD_PROBLEMS]
    ]
    detail = "; ".join(f"{entry['field']}: {entry['problem']}" for entry in problems[:_MAX_FIELDS_IN_DETAIL])
    return refusal("invalid-request", {"errors": problems}, detail=detail)


_FIELD: Final = re.compile(r"(?!(?:int|str|float|bool|list|dict)$)[a-z][A-Za-z0-9_]*")
"""The name of a field, as against the name of a type or of a validator."""


def _field_name(location: tuple[str | int, ...]) -> str:
    # Where several types are allowed, the location names the type that was tried, too.
    names = [str(part) for part in location if isinstance(part, int) or _FIELD.fullmatch(part)]
    if len(names) > 2 and names[:2] in (["body", "question"], ["body", "chunks"]):
        del names[1]  # the tag of the body's model (`question` or `chunks`)
    return ".".join(names)


def _detail_for_users(error: SatchelError) -> str:
    """The error message without values, paths and addresses of the server."""
    match error:
        case errors.WorkspaceMissing():
            return _ASK_THE_OWNER
        case errors.InvalidInput():
            return f"{error.field}: {error.problem}"
        case errors.UnknownBlock() if not isinstance(error, errors.AmbiguousBlock):
            return "Nothing that this caller may read has this id."
        case errors.IndexNotReady():
            return "Too little is indexed yet for an answer. Try again later."
        case errors.LanguageModelUnavailable():
            return f"The language model of this server is not available at the moment. {_ASK_THE_OWNER}"
        case _:
            return str(error) if isinstance(error, _WITHOUT_SECRETS) else _ASK_THE_OWNER


def _retry_after(error: SatchelError) -> int:
    """After how many seconds to send the request again; 0 if that does not help."""
    match error:
        case errors.IndexNotReady():
            return min(error.seconds_left or _INDEX_BUSY_SECONDS, _MAX_RETRY_SECONDS)
        case errors.IndexBusy():
            return _INDEX_BUSY_SECONDS
        case _:
            return 0


def _sent_attributes(error: SatchelError) -> dict[str, Any]:
    if isinstance(error, errors.WorkspaceMissing):
        return {}
    names = [name for kind, names in _SENT_ATTRIBUTES.items() if isinstance(error, kind) for name in names]
    return {name: _encodable(getattr(error, name)) for name in names}


def _encodable(value: Any) -> Any:
    """The value with lone surrogates escaped: UTF-8 cannot encode a lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(part) for part in value] if isinstance(value, tuple | list) else value
