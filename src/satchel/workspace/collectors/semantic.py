"""Collector for search hits: blocks anywhere in the workspace relevant to the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from satchel.models.block import TASK_TYPES, Block, BlockType
from satchel.models.chunk import Trim
from satchel.models.context import Reason
from satchel.models.files import page_words
from satchel.models.options import RequestType
from satchel.models.request import ContextRequest
from satchel.models.results import ContextItem, ItemMetadata, Place, SectionType
from satchel.models.search import Filters, SearchHit, SearchResult
from satchel.text.intent import intent_of, subject_words
from satchel.text.words import STOP_WORDS
from satchel.workspace.block_text import item_of, own_text
from satchel.workspace.collectors import CollectorContext

if TYPE_CHECKING:
    from satchel.ports.block_tree import BlockTree

# A task with the requested state and date is an answer, whatever its words are (decision 0024): relevance of the first
# task, and the step down to each later task, which keeps the order of the dates.
_DATED_RELEVANCE, _DATED_STEP = 0.95, 0.005

# Above the default threshold (0.6): even the last of many due tasks is shown.
_MIN_DATED_RELEVANCE: Final = 0.7

# A follow-up question with more subject words than this can be searched alone.
_MAX_FOLLOW_UP_WORDS: Final = 2

# Words of the focus in the search query: enough for the subject; more would drown the question.
_MAX_FOCUS_WORDS: Final = 40

# Messages searched for the previous question: three exchanges; an older question may have another subject.
_MAX_TURNS_BACK: Final = 6

# A block similar to the focus stays below the focus itself (1.0).
_MAX_SIMILARITY_RELEVANCE: Final = 0.95

# `keep_best` keeps no hits below this relevance (a probability): four of five would be wrong.
_MIN_KEPT_RELEVANCE: Final = 0.2

# Size of the text below a bare heading: enough to answer, and several sections still fit a budget of 4,000 tokens.
_MAX_SECTION_BLOCKS: Final = 8
_MAX_SECTION_CHARS: Final = 1500  # about 400 tokens

# Of longer blocks (about 1,000 tokens) only the matching part is shown, with a receipt.
_MAX_WHOLE_CHARS: Final = 4000

_HEADINGS: Final = frozenset({BlockType.HEADING, BlockType.PAGE, BlockType.DOCUMENT, BlockType.SECTION})


class SemanticCollector:
    """Collects hits of a hybrid search; the user's access filters apply before any limit."""

    name = "semantic"

    def __init__(self, view: CollectorContext) -> None:
        self.store: BlockTree = view.store
        self._context = view
        self._config = view.config.semantic
        self.cached = False
        self._excluded: frozenset[str] = frozenset()
        self._blocks: dict[str, Block] = {}
        self._item_ids: set[str] = set()
        self.notes: tuple[str, ...] = ()
        self.set_aside: list[tuple[ContextItem, Reason]] = []
        """Items below the threshold, and titles with a more relevant hit below them; with the reason."""

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items for hits above the threshold, and for tasks with due dates if the question asks for them."""
        self._excluded = frozenset(request.hints.exclude_blocks)
        items = self._dated_tasks(request)
        for result in self._searches(request):
            items += self._items(result)
        best: dict[str, ContextItem] = {}
        for item in items:
            if item.block_id not in best or best[item.block_id].relevance < item.relevance:
                best[item.block_id] = item
        ordered = sorted(best.values(), key=lambda item: -item.relevance)
        relevant = self._relevant(ordered)
        # A block that is an item of its own is not repeated below a heading.
        self._item_ids = {item.block_id for item in relevant} | set(request.hints.include_blocks)
        return [self._with_descendants(item) for item in relevant]

    def _relevant(self, ordered: Sequence[ContextItem]) -> list[ContextItem]:
        """Items above the threshold; the rest, and titles with a better hit below them, go to `set_aside`."""
        threshold, beaten = self._config.min_threshold, self._beaten_titles(ordered)
        candidates = [item for item in ordered if item.block_id not in beaten]
        with_evidence = sum(item.relevance >= _MIN_KEPT_RELEVANCE for item in candidates)
        above = sum(item.relevance >= threshold for item in candidates)
        border = max(above, min(self._config.keep_best, with_evidence))
        titles = [item for item in ordered if item.block_id in beaten]
        below = [*candidates[border:], *(title for title in titles if title.relevance < threshold)]
        self.set_aside = [(item, Reason.BELOW_RELEVANCE) for item in below]
        self.set_aside += [(title, Reason.EMPTY) for title in titles if title.relevance >= threshold]
        return candidates[:border]

    def _beaten_titles(self, ordered: Sequence[ContextItem]) -> set[str]:
        """Ids of bare titles with a more relevant descendant."""
        relevance = {item.block_id: item.relevance for item in ordered if item.block_id not in self._excluded}
        blocks = {block_id: block for block_id, block in self._blocks.items() if block_id in relevance}
        titles = {block_id for block_id, block in blocks.items() if _is_bare(block)}
        if not titles:
            return set()
        trails = self.store.trails(list(blocks), self._context.filters)
        return {
            step.id
            for block_id, trail in trails.items()
            for step in trail[1:]
            if step.id in titles and relevance[step.id] < relevance[block_id]
        }

    def build_permission_filters(self) -> Filters:
        """The access filters for every search of this request."""
        return self._context.filters

    def _searches(self, request: ContextRequest) -> list[SearchResult]:
        search, top_k = self._context.search, self._config.top_k
        if search is None or not top_k:
            return []
        text = search_text(request, next(iter(self._context.focused), None))
        filters = [self.build_permission_filters()]
        # A second search looks only for the hinted types, or for tasks if the question is about tasks.
        tasks = tuple(sorted(TASK_TYPES)) if intent_of(request.query).tasks else ()
        if types := request.hints.prioritize_types or tasks:
            filters.append(replace(filters[0], types=types))
        results = [search(text, top_k=top_k, filters=narrowed) for narrowed in filters]
        self.cached = all(result.cached for result in results)
        self.notes = tuple(dict.fromkeys(note for result in results for note in result.notes))
        # A question that only points at the focus asks for blocks similar to the focus (decision 0024).
        pointing = intent_of(request.query).pointing and not subject_words(request.query, STOP_WORDS)
        if self._context.focus is not None and pointing:
            results = [replace(result, hits=tuple(map(_by_likeness, result.hits))) for result in results]
        return results

    def _items(self, result: SearchResult) -> list[ContextItem]:
        block_ids = [hit.block_id for hit in result.hits if not hit.path]
        blocks = self.store.blocks(block_ids, self._context.filters) if block_ids else {}
        self._blocks |= blocks
        items = []
        for hit in result.hits:
            if hit.path:
                items.append(_code_item(hit))
            elif hit.block_id in blocks:
                block = blocks[hit.block_id]
                item = item_of(block, hit.relevance, SectionType.SEMANTIC, "search")
                if len(block.content) > _MAX_WHOLE_CHARS:
                    item = _part(item, hit.content)
                items.append(replace(item, signals=hit.signals))
        return items

    def _with_descendants(self, item: ContextItem) -> ContextItem:
        """Add the section text to a bare heading and the subtasks to a task."""
        block = self._blocks.get(item.block_id)
        if block is None:
            return item
        if block.type in TASK_TYPES:
            return self._with_subtasks(item, block)
        return self._with_section(item, block) if _is_bare(block) else item

    def _with_subtasks(self, item: ContextItem, block: Block) -> ContextItem:
        below = self.store.children(block.id, self._context.filters, limit=_MAX_SECTION_BLOCKS)
        subtasks = [child for child in below if child.type in TASK_TYPES and self._is_free(child.id)]
        if not subtasks:
            return item
        text = "\n".join([own_text(block), *(f"  {own_text(subtask)}" for subtask in subtasks)])
        return replace(item, content=text, holds=tuple(subtask.id for subtask in subtasks))

    def _with_section(self, item: ContextItem, block: Block) -> ContextItem:
        below = self.store.descendants(block.id, self._context.filters, limit=_MAX_SECTION_BLOCKS, deepest=3)
        included = [descendant for descendant in below if self._is_free(descendant.id)]
        if not included and not self._item_ids.isdisjoint(descendant.id for descendant in below):
            return replace(item, content="")  # every descendant is excluded or an item of its own
        parts = [block.title, *map(own_text, included)]
        text = "\n".join(part for part in dict.fromkeys(parts) if part)
        if len(text) > _MAX_SECTION_CHARS:
            text = f"{text[:_MAX_SECTION_CHARS].rsplit(None, 1)[0]} …"
        return replace(item, content=text, holds=tuple(descendant.id for descendant in included))

    def _is_free(self, block_id: str) -> bool:
        """True if the block is neither excluded nor an item of its own."""
        return block_id not in self._excluded and block_id not in self._item_ids

    def _dated_tasks(self, request: ContextRequest) -> list[ContextItem]:
        intent = intent_of(request.query)
        if not intent.dated_tasks:
            return []
        types = request.hints.prioritize_types or tuple(sorted(TASK_TYPES))
        now = self._context.now
        blocks = self.store.tasks(
            replace(self._context.filters, types=types),
            done=intent.done and not intent.overdue,
            due_before=now if intent.overdue else _until(now, intent.within_days),
            due_after=None if intent.overdue or intent.done else now,
            limit=self._config.top_k,
        )
        self._blocks |= {block.id: block for block in blocks}
        reason = "overdue" if intent.overdue else "has a due date"
        return [
            item_of(block, max(_MIN_DATED_RELEVANCE, _DATED_RELEVANCE - _DATED_STEP * i), SectionType.SEMANTIC, reason)
            for i, block in enumerate(blocks)
        ]


def search_text(request: ContextRequest, focus: Block | None) -> str:
    """The search query: the question, expanded with words of the focus or of the previous question.

    `Break this task into subtasks` does not describe the task: the text of the focus does. A short question in a
    conversation continues the previous question.
    """
    intent = intent_of(request.query)
    subjects = subject_words(request.query, STOP_WORDS)
    if focus is not None and intent.pointing:
        words = " ".join(f"{focus.title} {focus.content}".split()[:_MAX_FOCUS_WORDS])
        # `Summarize this page` has no subject words: only the focus is searched.
        return f"{request.query}\n{words}" if subjects or not words else words
    if request.type is RequestType.CHAT and intent.going_on and len(subjects) <= _MAX_FOLLOW_UP_WORDS:
        for message in reversed(request.conversation_history[-_MAX_TURNS_BACK:]):
            if message.role == "user" and message.content.strip() != request.query.strip():
                return f"{request.query}\n{message.content}"
    return request.query


def _until(now: datetime, days: int | None) -> datetime | None:
    """The end of a period of `days` days, counting today as the first; None without a period."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return None if days is None else midnight + timedelta(days=days)


def _part(item: ContextItem, text: str) -> ContextItem:
    """The item with only the matching part of a long block, and a receipt."""
    missing = Trim(item.block_id, item.content.count("\n") - text.count("\n"), len(item.content) - len(text))
    return replace(item, content=text, whole=item.content, trim=missing)


def _is_bare(block: Block) -> bool:
    """True if the block is a heading without text."""
    return block.type in _HEADINGS and not block.content.strip()


def _by_likeness(hit: SearchHit) -> SearchHit:
    return replace(hit, relevance=max(hit.relevance, min(hit.likeness, _MAX_SIMILARITY_RELEVANCE)))


def _code_item(hit: SearchHit) -> ContextItem:
    where = f", {page_words(hit.path, hit.page)}" if hit.page else f":{hit.start_line}-{hit.end_line}"
    return ContextItem(
        block_id=hit.block_id if "#" in hit.block_id else hit.id,
        block_type=hit.block_type,
        content=hit.content,
        relevance=hit.relevance,
        metadata=ItemMetadata(path=(f"{hit.path}{where}",)),
        section=SectionType.SEMANTIC,
        reasons=("search",),
        signals=hit.signals,
        language=hit.language,
        place=Place(hit.path, hit.start_line, hit.end_line, hit.page),
    )
