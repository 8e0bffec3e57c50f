"""Fewer questions of a set, the same ones everywhere."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.scoreboard.corpora.model import Asked, Planned, QuestionSet, Unavailable


def sample(questions: QuestionSet, most: int) -> QuestionSet:
    """At most so many questions, of each corpus and group as large a share as of every other.

    A larger sample contains the smaller one. A corpus of which nothing is asked is left out, and so never made.
    """
    missing = dict(questions.missing)
    turns: list[tuple[float, str, str, Asked]] = []
    for plan in questions.planned:
        try:
            asked = plan.questions()
        except Unavailable as reason:
            missing[plan.name] = str(reason)
            continue
        turns += [(share, placed(one), plan.name, one) for share, one in _by_share(asked)]
    chosen: dict[str, set[str]] = defaultdict(set)
    for _, _, corpus, one in sorted(turns, key=lambda turn: turn[:3])[: max(0, most)]:
        chosen[corpus].add(one.id)
    planned = tuple(_only(plan, chosen[plan.name]) for plan in questions.planned if plan.name in chosen)
    return replace(questions, planned=planned, missing=missing)


def placed(asked: Asked) -> str:
    """Where a question stands in an order that has nothing to do with what it asks."""
    return hashlib.sha256(asked.id.encode()).hexdigest()


def _by_share(asked: Iterable[Asked]) -> Iterator[tuple[float, Asked]]:
    """Each question with the share of its group that is asked once it is: the k-th of n has (k - 1/2) / n."""
    groups: dict[str, list[Asked]] = defaultdict(list)
    for one in sorted(asked, key=placed):
        groups[one.group].append(one)
    for some in groups.values():
        for k, one in enumerate(some):
            yield (k + 0.5) / len(some), one


def _only(plan: Planned, ids: set[str]) -> Planned:
    return replace(plan, questions=lambda: tuple(one for one in plan.questions() if one.id in ids))
