"""Fewer questions of a set, the same ones everywhere."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from benchmarks.scoreboard.corpora.model import Asked, Planned, QuestionSet, Unavailable


def sample(questions: QuestionSet, most: int) -> QuestionSet:
    """At most so many questions, spread evenly over the corpora and, inside each, over its groups.

    A larger sample contains the smaller one. A corpus of which nothing is asked is left out, and so never made.
    """
    missing = dict(questions.missing)
    turns: list[tuple[int, str, str, Asked]] = []
    for plan in questions.planned:
        try:
            asked = plan.questions()
        except Unavailable as reason:
            missing[plan.name] = str(reason)
            continue
        turns += [(turn, placed(one), plan.name, one) for turn, one in enumerate(_by_turns(asked))]
    chosen: dict[str, set[str]] = defaultdict(set)
    for _, _, corpus, one in sorted(turns, key=lambda turn: turn[:3])[: max(0, most)]:
        chosen[corpus].add(one.id)
    planned = tuple(_only(plan, chosen[plan.name]) for plan in questions.planned if plan.name in chosen)
    return replace(questions, planned=planned, missing=missing)


def placed(asked: Asked) -> str:
    """Where a question stands in an order that has nothing to do with what it asks."""
    return hashlib.sha256(asked.id.encode()).hexdigest()


def _by_turns(asked: Iterable[Asked]) -> list[Asked]:
    """The first of every group, then the second of every group, and so on."""
    turns: list[tuple[int, str, Asked]] = []
    seen: Counter[str] = Counter()
    for one in sorted(asked, key=placed):
        turns.append((seen[one.group], placed(one), one))
        seen[one.group] += 1
    return [one for _, _, one in sorted(turns, key=lambda turn: turn[:2])]


def _only(plan: Planned, ids: set[str]) -> Planned:
    return replace(plan, questions=lambda: tuple(one for one in plan.questions() if one.id in ids))
