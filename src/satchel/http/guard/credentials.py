"""Tokens, key files and browser sessions, each with the caller. Memory holds only the SHA-256 of a secret."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import stat
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final

from satchel.errors import InvalidInput, InvalidOption
from satchel.models.request import User
from satchel.service.client import OWNER, Caller

SESSION_SECONDS: Final = 12 * 60 * 60  # a working day; a stolen cookie expires overnight
_CODE_SECONDS: Final = 10 * 60  # enough to copy the link from the terminal to the browser
_MAX_CODES: Final = 100  # bounds the memory under repeated logins; a new code replaces the oldest
_MAX_SESSIONS: Final = 1_000  # bounds the memory under repeated logins; a new session replaces the oldest

_MIN_TOKEN_CHARS: Final = 16  # shorter tokens can be guessed (brute force)
_SHA256_HEX: Final = re.compile("[0-9A-Fa-f]{64}")
_MAX_KEY_FILE_BYTES: Final = 1_000_000  # some 5,000 tokens; a larger file is named by mistake
_KEY_FILE_FIELDS: Final = ("sha256", "token", "user", "groups", "owner")


class Keyring:
    """Maps tokens and browser sessions to callers. The session id is the value of the browser's cookie."""

    def __init__(self, callers: Mapping[bytes, Caller], clock: Callable[[], float] = time.monotonic) -> None:
        self._callers = dict(callers)
        self._codes = ExpiringSecrets(_CODE_SECONDS, _MAX_CODES, clock)
        self.sessions = ExpiringSecrets(SESSION_SECONDS, _MAX_SESSIONS, clock)

    @classmethod
    def single(cls, token: str) -> Keyring:
        """A keyring with a single token for the owner."""
        check_token(token)
        return cls({digest_of(token): OWNER})

    @classmethod
    def from_file(cls, path: str | Path) -> Keyring:
        """The tokens of a TOML file with an entry `[[token]]` for each (docs/http.md)."""
        return cls(_read_key_file(Path(path)))

    @property
    def has_users(self) -> bool:
        """True if a token belongs to a user who is not an owner."""
        return any(not caller.is_owner for caller in self._callers.values())

    def caller(self, token: str) -> Caller | None:
        """The caller with this token; None for an unknown token."""
        digest = digest_of(token)
        owner: Caller | None = None
        for known_digest, caller in self._callers.items():  # all of them: the time must reveal nothing (timing attack)
            if hmac.compare_digest(known_digest, digest):
                owner = caller
        return owner

    def one_time_code(self, caller: Caller) -> str:
        """A one-time login code for a browser of the caller, valid for ten minutes."""
        return self._codes.add(caller)

    def log_in(self, code: str) -> str | None:
        """Use up a login code and return the id of the new session; None for an unknown code."""
        caller = self._codes.pop(code)
        return self.sessions.add(caller) if caller else None


