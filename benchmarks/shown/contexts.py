"""Build contexts for questions and symbols over one corpus, and measure what they show."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.corpora import Asked, Corpus
from benchmarks.scoreboard.evidence import Corpus as Evidence
from benchmarks.shown.pieces import (
    SourceFile,
    begins_inside_body,
    is_fragment,
    is_unmarked_cut,
    pieces_of,
)
from benchmarks.shown.symbols import LINE_BUDGETS, WHOLE_BUDGET, Symbol, SymbolShown, judge_symbol, sample_symbols
from satchel.models.context import Context
from satchel.models.search import Filters
from satchel.service.engine import ENGINE_OPTIONS, ContextEngine
from satchel.service.factory.opening import open_engine
from satchel.tokens.registry import counter_for

BUDGETS: Final = (1000, 2000, 4000, 8000)
COUNTER: Final = counter_for("o200k_base")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMeasures:
    """What a context shows for a question."""

    cover: float
    tokens: int
    expected_tokens: int
    """Tokens of pieces from expected files, with their elision lines."""
    frame_tokens: int
    """Tokens around the pieces: headings, fences, receipts."""
    elision_tokens: int
    """Tokens of elision lines."""
    pieces: int
    inside_body: int
    """Pieces that begin inside a definition without a mark."""
    unmarked: int
    """Pieces that are cut without a mark."""
    fragments: int
    """Pieces of a single short line."""
    faults: tuple[str, ...] = ()
    """What is wrong with which piece, to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusMeasures:
    """Measures of the questions of a corpus by budget, and of its symbols."""

    questions: Sequence[Mapping[int, ContextMeasures]] = ()
    symbols: Sequence[SymbolShown] = ()


def measure_corpus(corpus: Corpus, *, symbols: int = 0) -> CorpusMeasures:
    """The questions of a corpus, and a sample of so many of its symbols, asked of an index made from nothing."""
    with indexed(corpus.folder) as engine:
        asking = _Asking(engine, Evidence(corpus.folder))
        chosen = sample_symbols(engine.store.files(), asking.file, COUNTER, symbols, corpus.name) if symbols else []
        return CorpusMeasures(
            questions=[asking.question(asked) for asked in corpus.questions],
            symbols=[asking.symbol(symbol) for symbol in chosen],
        )


@contextmanager
def indexed(folder: Path) -> Iterator[ContextEngine]:
    """An engine over a folder, with an index made from nothing that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="satchel-bench-") as place:
        engine = open_engine(folder, index_dir=place, history_commits=0)
        try:
            engine.index()
            yield engine
        finally:
            engine.close()


class _Asking:
    """An index, and the evidence by which its contexts are judged."""

    def __init__(self, engine: ContextEngine, evidence: Evidence) -> None:
        self._engine = engine
        self._evidence = evidence
        self.file = cache(self._file)

    def question(self, asked: Asked) -> dict[int, ContextMeasures]:
        """What is shown for a question at each budget."""
        return {budget: self._measures(asked, self._build(asked.query, budget)) for budget in BUDGETS}

    def symbol(self, symbol: Symbol) -> SymbolShown:
        """What is shown for the name of a definition."""
        budgets = sorted({*LINE_BUDGETS, WHOLE_BUDGET})
        pieces = {budget: pieces_of(self._build(symbol.name, budget)) for budget in budgets}
        return judge_symbol(symbol, self.file(symbol.path), pieces)

    def _build(self, query: str, budget: int) -> Context:
        return self._engine.build(query, replace(ENGINE_OPTIONS, max_tokens=budget))

    def _file(self, path: str) -> SourceFile:
        store, everybody = self._engine.store, Filters()
        lines = (store.text_of(path, everybody) or "").split("\n")
        return SourceFile(lines, store.outline_of(path, everybody))

    def _measures(self, asked: Asked, context: Context) -> ContextMeasures:
        shares = self._evidence.covered(asked.expected, context.text)
        pieces = pieces_of(context)
        tokens = [COUNTER.count(piece.text) for piece in pieces]
        found = {
            "begins inside a body": [p for p in pieces if p.path and begins_inside_body(p, self.file(p.path))],
            "cut without a mark": [p for p in pieces if p.path and is_unmarked_cut(p, self.file(p.path))],
            "fragment": [piece for piece in pieces if is_fragment(piece, COUNTER)],
        }
        where = f"{context.budget} tokens for {asked.query[:80]!r}"
        return ContextMeasures(
            cover=sum(shares) / len(shares),
            tokens=context.tokens,
            expected_tokens=sum(n for n, piece in zip(tokens, pieces, strict=True) if piece.path in asked.files),
            frame_tokens=context.tokens - sum(tokens),
            elision_tokens=sum(tokens) - sum(COUNTER.count(piece.source_text) for piece in pieces),
            pieces=len(pieces),
            inside_body=len(found["begins inside a body"]),
            unmarked=len(found["cut without a mark"]),
            fragments=len(found["fragment"]),
            faults=tuple(
                f"{fault}: {piece.path}:{piece.first}-{piece.last}, {where}"
                for fault, some in found.items()
                for piece in some
            ),
        )
