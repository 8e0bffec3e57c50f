"""What a tool answered: the text, what it says stands in it, and what it ranked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A piece as it stands in a context, and where it says it is from."""

    text: str
    path: str = ""
    first: int | None = None
    last: int | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(Shown):
    """A hit of a search, with the likelihood that it answers the question, where the tool gives one."""

    relevance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The context for a question within a budget."""

    text: str
    tokens: int
    shown: tuple[Shown, ...]
    milliseconds: float = 0.0
