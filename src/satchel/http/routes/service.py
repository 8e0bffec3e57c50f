"""Whether the server is well."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from satchel import __version__
from satchel.http import answers
from satchel.http.routes.callers import caller_of
from satchel.http.routes.replies import as_json, describe

router = APIRouter(tags=["service"])

_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


@router.head("/health", include_in_schema=False)
@router.get("/health", operation_id="health", summary="Whether it is up", responses={200: {"model": answers.Health}})
async def health() -> Response:
    """Answers as long as the server does; needs no token and says nothing about the workspace."""
    return as_json({"status": "ok", "version": __version__})


@router.get("/metrics", **describe("metrics", "Counts and times for Prometheus", media_type="text/plain"))
async def metrics(request: Request) -> Response:
    """Requests by route and status, and how long they took; for owners."""
    caller_of(request).must_be_owner("read the metrics")
    return Response(request.app.state.metrics.render(), headers={"content-type": _PROMETHEUS})
