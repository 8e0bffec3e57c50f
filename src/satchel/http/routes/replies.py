"""What routes answer: JSON, events, and how they say that they may refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from satchel.text.visible import show_lone_bytes

PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


_REFUSALS: Final = {
    400: "The request cannot be read",
    401: "No token, or a wrong one",
    403: "Not for this caller",
    404: "There is no such thing",
    409: "Something else is in the way",
    413: "Too large",
    414: "The address is too long",
    415: "Not JSON",
    422: "The request is not valid",
    431: "The headers are too long",
    503: "Not now",
}
_EVERYWHERE: Final = (400, 401, 403, 413, 414, 415, 431)
"""What the guard may refuse on every route."""


def describe(
    operation_id: str, summary: str, *refusals: int, model: type[BaseModel] | None = None, media_type: str = ""
) -> dict[str, Any]:
    """The OpenAPI description of a route: what it answers, as JSON or in another media type, and what it may refuse."""
    success: dict[str, Any] = {"model": model} if model else {}
    if media_type:
        success["content"] = {media_type: {}}
    responses = {status: {"description": _REFUSALS[status], "content": PROBLEM} for status in (*_EVERYWHERE, *refusals)}
    return {"operation_id": operation_id, "summary": summary, "responses": {200: success, **responses}}


def as_json(value: Any, status: int = 200) -> Response:
    """An answer as JSON. A byte that was not UTF-8 is shown as `⟦0xE9⟧`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(show_lone_bytes(text).text.encode(), status, media_type="application/json")


def event(kind: str, value: Any) -> bytes:
    """A server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(value, ensure_ascii=True, allow_nan=False)}\n\n".encode()


def as_events(events: AsyncIterator[bytes]) -> StreamingResponse:
    """An answer that comes as events."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def wants(request: Request, kind: str) -> bool:
    """Whether the caller asks for this kind of answer rather than JSON."""
    accepted = request.headers.get("accept", "")
    return kind in accepted and "application/json" not in accepted.split(kind)[0]
