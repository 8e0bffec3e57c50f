"""Names in addresses: whatever a client sends there reaches the route, a line break included."""

from __future__ import annotations

from typing import Final

from starlette.convertors import PathConvertor, register_url_convertor

ANY: Final = "satchel_any"
"""In a route: `/blocks/{block_id:satchel_any}`."""


class _AnyConvertor(PathConvertor):
    # Starlette's ends at a line break, and says that there is no such route.
    regex = r"[\s\S]*"


register_url_convertor(ANY, _AnyConvertor())
