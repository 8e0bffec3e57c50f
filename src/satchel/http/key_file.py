"""Reading a file of tokens."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

from satchel.errors import InvalidInput, InvalidOption
from satchel.http.keys import check_token, digest_of
from satchel.models.request import User
from satchel.service.identity import OWNER, Caller

_MOST_BYTES: Final = 1_000_000
_KNOWN: Final = ("sha256", "token", "user", "groups", "owner")
_DIGEST_CHARS: Final = 64


def read_key_file(path: Path) -> dict[bytes, Caller]:
    """The callers by the digests of their tokens."""
    data, mode = _read(path)
    found: dict[bytes, Caller] = {}
    for number, entry in enumerate(_entries(path, data), 1):
        where = f"{path}, token {number}"
        if not isinstance(entry, dict):
            raise InvalidOption("keys", where, "must be a table: [[token]]")
        for name in entry:
            if name not in _KNOWN:
                raise InvalidOption("keys", where, f"{name!r} is not known; it may have {', '.join(_KNOWN)}")
        if "token" in entry and mode & stat.S_IROTH:
            told = "holds a token as plain text and everybody may read the file: chmod 600, or write its sha256 instead"
            raise InvalidOption("keys", where, told)
        digest = _digest(where, entry)
        if digest in found:
            raise InvalidOption("keys", where, "has the same token as an entry before it")
        found[digest] = _caller(where, entry)
    return found


def _read(path: Path) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1), os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise InvalidOption("keys", str(path), f"cannot be read ({error.strerror})") from None


def _entries(path: Path, data: bytes) -> list[Any]:
    if len(data) > _MOST_BYTES:
        raise InvalidOption("keys", str(path), f"is larger than {_MOST_BYTES:,} bytes")
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidOption("keys", str(path), "is not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidOption("keys", str(path), f"is not TOML ({error})") from None
    entries = values.pop("token", None)
    if values:
        raise InvalidOption("keys", str(path), f"holds {sorted(values)[0]!r}, which is not known; write [[token]]")
    if not isinstance(entries, list) or not entries:
        raise InvalidOption("keys", str(path), "holds no token; write one with [[token]], sha256 and user")
    return entries


def _digest(where: str, entry: dict[str, Any]) -> bytes:
    token, digest = entry.get("token"), entry.get("sha256")
    if (token is None) == (digest is None):
        raise InvalidOption("keys", where, "must have either sha256 or token")
    if token is not None:
        if not isinstance(token, str):
            raise InvalidOption("keys", where, "token must be text")
        try:
            check_token(token)
        except InvalidOption as error:
            raise InvalidOption("keys", where, f"its token {error.problem}") from None
        return digest_of(token)
    try:
        if isinstance(digest, str) and len(digest) == _DIGEST_CHARS:
            return bytes.fromhex(digest)
    except ValueError:
        """Told below."""
    raise InvalidOption("keys", where, f"sha256 must be {_DIGEST_CHARS} hexadecimal digits")


def _caller(where: str, entry: dict[str, Any]) -> Caller:
    owner = entry.get("owner", False)
    user = entry.get("user")
    groups = entry.get("groups", [])
    if not isinstance(owner, bool):
        raise InvalidOption("keys", where, "owner must be true or false")
    if user is None:
        if not owner or groups:
            raise InvalidOption(
                "keys", where, "must have a user; only an owner's token may go without, and without groups"
            )
        return OWNER
    if not isinstance(groups, list):
        raise InvalidOption("keys", where, "groups must be a list")
    try:
        return Caller(user=User(id=user, groups=tuple(groups)), is_owner=owner)
    except InvalidInput as error:
        raise InvalidOption("keys", where, f"{error.field}: {error.problem}") from None
    except TypeError:
        raise InvalidOption("keys", where, "groups must be a list of names") from None
