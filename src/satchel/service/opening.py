"""Open a workspace: in a folder or several, in a database, or behind a server.

with satchel.open("path/to/repository") as client:
    print(client.build("where is the retry backoff computed").text)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from satchel.models.request import User
    from satchel.service.async_client import AsyncSatchel
    from satchel.service.client import Satchel

Place: TypeAlias = "str | os.PathLike[str]"
"""A folder, the URL of a database, or the URL of a server."""


def open(
    path_or_url: Place | Sequence[Place] = ".",
    *,
    user: User | str | None = None,
    token: str | None = None,
    **settings: Any,
) -> Satchel:
    """Open the workspace in a folder, in a database (`postgresql://…?workspace=name`), or behind a server (`http://…`).

    In a folder, the index is refreshed before each question; `settings` are the same as for `open_engine`. A list of
    folders is asked as one, and so are installed packages (`with_packages=["requests"]`): docs/several-roots.md. For a
    server, the token (or the variable `SATCHEL_TOKEN`) identifies the caller.
    """
    from satchel.errors import InvalidOption
    from satchel.models.request import User

    who = User(id=user) if isinstance(user, str) else user
    places = [path_or_url] if isinstance(path_or_url, str | os.PathLike) else list(path_or_url)
    if not places:
        raise InvalidOption("path_or_url", places, "must name at least one folder")
    if len(places) == 1 and isinstance(places[0], str) and places[0].startswith(("http://", "https://")):
        from satchel.service.remote_client import RemoteSatchel

        if settings:
            raise InvalidOption(
                "settings", sorted(settings), "are settings of the server; give options with each question instead"
            )
        return RemoteSatchel(places[0], token=token or os.environ.get("SATCHEL_TOKEN") or "", user=who)
    from satchel.service.client import Caller
    from satchel.service.open_roots import open_roots

    if token:
        raise InvalidOption("token", "…", "is only for a server; a folder needs no token")
    # A caller with access to the folder is its owner, and may ask as any user.
    return open_roots(places or ["."], caller=Caller(user=who, is_owner=True), **settings)


def open_async(
    path_or_url: Place | Sequence[Place] = ".",
    *,
    user: User | str | None = None,
    token: str | None = None,
    **settings: Any,
) -> AsyncSatchel:
    """Open a workspace for asynchronous code: `async with satchel.open_async(".") as client: …`."""
    from satchel.service.async_client import AsyncSatchel

    return AsyncSatchel(lambda: open(path_or_url, user=user, token=token, **settings))
