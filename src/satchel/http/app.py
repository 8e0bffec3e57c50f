"""The HTTP API as an ASGI application: the routes of a workspace behind the guard, and their OpenAPI description.

app = create_app(satchel.open_engine("path/to/folder"))
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fastapi import Depends, FastAPI
from starlette.routing import Route

from satchel import __version__
from satchel.http.guard.credentials import Keyring, new_token
from satchel.http.guard.middleware import Guard
from satchel.http.guard.observability import Metrics
from satchel.http.guard.request_checks import DEFAULT_LIMITS, HttpLimits
from satchel.http.problems import install_handlers
from satchel.http.routes import block_routes, documents, operations, questions
from satchel.http.routes.requests import WorkerThreads, known_query
from satchel.http.schemas import Problem
from satchel.service.engine import ContextEngine
from satchel.service.local_client import LOOKS_EVERY_S, PATIENCE_S, client_of
from satchel.service.settings import Settings, configure

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from satchel.http.guard.observability import RequestLog
    from satchel.service.open_roots import LocalClient

# A further ASGI application: path, application, and a context manager for the lifetime of the application.
Mount: TypeAlias = "tuple[str, ASGIApp, Callable[[], AbstractAsyncContextManager[None]] | None]"

_ABOUT: Final = """\
Contexts for language models: inside a token budget, with numbered sources, with only the content that the caller may
read. Errors are `application/problem+json` with a stable `code`.
"""
_TAGS: Final = (
    ("contexts", "Questions in, contexts and hits out."),
    ("workspace", "Blocks, access to them, and user activity."),
    ("documents", "Uploaded files, and pictures of their pages."),
    ("index", "Content of the index, and progress of index runs."),
    ("research", "Answers from documents, by a language model."),
    ("service", "Health of the server."),
)


def create_app(
    engine: ContextEngine | LocalClient,
    *,
    settings: Settings | None = None,
    keys: Keyring | None = None,
    hosts: Iterable[str] = ("127.0.0.1", "localhost", "testserver"),
    origins: Iterable[str] = (),
    limits: HttpLimits = DEFAULT_LIMITS,
    log: RequestLog | None = None,
    mounts: Iterable[Mount] = (),
) -> FastAPI:
    """The ASGI application that serves a workspace.

    Without `keys`, the owner gets a token: the value of `SATCHEL_TOKEN` or a new random token (`app.state.token`).
    `hosts` are the accepted Host headers (with the port, if any), `origins` the accepted Origin headers. `mounts` are
    further ASGI applications, each with its path and a context manager for its lifetime. The caller closes the engine.
    """
    client: LocalClient
    if isinstance(engine, ContextEngine):
        settings = settings or configure(engine.root).settings
        client = client_of(engine, settings, every=LOOKS_EVERY_S, patience=PATIENCE_S)
    else:
        client = engine
    token = None
    if keys is None:
        token = os.environ.get("SATCHEL_TOKEN") or new_token()
        keys = Keyring.single(token)
    work, metrics, mounts = WorkerThreads(), Metrics(), tuple(mounts)
    app = _described_app(partial(_lifespan, work, mounts))
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.state.satchel = client
    app.state.work = work
    app.state.metrics = metrics
    app.state.token = token
    for router in (
        questions.router,
        questions.research_router,
        block_routes.router,
        documents.router,
        *operations.ROUTERS,
    ):
        app.include_router(router)
    for path, mounted, _running in mounts:
        app.router.routes.append(Route(path, endpoint=mounted))
    install_handlers(app)
    app.add_middleware(
        Guard, keys=keys, limits=limits, hosts=frozenset(hosts), origins=frozenset(origins), log=log, metrics=metrics
    )
    return app


def _described_app(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    """An application without routes whose OpenAPI document says what Satchel is."""
    return FastAPI(
        title="Satchel",
        version=__version__,
        description=_ABOUT,
        openapi_tags=[{"name": name, "description": text} for name, text in _TAGS],
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        dependencies=[Depends(known_query)],
        generate_unique_id_function=lambda route: route.name,
    )


@asynccontextmanager
async def _lifespan(work: WorkerThreads, mounts: Iterable[Mount], _: FastAPI) -> AsyncIterator[None]:
    """Run the mounted applications and the worker threads for as long as the application runs."""
    async with AsyncExitStack() as stack:
        stack.callback(work.close)
        for _path, _mounted, running in mounts:
            if running is not None:
                await stack.enter_async_context(running())
        yield


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description of the routes, with the schema of a problem and the bearer-token authentication."""
    schema = FastAPI.openapi(app)
    components = schema.setdefault("components", {})
    components["schemas"]["Problem"] = Problem.model_json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"token": []}]
    schema["paths"]["/health"]["get"]["security"] = []
    return schema
