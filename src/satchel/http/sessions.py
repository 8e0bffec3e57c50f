"""Browser sessions: a code that works once is traded for a cookie. Both are held in memory, as digests only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from satchel.service.identity import Caller

CODE_SECONDS: Final = 10 * 60
SESSION_SECONDS: Final = 12 * 60 * 60
_MOST_CODES: Final = 100
_MOST_SESSIONS: Final = 1_000


class Sessions:
    """Who has logged in, and who may."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes = _Held(_MOST_CODES)
        self._sessions = _Held(_MOST_SESSIONS)
        self._lock = Lock()

    def one_time_code(self, caller: Caller) -> str:
        """A code with which a browser can log in as the caller, once and soon."""
        return self._made(self._codes, caller, CODE_SECONDS)

    def log_in(self, code: str) -> str | None:
        """A new session's id for a code; the code is used up."""
        with self._lock:
            caller = self._codes.taken(code, self._clock())
        return self._made(self._sessions, caller, SESSION_SECONDS) if caller else None

    def caller(self, session_id: str) -> Caller | None:
        """Whose session it is."""
        with self._lock:
            return self._sessions.found(session_id, self._clock())

    def log_out(self, session_id: str) -> None:
        """Forget a session."""
        with self._lock:
            self._sessions.taken(session_id, self._clock())

    def _made(self, held: _Held, caller: Caller, seconds: float) -> str:
        secret = secrets.token_urlsafe(32)
        with self._lock:
            held.add(secret, caller, self._clock() + seconds)
        return secret


class _Held:
    """So many secrets, the oldest of which gives way to a new one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[bytes, tuple[Caller, float]] = {}

    def add(self, secret: str, caller: Caller, until: float) -> None:
        while len(self._entries) >= self._most:
            del self._entries[next(iter(self._entries))]
        self._entries[_digest(secret)] = (caller, until)

    def found(self, secret: str, now: float) -> Caller | None:
        entry = self._entries.get(_digest(secret))
        return entry[0] if entry and now < entry[1] else None

    def taken(self, secret: str, now: float) -> Caller | None:
        entry = self._entries.pop(_digest(secret), None)
        return entry[0] if entry and now < entry[1] else None


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
