"""Tokens and whom they belong to. A token is held as its SHA-256 only."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from satchel.errors import InvalidOption
from satchel.http.sessions import Sessions
from satchel.models.request import User
from satchel.service.identity import OWNER, Caller

LEAST_TOKEN_CHARS: Final = 16
_PREFIX: Final = "satchel_"


class Keyring:
    """Maps tokens, one-time codes and sessions to callers."""

    def __init__(self, callers: Mapping[bytes, Caller], sessions: Sessions | None = None) -> None:
        self._callers = dict(callers)
        self.sessions = sessions or Sessions()

    @classmethod
    def single(cls, token: str, sessions: Sessions | None = None) -> Keyring:
        """One token, the owner's."""
        check_token(token)
        return cls({digest_of(token): OWNER}, sessions)

    @classmethod
    def from_file(cls, path: str | Path, sessions: Sessions | None = None) -> Keyring:
        """The tokens of a TOML file with an entry `[[token]]` for each (docs/http.md)."""
        from satchel.http.key_file import read_key_file

        return cls(read_key_file(Path(path)), sessions)

    @property
    def has_users(self) -> bool:
        """Whether there are tokens that are not an owner's."""
        return any(not caller.is_owner for caller in self._callers.values())

    def __len__(self) -> int:
        return len(self._callers)

    def caller(self, token: str) -> Caller | None:
        """Whose token it is; None if nobody's."""
        digest = digest_of(token)
        found: Caller | None = None
        for known, caller in self._callers.items():  # all of them: the time it takes says nothing
            if hmac.compare_digest(known, digest):
                found = caller
        return found

    def one_time_code(self, caller: Caller) -> str:
        """A code with which a browser can log in as the caller, once and within ten minutes."""
        return self.sessions.one_time_code(caller)


def new_token() -> str:
    """A token that nobody can guess."""
    return _PREFIX + secrets.token_urlsafe(32)


def entry_for(token: str, user: str = "", groups: Sequence[str] = (), owner: bool = False) -> str:
    """The entry of a key file for a token; the token itself is not in it."""
    check_token(token)
    if not user and not owner:
        raise InvalidOption("user", user, "name the token's user, or make it an owner's")
    if groups and not user:
        raise InvalidOption("group", groups[0], "an owner's token without a user is in no group")
    if user:
        User(id=user, groups=tuple(groups))  # the server would refuse what cannot be a user
    lines = ["[[token]]", f'sha256 = "{digest_of(token).hex()}"']
    if user:
        lines.append(f"user = {_quoted(user)}")
    if groups:
        lines.append(f"groups = [{', '.join(map(_quoted, groups))}]")
    if owner:
        lines.append("owner = true")
    return "\n".join(lines) + "\n"


def check_token(token: str) -> None:
    """Refuse tokens that are easily guessed, or that a header cannot carry. The token is in no message."""
    if len(token) < LEAST_TOKEN_CHARS:
        raise InvalidOption("token", "…", f"has {len(token)} characters; it must have {LEAST_TOKEN_CHARS} at least")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidOption("token", "…", "must be ASCII without spaces, or it cannot be sent in a header")


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
