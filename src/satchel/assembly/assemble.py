"""The recipe for chunks and entities (S0, S1, S2): turns hits into a finished context."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from textwrap import dedent
from time import perf_counter
from typing import TYPE_CHECKING, Final

from satchel.assembly.candidates import admit, prepare, rerank
from satchel.assembly.layout import ChunkLayout, source_of
from satchel.assembly.pack import Cost, PackingRules, Trimmed, Trimmer
from satchel.assembly.pipeline import Built, Recipe, build
from satchel.assembly.render.format import format_for
from satchel.assembly.units import MIN_UNIT_TOKENS, cut_elisions, elisions_in
from satchel.errors import InvalidHit, InvalidOption
from satchel.models.chunk import Candidate, CandidateKind, EntityResult, FormattedChunk, KnowledgeChunk, Trim, alone
from satchel.models.context import BuildStatistics, ContextKind, Fate, Reason
from satchel.models.options import ContextBuildOptions, ContextFormat, OverflowPolicy, Packing
from satchel.models.results import ContextBuildResult
from satchel.text.boundaries import sentences
from satchel.text.secrets import redact
from satchel.tokens.registry import counter_for, counter_for_method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from satchel.assembly.unit_packing import UnitPacker
    from satchel.models.chunk import Piece
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.tokens.counter import TokenCounter

_log: Final = logging.getLogger("satchel")

# A heading or fence can cost a few tokens more around a shorter text; each try cuts by the excess. Six tries bound the
# time for a text that never fits.
_MAX_TRIM_TRIES: Final = 6

# A summary shortened further says nothing.
_MIN_SUMMARY_TOKENS: Final = 12


def assemble(
    hits: Iterable[KnowledgeChunk | EntityResult],
    options: ContextBuildOptions | None = None,
    *,
    query: str | None = None,
    counter: TokenCounter | str | None = None,
    cross_encoder: CrossEncoder | None = None,
    now: datetime | None = None,
) -> ContextBuildResult:
    """Build a context within the token budget from hits, with the sources and a ledger entry for every hit.

    `counter` is a way of counting of your own, or the name of a model; without it, the options say how.
    """
    return assemble_units(hits, options, query=query, counter=counter, cross_encoder=cross_encoder, now=now)


def assemble_units(
    hits: Iterable[KnowledgeChunk | EntityResult],
    options: ContextBuildOptions | None = None,
    *,
    query: str | None = None,
    counter: TokenCounter | str | None = None,
    cross_encoder: CrossEncoder | None = None,
    now: datetime | None = None,
    units: Callable[[TokenCounter, int], UnitPacker] | None = None,
) -> ContextBuildResult:
    """Build a context as `assemble` does; `units` (counter, tokens) packs units that stand on their own."""
    started = perf_counter()
    options = options if options is not None else ContextBuildOptions()
    if not isinstance(options, ContextBuildOptions):
        raise InvalidOption("options", options, "must be a ContextBuildOptions")
    if isinstance(hits, (KnowledgeChunk, EntityResult)):
        raise InvalidHit("hits", hits, "must be a list of hits, not a single hit")
    candidates = prepare(hits, expand_context=options.expand_context)
    if not candidates:
        return ContextBuildResult.EMPTY
    options = _for_entities(options, candidates)
    if isinstance(counter, str):
        counter = counter_for(counter)
    counter = counter or counter_for_method(options.token_estimation, options.tokenizer)
    admitted = admit(candidates, options)
    # If the budget is too small for both, the pieces matter more than the list of sources.
    tries = (True, False) if options.include_sources else (False,)
    layouts = [ChunkLayout(options, counter, len(admitted.candidates), with_sources=with_it) for with_it in tries]
    recipe = Recipe(
        kind=ContextKind.CHUNKS,
        rank=partial(rerank, strategy=options.reranking, query=query, now=now, cross_encoder=cross_encoder),
        layouts=layouts,
        rules=_packing_rules(options, counter),
    )
    if units is not None:
        room = options.max_tokens - layouts[0].overhead(admitted.candidates)
        recipe = replace(recipe, form=units(counter, room).form)
    result = _result(build(candidates, admitted, recipe), options, started)
    milliseconds = result.build_time.total_seconds() * 1000
    _log.debug("built context: %d chunks, %d tokens, %.1f ms", result.chunks_included, result.tokens, milliseconds)
    return result


def _for_entities(options: ContextBuildOptions, candidates: Sequence[Candidate]) -> ContextBuildOptions:
    """The options for hits that are all entities: S2 has neither a threshold nor a limit on their number unless set."""
    if any(candidate.kind is not CandidateKind.ENTITY for candidate in candidates):
        return options
    usual = ContextBuildOptions()
    if options.min_relevance == usual.min_relevance:
        options = replace(options, min_relevance=0.0)
    return replace(options, max_chunks=len(candidates)) if options.max_chunks == usual.max_chunks else options


def _packing_rules(options: ContextBuildOptions, counter: TokenCounter) -> PackingRules:
    rules = PackingRules(
        max_tokens=options.max_tokens,
        max_pieces=options.max_chunks,
        overflow=options.overflow,
        by_value=options.overflow is OverflowPolicy.SKIP and options.packing is Packing.VALUE,
        min_trimmed_tokens=options.min_truncated_tokens,
    )
    if options.overflow is not OverflowPolicy.TRUNCATE:
        return rules
    return replace(rules, trimmer=_keep_beginning(counter, options.min_content_length))


def _keep_beginning(counter: TokenCounter, min_content_length: int) -> Trimmer:
    """Return a trimmer that keeps whole lines from the beginning of a chunk."""

    def trim(candidate: Candidate, room: int, cost: Cost) -> Trimmed | None:
        if candidate.kind is CandidateKind.ENTITY:
            return _shorter_summary(candidate, room, cost, counter)
        allowance = room
        for _ in range(_MAX_TRIM_TRIES):
            if allowance <= 0:
                return None
            text = _whole_lines(counter.prefix(candidate.text, allowance), candidate.text)
            if len(text) < min_content_length or len(text) >= len(candidate.text):
                return None
            trimmed = _cut(candidate, text)
            if candidate.elided and counter.count(_source_lines(text, candidate.text)) < MIN_UNIT_TOKENS:
                return None
            over = cost(trimmed.candidate) - room
            if over <= 0:
                return trimmed
            # The text may end well before the allowance, at a line end: subtract from the tokens really used.
            allowance = min(allowance, counter.count(text)) - over
        return None

    return trim


def _shorter_summary(entity: Candidate, room: int, cost: Cost, counter: TokenCounter) -> Trimmed | None:
    """The entity with the sentences of its summary that fit; None without a summary, or without room for a sentence."""
    allowance = min(room, counter.count(entity.summary))
    while entity.summary and allowance >= _MIN_SUMMARY_TOKENS:
        length = len(counter.prefix(entity.summary, allowance))
        whole = [end for end in accumulate(map(len, sentences(entity.summary))) if end <= length]
        summary = entity.summary[: max(whole, default=0)].rstrip()
        missing = len(entity.summary) - len(summary)
        trim = Trim(entity.id, max(1, entity.summary.count("\n") - summary.count("\n")), missing)
        shorter = entity._replace(summary=summary, text="", trim=trim, shortened=True)
        over = cost(shorter) - room
        if not summary:
            return None
        if over <= 0:
            return Trimmed(shorter)
        allowance = min(allowance, counter.count(summary)) - over
    return None


def _source_lines(text: str, unit: str) -> str:
    """The text without its elision lines, whose mark the whole unit tells."""
    return "\n".join(line for line in text.split("\n") if not elisions_in(line, unit))


def _whole_lines(text: str, full: str) -> str:
    """The text up to its last whole, non-blank line; cut within a line where whole lines would lose most of it."""
    if not full.startswith(text + "\n"):
        newline = text.rfind("\n")
        text = text[:newline] if newline > len(text) // 2 else text
    blank = text.find("\n", len(text.rstrip()))
    return text if blank < 0 else text[:blank]


def _cut(item: Candidate, text: str) -> Trimmed:
    missing = item.text[len(text) :]
    cut = cut_elisions(item.text, item.elided, text)
    missing_lines = missing.removeprefix("\n").rstrip("\n").count("\n") + 1 + cut.unmarked
    last_line = item.last_line
    if item.whole_lines and item.first_line is not None:
        last_line = item.first_line + text.count("\n")
    trim = Trim(item.id, missing_lines, len(missing))
    return Trimmed(item._replace(text=text, last_line=last_line, trim=trim, elided=cut.elided))


def _result(built: Built, options: ContextBuildOptions, started: float) -> ContextBuildResult:
    pieces, included = built.packed.draft.pieces, built.packed.draft.candidates
    fates = Counter(entry.fate for entry in built.fields["ledger"])
    truncated = fates[Fate.DROPPED] - len(built.admitted.dropped)
    return ContextBuildResult(
        **built.fields,
        sources=tuple(source_of(piece, piece.lead.section if options.group_by_type else "") for piece in pieces),
        sections=built.layout.section_summaries(built.packed.draft),
        notes=tuple(_notes(built, options)),
        originals=_originals(built.candidates, options.expand_context),
        statistics=BuildStatistics(
            build_time=timedelta(seconds=perf_counter() - started),
            characters_made_visible=sum(candidate.made_visible for candidate in included),
        ),
        chunks_included=len(included),
        chunks_truncated=truncated,
        chunks_merged=fates[Fate.MERGED],
        files_included=tuple(dict.fromkeys(piece.lead.path for piece in pieces if piece.lead.path)),
        summary=_shortened_summary(pieces),
        was_truncated=truncated > 0 or any(_is_cut_by_the_budget(piece) for piece in pieces),
        average_relevance=sum(candidate.relevance for candidate in included) / len(included) if included else 0.0,
    )


def _is_cut_by_the_budget(piece: Piece) -> bool:
    """True for a piece that the budget trimmed; the limit on an entity's content is not the budget."""
    return piece.trim is not None and (piece.lead.kind is not CandidateKind.ENTITY or piece.lead.shortened)


