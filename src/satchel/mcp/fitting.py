"""Results that fit: what is sent is measured as it is sent, and cut into pages where it is too long."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from satchel.errors import InvalidOption
from satchel.mcp.cursors import Cursor, read_cursor

MOST_CHARS: Final = 48_000
LEAST_CHARS: Final = 20_000
_CHARS_PER_TOKEN: Final = 2
_WRAPPING_CHARS: Final = 700
"""What the protocol puts around a result: its type, and who answered."""

Result = dict[str, Any]
S = TypeVar("S", bound=Sequence[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a result may be, in characters and tokens of its JSON; some transports escape all but ASCII."""

    chars: int = MOST_CHARS
    escaped: bool = False

    def fit(self, result: Result) -> bool:
        """Whether a result may be sent."""
        sent = json.dumps(result, ensure_ascii=self.escaped, separators=(",", ":"))
        if len(sent) > self.chars - _WRAPPING_CHARS:
            return False
        most = self.chars // _CHARS_PER_TOKEN - _WRAPPING_CHARS // _CHARS_PER_TOKEN
        # No token is shorter than a byte.
        if len(sent) <= most and len(sent.encode()) <= most:
            return True
        from satchel.service.token_counts import count_tokens

        return count_tokens(sent) <= most


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[S]):
    """A part of a whole."""

    part: S
    is_first: bool
    restarted: bool
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages(Generic[S]):
    """A whole that is given in pages: a text, or a list of hits."""

    whole: S
    asked: bytes
    digest: bytes
    make: Callable[[Page[S]], Result]
    limits: Limits

    def at(self, cursor: str | None) -> Result:
        """The result with the page that begins at a cursor, as long as may be sent."""
        start, restarted = self._start(cursor)
        rest = len(self.whole) - start
        count = _most(min(rest, self.limits.chars), lambda many: self._fits(start, many, restarted))
        if isinstance(self.whole, str) and count < rest:
            count = self._to_a_line_end(start, count, restarted)
        if rest and not count:
            raise InvalidOption("max-result-chars", self.limits.chars, "is too small for what has to be sent")
        return self._page(start, count, restarted)

    def _start(self, cursor: str | None) -> tuple[int, bool]:
        if not cursor:
            return 0, False
        found = read_cursor(cursor)
        if found.asked != self.asked:
            raise InvalidOption(
                "cursor", cursor, "was given for other arguments; repeat those, or leave the cursor out to begin anew"
            )
        if found.whole != self.digest or found.offset > len(self.whole):
            return 0, True
        return found.offset, False

    def _page(self, start: int, count: int, restarted: bool) -> Result:
        end = start + count
        after = Cursor(offset=end, asked=self.asked, whole=self.digest).written() if end < len(self.whole) else None
        part: Any = self.whole[start:end]
        return self.make(Page(part=part, is_first=not start, restarted=restarted, next_cursor=after))

    def _fits(self, start: int, count: int, restarted: bool) -> bool:
        return self.limits.fit(self._page(start, count, restarted))

    def _to_a_line_end(self, start: int, count: int, restarted: bool) -> int:
        """A little less, where a line ends there."""
        assert isinstance(self.whole, str)
        end = self.whole.rfind("\n", start + count // 2, start + count) + 1
        shorter = end - start
        return shorter if end and self._fits(start, shorter, restarted) else count


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """The greatest number up to `most` that fits, as far as halving finds it; 0 if none does."""
    if fits(most):
        return most
    fitting, too_many = 0, most
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if fits(middle):
            fitting = middle
        else:
            too_many = middle
    return fitting
