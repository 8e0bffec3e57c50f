"""What a question says, by its words, of tasks and their state, of the screen, and of earlier turns."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

_TASKS: Final = re.compile(
    r"\b(?:tasks?|sub-?tasks?|to-?dos?|action items?|kanban|cards?|checklists?)\b", re.IGNORECASE
)
_OVERDUE: Final = re.compile(
    r"\b(?:overdue|past due|past (?:the|its|their) (?:deadline|due date)|late|behind schedule"
    r"|should (?:already )?have been (?:done|finished|ready))\b",
    re.IGNORECASE,
)
_DUE: Final = re.compile(r"\b(?:due|deadlines?|upcoming)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]{2,}")
_ASKING: Final = re.compile(r"^\W*(?:what|which|anything|list|show|when|my)\b|\bmy (?:deadlines?|due)\b", re.IGNORECASE)
_WITHIN: Final = {"today": 1, "tomorrow": 2, "this week": 7, "next week": 14, "this month": 31, "next month": 62}
_DONE: Final = re.compile(r"\b(?:done|completed?|finished|closed)\b", re.IGNORECASE)
_UNFINISHED: Final = re.compile(
    r"\b(?:overdue|past due|unfinished|undone|outstanding|not (?:yet )?(?:done|finished)|isn.t|should have been"
    r"|still open)\b",
    re.IGNORECASE,
)
_POINTING: Final = re.compile(r"\b(?:this|these|here)\b", re.IGNORECASE)
_GOING_ON: Final = re.compile(
    r"^\W*(?:and|or|but|so|also|then|what about|how about)\b|\b(?:it|its|that|those|they|them|he|she|him|her)\b",
    re.IGNORECASE,
)
# Commands say nothing about the subject of a question.
_COMMANDS: Final = frozenset(
    "summarize summarise summary break down split rewrite rephrase explain improve translate shorten expand describe "
    "list make write turn convert extract outline draft reply continue fix clean up review check page pages note notes "
    "block blocks task tasks subtask subtasks section text document file code function class paragraph card row "
    "table database steps step points bullet bullets".split()
)


class TaskIntent(NamedTuple):
    """What a question says about tasks, about the screen, and about earlier turns."""

    tasks: bool = False
    overdue: bool = False
    due: bool = False
    within_days: int | None = None
    """Number of days from today named by the question (`this week`: 7); None if the question names none."""
    done: bool = False
    pointing: bool = False
    """True if the question refers to the screen: `this page`, `here`."""
    going_on: bool = False
    """True if the question refers to earlier turns: `and when?`, `who wrote it?`."""

    @property
    def dated_tasks(self) -> bool:
        """True if the question asks for tasks by due date."""
        return self.overdue or self.due


def intent_of(query: str) -> TaskIntent:
    """The intent of a question."""
    overdue = bool(_OVERDUE.search(query)) and bool(_TASKS.search(query) or _UNFINISHED.search(query))
    return TaskIntent(
        tasks=bool(_TASKS.search(query)),
        overdue=overdue,
        due=bool(_DUE.search(query)) and bool(_TASKS.search(query) or _ASKING.search(query)),
        within_days=next((days for words, days in _WITHIN.items() if words in query.lower()), None),
        done=bool(_DONE.search(query)) and not _UNFINISHED.search(query),
        pointing=bool(_POINTING.search(query)),
        going_on=bool(_GOING_ON.search(query)),
    )


def subject_words(query: str, stop_words: Collection[str]) -> list[str]:
    """The words for the subject of a question, without stop words and command words."""
    return [word for word in _WORD.findall(query.lower()) if word not in stop_words and word not in _COMMANDS]
