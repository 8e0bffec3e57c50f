"""What a look at something found."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class State(StrEnum):
    """How things stand: well, worth knowing, or wrong."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(NamedTuple):
    """One thing that was looked at; `remedy` says what to do about it."""

    subject: str
    state: State
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "subject": self.subject,
            "state": str(self.state),
            "ok": self.state is not State.PROBLEM,
            "detail": self.detail,
            "do": self.remedy,
        }


def ok(subject: str, detail: str) -> Finding:
    """All is well."""
    return Finding(subject, State.OK, detail)


def note(subject: str, detail: str, remedy: str = "") -> Finding:
    """Nothing is wrong, but one may want to know."""
    return Finding(subject, State.NOTE, detail, remedy)


def problem(subject: str, detail: str, remedy: str) -> Finding:
    """Something does not work, and this is what to do."""
    return Finding(subject, State.PROBLEM, detail, remedy)
