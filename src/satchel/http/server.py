"""The HTTP server: uvicorn with a listener, limits for slow clients, and a graceful stop.

uvicorn waits without end for a request's head and for a client to read its response (slow clients, slowloris). Here the
server looks at each connection several times a second (`check`) and ends those that took too long.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import math
import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from satchel.errors import InvalidOption
from satchel.http.guard.middleware import CLIENT_GONE, SECURITY_HEADERS, STREAMING
from satchel.http.guard.observability import Metrics, RequestLog, redirect_server_logs
from satchel.http.guard.request_checks import DEFAULT_LIMITS, HttpLimits
from satchel.http.problems import Problem, problem_for_status, refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


_SETTLED_SECONDS: Final = 1.0  # at the limit, a client silent for this long loses the connection to a new client
_MAX_TURNED_AWAY_CONNECTIONS: Final = 256  # above the limit, with a response; the rest are cut off

_H11_PROBLEMS: Final = {431: problem_for_status(431), 501: refusal("unknown-coding")}


def connection_class(limits: HttpLimits, on_refusal: Callable[[int, str], None]) -> type[GuardedConnection]:
    """The connection class of a server, with the server's limits."""
    shared = {"limits": limits, "on_refusal": staticmethod(on_refusal), "waiting": {}}
    return type("SatchelConnection", (GuardedConnection,), shared)


class GuardedConnection(H11Protocol):
    """An HTTP connection with limits for slow clients (slowloris)."""

    limits: ClassVar[HttpLimits]
    on_refusal: ClassVar[Callable[[int, str], None]]  # called with the status and code of each refusal
    waiting: ClassVar[dict[GuardedConnection, float]]  # connections without a request, the longest waiting first

    _waiting_since = 0.0
    _refused_at: float | None = None
    _stalled_since: float | None = None
    _stalled_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse the client above the connection limit."""
        super().connection_made(transport)
        if len(self.connections) <= self.limits.connections or self._make_room():
            self._wait()
        elif len(self.connections) <= self.limits.connections + _MAX_TURNED_AWAY_CONNECTIONS:
            self._refuse(refusal("server-busy/connections"))
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read data from the client; after a refusal, discard the data."""
        if self._refused_at is not None:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self.waiting.pop(self, None)

    def on_response_complete(self) -> None:
        """Start waiting for the next request."""
        self._wait()
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE:
            self.waiting.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the client of the running request as gone."""
        self.waiting.pop(self, None)
        self._mark_client_gone()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def resume_writing(self) -> None:
        """Reset the stall timer: the client reads again."""
        self._stalled_since = None
        super().resume_writing()

    def shutdown(self) -> None:
        """Stop with the server: finish a running response, but close a stream."""
        if self.transport.is_closing():
            return
        if self._refused_at is not None or (self._is_busy and STREAMING in self.cycle.scope):
            self.transport.close()
        else:
            super().shutdown()

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _mark_client_gone(self) -> None:
        if self._is_busy:
            self.cycle.scope[CLIENT_GONE] = True  # type: ignore[typeddict-unknown-key]

    def check(self, now: float) -> None:
        """Close the connection of a slow client (slowloris)."""
        if self._is_stalled(now):
            type(self).on_refusal(408, "client-stalled")
            self.transport.abort()
        elif self.transport.is_closing():
            return
        elif self._refused_at is not None:
            if now - self._refused_at >= self.limits.linger_seconds:
                self.transport.close()
        elif self.conn.their_state is h11.IDLE and now - self._waiting_since >= self.limits.header_seconds:
            self._refuse(refusal("head-too-slow"), silently=not self.conn.trailing_data[0])

    def send_400_response(self, _: str) -> None:
        """Refuse invalid HTTP. Called by uvicorn while an exception of h11 is handled."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        self._refuse(_H11_PROBLEMS.get(status, refusal("bad-request/http")))

    def _is_stalled(self, now: float) -> bool:
        """True if the client reads the response slower than `download_rate` for `stalled_seconds`."""
        unread = self.transport.get_write_buffer_size()
        enough = self.limits.download_rate * self.limits.stalled_seconds
        if not unread:
            self._stalled_since = None
        elif self._stalled_since is None or unread <= self._stalled_bytes - enough:
            self._stalled_since, self._stalled_bytes = now, unread
        else:
            return now - self._stalled_since >= self.limits.stalled_seconds
        return False

    def _wait(self) -> None:
        self._waiting_since = self.loop.time()
        self.waiting.pop(self, None)
        self.waiting[self] = self._waiting_since

    def _make_room(self) -> bool:
        """Close the connection with the longest wait for a request; False if none has waited long enough."""
        oldest = next(iter(self.waiting), None)
        if oldest is None or self.loop.time() - self.waiting[oldest] < _SETTLED_SECONDS:
            return False
        del self.waiting[oldest]
        oldest.transport.close()
        return True

    def _refuse(self, refusal: Problem, silently: bool = False) -> None:
        """Respond with a problem, then discard further data until the client leaves or `linger_seconds` pass."""
        self.waiting.pop(self, None)
        self._unset_keepalive_if_required()
        type(self).on_refusal(refusal.status, refusal.code)
        if self._is_busy:
            self._mark_client_gone()
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.abort()
                return
        if silently or self.transport.is_closing():
            self.transport.close()
            return
        self._refused_at = self.loop.time()
        self.flow.resume_reading()
        self.transport.write(_raw_response(refusal))
        self.transport.write_eof()


