"""How a context's tokens are shared out among its sections."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from satchel.errors import InvalidOption
from satchel.models.checks import as_count

_MOST_TOKENS: Final = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """The whole, and what is reserved of it for each section.

    `total` bounds the finished text. The rest are reservations: a section is sure of its share while it has items;
    what it leaves goes to the best remaining item of any section; where they add up to more than the total, each
    shrinks in proportion. `system` is kept free for the caller's system prompt, or holds the one that is given.
    """

    total: int = 4000
    focus: int = 1500
    semantic: int = 1200
    relations: int = 800
    activity: int = 300
    history: int = 500
    system: int = 200

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 1 if field.name == "total" else 0
            value = as_count(InvalidOption, f"token_budget.{field.name}", getattr(self, field.name), least)
            if value > _MOST_TOKENS:
                raise InvalidOption(f"token_budget.{field.name}", value, f"must be at most {_MOST_TOKENS:,}")
            object.__setattr__(self, field.name, value)

    @property
    def reserved(self) -> int:
        """What the reservations add up to."""
        return self.focus + self.semantic + self.relations + self.activity + self.history + self.system

    def shrunk(self) -> TokenBudget:
        """The same, with reservations that fit into the total."""
        if self.reserved <= self.total:
            return self
        share = self.total / self.reserved
        parts = {f.name: int(getattr(self, f.name) * share) for f in fields(self) if f.name != "total"}
        return TokenBudget(total=self.total, **parts)

    def scaled(self, total: int) -> TokenBudget:
        """The same proportions of another total."""
        parts = {f.name: getattr(self, f.name) * total // self.total for f in fields(self) if f.name != "total"}
        return TokenBudget(total=total, **parts)
