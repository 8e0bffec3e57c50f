"""Chroma clients with time-outs, without telemetry, and with errors for the user to act on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from satchel.errors import LibraryUnavailable, SatchelError

_HEARTBEAT: Final = "/api/v2/heartbeat"


def chromadb() -> Any:
    """The chromadb module; raises LibraryUnavailable with the install command if the extra is missing."""
    try:
        import chromadb as library
    except ImportError:
        raise LibraryUnavailable("chroma", "needs an extra: pip install 'satchel[chroma]'") from None
    return library


def open_folder(path: str | Path) -> Any:
    """A client of the Chroma database in a local folder."""
    library = chromadb()
    with chroma_errors(str(path)):
        try:
            return library.PersistentClient(str(path), settings=_settings(library))
        except ValueError as error:
            if "different settings" not in str(error):
                raise
            raise LibraryUnavailable(
                f"chroma {path}",
                "this process has opened the folder with other settings; pass that client to ChromaLibrary(client, …)",
            ) from None


def open_remote(
    connect: Callable[[Any, Any], Any],
    host: str,
    port: int,
    *,
    ssl: bool,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The client returned by `connect`, after a heartbeat in time; `timeout_s` applies to all later requests."""
    library = chromadb()
    where = f"{'https' if ssl else 'http'}://{host}:{port}"
    with chroma_errors(where):
        _check_heartbeat(where, headers, timeout_s)
        client = connect(library, _settings(library))
        for session in _sessions(client):
            session.timeout = timeout_s
        return client


def _settings(library: Any) -> Any:
    return library.config.Settings(anonymized_telemetry=False)


def _check_heartbeat(where: str, headers: Mapping[str, str] | None, timeout_s: float) -> None:
    """Check the heartbeat first: Chroma's own client sends the first requests without a time-out."""
    import httpx

    httpx.get(where + _HEARTBEAT, headers=dict(headers or {}), timeout=timeout_s).raise_for_status()


def _sessions(client: Any) -> list[Any]:
    """The HTTP clients in a Chroma client, its own and the admin client's; neither has a time-out."""
    clients = (client, getattr(client, "_admin_client", None))
    servers = [getattr(holder, "_server", None) for holder in clients]
    sessions = [getattr(server, "_session", None) for server in servers]
    return [session for session in sessions if session is not None]


def shut(client: Any) -> None:
    """Close a client, and the connections left open by the client's own `close`."""
    sessions = _sessions(client)
    client.close()
    for session in sessions:
        session.close()


def address_of(client: Any) -> str:
    """The location of the client's data, for messages."""
    url = getattr(getattr(client, "_server", None), "_api_url", None)
    if isinstance(url, str):
        return url.partition("/api/")[0]
    try:
        settings = client.get_settings()
        return str(settings.persist_directory) if settings.is_persistent else "in memory"
    except Exception:  # an unknown type of client
        return "(the caller's client)"


@contextmanager
def chroma_errors(where: str) -> Iterator[None]:
    """Raise errors of Chroma and of the connection as LibraryUnavailable."""
    try:
        yield
    except (SatchelError, MemoryError):
        raise
    except BaseException as error:
        # Chroma's Rust bindings raise a panic as a BaseException.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise LibraryUnavailable(f"chroma {where}", _reason(error)) from error


def _reason(error: BaseException) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    message = " ".join(str(error).split())[:300]
    if kinds & {"TimeoutException", "ReadTimeout", "ConnectTimeout"}:
        return "does not answer in time; is the server busy or the address wrong? timeout_s=… waits longer"
    if "ConnectError" in kinds or "Could not connect" in message:
        return f"no answer ({message}); start the server with `chroma run --host … --port …`, or correct the address"
    if "NotFoundError" in kinds:
        return f"{message}; was it removed by another program? Open the library again"
    if kinds & {"ChromaAuthError", "AuthorizationError"} or " 401" in message or " 403" in message:
        return f"the server refused access ({message}); correct the key, the tenant or the database"
    return f"{type(error).__name__}: {message}"