def _shortened_summary(pieces: Sequence[Piece]) -> str | None:
    """The summaries that were shortened to fit, as S2 reports them; None if none was."""
    return "\n\n".join(piece.lead.summary for piece in pieces if piece.lead.shortened) or None


def _notes(built: Built, options: ContextBuildOptions) -> Iterator[str]:
    if built.ranking.note:
        yield built.ranking.note
    if set(built.admitted.dropped.values()) == {Reason.BELOW_RELEVANCE} and not built.admitted.candidates:
        best = max(candidate.relevance for candidate in built.candidates)
        least = options.min_relevance
        yield f"every hit is below min_relevance={least:g} (the best has {best:.2f}); lower it, or rescale the scores"
    elif below := Counter(built.admitted.dropped.values())[Reason.BELOW_RELEVANCE]:
        hits = "1 hit is" if below == 1 else f"{below} hits are"
        yield f"{hits} below min_relevance={options.min_relevance:g} and left out"
    listed = isinstance(built.layout, ChunkLayout) and built.layout.with_sources
    if options.include_sources and not listed and built.packed.draft.candidates:
        yield "the list of sources did not fit into the budget and was left out"
    yield from built.common_notes()


def _originals(candidates: Sequence[Candidate], expand_context: bool) -> dict[str, str]:
    """The exact text of every hit by its candidate id, and by the hit's own id where the two differ."""
    texts_by_id: dict[str, str] = {}
    texts_by_given_id: dict[str, str] = {}
    for candidate in candidates:
        origin = candidate.origin
        if isinstance(origin, KnowledgeChunk):
            widened = origin.expanded_context if expand_context else None
            text, given_id = origin.content if widened is None else widened, origin.id
        else:
            assert isinstance(origin, EntityResult)
            entity = origin.entity
            text, given_id = "\n\n".join(filter(None, (entity.summary, entity.content))), origin.entity_id
        text = redact(text)
        texts_by_id[candidate.id] = text
        texts_by_given_id.setdefault(given_id, text)
    return texts_by_given_id | texts_by_id


def format_chunk(
    chunk: KnowledgeChunk,
    format: ContextFormat = ContextFormat.MARKDOWN,
    include_file_header: bool = True,
    include_line_numbers: bool = True,
    *,
    options: ContextBuildOptions | None = None,
) -> FormattedChunk:
    """Render a single chunk without a context around it."""
    options = replace(
        options or ContextBuildOptions(),
        format=format,
        include_file_headers=include_file_header,
        include_line_numbers=include_line_numbers,
    )
    (candidate,) = prepare([chunk], expand_context=options.expand_context)
    counter = counter_for_method(options.token_estimation, options.tokenizer)
    text = "".join(format_for(options).piece(alone(candidate, 1)))
    if options.format == ContextFormat.JSON:
        text = dedent(text).strip()  # the object alone, not as it stands in a document
    return FormattedChunk(
        formatted_content=text,
        estimated_tokens=counter.count(text),
        file_path=chunk.file_path,
        start_line=candidate.first_line or 0,
        end_line=candidate.last_line or 0,
        relevance=candidate.relevance,
        language=chunk.language,
        source_chunk=chunk,
    )
