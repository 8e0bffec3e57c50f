"""Whether a payload keeps what it promises: every check by its name, with what was found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from satchel.models.options import ContextFormat
from satchel.models.results import ContextValidationResult, SectionType, ValidationCheck

if TYPE_CHECKING:
    from satchel.models.options import TokenBudget
    from satchel.models.results import ContextPayload
    from satchel.models.search import Filters
    from satchel.ports.store import Store
    from satchel.tokens.counter import TokenCounter
    from satchel.workspace.specification import ContextAssembler

_NO_BLOCKS: Final = frozenset({SectionType.HISTORY, SectionType.SYSTEM})
_HEADING: Final = re.compile(r"^### (.+)$", re.MULTILINE)


class Measure:
    """What a payload is measured by: the budget, the writer and counter that made it, and the store as it is now."""

    def __init__(
        self, budget: TokenBudget, assembler: ContextAssembler, counter: TokenCounter, store: Store, filters: Filters
    ) -> None:
        self.budget = budget
        self.assembler = assembler
        self.counter = counter
        self.store = store
        self.filters = filters


def validate(payload: ContextPayload, measure: Measure) -> ContextValidationResult:
    """Every check, whether it passed, and if not why."""
    return ContextValidationResult((*_of_text(payload, measure), *_of_items(payload), *_of_blocks(payload, measure)))


def _of_text(payload: ContextPayload, measure: Measure) -> Iterator[ValidationCheck]:
    tokens = measure.counter.count(payload.serialized)
    yield _check("budget", tokens <= measure.budget.total, f"{tokens} of {measure.budget.total} tokens")
    told = payload.metadata.total_tokens
    yield _check("token-count", tokens == told, f"the text has {tokens} tokens, the metadata say {told}")
    wrong = [
        str(section.type)
        for section in payload.sections
        if section.type != SectionType.SYSTEM
        and section.token_count != measure.counter.count(measure.assembler.section_text(section))
    ]
    yield _check("section-token-counts", not wrong, f"not as written: {', '.join(wrong)}")
    query = payload.request.query if payload.request else ""
    same = measure.assembler.assemble(payload.sections, query) == payload.serialized
    yield _check("text-shows-sections", same, "the text is not what the sections give")
    yield _check("parses", *_parses(payload))


def _of_items(payload: ContextPayload) -> Iterator[ValidationCheck]:
    items = payload.items
    outside = [item.block_id for item in items if not 0 <= item.relevance <= 1]
    yield _check("relevance-range", not outside, f"outside 0..1: {outside[:3]}")
    blocks = [item for section in payload.sections if section.type not in _NO_BLOCKS for item in section.items]
    ids = [item.block_id for item in blocks]
    yield _check("distinct-blocks", len(set(ids)) == len(ids), "a block is in twice")
    numbers = [item.number for item in blocks]
    yield _check("citation-numbers", numbers == list(range(1, len(numbers) + 1)), f"{numbers[:10]} is not 1, 2, 3, …")
    silent = [item.block_id for item in items if item.whole is not None and item.trim is None]
    yield _check("receipts", not silent, f"cut without saying so: {silent[:3]}")
    excluded = set(payload.request.hints.exclude_blocks) if payload.request else set()
    found = sorted(excluded & set(ids))
    yield _check("excluded-blocks", not found, f"in although excluded: {found[:3]}")
    counted = payload.metadata.blocks_included
    yield _check("block-counts", counted == len(blocks) <= payload.metadata.blocks_considered, f"{counted} counted")


def _of_blocks(payload: ContextPayload, measure: Measure) -> Iterator[ValidationCheck]:
    ids = [item.block_id for s in payload.sections if s.type not in _NO_BLOCKS for item in s.items]
    readable = measure.store.trails(ids, measure.filters)
    hidden = sum(one not in readable for one in ids)
    yield _check("permissions", not hidden, f"{hidden} of the blocks may not be read by this user now")
    now = measure.store.generation
    then = payload.statistics.generation
    yield _check("up-to-date", now == then, f"made from generation {then}, the workspace is at {now}")


def _parses(payload: ContextPayload) -> tuple[bool, str]:
    format = payload.request.format if payload.request else ContextFormat.MARKDOWN
    try:
        if format is ContextFormat.JSON:
            json.loads(payload.serialized)
        elif format is ContextFormat.XML:
            ElementTree.fromstring(payload.serialized)  # noqa: S314 - our own text, without entities
    except (ValueError, ElementTree.ParseError) as error:
        return False, str(error)
    if format is ContextFormat.MARKDOWN:
        wanted = [section.title for section in payload.sections if section.type != SectionType.SYSTEM]
        missing = [title for title in wanted if title not in _HEADING.findall(payload.serialized)]
        return not missing, f"no heading for {', '.join(missing)}"
    return True, ""


def _check(name: str, passed: bool, problem: str) -> ValidationCheck:
    return ValidationCheck(name, passed, "" if passed else problem)