class ExpiringSecrets:
    """Secrets with a lifetime and their callers; at `max_count` a new secret replaces the oldest."""

    def __init__(self, seconds: float, max_count: int, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._max_count = max_count
        self._clock = clock
        self._entries: dict[bytes, tuple[Caller, float]] = {}
        self._lock = Lock()

    def add(self, caller: Caller) -> str:
        """Create a secret for the caller."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._entries) >= self._max_count:
                del self._entries[next(iter(self._entries))]
            self._entries[digest_of(secret)] = (caller, self._clock() + self._seconds)
        return secret

    def get(self, secret: str) -> Caller | None:
        """The caller with this secret; None for an unknown or expired secret."""
        with self._lock:
            return self._valid(self._entries.get(digest_of(secret)))

    def pop(self, secret: str) -> Caller | None:
        """Remove a secret and return the caller; None for an unknown or expired secret."""
        with self._lock:
            return self._valid(self._entries.pop(digest_of(secret), None))

    def _valid(self, entry: tuple[Caller, float] | None) -> Caller | None:
        return entry[0] if entry and self._clock() < entry[1] else None


def new_token() -> str:
    """A random token."""
    return "satchel_" + secrets.token_urlsafe(32)


def check_token(token: str) -> None:
    """Refuse tokens easily guessed (too short) or not valid in a header. No message repeats the token."""
    if len(token) < _MIN_TOKEN_CHARS:
        raise InvalidOption("token", "…", f"has {len(token)} characters; at least {_MIN_TOKEN_CHARS} are required")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidOption("token", "…", "must be ASCII without spaces, to fit in an HTTP header")


def digest_of(secret: str) -> bytes:
    """The SHA-256 of a token, code or session id."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


# -- key files


def entry_for(token: str, user: str = "", groups: Sequence[str] = (), owner: bool = False) -> str:
    """The entry of a key file for a token: the SHA-256 of the token, never the token."""
    check_token(token)
    if not user and not owner:
        raise InvalidOption("user", user, "give the token's user, or make an owner's token")
    if groups and not user:
        raise InvalidOption("group", groups[0], "an owner's token without a user cannot have groups")
    if user:
        User(id=user, groups=tuple(groups))  # raises InvalidInput for a user that the server would refuse
    entry = {"sha256": digest_of(token).hex(), "user": user, "groups": list(groups), "owner": owner}
    # Strings, lists of strings and `true` are the same in TOML and JSON, except for U+007F (DEL).
    values = {name: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for name, value in entry.items()}
    return "\n".join(["[[token]]", *(f"{name} = {values[name]}" for name, value in entry.items() if value)]) + "\n"


def _read_key_file(path: Path) -> dict[bytes, Caller]:
    """Callers by the SHA-256 of their tokens."""
    callers: dict[bytes, Caller] = {}
    place = str(path)
    try:
        with path.open("rb") as file:
            data, mode = file.read(_MAX_KEY_FILE_BYTES + 1), os.fstat(file.fileno()).st_mode
        for number, entry in enumerate(_parse_entries(data), 1):
            place = f"{path}, token {number}"
            digest, caller = _parse_entry(entry, may_hold_tokens=not mode & stat.S_IROTH)
            if digest in callers:
                raise ValueError("has the same token as an entry before it")
            callers[digest] = caller
    except OSError as error:
        raise InvalidOption("keys", place, f"cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InvalidOption("keys", place, str(error)) from None
    return callers


def _parse_entries(data: bytes) -> list[Any]:
    """The entries of a key file; raises ValueError with the reason."""
    if len(data) > _MAX_KEY_FILE_BYTES:
        raise ValueError(f"is larger than {_MAX_KEY_FILE_BYTES:,} bytes")
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"is not TOML ({error})") from None
    entries = values.pop("token", None)
    if values:
        raise ValueError(f"contains the unknown key {sorted(values)[0]!r}; write [[token]]")
    if not isinstance(entries, list) or not entries:
        raise ValueError("contains no token; add an entry with [[token]], sha256 and user")
    return entries


def _parse_entry(entry: Any, *, may_hold_tokens: bool) -> tuple[bytes, Caller]:
    """The token digest and the caller of an entry; raises ValueError with the reason."""
    if not isinstance(entry, dict):
        raise ValueError("must be a table: [[token]]")
    for name in entry:
        if name not in _KEY_FILE_FIELDS:
            raise ValueError(f"{name!r} is not a field of a token; known fields: {', '.join(_KEY_FILE_FIELDS)}")
    if "token" in entry and not may_hold_tokens:
        raise ValueError(
            "contains a plain-text token and is readable by other users: chmod 600, or write the token's sha256 instead"
        )
    return _entry_digest(entry.get("token"), entry.get("sha256")), _entry_caller(entry)


def _entry_digest(token: Any, digest: Any) -> bytes:
    if (token is None) == (digest is None):
        raise ValueError("must have either sha256 or token")
    if token is None:
        if not isinstance(digest, str) or not _SHA256_HEX.fullmatch(digest):
            raise ValueError("sha256 must be 64 hexadecimal digits")
        return bytes.fromhex(digest)
    if not isinstance(token, str):
        raise ValueError("token must be text")
    try:
        check_token(token)
    except InvalidOption as error:
        raise ValueError(f"its token {error.problem}") from None
    return digest_of(token)


def _entry_caller(entry: dict[str, Any]) -> Caller:
    user, groups, is_owner = entry.get("user"), entry.get("groups", []), entry.get("owner", False)
    if not isinstance(is_owner, bool):
        raise ValueError("owner must be true or false")
    if user is None:
        if not is_owner or groups:
            raise ValueError("must have a user; only an owner's token without groups may omit it")
        return OWNER
    if not isinstance(groups, list):
        raise ValueError("groups must be a list")
    try:
        return Caller(user=User(id=user, groups=tuple(groups)), is_owner=is_owner)
    except InvalidInput as error:
        raise ValueError(f"{error.field}: {error.problem}") from None
    except TypeError:
        raise ValueError("groups must be a list of names") from None
