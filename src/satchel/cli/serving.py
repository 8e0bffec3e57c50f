"""Server for a workspace: the HTTP API, the inspector and the MCP server on the same address."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from satchel.errors import ExtraMissing

if TYPE_CHECKING:
    from satchel.http.app import Mount
    from satchel.http.guard.credentials import Keyring
    from satchel.service.open_roots import LocalClient

_NEEDED = ("fastapi", "uvicorn", "prometheus_client", "mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Listening address, credentials, and allowed hosts and origins of a server."""

    host: str = "127.0.0.1"
    port: int = 8420
    keys: Path | None = None
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A running server: its URL, a single-use link to the inspector, and the owner's token if newly generated."""

    url: str
    link: str | None
    token: str | None
    mcp: str | None = None
    notes: tuple[str, ...] = ()


def serve(
    client: LocalClient,
    options: ServerOptions,
    *,
    ready: Callable[[Serving], None],
    log_level: str = "info",
    mcp: bool = True,
) -> bool:
    """Serve a workspace until the server is stopped; returns True if all work was finished by then."""
    _check_packages()
    from satchel.http.app import create_app
    from satchel.http.guard.credentials import Keyring, new_token
    from satchel.http.guard.observability import RequestLog
    from satchel.http.server import Server, bind
    from satchel.service.client import OWNER

    token = None if options.keys else options.token or new_token()
    keys = Keyring.from_file(options.keys) if options.keys else Keyring.single(token or "")
    listener = bind(options.host, options.port, keys_are_given=options.keys is not None)
    log = RequestLog(level=log_level)
    with closing(listener.socket):
        hosts = listener.hosts | set(options.allowed_hosts)
        # Origins of pages served under other host names, through a proxy for HTTPS.
        proxied = {f"https://{host}" for host in options.allowed_hosts}
        origins = listener.origins | set(options.allowed_origins) | proxied
        mounts: list[Mount] = []
        if mcp:
            from satchel.mcp.transports import McpApp

            mcp_app = McpApp(client, hosts=sorted(hosts), origins=sorted(origins))
            mounts = [("/mcp", mcp_app, mcp_app.lifespan)]
        app = create_app(client, keys=keys, hosts=hosts, origins=origins, log=log, mounts=mounts)

        def started(url: str) -> None:
            client.auto_index.refresh_soon()
            ready(
                Serving(
                    url=url,
                    link=f"{listener.url}/login?code={keys.one_time_code(OWNER)}",
                    token=None if options.token else token,
                    mcp=f"{url}/mcp" if mcp else None,
                    notes=_notes(client, keys),
                )
            )

        server = Server(app, listener, log=log, metrics=app.state.metrics, ready=started)
        return server.serve_until_stopped()


def _notes(client: LocalClient, keys: Keyring) -> tuple[str, ...]:
    from satchel.service.local_client import ALONE

    refuses_users = keys.has_users and client.is_owners_alone
    return (f"users' tokens will be refused: {ALONE}",) if refuses_users else ()


def _check_packages() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _NEEDED):
        raise ExtraMissing("satchel serve", "serve")
