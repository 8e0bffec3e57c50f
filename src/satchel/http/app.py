"""The API as an ASGI application: routes over a workspace, behind the guard.

app = create_app(satchel.open_engine("path/to/folder"))
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.routing import Route

from satchel import __version__
from satchel.http.description import described
from satchel.http.guard import Guard
from satchel.http.invalid import invalid
from satchel.http.keys import Keyring, new_token
from satchel.http.limits import Limits
from satchel.http.metrics import Metrics
from satchel.http.problems import install
from satchel.http.routes import blocks, contexts, documents, index, page, research, service
from satchel.http.routes.callers import known_query
from satchel.http.work import Work
from satchel.service.engine import ContextEngine
from satchel.service.local_client import LOOKS_EVERY_S, PATIENCE_S, LocalSatchel, client_of
from satchel.service.settings import Settings, configure

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from satchel.http.logs import RequestLog

Mount: TypeAlias = "tuple[str, ASGIApp, Callable[[], AbstractAsyncContextManager[None]] | None]"
"""Another application: its path, and what runs as long as it does."""


def create_app(
    engine: ContextEngine | LocalSatchel,
    *,
    settings: Settings | None = None,
    keys: Keyring | None = None,
    hosts: Iterable[str] = ("127.0.0.1", "localhost", "testserver"),
    origins: Iterable[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    log: RequestLog | None = None,
    mounts: Iterable[Mount] = (),
) -> FastAPI:
    """The application for a workspace.

    Without keys, one token is made for its owner (or taken from `SATCHEL_TOKEN`): `app.state.token`. `hosts` are the
    names (with the port, where there is one) under which it may be called, `origins` the pages that may call it.
    `mounts` are further applications: their path, and a context manager that runs as long as they do. The engine stays
    its owner's to close.
    """
    bag = engine if isinstance(engine, LocalSatchel) else _behind_the_door(engine, settings)
    token = None
    if keys is None:
        token = os.environ.get("SATCHEL_TOKEN") or new_token()
        keys = Keyring.single(token)
    work, metrics, mounts = Work(), Metrics(), tuple(mounts)
    app = FastAPI(
        title="Satchel",
        version=__version__,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(work, mounts),
        redirect_slashes=False,
        dependencies=[Depends(known_query)],
    )
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    app.state.satchel = bag
    app.state.work = work
    app.state.metrics = metrics
    app.state.keys = keys
    app.state.token = token
    for routes in (contexts, blocks, documents, index, research, service, page):
        app.include_router(routes.router)
    for path, mounted, _running in mounts:
        app.router.routes.append(Route(path, endpoint=mounted))
    install(app)
    app.add_exception_handler(RequestValidationError, invalid)  # type: ignore[arg-type]  # a problem answers itself
    app.add_middleware(
        Guard, keys=keys, limits=limits, hosts=frozenset(hosts), origins=frozenset(origins), log=log, metrics=metrics
    )
    return app


def _lifespan(work: Work, mounts: Iterable[Mount]) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """What runs as long as the application does."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(work.close)
            for _where, _what, running in mounts:
                if running is not None:
                    await stack.enter_async_context(running())
            yield

    return lifespan


def _behind_the_door(engine: ContextEngine, settings: Settings | None) -> LocalSatchel:
    settings = settings or configure(engine.root).settings
    return client_of(engine, settings, every=LOOKS_EVERY_S, patience=PATIENCE_S)
