"""Contexts of pieces of files: searches the pieces for a question, and packs them as units that stand on their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from satchel.assembly.assemble import assemble_units
from satchel.models.chunk import KnowledgeChunk
from satchel.retrieval.freshness import lines_of, widened
from satchel.retrieval.impact import ImpactSearcher, with_owners
from satchel.retrieval.search import unit_packer
from satchel.retrieval.sufficiency import judge, with_notice
from satchel.service.sessions import with_shown, without_shown

if TYPE_CHECKING:
    from satchel.models.options import ContextBuildOptions
    from satchel.models.results import ContextBuildResult
    from satchel.models.search import Filters, SearchHit
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.retrieval.change import Change
    from satchel.retrieval.impact import FindsHits
    from satchel.retrieval.search import Searcher
    from satchel.service.sessions import ShownLines
    from satchel.tokens.counter import TokenCounter

# A small budget still packs from this many hits; fewer would leave no alternative to a hit that does not fit.
_MIN_HITS: Final = 30
# More hits would take longer to check against the disk and to pack; also the default for `max_chunks`.
MAX_HITS: Final = 150
# A hit is fetched per so many tokens of the budget: a lower number fetches hits that do not fit, a higher number may
# leave the budget unused.
_BUDGET_TOKENS_PER_HIT: Final = 100
# About 1,500 tokens at four characters a token, of a default budget of 4,000: a longer symbol would crowd out the
# other pieces, so only the hit is shown.
_MAX_SYMBOL_CHARS: Final = 6000


@dataclass(frozen=True, slots=True)
class PieceContextBuilder:
    """Builds contexts from the pieces that a searcher finds, in one store or in several."""

    searcher: Searcher
    cross_encoder: CrossEncoder | None = None
    change: Change | None = None
    """The change whose consequences are asked for."""

    def build(
        self,
        question: str,
        options: ContextBuildOptions,
        *,
        filters: Filters,
        expand_to_symbol: bool = False,
        counter: TokenCounter | None = None,
        min_sufficiency: float = 0.0,
        shown: ShownLines | None = None,
    ) -> ContextBuildResult:
        """Build the context for a question; below `min_sufficiency` its first line says that nothing seems to answer.

        With `expand_to_symbol` each piece is shown with its whole symbol. What was `shown` to a session is left out,
        and the rest is added to it.
        """
        build = partial(self._build, question, filters, expand_to_symbol, counter, shown=shown)
        built = with_notice(lambda notice: build(options=_with_header(options, notice)), min_sufficiency)
        if shown is not None:
            shown.add(built.sources)
        return built

    def _build(
        self,
        question: str,
        filters: Filters,
        expand_to_symbol: bool,
        counter: TokenCounter | None,
        *,
        shown: ShownLines | None,
        options: ContextBuildOptions,
    ) -> ContextBuildResult:
        store = self.searcher.store
        max_hits = max(_MIN_HITS, min(options.max_tokens // _BUDGET_TOKENS_PER_HIT, MAX_HITS))
        finder: FindsHits = self.searcher
        if self.change is not None:
            question = self.change.words
            finder = ImpactSearcher(self.searcher, self.change)
            options = with_owners(options, self.change, store, filters)
        found = finder.search(question, top_k=max_hits, filters=filters)
        new, old, options = without_shown(found.hits, shown, options)
        hits = [self._chunk(hit, options, expand_to_symbol, filters) for hit in new]
        units = None
        if not (options.expand_context or expand_to_symbol):
            units = unit_packer(question, new, store, filters, options.fill)
        # The store has applied the patterns already; only the store knows every file.
        options = replace(options, file_patterns=None, languages=None)
        result = assemble_units(
            hits, options, query=question, counter=counter, cross_encoder=self.cross_encoder, units=units
        )
        # What a change reaches is no answer that its words could be compared with.
        is_judged = self.change is None and (new or not old)
        judged = judge(question, result, found.hits, store, filters) if is_judged else None
        result = with_shown(result, old)
        return replace(result, notes=(*found.notes, *result.notes), sufficiency=judged)

    def _chunk(
        self, hit: SearchHit, options: ContextBuildOptions, expand_to_symbol: bool, filters: Filters
    ) -> KnowledgeChunk:
        expanded = None
        first, last = hit.start_line, hit.end_line
        if hit.path and not hit.reanchored and (expand_to_symbol or (options.expand_context and options.context_lines)):
            text = self.searcher.store.text_of(hit.path, filters) or ""
            if expand_to_symbol:
                first, last = self._symbol_around(hit, filters)
            more = options.context_lines if options.expand_context else 0
            first, last, expanded = widened(lines_of(text), first, last, more)
        chunk = KnowledgeChunk(
            hit.content,
            file_path=hit.path,
            start_line=hit.start_line,
            end_line=hit.end_line,
            relevance=hit.relevance,
            language=hit.language,
            id=hit.id,
            type=hit.block_type,
            name=hit.title if hit.page is None else hit.title.partition("/")[2],
            page=hit.page,
            metadata={
                "satchel.collector": "semantic",
                "satchel.signals": hit.signals,
                "satchel.passage": hit.is_passage,
                "satchel.why": hit.why,
            },
        )
        return replace(chunk, expanded_context=expanded) if expanded is not None else chunk

    def _symbol_around(self, hit: SearchHit, filters: Filters) -> tuple[int, int]:
        """First and last line of the block around a hit; of the hit alone if the block is too long to show whole."""
        block = self.searcher.store.block(hit.block_id, filters) if "#" in hit.block_id else None
        if block is None or len(block.content) > _MAX_SYMBOL_CHARS:
            return hit.start_line, hit.end_line
        return min(block.start_line, hit.start_line), max(block.end_line, hit.end_line)


def _with_header(options: ContextBuildOptions, notice: str) -> ContextBuildOptions:
    """The options with the notice before the caller's header."""
    if not notice:
        return options
    return replace(options, context_header="\n\n".join(filter(None, (notice, options.context_header))))
