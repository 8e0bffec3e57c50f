"""Collector for the recent activity of the user: edits and viewed pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from satchel.models.access import DefaultAccess
from satchel.models.block import Action, Activity, Block
from satchel.models.results import ContextItem, SectionType
from satchel.workspace.block_text import MAX_OUTLINE_BLOCKS, brief, in_short, item_of
from satchel.workspace.collectors import CollectorContext
from satchel.workspace.signals import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.request import ContextRequest

# S4: relevance of the newest edit and view, and the step down to each older edit and view.
_EDIT_RELEVANCE, _EDIT_STEP = 0.6, 0.02
_VIEW_RELEVANCE, _VIEW_STEP = 0.5, 0.02


class ActivityCollector:
    """Collects the latest edits (in code: commits) of the user and the last viewed pages."""

    name = "activity"

    def __init__(self, view: CollectorContext) -> None:
        self.store = view.store
        self._context = view
        self._config = view.config.activity

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items of the latest edits, then of the viewed pages, each newest first."""
        items: list[ContextItem] = []
        edits = self.get_recent_edits(request, self._config.recent_edit_count)
        blocks = self.store.blocks([edit.block for edit in edits], self._context.filters)
        for edit in edits:
            if edit.block in blocks:
                relevance = _EDIT_RELEVANCE - _EDIT_STEP * len(items)
                items.append(self.block_to_item(blocks[edit.block], relevance, edit))
        pages = self.get_recent_views(request, self._config.recent_view_count)
        below = self.store.children([page.id for page in pages], self._context.filters, limit=MAX_OUTLINE_BLOCKS)
        return items + [
            self.create_page_summary(page, below.get(page.id, ()), _VIEW_RELEVANCE - _VIEW_STEP * i)
            for i, page in enumerate(pages)
        ]

    def get_recent_edits(self, request: ContextRequest, count: int) -> list[Activity]:
        """The latest edit of each recently edited block, newest first."""
        return self._latest(request, (Action.EDIT, Action.COMMIT), count)

    def get_recent_views(self, request: ContextRequest, count: int) -> list[Block]:
        """The last viewed pages, newest first."""
        views = self._latest(request, (Action.VIEW,), count * 4)
        trails = self.store.trails([view.block for view in views], self._context.filters)
        pages = filter(None, (page_of(trails.get(view.block, ())) for view in views))
        ids = list(dict.fromkeys(pages))[:count]
        blocks = self.store.blocks(ids, self._context.filters)
        return [blocks[page] for page in ids if page in blocks]

    def block_to_item(self, block: Block, relevance: float, edit: Activity) -> ContextItem:
        """An item for an edited block, with the time of the edit."""
        reason = f"{edit.action} by {edit.actor}" + (f": {edit.detail}" if edit.detail else "")
        item = item_of(block, relevance, SectionType.ACTIVITY, reason, content=brief(block))
        return replace(item, metadata=replace(item.metadata, last_modified=edit.timestamp))

    def create_page_summary(self, page: Block, children: Sequence[Block], relevance: float) -> ContextItem:
        """An item with a summary of a viewed page."""
        return in_short(item_of(page, relevance, SectionType.ACTIVITY, "viewed"), page, children)

    def _latest(self, request: ContextRequest, actions: Sequence[str], count: int) -> list[Activity]:
        if not count:
            return []
        now = self._context.now
        since = now - timedelta(hours=self._config.max_age_hours)
        recent = partial(self.store.recent, self._context.filters, since=since, until=now, actions=actions)
        activities = [
            activity
            for actor in actors_of(request, self._context)
            for activity in recent(actor=actor, latest=True, limit=count)
        ]
        latest: dict[str, Activity] = {}
        for activity in sorted(activities, key=lambda activity: activity.timestamp, reverse=True):
            latest.setdefault(activity.block, activity)
        return list(latest.values())[:count]


def actors_of(request: ContextRequest, view: CollectorContext) -> list[str | None]:
    """The actor names of the user; None (any actor) in a workspace with a single owner."""
    if view.store.default_access() is DefaultAccess.OWNER:
        return [None]
    return list(dict.fromkeys(filter(None, (request.user.id, request.user.name))))
