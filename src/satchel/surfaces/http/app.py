"""The API as an ASGI application: routes over a workspace, behind the guard.

app = create_app(satchel.open_engine("path/to/folder"))
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.routing import Route

from satchel import __version__
from satchel.config import Settings, configure
from satchel.engine import ContextEngine
from satchel.front.local import LOOKS_EVERY_S, PATIENCE_S, LocalSatchel, over
from satchel.surfaces.http.answers import Problem as ProblemAnswer
from satchel.surfaces.http.guard import Guard
from satchel.surfaces.http.keys import Keyring, new_token
from satchel.surfaces.http.limits import Limits
from satchel.surfaces.http.metrics import Metrics
from satchel.surfaces.http.problems import Problem, install, problem
from satchel.surfaces.http.routes import blocks, contexts, documents, index, page, research, service
from satchel.surfaces.http.routes.common import known_query
from satchel.surfaces.http.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from satchel.surfaces.http.logs import RequestLog

_ABOUT: Final = """\
Contexts for language models: inside a token budget, with numbered sources, holding only what the asking user may
read. Errors are `application/problem+json` with a stable `code`.
"""
_TAGS: Final = (
    ("contexts", "Questions in, contexts and hits out."),
    ("workspace", "Blocks, who may read them, and what was done to them."),
    ("documents", "Files that are uploaded, and pictures of their pages."),
    ("index", "What the index holds and how far it is."),
    ("research", "Answers from documents, by a language model."),
    ("service", "Whether the server is well."),
)


def create_app(
    engine: ContextEngine | LocalSatchel,
    *,
    settings: Settings | None = None,
    keys: Keyring | None = None,
    hosts: Iterable[str] = ("127.0.0.1", "localhost", "testserver"),
    origins: Iterable[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    log: RequestLog | None = None,
    mounts: Iterable[tuple[str, ASGIApp, Callable[[], Any] | None]] = (),
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
    mounts = tuple(mounts)
    work = Work()
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(work.close)
            for _where, _what, running in mounts:
                if running is not None:
                    await stack.enter_async_context(running())
            yield

    app = FastAPI(
        title="Satchel",
        version=__version__,
        description=_ABOUT,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        openapi_tags=[{"name": name, "description": told} for name, told in _TAGS],
        redirect_slashes=False,
        dependencies=[Depends(known_query)],
    )
    app.state.satchel = bag
    app.state.work = work
    app.state.metrics = metrics
    app.state.keys = keys
    app.state.token = token
    app.state.limits = limits
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    for routes in (contexts, blocks, documents, index, research, service, page):
        app.include_router(routes.router)
    for path, mounted, _running in mounts:
        app.router.routes.append(Route(path, endpoint=mounted))
    install(app)
    app.add_exception_handler(RequestValidationError, _invalid)  # type: ignore[arg-type]  # a problem answers itself
    app.add_middleware(
        Guard, keys=keys, limits=limits, hosts=frozenset(hosts), origins=frozenset(origins), log=log, metrics=metrics
    )
    return app


def _behind_the_door(engine: ContextEngine, settings: Settings | None) -> LocalSatchel:
    settings = settings or configure(engine.root).settings
    return over(engine, settings, every=LOOKS_EVERY_S, patience=PATIENCE_S)


def _described(app: FastAPI) -> dict[str, Any]:
    """The API's description, with what every refusal looks like and how a caller shows who they are."""
    if app.openapi_schema is None:
        told = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        parts = told.setdefault("components", {})
        parts["schemas"]["Problem"] = ProblemAnswer.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        told["security"] = [{"token": []}]
        told["paths"]["/health"]["get"]["security"] = []
        app.openapi_schema = told
    return app.openapi_schema


async def _invalid(_: object, error: Exception) -> Problem:
    """What is wrong with a request, field by field; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    wrong = [
        {"field": _where(one["loc"]), "problem": _SAID.get(one["type"], one["msg"])} for one in error.errors()[:20]
    ]
    told = "; ".join(f"{one['field']}: {one['problem']}" for one in wrong[:3])
    return problem(422, "invalid-request", "The request is not valid", told, errors=wrong)


_SAID: Final = {
    "extra_forbidden": "there is no such field here (the fields are in /v1/openapi.json)",
    "missing": "is missing",
}


def _where(place: Iterable[Any]) -> str:
    """The field's name: where in the body, the query or the path it stands."""
    found = [str(one) for one in place]
    if len(found) > 2 and found[:2] in (["body", "question"], ["body", "chunks"]):
        del found[1]  # which of the two kinds of body it was taken for
    return ".".join(found)
