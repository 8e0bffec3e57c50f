"""Goes round between budgeting, arranging and writing until the text is as full as it gets without being over.

What a piece costs by itself is known exactly; what it costs beside others is at most that, give or take how counts add
up, because neighbours join and a file's heading is written once. So: choose by the cost alone, write, count the whole,
give back what was too much, and spend what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from satchel.assembly.arrange import alone, lines_not_shown, shows, touches
from satchel.assembly.budget import Candidate, pack, take_in_order, trim_to_fit
from satchel.errors import BudgetCannotBeMet
from satchel.models.item import ItemKind, Trim
from satchel.models.ledger import Reason
from satchel.models.options import ContextFormat, OverflowPolicy, Packing
from satchel.text.graphemes import boundary_at_or_before

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.assembly.draft import Desk, Draft
    from satchel.models.item import Item

# How many fuller texts are written and counted before what there is will do.
_MAX_TRIALS = 12

# No real text has more on average. Where there is more text than that, writing it all out to see is wasted.
_MOST_CHARS_PER_TOKEN = 12

# How often a trimmed text that is still a little over is trimmed again.
_MAX_TRIMS = 4

# About what a heading, a fence and a separator cost that a piece may share with its neighbours.
_FRAME_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """The text that was chosen, what each item that is not in it would have cost, and why it is not."""

    draft: Draft
    costs: Mapping[int, int]
    left_out: Mapping[int, Reason]


def choose(items: Sequence[Item], scores: Mapping[int, float], desk: Desk) -> Choice:
    """The best text within the budget."""
    return _Chooser(items, scores, desk).choose()


class _Chooser:
    def __init__(self, items: Sequence[Item], scores: Mapping[int, float], desk: Desk) -> None:
        options = desk.options
        self._desk = desk
        self._scores = scores
        self._max_tokens = options.max_tokens
        self._limit = options.max_chunks
        self._overflow = options.overflow
        self._trims: dict[int, Trim] = {}
        self._items = [self._as_shown(item) for item in items]
        # The order in which items are taken: best first, earlier ones first among equals.
        self._ranked = sorted(self._items, key=lambda item: (-scores[item.place], item.place))
        self._costs: dict[int, int] = {}
        self._too_big: set[int] = set()
        self._in_doubt = False

    def choose(self) -> Choice:
        empty = self._draft([])
        if not self._items:
            return Choice(empty, {}, {})
        if empty.tokens >= self._max_tokens:
            raise BudgetCannotBeMet(self._max_tokens, empty.tokens)
        if len(self._items) <= self._limit and self._could_all_fit():
            everything = self._draft(self._items)
            if everything.tokens <= self._max_tokens:
                return Choice(everything, {}, {})
        number = len(self._items)
        for item in self._items:
            self._costs[item.place] = self._desk.cost(alone(item, number, self._trims.get(item.place)))
        # Behind the last piece there is no separator.
        room = self._max_tokens - empty.tokens - self._desk.titles_cost(self._items) + self._desk.separator_cost()
        draft = self._filled(self._with_the_best(self._within_budget(self._first_choice(room), room)))
        if self._overflow is OverflowPolicy.TRUNCATE:
            draft = self._with_trimmed(draft)
        draft = self._with_any(draft)
        reasons = self._reasons(draft, room)
        return Choice(draft, {index: self._costs[index] for index in reasons}, reasons)

    def _could_all_fit(self) -> bool:
        return sum(len(item.text) for item in self._items) <= self._max_tokens * _MOST_CHARS_PER_TOKEN

    def _draft(self, items: list[Item]) -> Draft:
        return self._desk.draft(items, self._scores, self._trims)

    def _as_shown(self, item: Item) -> Item:
        """An entity with only what its format shows, cut to the length that entities get, with a receipt."""
        if item.kind is not ItemKind.ENTITY:
            return item
        options = self._desk.options
        one_body = options.format in (ContextFormat.XML, ContextFormat.PLAIN)
        if (one_body and item.summary) or (not one_body and not options.include_code_content):
            item = item._replace(text="")
        # A plain entity is written whole, as its specification has it.
        if options.format is ContextFormat.PLAIN:
            return item
        full = item.text or (item.summary if one_body else "")
        if len(full) <= options.entity_content_chars:
            return item
        kept = boundary_at_or_before(full, options.entity_content_chars)
        missing = full[kept:]
        self._trims[item.place] = Trim(item.id, missing.count("\n") + 1, len(missing))
        return item._replace(text=full[:kept]) if item.text else item._replace(summary=full[:kept])

    def _first_choice(self, room: int) -> list[Item]:
        """What fits by the cost of each piece alone."""
        ranked = self._ranked
        costs = [self._costs[item.place] for item in ranked]
        if self._overflow is OverflowPolicy.SKIP and self._desk.options.packing is Packing.VALUE:
            candidates = [
                Candidate(self._scores[item.place], cost, item.text or item.summary)
                for item, cost in zip(ranked, costs, strict=True)
            ]
            return [ranked[i] for i in pack(candidates, room, self._limit)]
        stop = self._overflow is not OverflowPolicy.SKIP
        return [ranked[i] for i in take_in_order(costs, room, self._limit, stop=stop)]

    def _within_budget(self, chosen: list[Item], room: int) -> Draft:
        """The first choice, less what is over because counts do not quite add up."""
        draft = self._draft(chosen)
        while draft.tokens > self._max_tokens and draft.items:
            room -= draft.tokens - self._max_tokens
            fewer = self._first_choice(room)
            if len(fewer) >= len(draft.items):
                fewer = sorted(draft.items, key=lambda item: self._scores[item.place], reverse=True)[:-1]
            draft = self._draft(fewer)
        return draft

    def _with_the_best(self, draft: Draft) -> Draft:
        """The draft, or if the best that fits at all is not in it, that one alone to be filled up."""
        if self._overflow is not OverflowPolicy.SKIP or self._desk.options.packing is not Packing.VALUE:
            return draft
        inside = {item.place for item in draft.items}
        for item in self._ranked:
            if item.place in inside:
                return draft
            # Alone it pays for no other section's title and no separator: its own count decides.
            alone_in = self._draft([item])
            if alone_in.tokens <= self._max_tokens:
                return alone_in
        return draft

    def _with_any(self, draft: Draft) -> Draft:
        """The draft, or if nothing is in it, the cheapest alone if that fits: what it costs beside others is more."""
        if draft.items or self._limit < 1:
            return draft
        first = self._ranked[:1] if self._overflow is OverflowPolicy.STOP else self._ranked
        cheapest = min(first, key=lambda item: self._costs[item.place])
        alone_in = self._draft([cheapest])
        self._costs[cheapest.place] = min(self._costs[cheapest.place], alone_in.tokens)
        return alone_in if alone_in.tokens <= self._max_tokens else draft

    def _filled(self, draft: Draft) -> Draft:
        """The draft with what else fits into the room that joining and shared headings have freed."""
        trials = _MAX_TRIALS
        while trials > 0 and len(draft.items) < self._limit:
            waiting = self._waiting(draft)
            more = self._sure_to_fit(draft, waiting) or self._first_that_might_fit(draft, waiting)
            if not more:
                break
            fuller = self._draft([*draft.items, *more])
            if fuller.tokens <= self._max_tokens:
                draft = fuller
            else:
                trials -= 1
                # In doubt one by one; what was tried alone and did not fit is not tried again.
                self._too_big.update(item.place for item in more[:1] if len(more) == 1)
                self._in_doubt = True
        return draft

    def _waiting(self, draft: Draft) -> list[Item]:
        """What is not in the draft and may still be, best first."""
        inside = {item.place for item in draft.items}
        left = [item for item in self._ranked if item.place not in inside]
        if self._overflow is not OverflowPolicy.SKIP:
            # Nothing may be taken past the first that does not fit.
            return [] if left and left[0].place in self._too_big else left
        return [item for item in left if item.place not in self._too_big]

    def _sure_to_fit(self, draft: Draft, waiting: list[Item]) -> list[Item]:
        """As many as fit by the cost of each alone."""
        if self._in_doubt:
            return []
        costs = [self._costs[item.place] for item in waiting]
        room, places = self._max_tokens - draft.tokens, self._limit - len(draft.items)
        stop = self._overflow is not OverflowPolicy.SKIP
        return [waiting[i] for i in take_in_order(costs, room, places, stop=stop)]

    def _first_that_might_fit(self, draft: Draft, waiting: list[Item]) -> list[Item]:
        """One that costs less beside what is there than it costs alone, perhaps little enough."""
        room = self._max_tokens - draft.tokens
        written = draft.by_path()
        for item in waiting if self._overflow is OverflowPolicy.SKIP else waiting[:1]:
            cost = self._costs[item.place]
            beside = written.get(item.path, ())
            if cost - cost // 8 - _FRAME_TOKENS <= room or any(touches(piece, item) for piece in beside):
                return [item]
        return []

    def _with_trimmed(self, draft: Draft) -> Draft:
        """The draft with the beginning of the best item that did not fit whole, then whatever fits after it."""
        inside = {item.place for item in draft.items}
        options = self._desk.options
        for item in self._ranked:
            room = self._max_tokens - draft.tokens
            if len(inside) >= self._limit:
                break
            if item.place in inside:
                continue
            longer = self._try_whole(draft, item, room)
            if longer is None and room >= options.min_truncated_tokens:
                longer = self._try_trimmed(draft, item, room)
            if longer is not None:
                draft = longer
                inside.add(item.place)
        return draft

    def _try_whole(self, draft: Draft, item: Item, room: int) -> Draft | None:
        if self._costs[item.place] > room:
            return None
        longer = self._draft([*draft.items, item])
        return longer if longer.tokens <= self._max_tokens else None

    def _try_trimmed(self, draft: Draft, item: Item, room: int) -> Draft | None:
        # An entity is cut to its length already; half a summary helps nobody.
        if item.kind is ItemKind.ENTITY:
            return None
        desk = self._desk
        item = self._without_lines_shown(draft, item)

        def cost(shorter: Item, trim: Trim) -> int:
            return desk.cost(alone(shorter, len(self._items), trim))

        for _ in range(_MAX_TRIMS):
            trimmed = trim_to_fit(item, room, desk.counter, cost, desk.options.min_content_length)
            if trimmed is None:
                return None
            trims = {**self._trims, item.place: trimmed.trim}
            longer = desk.draft([*draft.items, trimmed.item], self._scores, trims)
            if longer.tokens <= self._max_tokens:
                self._trims = trims
                return longer
            # A section's title, a row of sources or a closing tag that the piece alone does not have.
            room = cost(trimmed.item, trimmed.trim) - (longer.tokens - self._max_tokens)
        return None

    def _without_lines_shown(self, draft: Draft, item: Item) -> Item:
        """The item from its first line that no piece shows yet."""
        for piece in draft.by_path().get(item.path, ()):
            rest = lines_not_shown(piece, item)
            if rest is not None:
                return rest
        return item

    def _reasons(self, draft: Draft, room: int) -> dict[int, Reason]:
        """Why each item that is not in the draft is not."""
        inside = {item.place for item in draft.items}
        full = len(inside) >= self._limit
        stopped = False
        written = draft.by_path()
        reasons: dict[int, Reason] = {}
        for item in self._ranked:
            if item.place in inside:
                continue
            if any(shows(piece, item) for piece in written.get(item.path, ())):
                reasons[item.place] = Reason.COVERED
            elif self._costs[item.place] > room:
                reasons[item.place] = Reason.OVER_BUDGET
            elif full:
                reasons[item.place] = Reason.MAX_CHUNKS
            elif stopped and self._overflow is OverflowPolicy.STOP:
                reasons[item.place] = Reason.AFTER_STOP
            elif self._overflow is OverflowPolicy.SKIP and self._desk.options.packing is Packing.VALUE:
                reasons[item.place] = Reason.LESS_VALUE
            else:
                reasons[item.place] = Reason.OVER_BUDGET
            stopped = True
        return reasons
