"""The HTTP API: `create_app(engine)` returns the ASGI application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.http.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    """Import `create_app` on first access: the packages of the application are an optional extra."""
    if name != "create_app":
        raise AttributeError(name)
    from satchel.http import app

    return app.create_app
