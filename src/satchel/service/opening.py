"""Open a workspace: in a folder, in a database, or behind a server.

with satchel.open("path/to/repository") as client:
    print(client.build("where is the retry backoff computed").text)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.models.request import User
    from satchel.service.async_client import AsyncSatchel
    from satchel.service.client import Satchel


def open(
    path_or_url: str | os.PathLike[str] = ".",
    *,
    user: User | str | None = None,
    token: str | None = None,
    **settings: Any,
) -> Satchel:
    """Open the workspace in a folder, in a database (`postgresql://…?workspace=name`), or behind a server (`http://…`).

    In a folder, the index is refreshed before each question; `settings` are the same as for `open_engine`. For a
    server, the token (or the variable `SATCHEL_TOKEN`) identifies the caller.
    """
    from satchel.errors import InvalidOption
    from satchel.models.request import User

    who = User(id=user) if isinstance(user, str) else user
    if isinstance(path_or_url, str) and path_or_url.startswith(("http://", "https://")):
        from satchel.service.remote_client import RemoteSatchel

        if settings:
            raise InvalidOption(
                "settings", sorted(settings), "are settings of the server; give options with each question instead"
            )
        return RemoteSatchel(path_or_url, token=token or os.environ.get("SATCHEL_TOKEN") or "", user=who)
    from satchel.service.client import Caller
    from satchel.service.local_client import open_local

    if token:
        raise InvalidOption("token", "…", "is only for a server; a folder needs no token")
    # A caller with access to the folder is its owner, and may ask as any user.
    return open_local(path_or_url, caller=Caller(user=who, is_owner=True), **settings)


def open_async(
    path_or_url: str | os.PathLike[str] = ".",
    *,
    user: User | str | None = None,
    token: str | None = None,
    **settings: Any,
) -> AsyncSatchel:
    """Open a workspace for asynchronous code: `async with satchel.open_async(".") as client: …`."""
    from satchel.service.async_client import AsyncSatchel

    return AsyncSatchel(lambda: open(path_or_url, user=user, token=token, **settings))
