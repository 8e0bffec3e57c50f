"""Who asks: a bearer's token or a browser's session."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from satchel.http.heads import SAFE_METHODS, Head, check_own_page
from satchel.http.problems import Problem, Refused, problem

if TYPE_CHECKING:
    from starlette.types import Scope

    from satchel.http.keys import Keyring
    from satchel.service.identity import Caller

_OPEN: Final = frozenset({"/", "/health"})
_OPEN_FOLDER: Final = "/assets/"

_WRONG_FOR_FREE: Final = 5
_FORGOTTEN_AFTER_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0
_MOST_ADDRESSES: Final = 1_000
_MOST_PAUSING: Final = 100


def is_open(head: Head) -> bool:
    """Whether anybody may have it: the page and its files hold no data."""
    return head.method in SAFE_METHODS and (head.path in _OPEN or head.path.startswith(_OPEN_FOLDER))


def cookie_name(scope: Scope) -> str:
    """Cookies do not know ports, so each server on a machine has a name of its own."""
    server = scope.get("server")
    return f"satchel_session_{server[1] if server else 0}"


def session_ids(head: Head, name: str) -> list[str]:
    """The values of the session's cookie. Another server on this machine may have set one of the same name."""
    found = []
    for header in head.cookies:
        for pair in header.split(b";"):
            key, _, value = pair.strip().partition(b"=")
            if key == name.encode("ascii"):
                found.append(value.decode("latin-1"))
    return found


def caller_by_cookie(head: Head, scope: Scope, keys: Keyring) -> Caller | None:
    """Whose session the request belongs to."""
    if not head.cookies:
        return None
    found = (keys.sessions.caller(one) for one in session_ids(head, cookie_name(scope)))
    return next((caller for caller in found if caller), None)


def admitted(head: Head, scope: Scope, keys: Keyring) -> Caller | None:
    """The caller; None for what is open to anybody. Refuses everybody else."""
    given = head.said.get(b"authorization")
    if given is not None:
        caller = _bearer(given, keys)
        if caller is None and not is_open(head):
            raise Refused(_wrong_token())
        return caller
    caller = caller_by_cookie(head, scope, keys)
    if caller is not None and head.method not in SAFE_METHODS:
        check_own_page(head)
    if caller is None and not is_open(head):
        raise Refused(no_token())
    return caller


def caller_by_token(head: Head, keys: Keyring) -> Caller:
    """Whose token the request holds; a refusal where it holds none, or a wrong one."""
    given = head.said.get(b"authorization")
    if given is None:
        raise Refused(no_token())
    caller = _bearer(given, keys)
    if caller is None:
        raise Refused(_wrong_token())
    return caller


def _bearer(given: bytes, keys: Keyring) -> Caller | None:
    scheme, _, token = given.partition(b" ")
    return keys.caller(token.strip().decode("latin-1")) if scheme.lower() == b"bearer" else None


def no_token() -> Problem:
    """For who did not say who they are."""
    told = "Send the token as Authorization: Bearer …; in a browser, open the link that the server printed."
    return problem(401, "no-token", "Who asks?", told, {"WWW-Authenticate": "Bearer"})


def _wrong_token() -> Problem:
    told = "This token is not one of this server's."
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
    return problem(401, "wrong-token", "The token is wrong", told, headers)


class Guesses:
    """Makes who guesses wait longer each time. Nobody waits before it is known that a token is wrong."""

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[int, float]] = {}
        self._pausing = 0

    async def pause(self, scope: Scope) -> None:
        """Count a wrong guess, and wait if there were many from there."""
        client = scope.get("client")
        seconds = self._counted(client[0] if client else "", time.monotonic())
        if not seconds or self._pausing >= _MOST_PAUSING:
            return
        self._pausing += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._pausing -= 1

    def _counted(self, address: str, now: float) -> float:
        count, last = self._wrong.pop(address, (0, now))
        count = 1 if now - last > _FORGOTTEN_AFTER_SECONDS else count + 1
        while len(self._wrong) >= _MOST_ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
        self._wrong[address] = (count, now)
        if count <= _WRONG_FOR_FREE:
            return 0.0
        return min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(10, count - _WRONG_FOR_FREE - 1))
