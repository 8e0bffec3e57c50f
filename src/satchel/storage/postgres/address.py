"""The address of a workspace: `postgresql://user@host/database?workspace=name`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from satchel.errors import InvalidOption

_SCHEMES: Final = ("postgresql://", "postgres://")
_MAX_WORKSPACE_NAME_CHARS: Final = 200  # at most 800 bytes in UTF-8; PostgreSQL indexes up to about 2,600


@dataclass(frozen=True, slots=True)
class Address:
    """A database URL for psycopg, and the name of a workspace."""

    database: str
    workspace: str

    @property
    def shown(self) -> str:
        """The address without the password."""
        parts = urlsplit(self.database)
        user, at, host = parts.netloc.rpartition("@")
        netloc = f"{user.partition(':')[0]}{at}{host}"
        public = [(name, value) for name, value in _parameters(parts.query) if "password" not in name.lower()]
        return urlunsplit(parts._replace(netloc=netloc, query=_query([*public, ("workspace", self.workspace)])))


def address_of(url: str, workspace: str = "") -> Address:
    """The address in a URL; `workspace` is the default for a URL without a workspace."""
    if not url.startswith(_SCHEMES):
        start = f"{url.partition('://')[0][:20]}://..." if "://" in url else f"{url.partition(':')[0][:20]}..."
        raise InvalidOption("store", start, "must be a URL like postgresql://user@host/database?workspace=name")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  reading the port validates it
    except ValueError as error:
        raise InvalidOption("store", "postgresql://...", f"is not a URL: {error}") from None
    parameters = _parameters(parts.query)
    name = dict(parameters).get("workspace", workspace or "default")
    if not name.strip() or len(name) > _MAX_WORKSPACE_NAME_CHARS or not name.isprintable():
        raise InvalidOption(
            "workspace", name, f"must be a name of 1 to {_MAX_WORKSPACE_NAME_CHARS} printable characters"
        )
    rest = _query([(key, value) for key, value in parameters if key != "workspace"])
    return Address(urlunsplit(parts._replace(query=rest)), name)


def _parameters(query: str) -> list[tuple[str, str]]:
    """The parameters of a URL, parsed like PostgreSQL does: a plus sign stays a plus sign."""
    parts = [part.partition("=") for part in query.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in parts]


def _query(parameters: list[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='/')}" for name, value in parameters)
