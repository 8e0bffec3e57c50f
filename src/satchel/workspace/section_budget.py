"""What fits into the budget, and the text that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.budget.reservations import GreedyBudgetAllocator, Verdict
from satchel.assembly.budget.truncate import ContentTruncator
from satchel.assembly.render.sections import ContextAssembler
from satchel.errors import BudgetCannotBeMet
from satchel.models.ledger import Fate, Reason
from satchel.models.payload import (
    SECTION_TITLES,
    ContextItem,
    ContextSection,
    SectionType,
)
from satchel.text.visible import make_visible
from satchel.workspace.candidates import NO_BLOCKS, Considered
from satchel.workspace.collectors.semantic import Search

if TYPE_CHECKING:
    from satchel.models.budget import TokenBudget
    from satchel.models.context_config import ContextConfig
    from satchel.models.request import ContextRequest
    from satchel.ports.language_model import LanguageModel
    from satchel.tokens.counter import TokenCounter


_ORDERED_AS_FOUND: Final = frozenset({SectionType.FOCUS, SectionType.HISTORY, SectionType.SYSTEM})


class Tools(NamedTuple):
    """What a build works with beside the store."""

    search: Search
    counter: TokenCounter
    config: ContextConfig
    executor: Executor
    language_model: LanguageModel | None = None


class Writing:
    """Chooses what fits, and writes it."""

    def __init__(self, request: ContextRequest, tools: Tools) -> None:
        self._request = request
        self._counter = tools.counter
        self._truncation = tools.config.truncation
        self._truncator = ContentTruncator(tools.counter, query=request.query, language_model=tools.language_model)
        self._assembler = ContextAssembler.for_format(
            request.format, metadata_hints=tools.config.metadata_hints, citations=tools.config.citations
        )
        self._system = _system_section(request)
        budget = request.token_budget or tools.config.token_budget
        # Instructions that are written are counted with what the text takes anyhow.
        self._budget = replace(budget, system=0) if self._system else budget

    def choose(self, candidates: Sequence[Considered], pinned: set[str], notes: list[str]) -> list[Considered]:
        """The candidates that fit, trimmed where they had to be."""
        allocator = GreedyBudgetAllocator(
            self._cost,
            self._truncator,
            truncation=self._truncation,
            overhead=self._overhead(candidates),
            pinned=pinned,
        )
        allocated = allocator.allocate([one.item for one in candidates], self._budget)
        kept = iter(allocated.items)
        chosen: list[Considered] = []
        for one, verdict in zip(candidates, allocated.verdicts, strict=True):
            _judge(one, verdict, notes)
            if verdict.fate is not Fate.DROPPED:
                one.item = next(kept)
                chosen.append(one)
        return chosen

    def write(self, kept: list[Considered]) -> tuple[list[ContextSection], str]:
        """The sections and the text; should counts not have added up, the least relevant item gives way."""
        limit = max(1, self._budget.total - self._budget.shrunk().system)
        while True:
            sections = self._sections(kept)
            text = self._assembler.assemble(sections, self._request.query)
            if not kept or self._counter.fits(text, limit):
                return sections, text
            least = min(kept, key=lambda one: (one.item.relevance, -one.order))
            least.fate, least.reason = Fate.DROPPED, Reason.OVER_BUDGET
            kept.remove(least)

    @property
    def budget(self) -> TokenBudget:
        """What the text may take."""
        return self._budget

    def spans(self, sections: Sequence[ContextSection], text: str) -> tuple[tuple[int, int], ...]:
        """Where the items stand in the text."""
        return self._assembler.spans(sections, text)

    def _cost(self, item: ContextItem) -> int:
        return self._counter.count(self._assembler.cost_text(item))

    def _overhead(self, candidates: Sequence[Considered]) -> int:
        """What the text takes without any item."""
        bare = self._assembler.assemble([self._system] if self._system else [], self._request.query)
        overhead = self._counter.count(bare)
        if overhead > self._budget.total:
            raise BudgetCannotBeMet(self._budget.total, overhead)
        if any(one.item.section is SectionType.HISTORY for one in candidates):
            history = ContextSection(type=SectionType.HISTORY, title=SECTION_TITLES[SectionType.HISTORY])
            overhead += self._counter.count(self._assembler.written(history))
        return overhead

    def _sections(self, kept: Sequence[Considered]) -> list[ContextSection]:
        sections = [self._system] if self._system else []
        number = 0
        for kind in SectionType:
            chosen = [one for one in kept if one.item.section is kind]
            if kind is SectionType.SYSTEM or (kind is SectionType.HISTORY and not chosen):
                continue
            if kind not in _ORDERED_AS_FOUND:
                chosen.sort(key=lambda one: (-one.item.relevance, one.order))
            items = [one.item for one in chosen]
            if kind not in NO_BLOCKS:
                items = [replace(item, number=number + i) for i, item in enumerate(items, start=1)]
                number += len(items)
            section = ContextSection(type=kind, title=SECTION_TITLES[kind], items=tuple(items))
            sections.append(replace(section, token_count=self._counter.count(self._assembler.written(section))))
        return sections


def _judge(one: Considered, verdict: Verdict, notes: list[str]) -> None:
    one.fate, one.reason, one.tokens = verdict.fate, verdict.reason, verdict.tokens
    if verdict.note:
        one.reason = Reason.FELL_BACK
        notes.append(verdict.note)


def _system_section(request: ContextRequest) -> ContextSection | None:
    if not request.system_prompt:
        return None
    item = ContextItem(
        block_id="system",
        block_type="system",
        content=make_visible(request.system_prompt).text,
        relevance=1.0,
        section=SectionType.SYSTEM,
        reasons=("given by the caller",),
    )
    return ContextSection(type=SectionType.SYSTEM, title=SECTION_TITLES[SectionType.SYSTEM], items=(item,))
