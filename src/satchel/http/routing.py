"""The names of routes in the log and the metrics: templates, never what somebody put into a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import Scope

UNKNOWN: Final = "(unknown)"
_OURS: Final = frozenset({"/", "/health", "/metrics", "/login", "/logout", "/mcp"})
_ASSETS: Final = "/assets/"


def route_of(scope: Scope) -> str:
    """The route's template as the application declared it; one name for all paths that have none."""
    route = scope.get("fastapi", {}).get("effective_route_context") or scope.get("route")
    template = getattr(route, "path_format", None) or getattr(route, "path", None)
    if isinstance(template, str) and template:
        return template
    path: str = scope["path"]
    if path in _OURS:
        return path
    return _ASSETS + "*" if path.startswith(_ASSETS) else UNKNOWN
