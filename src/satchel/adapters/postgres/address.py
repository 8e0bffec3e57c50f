"""Where a workspace is: `postgresql://user@host/database?workspace=name`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from satchel.errors import InvalidOption

SCHEMES: Final = ("postgresql://", "postgres://")
_MOST_NAME_CHARS: Final = 200


def is_address(text: object) -> bool:
    """Whether a text names a database."""
    return isinstance(text, str) and text.startswith(SCHEMES)


@dataclass(frozen=True, slots=True)
class Address:
    """A database, as psycopg takes it, and the workspace in it."""

    database: str
    workspace: str

    @property
    def shown(self) -> str:
        """The same without the password."""
        parts = urlsplit(self.database)
        user, at, host = parts.netloc.rpartition("@")
        netloc = f"{user.partition(':')[0]}{at}{host}"
        kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
        return urlunsplit(parts._replace(netloc=netloc, query=urlencode([*kept, ("workspace", self.workspace)])))


def address_of(url: str, workspace: str = "") -> Address:
    """The address that a URL names; `workspace` is for one that names none."""
    if not is_address(url):
        raise InvalidOption("store", url, "must be a URL as postgresql://user@host/database?workspace=name")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  it is checked when it is asked for
    except ValueError as error:
        raise InvalidOption("store", "postgresql://…", f"is no URL: {error}") from None
    given = parse_qsl(parts.query, keep_blank_values=True)
    named = [value for name, value in given if name == "workspace"]
    name = named[-1] if named else workspace or "default"
    if not name.strip() or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise InvalidOption("workspace", name, f"must be a name of 1 to {_MOST_NAME_CHARS} printable characters")
    rest = urlencode([(key, value) for key, value in given if key != "workspace"])
    return Address(urlunsplit(parts._replace(query=rest)), name)
