"""Collector for search hits: blocks anywhere in the workspace relevant to the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.units import ELISION_MARK
from satchel.models.block import TASK_TYPES, Block
from satchel.models.chunk import Trim
from satchel.models.context import Reason
from satchel.models.files import page_words
from satchel.models.options import RequestType, TokenBudget
from satchel.models.request import ContextRequest
from satchel.models.results import ContextItem, ItemMetadata, Place, SectionType
from satchel.models.search import Filters, SearchHit
from satchel.retrieval.query import ParsedQuestion, understand
from satchel.text.intent import intent_of, subject_words
from satchel.text.words import STOP_WORDS
from satchel.workspace.block_text import item_of, own_text
from satchel.workspace.collectors import CollectorContext
from satchel.workspace.sections import RankedSection, rank_sections, section_unit, sections_of, widened

if TYPE_CHECKING:
    from satchel.ports.store import Store

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

# `keep_best` keeps nothing below this relevance (a probability): five of six would be wrong.
_MIN_KEPT_RELEVANCE: Final = 0.15

# Once the answer is probably among the kept items (their relevances add up to this), improbable ones are left out.
_ENOUGH_RELEVANCE: Final = 0.7
_MIN_FURTHER_RELEVANCE: Final = 0.012

# Blocks found for the sections: with 120, the section that answers 93 of 96 questions over notes has one of them.
_MAX_FOUND_BLOCKS: Final = 120

# Sections in the ledger beside those that may be shown; the rest has next to no relevance.
_MAX_SECTIONS_SET_ASIDE: Final = 5

# Shares of the room that a section may take whole: the best section may be a long procedure; the rest leave room for
# others. Beyond, the best of its paragraphs are shown.
_FIRST_SECTION_SHARE: Final = 0.7
_LATER_SECTION_SHARE: Final = 0.35

# Shares of the room up to which a section is shown with the sections beside it, below their common heading. Of 0.2-0.8
# and 0.05-0.2 these show the most answers whole (96 questions over notes, 1,000 and 4,000 tokens).
_FIRST_WIDE_SHARE: Final = 0.5
_LATER_WIDE_SHARE: Final = 0.12

# Characters of prose per token, on the low side: the budget itself is counted exactly.
_CHARS_PER_TOKEN: Final = 3.6

# Least relevance of a task shown by itself, as a share of the most relevant block's.
_TASK_SHARE: Final = 0.5

# Subtasks shown with a task; a longer list is a project, and its tasks are found on their own.
_MAX_SUBTASKS: Final = 8

# Of longer blocks (about 1,000 tokens) only the matching part is shown, with a receipt.
_MAX_WHOLE_CHARS: Final = 4000


class SemanticCollector:
    """Collects hits of a hybrid search; the user's access filters apply before any limit."""

    name = "semantic"

    def __init__(self, view: CollectorContext) -> None:
        self.store: Store = view.store
        self._context = view
        self._config = view.config.semantic
        self.cached = False
        self._excluded: frozenset[str] = frozenset()
        self._blocks: dict[str, Block] = {}
        self._hits: Sequence[SearchHit] = ()
        self.notes: tuple[str, ...] = ()
        self._is_dated = False
        """True if the question asks for tasks by their dates, and some have such dates."""
        self.set_aside: list[tuple[ContextItem, Reason]] = []
        """Items below the threshold, with the reason."""

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items for sections above the threshold, and for tasks with due dates if the question asks for them."""
        self._excluded = frozenset(request.hints.exclude_blocks)
        items = self._dated_tasks(request)
        self._is_dated = bool(items)
        everywhere, of_types = self._searches(request)
        if not request.hints.prioritize_types:
            of_types = _relevant_tasks(of_types, everywhere)
        items += self._with_subtasks(self._block_items(of_types))
        focus = [self._context.focus.id] if self._context.focus else []
        items += self._section_items(everywhere, request, frozenset([*focus, *(item.block_id for item in items)]))
        items += map(_code_item, [hit for hit in everywhere if hit.path][: self._config.top_k])
        best: dict[str, ContextItem] = {}
        for item in items:
            if item.block_id not in best or best[item.block_id].relevance < item.relevance:
                best[item.block_id] = item
        return self._relevant(sorted(best.values(), key=lambda item: -item.relevance))

    def _relevant(self, ordered: Sequence[ContextItem]) -> list[ContextItem]:
        """The items above the threshold; the rest go to `set_aside`."""
        with_evidence = sum(item.relevance >= _MIN_KEPT_RELEVANCE for item in ordered)
        above = _count_above(ordered, self._config.min_threshold)
        keep_best = 0 if self._is_dated else self._config.keep_best
        # A list of tasks with a state and a date is an answer as a whole, however long.
        most = len(ordered) if self._is_dated else self._config.top_k
        border = min(most, max(above, min(keep_best, with_evidence)))
        # Of what is not shown only the ledger speaks: the access to its parts need not be checked.
        self.set_aside = [(replace(item, holds=()), Reason.BELOW_RELEVANCE) for item in ordered[border:]]
        return [*ordered[:border], *self._found_in(ordered[:border])]

    def _found_in(self, sections: Sequence[ContextItem]) -> list[ContextItem]:
        """Items for the found blocks that the sections show: the ledger says what became of each."""
        shown = {block for section in sections for block in section.found if block in section.holds}
        return [
            ContextItem(
                block_id=hit.block_id,
                block_type=hit.block_type,
                content=hit.content,
                relevance=hit.relevance,
                section=SectionType.SEMANTIC,
                reasons=("search",),
                signals=hit.signals,
            )
            for hit in sorted(self._hits, key=lambda hit: (-hit.relevance, hit.block_id))
            if hit.block_id in shown
        ]

    def _section_items(
        self, hits: Sequence[SearchHit], request: ContextRequest, alone: frozenset[str]
    ) -> list[ContextItem]:
        """Items for the sections around the found blocks; without the blocks that are items of their own."""
        left_out = self._excluded | alone
        hits = [hit for hit in hits if not hit.path and hit.block_id not in left_out]
        if not hits:
            return []
        self._hits = hits
        question = understand(search_text(request, next(iter(self._context.focused), None)))
        sections = sections_of(hits, self.store, self._context.filters, left_out, self._context.page_cache)
        ranked = rank_sections(question, sections, self._context.embedder)
        items = [
            self._section_item(entry, question, most_chars)
            for entry, most_chars in _widened(
                ranked,
                _room(request, self._context),
                self._config.top_k,
                # What is around a focused block is shown by the focus collector.
                widens=not self._context.focused,
            )
        ]
        # A heading above nothing but an elision line tells nothing: its sections are items of their own.
        return [
            replace(item, relevance=item.relevance * _HEADING_ALONE_SHARE)
            if item.elided and _is_heading_alone(item.content)
            else item
            for item in items
        ]

    def _section_item(self, ranked: RankedSection, question: ParsedQuestion, most_chars: int) -> ContextItem:
        section, root = ranked.section, ranked.section.text.page
        unit = section_unit(section, question, most_chars)
        item = item_of(root, ranked.relevance, SectionType.SEMANTIC, "search", content=unit.text)
        held = tuple(block for block in section.text.holds(unit.shown) if block != root.id)
        found = tuple(hit.block_id for hit in section.found)
        return replace(item, signals=ranked.signals, holds=held, found=found, elided=unit.elided)

    def build_permission_filters(self) -> Filters:
        """The access filters for every search of this request."""
        return self._context.filters

    def _searches(self, request: ContextRequest) -> tuple[Sequence[SearchHit], Sequence[SearchHit]]:
        """The hits anywhere, and the hits among the hinted types or the tasks that the question is about."""
        search, top_k = self._context.search, self._config.top_k
        if search is None or not top_k:
            return (), ()
        text = search_text(request, next(iter(self._context.focused), None))
        filters = [self.build_permission_filters()]
        # A second search looks only for the hinted types, or for tasks if the question is about tasks.
        tasks = tuple(sorted(TASK_TYPES)) if intent_of(request.query).tasks else ()
        if types := request.hints.prioritize_types or tasks:
            filters.append(replace(filters[0], types=types))
        # A section may have many found blocks: more blocks are searched than sections are shown.
        wanted = [max(top_k, _MAX_FOUND_BLOCKS), top_k]
        results = [search(text, top_k=most, filters=narrowed) for most, narrowed in zip(wanted, filters, strict=False)]
        self.cached = all(result.cached for result in results)
        self.notes = tuple(dict.fromkeys(note for result in results for note in result.notes))
        # A question that only points at the focus asks for blocks similar to the focus (decision 0024).
        pointing = intent_of(request.query).pointing and not subject_words(request.query, STOP_WORDS)
        everywhere, of_types = results[0].hits, results[1].hits if len(results) > 1 else ()
        if self._context.focus is not None and pointing:
            return [*map(_by_likeness, everywhere)], [*map(_by_likeness, of_types)]
        return everywhere, of_types

    def _block_items(self, hits: Sequence[SearchHit]) -> list[ContextItem]:
        """Items for found blocks by themselves: of the hinted types, or tasks."""
        blocks = self.store.blocks([hit.block_id for hit in hits if not hit.path], self._context.filters)
        self._blocks |= blocks
        items = []
        for hit in hits:
            if hit.block_id in blocks:
                block = blocks[hit.block_id]
                item = item_of(block, hit.relevance, SectionType.SEMANTIC, "search")
                if len(block.content) > _MAX_WHOLE_CHARS:
                    item = _part(item, hit.content)
                items.append(replace(item, signals=hit.signals))
        return items

    def _with_subtasks(self, items: Sequence[ContextItem]) -> list[ContextItem]:
        """The items, those of tasks with their subtasks."""
        tasks = [item.block_id for item in items if self._blocks[item.block_id].type in TASK_TYPES]
        below = self.store.children(tasks, self._context.filters, limit=_MAX_SUBTASKS) if tasks else {}
        return [self._with_those(item, below.get(item.block_id, ())) for item in items]

    def _with_those(self, item: ContextItem, children: Sequence[Block]) -> ContextItem:
        subtasks = [child for child in children if child.type in TASK_TYPES and child.id not in self._excluded]
        if not subtasks:
            return item
        block = self._blocks[item.block_id]
        text = "\n".join([own_text(block), *(f"  {own_text(subtask)}" for subtask in subtasks)])
        return replace(item, content=text, holds=tuple(subtask.id for subtask in subtasks))

    def _dated_tasks(self, request: ContextRequest) -> list[ContextItem]:
        types = request.hints.prioritize_types
        filters = replace(self._context.filters, types=types) if types else self._context.filters
        tasks = dated_tasks(request.query, self.store, filters, now=self._context.now, limit=MAX_DATED_TASKS)
        self._blocks |= {task.block.id: task.block for task in tasks}
        return self._with_subtasks(
            [item_of(task.block, task.relevance, SectionType.SEMANTIC, task.reason) for task in tasks]
        )


_HEADING_ALONE_SHARE: Final = 0.05  # below nearly every section with a text


MAX_DATED_TASKS: Final = 200
"""Tasks that a question for overdue or due ones may name; which of them are shown is a matter of the budget."""

OVERDUE: Final = "overdue"
DUE: Final = "has a due date"
"""Why a task is an item: reasons by which the tasks of an answer are counted."""


class DatedTask(NamedTuple):
    """A task with the state and the date that a question asks for."""

    block: Block
    relevance: float
    reason: str


def dated_tasks(question: str, store: Store, filters: Filters, *, now: datetime, limit: int) -> list[DatedTask]:
    """The tasks that answer a question about dates (`what is overdue?`), the longest due first; else none."""
    intent = intent_of(question)
    if not intent.dated_tasks:
        return []
    blocks = store.tasks(
        filters,  # to-dos, cards and rows alike: whatever has a due date
        done=intent.done and not intent.overdue,
        due_before=now if intent.overdue else _until(now, intent.within_days),
        due_after=None if intent.overdue or intent.done else now,
        limit=limit,
    )
    reason = OVERDUE if intent.overdue else DUE
    return [
        DatedTask(block, max(_MIN_DATED_RELEVANCE, _DATED_RELEVANCE - _DATED_STEP * i), reason)
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


def _is_heading_alone(text: str) -> bool:
    """True if only headings and elision lines have text."""
    return all(not line.strip() or line.startswith(("#", ELISION_MARK)) for line in text.split("\n"))


def _part(item: ContextItem, text: str) -> ContextItem:
    """The item with only the matching part of a long block, and a receipt."""
    missing = Trim(item.block_id, item.content.count("\n") - text.count("\n"), len(item.content) - len(text))
    return replace(item, content=text, whole=item.content, trim=missing)


def _count_above(ordered: Sequence[ContextItem], least: float) -> int:
    """The number of items above the threshold, which is higher once the answer is probably among them."""
    total = 0.0
    for count, item in enumerate(ordered):
        if item.relevance < (least if total < _ENOUGH_RELEVANCE else max(least, _MIN_FURTHER_RELEVANCE)):
            return count
        total += item.relevance
    return len(ordered)


def _room(request: ContextRequest, view: CollectorContext) -> int:
    """The tokens for sections: all of the budget, or the section's reservation if something is focused."""
    budget = request.token_budget or TokenBudget()
    return budget.semantic if view.focused else budget.total - budget.system


