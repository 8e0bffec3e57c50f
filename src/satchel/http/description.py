"""The API in its own words: OpenAPI, with what every refusal looks like and how a caller shows who they are."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from satchel import __version__
from satchel.http.answers import Problem

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


def described(app: FastAPI) -> dict[str, Any]:
    """The description of an application's routes."""
    if app.openapi_schema is None:
        told = get_openapi(
            title="Satchel",
            version=__version__,
            description=_ABOUT,
            routes=app.routes,
            tags=[{"name": name, "description": words} for name, words in _TAGS],
        )
        parts = told.setdefault("components", {})
        parts["schemas"]["Problem"] = Problem.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        told["security"] = [{"token": []}]
        told["paths"]["/health"]["get"]["security"] = []
        app.openapi_schema = told
    return app.openapi_schema
