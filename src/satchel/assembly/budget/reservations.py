"""Sharing the tokens out among the sections: each is sure of its reservation, and what one leaves the others get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from satchel.assembly.budget.truncate import GAP
from satchel.models.block import BlockType
from satchel.models.context_config import TruncationConfig, TruncationStrategy
from satchel.models.item import Trim
from satchel.models.language import PROSE
from satchel.models.ledger import Fate, Reason
from satchel.models.payload import ContextItem, SectionType

if TYPE_CHECKING:
    from satchel.assembly.budget.truncate import ContentTruncator
    from satchel.models.budget import TokenBudget

Cost = Callable[[ContextItem], int]
"""What an item takes once it is written."""

_TRIES: Final = 6
_FULL: Final = 0.9
"""What is filled to this share need not be tried again."""

_RESERVED: Final = (
    SectionType.FOCUS,
    SectionType.SEMANTIC,
    SectionType.RELATIONS,
    SectionType.ACTIVITY,
    SectionType.HISTORY,
)


class Verdict(NamedTuple):
    """What became of an item: the fate, why, what it costs or would cost, and what to say about how it was cut."""

    fate: Fate
    reason: Reason
    tokens: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class AllocatedContext:
    """The items that are in, trimmed where they had to be, and what they use of the budget."""

    items: tuple[ContextItem, ...]
    used_tokens: int
    remaining_budget: int
    verdicts: tuple[Verdict, ...] = ()
    """One for each item that was given, in that order."""


class BudgetAllocator(Protocol):
    """Decides which items are in."""

    def allocate(self, items: Sequence[ContextItem], budget: TokenBudget) -> AllocatedContext:
        """The items that fit."""
        ...


class GreedyBudgetAllocator:
    """Takes the best first, section by section within the reservations, then from all of them with what is left.

    `cost` counts an item as it will be written; `overhead` is what the text takes beside its items. Items that are
    `pinned` (the focus, what the caller named) come before all others of their section.
    """

    def __init__(
        self,
        cost: Cost,
        truncator: ContentTruncator,
        *,
        truncation: TruncationConfig | None = None,
        overhead: int = 0,
        pinned: Iterable[str] = (),
    ) -> None:
        self._cost = cost
        self._truncator = truncator
        self._truncation = truncation or TruncationConfig()
        self._overhead = overhead
        self._pinned = frozenset(pinned)

    def allocate(self, items: Sequence[ContextItem], budget: TokenBudget) -> AllocatedContext:
        """The items that fit, by descending relevance; one that does not fit is trimmed or left, and the next tried."""
        table = _Table([self.estimate_tokens(item) for item in items])
        room = max(0, budget.total - budget.shrunk().system - self._overhead)
        order = sorted(range(len(items)), key=lambda i: (items[i].block_id not in self._pinned, -items[i].relevance, i))
        for section, reserved in self._reservations(budget, room).items():
            self._spend(items, [i for i in order if items[i].section is section], reserved, table)
        # What was cut may yet be shown whole, and what found no room may find some in what others left.
        for _ in range(2):
            self._spend(items, order, room - table.spent, table)
        for i, trimmed in table.trimmed.items():
            table.verdicts.setdefault(i, Verdict(Fate.TRIMMED, Reason.TRIMMED_TO_FIT, table.taken[i], trimmed[1]))
        kept = tuple(
            table.trimmed[i][0] if i in table.trimmed else items[i] for i in range(len(items)) if i in table.taken
        )
        verdicts = tuple(self._verdict(i, table) for i in range(len(items)))
        return AllocatedContext(kept, table.spent, budget.total - table.spent, verdicts)

    def estimate_tokens(self, item: ContextItem) -> int:
        """What the item takes once it is written."""
        return self._cost(item)

    def truncate_to_fit(self, item: ContextItem, room: int) -> tuple[ContextItem, str] | None:
        """The item cut so that it takes at most `room`, and what to say about it; None if too little would be left."""
        if room < self._truncation.min_tokens:
            return None
        whole = item.content if item.whole is None else item.whole
        bare = self._cost(replace(item, content="", trim=Trim(item.block_id, 9999, 999_999)))
        allowance, best = room - bare, None
        tried: set[int] = set()
        for _ in range(_TRIES):
            if allowance <= 0 or allowance in tried:
                break
            tried.add(allowance)
            cut = self._truncator.shorten(whole, allowance, self._truncation.default_strategy, is_code=is_code(item))
            if len(cut.text) >= len(whole):
                return best
            trimmed = replace(item, content=cut.text, whole=whole, trim=_receipt(item.block_id, whole, cut.text))
            cost = self._cost(trimmed)
            if cost <= room:
                enough = len(cut.text) >= self._truncation.min_content_length
                if (enough or cut.strategy is TruncationStrategy.SUMMARIZE) and cut.text.strip():
                    best = trimmed, cut.note
                if cost >= _FULL * room:
                    break
            # What is written costs more than what is said, in some formats by far: the share that it does is kept.
            told = max(1, cost - bare)
            allowance = min(room - bare, max(1, int(allowance * (room - bare) / told)))
            if cost > room:
                allowance = min(allowance, max(tried) - 1)
        return best

    def _reservations(self, budget: TokenBudget, room: int) -> Mapping[SectionType, int]:
        """What each section is sure of; together never more than there is."""
        shrunk = budget.shrunk()
        wanted = {section: int(getattr(shrunk, section.value)) for section in _RESERVED}
        total = sum(wanted.values())
        if total > room:
            wanted = {section: share * room // total for section, share in wanted.items()}
        return wanted

    def _spend(self, items: Sequence[ContextItem], order: Sequence[int], room: int, table: _Table) -> None:
        """Take what fits; what is too long waits until the short ones after it have had at most half of the room."""
        waiting: list[int] = []
        kept_back = 0
        for i in order:
            already = table.taken.get(i, 0)
            if i in table.taken and i not in table.trimmed:
                continue
            more = table.costs[i] - already
            if more > room - kept_back:
                kept_back = kept_back or (room // 2 if room >= 2 * self._truncation.min_tokens else 0)
                waiting.append(i)
                continue
            table.take(i, table.costs[i])
            room -= more
        for i in waiting:
            already = table.taken.get(i, 0)
            if table.costs[i] - already <= room:
                table.take(i, table.costs[i])
                room -= table.costs[i] - already
                continue
            trimmed = self.truncate_to_fit(items[i], room + already)
            cost = self._cost(trimmed[0]) if trimmed is not None else 0
            if trimmed is not None and cost > already:
                table.take(i, cost, trimmed)
                room -= cost - already

    def _verdict(self, i: int, table: _Table) -> Verdict:
        if i not in table.taken:
            return Verdict(Fate.DROPPED, Reason.OVER_BUDGET, table.costs[i])
        if i in table.trimmed:
            return table.verdicts[i]
        return Verdict(Fate.KEPT, Reason.FITS, table.taken[i])


class _Table:
    """What each item costs, which are taken at which cost, and which of them were trimmed."""

    def __init__(self, costs: list[int]) -> None:
        self.costs = costs
        self.taken: dict[int, int] = {}
        self.trimmed: dict[int, tuple[ContextItem, str]] = {}
        self.verdicts: dict[int, Verdict] = {}

    @property
    def spent(self) -> int:
        return sum(self.taken.values())

    def take(self, i: int, cost: int, trimmed: tuple[ContextItem, str] | None = None) -> None:
        self.taken[i] = cost
        self.trimmed.pop(i, None)
        if trimmed is not None:
            self.trimmed[i] = trimmed


def _receipt(block_id: str, whole: str, text: str) -> Trim:
    shown = sum(bool(line.strip()) and line.strip() != GAP for line in text.split("\n"))
    held = sum(bool(line.strip()) for line in whole.split("\n"))
    return Trim(block_id, max(0, held - shown), max(1, len(whole) - len(text.replace(GAP, ""))))


def is_code(item: ContextItem) -> bool:
    """Whether lines are what its text is made of."""
    return item.block_type == BlockType.CODE or (item.language or "text") not in PROSE | {"text"}
