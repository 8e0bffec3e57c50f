"""Shared implementation of build and search for all surfaces: from a question to a context or to hits.

Options of the question override the settings of the workspace.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from satchel.errors import InvalidOption
from satchel.models.access import DefaultAccess
from satchel.models.block import BlockType, block_type
from satchel.models.context import ContextKind
from satchel.models.options import Fill, HeadingStyle, RequestType, TokenBudget
from satchel.models.request import ContextRequest, Focus, User
from satchel.models.search import Filters
from satchel.retrieval.ranking import reasons_of
from satchel.service.engine import ENGINE_OPTIONS
from satchel.service.question import CHANGE_QUESTION
from satchel.service.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.models.context import Context
    from satchel.models.options import ContextBuildOptions, ContextConfig
    from satchel.models.search import SearchResult
    from satchel.retrieval.change import Change
    from satchel.retrieval.search import Searcher
    from satchel.service.engine import ContextEngine
    from satchel.service.question import Question
    from satchel.service.sessions import ShownLines
    from satchel.tokens.counter import TokenCounter


def reasons_in_words(signals: Mapping[str, float], place: str) -> list[tuple[str, float]]:
    """Why a piece stands where it does: reasons with their contributions, the strongest first."""
    return reasons_of({name: value for name, value in signals.items() if name != "piece"}, place)


def build(
    engine: ContextEngine,
    settings: Settings,
    question: Question,
    *,
    counter: TokenCounter | None = None,
    shown: ShownLines | None = None,
) -> Context:
    """Build the context for a question, with a note on files that are not in the index and may matter.

    What the question's session was `shown` is left out.
    """
    built: Context
    if is_for_a_workspace(engine, question):
        question.refuse_options_for_chunks()
        counter = counter or _counter(question)
        config = _config(engine.context_config, question)
        request = _request(engine, settings, question, config)
        filters = engine.filters_for(request.user)
        built = engine.build(request, counter=counter, config=config, min_sufficiency=question.min_sufficiency or 0.0)
    else:
        options = options_for(settings, question)
        filters = seen_by(engine, question.user, filters_for(settings, question))
        to_symbol = question.expand == "symbol"
        built = engine.build(
            question.query,
            options,
            filters=filters,
            expand_to_symbol=to_symbol,
            counter=counter,
            min_sufficiency=question.min_sufficiency or 0.0,
            shown=shown,
            change=change_in(question, filters, engine.folder_here),
        )
    notes = skipped_notes(engine, question, filters, best_relevance(built))
    return replace(built, notes=(*built.notes, *notes)) if notes else built


def best_relevance(context: Context) -> float:
    """The relevance of the best candidate; 0 if none is relevant enough, 1 for blocks, whose scores are others."""
    if context.is_empty and not context.nothing_fits:
        return 0.0
    if context.kind is not ContextKind.CHUNKS:
        return float(len(context.ledger) > 0)
    return max((entry.score for entry in context.ledger), default=0.0)


def skipped_notes(engine: ContextEngine, question: Question, filters: Filters, best_relevance: float) -> list[str]:
    """Notes on files that are not in the index and may matter to the question."""
    from satchel.service.skipped_files import note_on_skipped

    note = note_on_skipped(engine.store, engine.folder, question.query, filters, best_relevance)
    return [note] if note else []


def search(engine: ContextEngine, settings: Settings, question: Question) -> SearchResult:
    """Return the pieces with the highest relevance to a question."""
    filters = seen_by(engine, question.user, filters_for(settings, question))
    result = hits_of(engine.searcher, settings, question, filters)
    notes = skipped_notes(engine, question, filters, max((hit.relevance for hit in result.hits), default=0.0))
    return replace(result, notes=(*result.notes, *notes))


def hits_of(searcher: Searcher, settings: Settings, question: Question, filters: Filters) -> SearchResult:
    """Return the hits of a searcher with at least the relevance that the question or the settings ask for."""
    result = searcher.search(question.query, top_k=question.top_k or settings.top_k, filters=filters)
    least = settings.min_relevance if question.min_relevance is None else question.min_relevance
    return replace(result, hits=tuple(hit for hit in result.hits if hit.relevance >= least))


def excerpt_maker(question: str) -> Callable[[str, int], str]:
    """Return a function `(text, chars)` for the best excerpt of a text for the question, at most `chars` long."""
    from satchel.retrieval.query import understand
    from satchel.retrieval.search import excerpt

    terms = understand(question).terms
    return lambda text, chars: excerpt(text, terms, chars).text


def is_for_a_workspace(engine: ContextEngine, question: Question) -> bool:
    """True if the question gets a workspace context: by its options, or because the store holds blocks beside files."""
    return question.asks_a_workspace or (engine.store.holds_blocks() and not question.is_about_change)


def change_in(question: Question, filters: Filters, folder: Callable[[], Path]) -> Change | None:
    """The change of a question; a revision is read from the repository of the folder."""
    if not question.is_about_change:
        return None
    from satchel.retrieval.change import Change

    diff = question.diff
    if diff and "\n" not in diff.strip():
        if filters.readers is not None:
            raise InvalidOption("diff", diff, "is a revision, which only the owner may name; give the text of the diff")
        from satchel.indexing.git_diff import diff_of

        diff = diff_of(folder(), diff.strip())
        if not diff.strip() and not question.trace:
            raise InvalidOption("diff", question.diff, "has no change: the files are as in that revision")
    return Change(diff, question.trace, "" if question.query == CHANGE_QUESTION else question.query)


def asking_user(engine: ContextEngine, user: User | None) -> User:
    """The asking user; in an owner's own workspace by default the user of the operating system."""
    if user is not None:
        return user
    if engine.store.default_access() is not DefaultAccess.OWNER:
        raise InvalidOption("user", "", "this workspace has several users: give the user (--user, user=…)")
    try:
        return User(id=getpass.getuser())
    except (OSError, KeyError):
        return User(id="owner")


