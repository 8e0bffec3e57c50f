"""The inspector: one page and the plain files that it is made of."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

router = APIRouter(include_in_schema=False)

_KINDS: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@router.head("/")
@router.get("/")
async def inspector(request: Request) -> Response:
    """The page; it holds no data, and asks for it with the caller's cookie."""
    return _file("index.html", request)


@router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """A file of the page."""
    return _file(name, request)


def _file(name: str, request: Request) -> Response:
    data, tag = _files().get(name, (b"", ""))
    if not tag:
        raise HTTPException(404)
    headers = {"content-type": _KINDS[name.rpartition(".")[2]], "cache-control": "no-cache", "etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """All files of the page with their tags: what is not among them is not served."""
    folder = resources.files("satchel.web")
    files = [one for one in folder.iterdir() if one.name.rpartition(".")[2] in _KINDS]
    contents = {one.name: one.read_bytes() for one in files}
    return {name: (data, f'"{blake2b(data, digest_size=12).hexdigest()}"') for name, data in contents.items()}
