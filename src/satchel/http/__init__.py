"""The HTTP API: `create_app(engine)` gives it as an ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.http.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    """The application, loaded when it is asked for: the packages that it needs are an extra."""
    if name != "create_app":
        raise AttributeError(name)
    from satchel.http import app

    return app.create_app
