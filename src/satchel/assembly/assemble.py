"""Tells the story: hits in, a finished context out.

prepare ─► sieve ─► rank ─► choose (budget ⇄ arrange ⇄ write) ─► report
"""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from satchel.assembly.admit import sieve
from satchel.assembly.arrange import alone
from satchel.assembly.draft import Desk
from satchel.assembly.pack import choose
from satchel.assembly.prepare import prepare
from satchel.assembly.report import report
from satchel.assembly.rerank import rerank
from satchel.errors import InvalidHit, InvalidOption
from satchel.models.chunk import FormattedChunk, KnowledgeChunk
from satchel.models.entity import EntityResult
from satchel.models.options import ContextBuildOptions, ContextFormat
from satchel.models.result import ContextBuildResult
from satchel.tokens.method import counter_for_method
from satchel.tokens.registry import counter_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.tokens.counter import TokenCounter

_log = logging.getLogger("satchel")


def assemble(
    hits: Iterable[KnowledgeChunk | EntityResult],
    options: ContextBuildOptions | None = None,
    *,
    query: str | None = None,
    counter: TokenCounter | str | None = None,
    cross_encoder: CrossEncoder | None = None,
    now: datetime | None = None,
) -> ContextBuildResult:
    """Turn hits into one context inside the budget, with its sources and what became of every hit.

    `counter` is a way of counting of your own, or the name of a model; without it, the options say how.
    """
    started = perf_counter()
    options = options if options is not None else ContextBuildOptions()
    if not isinstance(options, ContextBuildOptions):
        raise InvalidOption("options", options, "must be ContextBuildOptions")
    if isinstance(hits, (KnowledgeChunk, EntityResult)):
        raise InvalidHit("hits", hits, "must be a list of hits, not one hit")
    if isinstance(counter, str):
        counter = counter_for(counter)
    items = prepare(hits, expand_context=options.expand_context)
    if not items:
        return ContextBuildResult.EMPTY
    sieved = sieve(items, options)
    ranking = rerank(sieved.kept, options.reranking, query=query, now=now, cross_encoder=cross_encoder)
    counter = counter or counter_for_method(options.token_estimation, options.tokenizer)
    desk = Desk(options, counter, with_sources=options.include_sources)
    choice = choose(sieved.kept, ranking.scores, desk)
    if options.include_sources and not choice.draft.items:
        # The list of sources is worth less than what it lists.
        desk = Desk(options, counter, with_sources=False)
        choice = choose(sieved.kept, ranking.scores, desk)
    result = report(items, sieved, ranking, choice, desk, seconds=perf_counter() - started)
    _log.debug(
        "built context: %d chunks, %d tokens, %.1f ms",
        result.chunks_included,
        result.estimated_tokens,
        result.build_time.total_seconds() * 1000,
    )
    return result


def format_chunk(
    chunk: KnowledgeChunk,
    format: ContextFormat = ContextFormat.MARKDOWN,
    *,
    include_file_header: bool = True,
    include_line_numbers: bool = True,
    options: ContextBuildOptions | None = None,
) -> FormattedChunk:
    """One chunk as it would be written by itself."""
    options = replace(
        options or ContextBuildOptions(),
        format=format,
        include_file_headers=include_file_header,
        include_line_numbers=include_line_numbers,
    )
    (item,) = prepare([chunk], expand_context=options.expand_context)
    counter = counter_for_method(options.token_estimation, options.tokenizer)
    text = Desk(options, counter, with_sources=False).text(alone(item, 1))
    return FormattedChunk(
        text,
        counter.count(text),
        chunk.file_path,
        item.first_line or 0,
        item.last_line or 0,
        item.relevance,
        chunk.language,
        chunk,
    )
