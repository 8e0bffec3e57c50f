"""The result of a check."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class State(StrEnum):
    """State of a finding: all is well, worth knowing, or wrong."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(NamedTuple):
    """Result of a check; `remedy` says how to fix a problem."""

    subject: str
    state: State
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The finding as a JSON-compatible dictionary."""
        return {
            "subject": self.subject,
            "state": str(self.state),
            "ok": self.state is not State.PROBLEM,
            "detail": self.detail,
            "remedy": self.remedy,
        }


def ok(subject: str, detail: str) -> Finding:
    """Finding: all is well."""
    return Finding(subject, State.OK, detail)


def note(subject: str, detail: str, remedy: str = "") -> Finding:
    """Finding: worth knowing, though nothing is wrong."""
    return Finding(subject, State.NOTE, detail, remedy)


def problem(subject: str, detail: str, remedy: str) -> Finding:
    """Finding: something does not work, with a remedy."""
    return Finding(subject, State.PROBLEM, detail, remedy)
