"""One contestant, one set of questions: ask, fill up to the budgets, judge by the text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.contestant import Answered, Cited, ContestantFailed, Context, Passage, Running
from benchmarks.scoreboard.contestants import Contestant
from benchmarks.scoreboard.corpora import Asked, Corpus, QuestionSet
from benchmarks.scoreboard.corpora.model import Unavailable
from benchmarks.scoreboard.evidence import Corpus as Evidence
from benchmarks.scoreboard.filling import cut, filled
from benchmarks.scoreboard.integrity import share_that_stands
from benchmarks.scoreboard.outcomes import Outcome
from satchel.evaluation.judging import RankedHit, rank
from satchel.evaluation.outcome import AtBudget, Evaluation, QuestionRow
from satchel.tokens.registry import counter_for

BUDGETS: Final = (1000, 2000, 4000, 8000)
ENCODING: Final = "o200k_base"
TO_INDEX: Final = 60.0
"""So long a tool may take for one corpus; most need less than ten seconds for the largest."""
_MOST_CLAIMS: Final = 400
_MOST_CHARACTERS_A_TOKEN: Final = 40


class _Tally:
    """What is gathered beside the rows."""

    def __init__(self) -> None:
        self.stands = self.cites = 0
        self.claims: list[tuple[int, int]] = []


def outcome_of(contestant: Contestant, questions: QuestionSet, work: Path) -> Outcome:
    """Everything that a contestant answers on a set; a corpus that it fails on is left out and told."""
    rows: list[QuestionRow] = []
    failed: dict[str, str] = {}
    tally = _Tally()
    version = ""
    running: Running | None = None
    try:
        for corpus in questions.corpora:
            try:
                running = running or Running.of(contestant, work)
                version = running.version
                rows += _Asking(running, contestant, corpus, questions.kind, tally).rows()
            except ContestantFailed as error:
                failed[corpus.name] = str(error)[:300]
                print(f"{contestant.name} on {corpus.name}: {error}", file=sys.stderr)
                if running is not None:
                    running.close()
                running = None
    finally:
        if running is not None:
            running.close()
    return Outcome(
        questions=Evaluation(name=contestant.name, rows=tuple(rows), about={"set": questions.name}),
        version=version,
        stands=tally.stands,
        cites=tally.cites,
        claims=tuple(tally.claims[:: max(1, len(tally.claims) // _MOST_CLAIMS)]),
        failed=failed,
    )


class _Asking:
    """A contestant and a corpus."""

    def __init__(self, running: Running, contestant: Contestant, corpus: Corpus, kind: str, tally: _Tally) -> None:
        self._running = running
        self._contestant = contestant
        self._corpus = corpus
        self._evidence = Evidence(corpus.folder)
        self._packed = running.index(corpus.folder, kind=kind, timeout=TO_INDEX).packed
        # An order of files says nothing where there is only one.
        self._can_rank = contestant.ranks and len(self._evidence.texts) > 1
        self._tally = tally
        self._counter = counter_for(ENCODING)
        self._cut: dict[int, tuple[str, int]] = {}

    def rows(self) -> list[QuestionRow]:
        """Every question of the corpus, judged."""
        return [self._row(asked, self._running.ask(asked.query, BUDGETS)) for asked in self._corpus.questions]

    def _row(self, asked: Asked, answered: Answered) -> QuestionRow:
        passages = [_ranked(one) for one in answered.passages or ()]
        return QuestionRow(
            id=asked.id,
            query=asked.query,
            group=asked.group,
            at=tuple(self._at(asked, answered, passages, budget) for budget in BUDGETS),
            ranking=rank(passages, asked.by_file().expected) if self._can_rank else None,
        )

    def _at(self, asked: Asked, answered: Answered, passages: Sequence[RankedHit], budget: int) -> AtBudget:
        text, tokens = self._text(answered, passages, budget)
        shares = self._evidence.covered(asked.expected, text)
        return AtBudget(
            budget=budget,
            cover=sum(shares) / len(shares),
            precision=None,
            tokens=tokens,
            milliseconds=0.0,
            missing=tuple(str(one) for one, share in zip(asked.expected, shares, strict=True) if share < 1),
        )

    def _text(self, answered: Answered, passages: Sequence[RankedHit], budget: int) -> tuple[str, int]:
        """The text within the budget, and how many tokens the tool's own text had."""
        written = None if answered.contexts is None else answered.contexts.get(budget)
        if written is not None:
            self._cited([_ranked(one) for one in written.cited or ()])
            tokens = self._claimed(written)
            return cut(written.text, budget, self._counter), tokens
        if self._packed is not None:
            return self._of_packed(self._packed, budget)
        text, whole = filled(passages, budget, self._counter, self._evidence.in_lines)
        self._cited(whole)
        return text, self._counter.count(text)

    def _of_packed(self, packed: Context, budget: int) -> tuple[str, int]:
        """What a tool that does not look at the question gets into the budget: the same for every question."""
        if budget not in self._cut:
            if not self._cut:
                self._claimed(packed)
            text = cut(packed.text[: budget * _MOST_CHARACTERS_A_TOKEN], budget, self._counter)
            self._cut[budget] = (text, self._counter.count(text))
        return self._cut[budget]

    def _claimed(self, context: Context) -> int:
        tokens = self._counter.count(context.text)
        if context.claimed is not None:
            self._tally.claims.append((context.claimed, tokens))
        return tokens

    def _cited(self, pieces: Sequence[RankedHit]) -> None:
        stands, cites = share_that_stands(pieces, self._evidence)
        self._tally.stands += stands
        self._tally.cites += cites


def _ranked(one: Passage | Cited) -> RankedHit:
    relevance = one.relevance if isinstance(one, Passage) else None
    return RankedHit(text=one.text, path=one.path, first=one.first, last=one.last, relevance=relevance)


def every(questions: QuestionSet, step: int) -> QuestionSet:
    """The set with only every so many-th question, for contestants that are slow; a corpus without any is left out."""
    if step <= 1:
        return questions
    planned, number = [], 0
    for plan in questions.planned:
        try:
            asked = plan.questions()
        except Unavailable:
            continue
        kept = tuple(one for i, one in enumerate(asked, number) if i % step == 0)
        number += len(asked)
        if kept:
            planned.append(replace(plan, questions=lambda kept=kept: kept))  # type: ignore[misc]
    return replace(questions, planned=tuple(planned))
