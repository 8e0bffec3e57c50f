"""What the scoreboard asks: folders to index, and questions with what a good answer holds."""

from __future__ import annotations

from pathlib import Path

from benchmarks.scoreboard.corpora import custom, docstrings, evaluation
from benchmarks.scoreboard.corpora.model import Asked, Corpus, QuestionSet
from benchmarks.scoreboard.corpora.sampling import sample

__all__ = ["Asked", "Corpus", "QuestionSet", "question_sets", "sample"]


def question_sets(work: Path) -> list[QuestionSet]:
    """Every set there is; nothing is downloaded or written (below `work`) before its corpora are asked for."""
    return [*evaluation.question_sets(work), docstrings.question_set(work), *custom.question_sets()]
