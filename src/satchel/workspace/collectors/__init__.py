"""The first stage of a build: what might belong into the context, by the way in which it was found.

Only collectors read the world, and each of their reads goes through the filters of the asking user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.block import Block
    from satchel.models.context_config import CollectorsConfig
    from satchel.models.payload import ContextItem
    from satchel.models.request import ContextRequest
    from satchel.ports.store import Filters, Store


class Sight(NamedTuple):
    """What a collector may see: the store through the user's filters, the focus, and the time."""

    store: Store
    filters: Filters
    config: CollectorsConfig
    now: datetime
    focus: Block | None = None
    pages: tuple[Block, ...] = ()
    """The pages and databases that are focused as wholes."""


class ContextCollector(Protocol):
    """Finds items for a request in one way."""

    name: str

    def __init__(self, sight: Sight) -> None: ...

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """The items, the most relevant first; a relevance is from 0 to 1."""
        ...