def _widened(
    ranked: Sequence[RankedSection], room: int, top_k: int, *, widens: bool
) -> list[tuple[RankedSection, int]]:
    """The best sections, each with those beside it as far as they fit its share, and the share in characters.

    A section inside a wider one stays in the list: it is merged into the wider one if that one is shown.
    """
    shown: list[tuple[RankedSection, int]] = []
    inside: set[str] = set()
    wide_chars = room * _CHARS_PER_TOKEN * widens
    for entry in ranked[: top_k + _MAX_SECTIONS_SET_ASIDE]:
        section = entry.section
        if section.root not in inside:
            section = widened(section, int(wide_chars * (_LATER_WIDE_SHARE if shown else _FIRST_WIDE_SHARE)))
        if section.root != entry.section.root or section.lines != entry.section.lines:
            covered = section.text.lines.keys()
            inside.update(covered)
            found = [hit for other in ranked if other.section.root in covered for hit in other.section.found]
            section = section._replace(found=sorted(found, key=lambda hit: -hit.relevance))
        share = _LATER_SECTION_SHARE if shown else _FIRST_SECTION_SHARE
        shown.append((entry._replace(section=section), int(room * _CHARS_PER_TOKEN * share)))
    return shown


def _relevant_tasks(tasks: Sequence[SearchHit], everywhere: Sequence[SearchHit]) -> list[SearchHit]:
    """The tasks that are about as relevant as the best block: `tasks` is a word of many questions that ask for none."""
    best = max((hit.relevance for hit in everywhere), default=0.0)
    return [hit for hit in tasks if hit.relevance >= _TASK_SHARE * best]


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
