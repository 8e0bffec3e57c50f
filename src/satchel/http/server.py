"""Running the server, and stopping it well."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from satchel.http.limits import Limits
from satchel.http.listener import Listener, bind
from satchel.http.logs import RequestLog, uvicorn_silenced
from satchel.http.protocol import GuardedProtocol, protocol_for

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from satchel.http.metrics import Metrics

__all__ = ["Listener", "Server", "bind", "serve"]

_FORCED: Final = 130
_WORKERS: Final = 32
_FILES_BESIDE_CONNECTIONS: Final = 512
_POLL_SECONDS: Final = 0.02
_DEFAULT_LIMITS: Final = Limits()


def serve(
    app: ASGIApp,
    listener: Listener,
    *,
    limits: Limits = _DEFAULT_LIMITS,
    log: RequestLog | None = None,
    metrics: Metrics | None = None,
    ready: Callable[[str], None] | None = None,
) -> bool:
    """Serve until SIGINT or SIGTERM; `ready` is told the address. A second signal ends the process at once.

    True if all work was finished. False: some was left behind in threads, which the process would wait for when it
    ends; end it with `os._exit` then.
    """
    return Server(app, listener, limits=limits, log=log, metrics=metrics, ready=ready).serve_until_stopped()


class Server(uvicorn.Server):
    """uvicorn on a listener of ours, with our protocol. `stop` may be called from any thread."""

    def __init__(
        self,
        app: ASGIApp,
        listener: Listener,
        *,
        limits: Limits = _DEFAULT_LIMITS,
        log: RequestLog | None = None,
        metrics: Metrics | None = None,
        ready: Callable[[str], None] | None = None,
    ) -> None:
        self._log = log or RequestLog()
        self._metrics = metrics
        self._limits = limits
        self._listener = listener
        self._ready = ready
        self._watched = _StartWatched(app)
        self._finished_all = True
        config = uvicorn.Config(
            self._watched,
            http=protocol_for(limits, self._note_refusal),
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
        """Serve; raises what the application raised if it did not start."""
        _allow_open_files(self._limits.connections + _FILES_BESIDE_CONNECTIONS)
        with uvicorn_silenced(self._log), asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.get_loop().set_default_executor(_Workers(_WORKERS, thread_name_prefix="satchel"))
            runner.run(self.serve([self._listener.socket]))
        if self._watched.failure is not None:
            raise self._watched.failure
        return self._finished_all

    def stop(self) -> None:
        """Stop taking requests, let those in work finish, and end."""
        self.should_exit = True

    # -- uvicorn's steps, as they are taken here

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and tell where."""
        try:
            await super().startup(sockets=sockets)
        except SystemExit:
            self.should_exit = True
            for one in sockets or []:
                one.close()
            return
        self._log.write("info", "start", url=self._listener.url)
        if self._ready is not None:
            self._ready(self._listener.url)

    async def on_tick(self, counter: int) -> bool:
        """Several times a second: end connections whose clients are too slow."""
        self._check_connections()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, wait for the requests in work, and end what is left."""
        state = self.server_state
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        for connection in list(state.connections):
            connection.shutdown()
        self._finished_all = await self._all_done()
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=1)
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        await self.lifespan.shutdown()
        self._log.write("info", "stop", finished_all=self._finished_all)

    async def _all_done(self) -> bool:
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
            assert isinstance(connection, GuardedProtocol)
            connection.check(now)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal stops the server, the second ends the process."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, *_: object) -> None:
        """Stop; or, when that has been asked for before, end."""
        if self.should_exit:
            os._exit(_FORCED)
        self.should_exit = True

    def _note_refusal(self, status: int, code: str) -> None:
        self._log.write("info", "refused", status=status, code=code)
        if self._metrics is not None:
            self._metrics.refused(code)


class _StartWatched:
    """The application, with the reason kept for which it did not start: uvicorn only says that it did not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.failure: BaseException | None = None
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        said_something = False

        async def told(message: Any) -> None:
            nonlocal said_something
            said_something = True
            self._started = self._started or message["type"] == "lifespan.startup.complete"
            await send(message)

        try:
            await self._app(scope, receive, told)
        except Exception as error:
            # An application without a lifespan raises, too, but without having said anything.
            if said_something and not self._started:
                self.failure = error
            raise


class _Workers(ThreadPoolExecutor):
    """Threads that the loop does not wait for at its end: it has waited long enough by then."""

    def shutdown(self, *_: object, **__: object) -> None:
        """Take no more work."""
        super().shutdown(wait=False, cancel_futures=True)


def _allow_open_files(needed: int) -> None:
    """Each connection is an open file, and by default a process may have 1,024."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < needed:
            allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
