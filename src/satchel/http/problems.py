"""Errors as RFC 9457 problems: one table from every error of Satchel's to a status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from satchel import errors
from satchel.errors import SatchelError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from satchel.service.identity import Caller

MEDIA_TYPE: Final = "application/problem+json"
_URN: Final = "urn:satchel:problem:"
_BUSY_SECONDS: Final = "5"

STATUSES: Final[Mapping[type[SatchelError], tuple[int, str]]] = {
    errors.SatchelError: (500, "Satchel could not do this"),
    errors.InvalidInput: (422, "A value cannot be right"),
    errors.InvalidOption: (422, "An option cannot be right"),
    errors.InvalidHit: (422, "A chunk, entity or hit cannot be right"),
    errors.WorkspaceMissing: (404, "There is no such workspace"),
    errors.NotAllowed: (403, "This is not allowed"),
    errors.BudgetCannotBeMet: (422, "The budget cannot be met"),
    errors.UnknownTokenizer: (422, "No tokenizer goes by that name"),
    errors.TokenizerUnavailable: (503, "The tokenizer cannot be loaded"),
    errors.RerankerMissing: (422, "The strategy needs a model that was not given"),
    errors.UnknownPiece: (404, "No piece goes by that id"),
    errors.IndexProblem: (500, "Something is wrong with the index"),
    errors.IndexTooNew: (500, "The index was made by a newer Satchel"),
    errors.StoreUnavailable: (503, "The database that keeps the index cannot be used"),
    errors.StoresDiffer: (500, "The index does not hold what another holds"),
    errors.MoveUnfinished: (503, "The index is still being moved here"),
    errors.IndexBusy: (503, "The index is being written by another process"),
    errors.IndexDamaged: (500, "The index cannot be read"),
    errors.IndexUnwritable: (503, "The index cannot be written"),
    errors.EmbedderMismatch: (500, "The index holds vectors of another model"),
    errors.EmbedderUnavailable: (503, "The embedder cannot be used"),
    errors.LanguageModelUnavailable: (503, "The language model cannot be used"),
    errors.ServerUnavailable: (502, "Another Satchel server cannot be reached"),
    errors.ExtraMissing: (501, "The server lacks packages for this"),
    errors.UnknownBlock: (404, "Nothing goes by that id"),
    errors.LibraryUnavailable: (503, "The library cannot be reached"),
    errors.LibraryMismatch: (500, "The library's vectors are another model's"),
    errors.UnknownPage: (404, "There is no such page"),
}

_ASK_THE_OWNER: Final = "The owner of this server can see the reason; ask them, or try again later."

# Names of attributes that may go out beside the detail. What is not named here stays inside: paths, addresses, values.
_DATA: Final[Mapping[type[SatchelError], tuple[str, ...]]] = {
    errors.InvalidInput: ("field", "problem"),
    errors.BudgetCannotBeMet: ("max_tokens", "needed_tokens"),
    errors.UnknownTokenizer: ("name", "near"),
    errors.UnknownPiece: ("piece_id",),
    errors.UnknownBlock: ("block_id",),
    errors.UnknownPage: ("doc_id", "page"),
}

_PLAIN: Final[Mapping[int, tuple[str, str, str]]] = {
    400: ("bad-request", "The request cannot be understood", "Something in the request is not as it has to be."),
    401: ("no-token", "Who asks?", "This needs a token: Authorization: Bearer …"),
    403: ("not-allowed", "This is not allowed", "The caller may not do this."),
    404: ("not-found", "There is nothing here", "No route of this server has this path."),
    405: ("method-not-allowed", "This method is not for this path", "Use one of the methods that Allow names."),
    406: ("not-acceptable", "It cannot be had in that form", "None of the types that Accept names can be given."),
    413: ("body-too-large", "The body is too large", "Send less."),
    415: ("not-json", "The body is of another type", "Send Content-Type: application/json."),
    500: (
        "internal-error",
        "Something went wrong here",
        "This is a mistake of the server's; its log has the request id.",
    ),
    503: ("server-busy", "The server is busy", "Try again later."),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal or failure, ready to be answered: an ASGI application that says it, with the request's id."""

    status: int
    code: str
    title: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def as_dict(self, request_id: str = "") -> dict[str, Any]:
        """The members of the problem; those of RFC 9457 cannot be replaced by data."""
        fixed: dict[str, Any] = {
            "type": _URN + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
        }
        return {**fixed, **{name: value for name, value in self.more.items() if name not in fixed}}

    def encoded(self, request_id: str = "") -> bytes:
        """The body."""
        return json.dumps(self.as_dict(request_id), separators=(",", ":")).encode("ascii")

    def head(self, length: int) -> list[tuple[bytes, bytes]]:
        """The headers for a body of that length."""
        typed = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % length)]
        return typed + list(self.headers)

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer with it."""
        state = scope.setdefault("state", {})
        state["problem"] = self.code
        body = self.encoded(state.get("request_id", ""))
        await send({"type": "http.response.start", "status": self.status, "headers": self.head(len(body))})
        await send({"type": "http.response.body", "body": body})


class Refused(Exception):
    """A request that is answered with a problem instead of being worked on."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def problem(
    status: int, code: str, title: str, detail: str, headers: Mapping[str, str] | None = None, /, **more: Any
) -> Problem:
    """A problem with its data; nothing indexed belongs into it."""
    encoded = tuple((name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in (headers or {}).items())
    return Problem(status, code, title, detail, more, encoded)


def of(error: SatchelError, caller: Caller | None = None) -> Problem:
    """The problem for an error. Only an owner is told of places and reasons on the server."""
    kind = next(kind for kind in type(error).__mro__ if kind in STATUSES)
    status, title = STATUSES[kind]
    owner = caller is not None and caller.is_owner
    detail = str(error) if owner else _for_others(error)
    headers = {"Retry-After": _BUSY_SECONDS} if isinstance(error, errors.IndexBusy) else None
    return problem(status, error.code, title, _sendable(detail), headers, **_data(error))


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """The problem for a bare status, such as a router's 404 and 405. The router's own words are not passed on."""
    known = _PLAIN.get(status) or _PLAIN[500 if status >= 500 else 400]
    return problem(status, *known, headers)


def install(app: Starlette) -> None:
    """Let an application answer with problems: Satchel's errors, a router's 404 and 405, and what nobody expected."""
    from starlette.exceptions import HTTPException

    app.add_exception_handler(HTTPException, _answer_http)  # type: ignore[arg-type]
    app.add_exception_handler(SatchelError, _answer_satchel)  # type: ignore[arg-type]
    # The application raises it again after this answer, so that the guard writes it to the log.
    app.add_exception_handler(Exception, _answer_anything)  # type: ignore[arg-type]


def internal_error() -> Problem:
    """For what nobody expected: nothing of the exception is in it."""
    return of_status(500)


async def _answer_http(_: Request, error: HTTPException) -> Problem:
    return of_status(error.status_code, error.headers)


async def _answer_satchel(request: Request, error: SatchelError) -> Problem:
    return of(error, request.scope.get("state", {}).get("caller"))


async def _answer_anything(*_: object) -> Problem:
    return internal_error()


def _for_others(error: SatchelError) -> str:
    """The error without values, paths and addresses, which may be the server's rather than the caller's."""
    match error:
        case errors.WorkspaceMissing():
            return _ASK_THE_OWNER
        case errors.InvalidInput():
            return f"{error.field}: {error.problem}"
        case errors.UnknownBlock():
            return "Nothing that this caller may see goes by that id."
        case errors.LanguageModelUnavailable():
            return f"The language model that this server was given cannot be used at the moment. {_ASK_THE_OWNER}"
        case (
            errors.BudgetCannotBeMet()
            | errors.UnknownTokenizer()
            | errors.UnknownPiece()
            | errors.UnknownPage()
            | errors.RerankerMissing()
            | errors.ExtraMissing()
        ):
            return str(error)
        case _:
            return _ASK_THE_OWNER


def _data(error: SatchelError) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(error, errors.WorkspaceMissing):
        return found
    for kind, names in _DATA.items():
        if isinstance(error, kind):
            found.update({name: _sendable(getattr(error, name)) for name in names})
    return found


def _sendable(value: Any) -> Any:
    """Text with a lone surrogate cannot be sent as it stands."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_sendable(one) for one in value] if isinstance(value, tuple | list) else value
