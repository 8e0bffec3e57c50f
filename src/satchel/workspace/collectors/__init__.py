"""Collectors: each finds candidate items for a workspace context in a different way.

Only collectors read the store, and every read goes through the access filters of the requesting user. To add a
collector, write a class with the members of `ContextCollector` and declare an entry point of the group
`satchel.collectors` with a `CollectorEntry` as value.
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
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store
    from satchel.workspace.page_cache import PageCache

Search = Callable[..., "SearchResult"]
"""The search function of the engine: `search(text, top_k=…, filters=…)`."""


class CollectorContext(NamedTuple):
    """Inputs of a collector: the store, the user's access filters, the focus, the search and the time."""

    store: Store
    filters: Filters
    config: CollectorsConfig
    now: datetime
    focus: Block | None = None
    pages: tuple[Block, ...] = ()
    """Focused pages and databases."""
    search: Search | None = None
    embedder: Embedder | None = None
    page_cache: PageCache | None = None
    """Pages read for earlier questions."""
    generation: int = 0
    """The generation of the store in which the focus was read."""

    @property
    def focused(self) -> tuple[Block, ...]:
        """All focused blocks, the narrowest first."""
        return (*((self.focus,) if self.focus else ()), *self.pages)


class ContextCollector(Protocol):
    """Finds items for a request (S4)."""

    name: str

    def __init__(self, view: CollectorContext) -> None: ...

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items for the request, most relevant first; relevance is from 0 to 1."""
        ...


class CollectorEntry(NamedTuple):
    """A collector with the title, layout flags and budget share of its section."""

    collector: type[Any] | str
    """The class, or its location (`module:name`), imported on first use."""
    title: str
    share: float | None = None
    """The reserved share of the budget; None if `TokenBudget` has a field for the section."""
    always: bool = False
    """True if the section appears even without items, with a notice."""
    ranked: bool = True
    """True if the items are sorted by score; otherwise they stay in collected order."""
    cited: bool = True
    """True if the items are blocks, with citation numbers and access lists."""

    def make(self, view: CollectorContext) -> ContextCollector:
        """Make the collector for a request; imports its module if necessary."""
        collector: Any = self.collector
        if isinstance(collector, str):
            module, _, name = collector.partition(":")
            collector = getattr(import_module(module), name)
        return cast("ContextCollector", collector(view))


def _built_in(section: SectionType, collector: str, **more: bool) -> CollectorEntry:
    place = f"satchel.workspace.collectors.{section}:{collector}"
    return CollectorEntry(place, SECTION_TITLES[section], **more)


COLLECTORS: Final[Registry[CollectorEntry]] = Registry(
    "collector",
    "satchel.collectors",
    {
        SectionType.FOCUS.value: _built_in(SectionType.FOCUS, "FocusCollector", always=True, ranked=False),
        SectionType.SEMANTIC.value: _built_in(SectionType.SEMANTIC, "SemanticCollector", always=True),
        SectionType.RELATIONS.value: _built_in(SectionType.RELATIONS, "RelationCollector", always=True),
        SectionType.ACTIVITY.value: _built_in(SectionType.ACTIVITY, "ActivityCollector", always=True),
        SectionType.HISTORY.value: _built_in(SectionType.HISTORY, "HistoryCollector", ranked=False, cited=False),
    },
    CollectorEntry,
)
"""All collectors by name (also the name of the section), in the order of the rendered sections."""
