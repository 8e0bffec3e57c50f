"""Authentication: the caller behind a bearer token or a browser session; login and logout."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qs

from satchel.http.guard.credentials import SESSION_SECONDS
from satchel.http.guard.request_checks import SAFE_METHODS, RequestHead, check_same_origin
from satchel.http.problems import Problem, Refused, problem_for_status, refusal, refused

if TYPE_CHECKING:
    from satchel.http.guard.credentials import Keyring
    from satchel.service.client import Caller

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
_PUBLIC_PATHS: Final = frozenset({"/", "/health"})
_PUBLIC_FOLDER: Final = "/assets/"

_FREE_GUESSES: Final = 5  # wrong secrets without delay: people mistype
_FORGET_SECONDS: Final = 60.0  # after the last wrong guess; then the count of an address starts again
_FIRST_DELAY_SECONDS: Final = 0.1  # hardly noticed by people; doubled with each further guess
_MAX_DELAY_SECONDS: Final = 2.0  # Satchel's own clients give up after longer waits
_MAX_DOUBLINGS: Final = 10  # far beyond the longest delay; larger powers of two would overflow a float
_MAX_ADDRESSES: Final = 1_000  # with a count of guesses; bounds the memory, the oldest is forgotten first
_MAX_DELAYED_REQUESTS: Final = 100  # at a time; further guesses are refused at once, or delays would fill the server

_NO_TOKEN: Final = problem_for_status(401, {"WWW-Authenticate": "Bearer"})
_LINK_USED: Final = refusal("login-link-used")
_LINK_USED_PAGE: Final = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Satchel</title>\n'
    f'<h1>{_LINK_USED.title}</h1>\n<p>{_LINK_USED.detail}</p>\n<p><a href="/">Open the inspector</a></p>\n</html>\n'
).encode()

Response: TypeAlias = tuple[int, list[tuple[bytes, bytes]], bytes]  # status, headers and body


class Authenticator:
    """Finds the caller of each request, and exchanges login codes and tokens for session cookies."""

    def __init__(self, keys: Keyring, https_hosts: frozenset[bytes]) -> None:
        self._keys = keys
        self._https_hosts = https_hosts
        self._guesses = _GuessDelays()

    async def caller(self, head: RequestHead) -> Caller | None:
        """The caller; None on a public path without a valid token. Elsewhere, refuses unauthenticated requests."""
        try:
            return self._caller(head)
        except Refused as error:
            if _is_public(head):
                return None  # a wrong token does no harm where none is needed
            await self._guesses.delay(head, error.problem)
            raise

    async def log_in_or_out(self, head: RequestHead) -> Response:
        """The response to a request for `LOGIN` or `LOGOUT`."""
        try:
            return self._log_out(head) if head.path == LOGOUT else self._log_in(head)
        except Refused as error:
            await self._guesses.delay(head, error.problem)
            if error.problem.code != _LINK_USED.code or b"text/html" not in head.headers.get(b"accept", b""):
                raise
            length = b"%d" % len(_LINK_USED_PAGE)
            headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", length)]
            return _LINK_USED.status, headers, _LINK_USED_PAGE

    def _caller(self, head: RequestHead) -> Caller:
        if b"authorization" in head.headers:
            return self._token_caller(head)
        caller = self._session_caller(head)
        if caller is None:
            raise Refused(_NO_TOKEN)
        if head.method not in SAFE_METHODS:
            check_same_origin(head)
        return caller

    def _token_caller(self, head: RequestHead) -> Caller:
        if b"authorization" not in head.headers:
            raise Refused(_NO_TOKEN)
        scheme, _, token = head.headers[b"authorization"].partition(b" ")
        caller = self._keys.caller(token.strip().decode("latin-1")) if scheme.lower() == b"bearer" else None
        if caller is None:
            raise refused("wrong-token")
        return caller

    def _session_caller(self, head: RequestHead) -> Caller | None:
        return next(filter(None, map(self._keys.sessions.get, _session_ids(head))), None)

    def _log_in(self, head: RequestHead) -> Response:
        """Start a session: with a login code in the URL (GET), or with a token from the inspector page (POST)."""
        if head.method == "POST":
            check_same_origin(head)
            return 204, [self._cookie(head, self._keys.sessions.add(self._token_caller(head)), SESSION_SECONDS)], b""
        if head.method != "GET":
            raise Refused(problem_for_status(405, {"Allow": "GET, POST"}))
        if b"sec-purpose" in head.headers:  # a browser's prefetch must not use the code up
            raise refused("no-prefetch")
        try:
            codes = parse_qs(head.scope["query_string"].decode("ascii", "replace"), max_num_fields=10).get("code", [])
        except ValueError:
            codes = []
        headers = [(b"location", b"/"), (b"content-length", b"0")]
        session_id = self._keys.log_in(codes[0]) if len(codes) == 1 else None
        if session_id is not None:
            headers.append(self._cookie(head, session_id, SESSION_SECONDS))
        elif self._session_caller(head) is None:  # who is logged in already may follow an old link
            raise Refused(_LINK_USED)
        return 303, headers, b""

    def _log_out(self, head: RequestHead) -> Response:
        if head.method != "POST":
            raise Refused(problem_for_status(405, {"Allow": "POST"}))
        if self._session_caller(head) is None:
            raise Refused(_NO_TOKEN)
        check_same_origin(head)
        for session_id in _session_ids(head):
            self._keys.sessions.pop(session_id)
        return 204, [self._cookie(head, "", 0)], b""

    def _cookie(self, head: RequestHead, value: str, seconds: int) -> tuple[bytes, bytes]:
        cookie = f"{_cookie_name(head)}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}"
        if head.scope.get("scheme") == "https" or head.headers[b"host"] in self._https_hosts:
            cookie += "; Secure"
        return b"set-cookie", cookie.encode("ascii")


def _is_public(head: RequestHead) -> bool:
    """True for the inspector page and the page's files (without data), and for `/health`."""
    return head.method in SAFE_METHODS and (head.path in _PUBLIC_PATHS or head.path.startswith(_PUBLIC_FOLDER))


