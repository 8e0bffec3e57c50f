"""Gathering for a workspace: what might belong into the context, by the way in which it was found.

Only collectors read the world, and each of their reads goes through the filters of the asking user. A collector of your
own is a class with the members of `ContextCollector` and an entry point of the group `satchel.collectors` whose value
is a `CollectorEntry`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from satchel.models.results import SECTION_TITLES, ContextItem, SectionType
from satchel.registry import Registry

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.block import Block
    from satchel.models.options import CollectorsConfig
    from satchel.models.request import ContextRequest
    from satchel.models.search import Filters, SearchResult
    from satchel.ports.store import Store

Search = Callable[..., "SearchResult"]
"""How the engine searches: `search(text, top_k=…, filters=…)`."""


class CollectorContext(NamedTuple):
    """What a collector may see: the store through the user's filters, the focus, the search and the time."""

    store: Store
    filters: Filters
    config: CollectorsConfig
    now: datetime
    focus: Block | None = None
    pages: tuple[Block, ...] = ()
    """The pages and databases that are focused as wholes."""
    search: Search | None = None

    @property
    def focused(self) -> tuple[Block, ...]:
        """Everything that is focused, the narrowest first."""
        return (*((self.focus,) if self.focus else ()), *self.pages)


class ContextCollector(Protocol):
    """Finds items for a request in one way."""

    name: str

    def __init__(self, view: CollectorContext) -> None: ...

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """The items, the most relevant first; a relevance is from 0 to 1."""
        ...


class CollectorEntry(NamedTuple):
    """A collector and its section: the title, how it is written, and its share of the budget."""

    collector: type[Any] | str
    """The class, or where it is (`module:name`), so that only collectors in use are loaded."""
    title: str
    share: float | None = None
    """The share of the budget that the section is sure of; None where `TokenBudget` has a field for it."""
    always: bool = False
    """Whether the section is there without items, too, and says so."""
    ranked: bool = True
    """Whether its items stand by their score, not as they were gathered."""
    cited: bool = True
    """Whether its items are blocks, with citation numbers and permissions."""

    def make(self, view: CollectorContext) -> ContextCollector:
        """The collector for a request."""
        collector: Any = self.collector
        if isinstance(collector, str):
            module, _, name = collector.partition(":")
            collector = getattr(import_module(module), name)
        return cast("ContextCollector", collector(view))


def _ours(section: SectionType, collector: str, **more: bool) -> CollectorEntry:
    place = f"satchel.workspace.collectors.{section}:{collector}"
    return CollectorEntry(place, SECTION_TITLES[section], **more)


COLLECTORS: Final[Registry[CollectorEntry]] = Registry(
    "collector",
    "satchel.collectors",
    {
        SectionType.FOCUS.value: _ours(SectionType.FOCUS, "FocusCollector", always=True, ranked=False),
        SectionType.SEMANTIC.value: _ours(SectionType.SEMANTIC, "SemanticCollector", always=True),
        SectionType.RELATIONS.value: _ours(SectionType.RELATIONS, "RelationCollector", always=True),
        SectionType.ACTIVITY.value: _ours(SectionType.ACTIVITY, "ActivityCollector", always=True),
        SectionType.HISTORY.value: _ours(SectionType.HISTORY, "HistoryCollector", ranked=False, cited=False),
    },
    CollectorEntry,
)
"""Every collector by its name, which is also the name of its section, in the order in which sections are written."""