def seen_by(engine: ContextEngine, user: User | None, filters: Filters | None = None) -> Filters:
    """Add the access of the user to the filters; an owner's own workspace needs no access filter."""
    filters = filters or Filters()
    if user is None and engine.store.default_access() is DefaultAccess.OWNER:
        return filters
    return replace(filters, readers=engine.filters_for(asking_user(engine, user)).readers)


def filters_for(settings: Settings, question: Question) -> Filters:
    """Search filters from the options of the question and, for missing options, from the settings."""
    from satchel.models.files import canonical_language

    exclude = question.exclude or settings.exclude
    return Filters(
        patterns=(*(question.include or settings.include), *(f"!{glob}" for glob in exclude)),
        languages=tuple(canonical_language(name) for name in question.languages or settings.languages),
        types=tuple(block_type(kind) for kind in question.block_types),
        modified_after=_day("since", question.since, 0),
        modified_before=_day("until", question.until, 1),
    )


def options_for(settings: Settings, question: Question) -> ContextBuildOptions:
    """Options for rendering pieces of files."""
    budget = question.token_budget
    lines = question.expand if isinstance(question.expand, int) else 0
    least = settings.min_relevance if question.min_relevance is None else question.min_relevance
    return replace(
        ENGINE_OPTIONS,
        max_tokens=(budget.total if isinstance(budget, TokenBudget) else budget) or settings.token_budget,
        format=question.format or settings.format,
        max_chunks=question.top_k or ENGINE_OPTIONS.max_chunks,
        min_relevance=least,
        tokenizer=question.model or settings.model,
        expand_context=bool(lines),
        context_lines=lines,
        include_sources=question.include_sources,
        include_scores=question.include_scores,
        heading_style=HeadingStyle.COMPACT if question.compact else HeadingStyle.NAMED,
        fill=Fill(question.fill or Fill.USEFUL),
    )


def _request(engine: ContextEngine, settings: Settings, question: Question, config: ContextConfig) -> ContextRequest:
    usual = "chat" if question.conversation_history else "assist" if question.focus else "search"
    kind = question.type or usual
    user = asking_user(engine, question.user)
    request = ContextRequest(
        query=question.query,
        user=user,
        type=kind,  # type: ignore[arg-type]  # checked by the request
        focus=_focus(engine, user, question.focus),
        conversation_history=question.conversation_history,
        hints=question.hints,
        format=question.format or settings.format,
        system_prompt=question.system_prompt,
    )
    return replace(request, token_budget=_budget(settings, question, config.for_type(request.type).token_budget))


def _budget(settings: Settings, question: Question, usual: TokenBudget) -> TokenBudget:
    if isinstance(question.token_budget, TokenBudget):
        return question.token_budget
    if question.token_budget:
        return usual.scaled(question.token_budget)
    return usual.scaled(settings.token_budget) if settings.token_budget != Settings().token_budget else usual


def _focus(engine: ContextEngine, user: User, focus: Focus | str | None) -> Focus | None:
    if not focus or isinstance(focus, Focus):
        return focus or None
    block = engine.store.block(focus, engine.filters_for(user))
    if block is None or not block.is_page:
        return Focus(block_id=focus)
    return Focus(database_id=focus) if block.type == BlockType.DATABASE else Focus(page_id=focus)


def _config(usual: ContextConfig, question: Question) -> ContextConfig:
    """The engine's context configuration, changed by the options of the question."""
    from satchel.models.options import with_changes

    semantic: dict[str, Any] = {"top_k": question.top_k} if question.top_k else {}
    if question.min_relevance is not None:
        semantic |= {"min_threshold": question.min_relevance, "keep_best": 0}
    changes: dict[str, Any] = {}
    if question.truncation:
        changes["truncation"] = {"default_strategy": question.truncation}
    if semantic:
        # Set for each request type, to override the changes of the type.
        changes["by_type"] = {
            kind: _joined(usual.by_type.get(kind, {}), {"collectors": {"semantic": semantic}}) for kind in RequestType
        }
    changed: ContextConfig = with_changes(usual, changes)
    return changed


def _joined(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(before)
    for name, value in changes.items():
        joined[name] = _joined(before.get(name, {}), value) if isinstance(value, Mapping) else value
    return joined


def _counter(question: Question) -> TokenCounter | None:
    if not question.model:
        return None
    from satchel.tokens.registry import counter_for

    return counter_for(question.model)


def _day(name: str, moment: str | datetime | None, later: int) -> datetime | None:
    """Start of a day in local time, plus `later` days; a date with a time of day is returned unchanged."""
    if not moment:
        return None
    if isinstance(moment, datetime):
        return moment if moment.tzinfo else moment.astimezone()
    try:
        parsed = datetime.fromisoformat(moment)
        is_day = len(moment) == len("2026-11-01")
        return (parsed + timedelta(days=later if is_day else 0)).astimezone()
    except (ValueError, OverflowError):
        raise InvalidOption(name, moment, "must be a date like 2026-11-01") from None