def _cookie_name(head: RequestHead) -> str:
    """The name of the session cookie, with the port: browsers share cookies between all ports of a host."""
    server = head.scope.get("server")
    return f"satchel_session_{server[1] if server else 0}"


def _session_ids(head: RequestHead) -> list[str]:
    """All values of the session cookie: another server on this machine may have set a cookie of the same name."""
    name = _cookie_name(head).encode("ascii")
    pairs = (pair.strip().partition(b"=") for cookies in head.cookies for pair in cookies.split(b";"))
    return [value.decode("latin-1") for key, _, value in pairs if key == name]


class _GuessDelays:
    """Delays responses to addresses with many wrong secrets (brute force). Correct secrets are never delayed."""

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[int, float]] = {}
        self._delayed = 0

    async def delay(self, head: RequestHead, problem: Problem) -> None:
        """Count a wrong secret, and wait if the same address has sent many."""
        if problem.code not in ("wrong-token", _LINK_USED.code):
            return
        client = head.scope.get("client")
        seconds = self._count(client[0] if client else "", time.monotonic())
        if not seconds or self._delayed >= _MAX_DELAYED_REQUESTS:
            return
        self._delayed += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._delayed -= 1

    def _count(self, address: str, now: float) -> float:
        count, last = self._wrong.pop(address, (0, now))
        count = 1 if now - last > _FORGET_SECONDS else count + 1
        while len(self._wrong) >= _MAX_ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
        self._wrong[address] = (count, now)
        if count <= _FREE_GUESSES:
            return 0.0
        doublings = min(_MAX_DOUBLINGS, count - _FREE_GUESSES - 1)
        return min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2.0**doublings)