def _raw_response(refusal: Problem) -> bytes:
    """The bytes of a whole response, for refusals before there is an ASGI request."""
    headers, body = refusal.encode()
    status = f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\n".encode("ascii")
    pairs = [*headers, *SECURITY_HEADERS, (b"connection", b"close")]
    return status + b"".join(b"%s: %s\r\n" % pair for pair in pairs) + b"\r\n" + body


_BACKLOG_CONNECTIONS: Final = 2_048  # queued by the kernel until accepted, as in uvicorn; Linux caps the number
_HTTP_PORT: Final = 80  # the default port of http: browsers omit the port in the Host header
_INTERRUPTED_EXIT_CODE: Final = 130  # 128 + SIGINT, as shells report an interrupted process
_WORKER_THREADS: Final = 32  # for `asyncio.to_thread` (large JSON bodies): the maximum of Python's default pool
_FILES_BESIDE_CONNECTIONS: Final = 512  # room for indexes, uploads, and sockets to databases and models
_POLL_SECONDS: Final = 0.02  # between checks for running requests at a stop; a stop takes at most this much longer
_CANCEL_SECONDS: Final = 1  # for cancelled requests to end; a worker thread cannot be cancelled and is left behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listening socket, with the URL and the valid Host and Origin headers."""

    socket: socket.socket
    host: str
    port: int

    @property
    def url(self) -> str:
        """The URL for a client on this machine."""
        return f"http://{_in_url(self._address)}:{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """The valid Host headers."""
        names = {_in_url(self._address)}
        if ipaddress.ip_address(self._address).is_loopback:
            names.add("localhost")
        with_port = {f"{name}:{self.port}" for name in names}
        return frozenset(with_port | names if self.port == _HTTP_PORT else with_port)

    @property
    def origins(self) -> frozenset[str]:
        """The valid Origin headers."""
        return frozenset(f"http://{host}" for host in self.hosts)

    @property
    def _address(self) -> str:
        address = ipaddress.ip_address(self.host)
        if not address.is_unspecified:
            return self.host
        return "127.0.0.1" if address.version == 4 else "::1"


def bind(host: str = "127.0.0.1", port: int = 0, *, keys_are_given: bool = False) -> Listener:
    """A bound listener; port 0 picks a free port. Without a key file only loopback addresses are allowed."""
    if not 0 <= port <= 65_535:
        raise InvalidOption("port", port, "must be from 0 to 65535")
    family, address = _resolve(host)
    if not keys_are_given and not ipaddress.ip_address(address).is_loopback:
        problem = "is not a loopback address (127.0.0.1, ::1, localhost)."
        raise InvalidOption("host", host, f"{problem} To serve other machines, give users tokens with --keys")
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is named.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(_BACKLOG_CONNECTIONS)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _unbindable(host, port, error) from None
    return Listener(socket=listening, host=address, port=listening.getsockname()[1])


def _resolve(host: str) -> tuple[socket.AddressFamily, str]:
    """The address family and address of a host, IPv4 preferred. Refuses a host with loopback and other addresses."""
    if not host or not host.isprintable():
        raise InvalidOption("host", host, "is not a host name or an address")
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host name"
        raise InvalidOption("host", host, f"cannot be resolved ({reason})") from None
    addresses = sorted({(family, str(where[0])) for family, _, _, _, where in infos})
    if len({ipaddress.ip_address(address.partition("%")[0]).is_loopback for _, address in addresses}) != 1:
        raise InvalidOption("host", host, "resolves to several addresses; give the address to listen on")
    return addresses[0]


def _unbindable(host: str, port: int, error: OSError) -> InvalidOption:
    if error.errno == errno.EADDRINUSE:
        problem = "is in use, perhaps by another Satchel; stop that process, or choose another port with --port"
        return InvalidOption("port", port, f"{problem} (0: any free port)")
    if error.errno == errno.EACCES:
        return InvalidOption("port", port, "is not allowed for this user; choose a port above 1023 with --port")
    return InvalidOption("host", host, f"cannot listen on this address ({error.strerror})")


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class Server(uvicorn.Server):
    """A uvicorn server with a `Listener` and `GuardedConnection`s. `stop` may be called from any thread.

    `ready` is called with the URL. The first SIGINT or SIGTERM stops the server, the second ends the process.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: Listener,
        *,
        limits: HttpLimits = DEFAULT_LIMITS,
        log: RequestLog | None = None,
        metrics: Metrics | None = None,
        ready: Callable[[str], None] | None = None,
    ) -> None:
        self._log = log or RequestLog()
        self._metrics = metrics or Metrics()
        self._limits = limits
        self._listener = listener
        self._ready = ready
        self._app = app
        self._startup_error: Exception | None = None
        self._finished_all = True
        config = uvicorn.Config(
            self._run_app,
            http=connection_class(limits, self._record_refusal),
            loop="asyncio",
            ws="none",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=math.ceil(limits.idle_seconds),
            h11_max_incomplete_event_size=limits.header_bytes + limits.url_bytes,
        )
        super().__init__(config)

    def serve_until_stopped(self) -> bool:
        """Serve; returns True if all requests finished. False: threads still run, and only `os._exit` ends the process.

        Raises the application's startup error.
        """
        _allow_open_files(self._limits.connections + _FILES_BESIDE_CONNECTIONS)
        with redirect_server_logs(self._log), asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.get_loop().set_default_executor(_Workers(_WORKER_THREADS, thread_name_prefix="satchel"))
            runner.run(self.serve([self._listener.socket]))
        if self._startup_error is not None and not self.started:
            raise self._startup_error
        return self._finished_all

    def stop(self) -> None:
        """Stop after the running requests; accept no more requests."""
        self.should_exit = True

    # -- the methods of uvicorn that we replace

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, log the URL and call `ready`."""
        try:
            await super().startup(sockets=sockets)
        except SystemExit:
            self.should_exit = True
            self._listener.socket.close()
            return
        self._log.write("info", "start", url=self._listener.url)
        if self._ready is not None:
            self._ready(self._listener.url)

    async def on_tick(self, counter: int) -> bool:
        """Close connections of slow clients. Called several times a second."""
        self._check_connections()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, wait for running requests, then cancel the rest."""
        state = self.server_state
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(state.connections):
            connection.shutdown()
        self._finished_all = await self._wait_for_requests()
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=_CANCEL_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        await self.lifespan.shutdown()
        self._log.write("info", "stop", finished_all=self._finished_all)

    async def _wait_for_requests(self) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limits.stop_seconds
        while self.server_state.tasks or self.server_state.connections:
            if loop.time() >= until:
                return not self.server_state.tasks
            await asyncio.sleep(_POLL_SECONDS)
            self._check_connections()
        return True

    def _check_connections(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            assert isinstance(connection, GuardedConnection)
            connection.check(now)

    def handle_exit(self, *_: object) -> None:
        """Stop at the first signal; end the process at the second."""
        if self.should_exit:
            os._exit(_INTERRUPTED_EXIT_CODE)
        self.should_exit = True

    async def _run_app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and store a startup error: uvicorn does not report the reason."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            if scope["type"] == "lifespan":
                self._startup_error = error
            raise

    def _record_refusal(self, status: int, code: str) -> None:
        self._log.write("info", "refused", status=status, code=code)
        self._metrics.count_refusal(code)


class _Workers(ThreadPoolExecutor):
    """A thread pool without a wait at shutdown: the server has waited `stop_seconds` already."""

    def shutdown(self, *_: object, **__: object) -> None:
        """Cancel queued work, without waiting for running work."""
        super().shutdown(wait=False, cancel_futures=True)


def _allow_open_files(needed: int) -> None:
    """Raise the limit of open files: each connection is an open file, and the usual limit is 1,024."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < needed:
            allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
