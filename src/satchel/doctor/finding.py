"""The result of a check."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class State(StrEnum):
    """Whether all is well, something is worth knowing, or something is wrong."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(NamedTuple):
    """What a check found; `remedy` says what to do about it."""

    subject: str
    state: State
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        return {
            "subject": self.subject,
            "state": str(self.state),
            "ok": self.state is not State.PROBLEM,
            "detail": self.detail,
            "do": self.remedy,
        }


def ok(subject: str, detail: str) -> Finding:
    """A finding that all is well."""
    return Finding(subject, State.OK, detail)


def note(subject: str, detail: str, remedy: str = "") -> Finding:
    """A finding that is worth knowing, though nothing is wrong."""
    return Finding(subject, State.NOTE, detail, remedy)


def problem(subject: str, detail: str, remedy: str) -> Finding:
    """A finding that something does not work, and what to do about it."""
    return Finding(subject, State.PROBLEM, detail, remedy)
