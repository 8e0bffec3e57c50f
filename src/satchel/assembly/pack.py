"""Packs the best candidates into the token budget, section by section, whole where they fit.

Each section has its reservation; unused tokens go to the best remaining candidate of any section. The cost of a
candidate is counted on its rendered text. Beside other candidates the cost may be lower, because neighbours join and
a file's heading is rendered once. Hence packing works in steps: choose by the cost of each candidate alone, render and
count the text, remove the excess, and fill the room left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from satchel.assembly.knapsack import Offer, pack_by_value
from satchel.assembly.layout import Draft, Layout, lines_not_shown, shows, touches
from satchel.errors import BudgetCannotBeMet
from satchel.models.chunk import Candidate
from satchel.models.context import Reason
from satchel.models.options import OverflowPolicy

# Fuller drafts that may be rendered and counted in vain: bounds the time; fewer leave more of the budget unused.
_MAX_RENDER_TRIALS: Final = 12

# No real text has more characters per token on average; rendering a longer text to see if it fits is wasted.
_MAX_CHARS_PER_TOKEN: Final = 12

# Each round trims off the tokens over the budget; after four rounds the candidate is left out.
_MAX_TRIMS: Final = 4

# About the tokens of a heading, a fence and a separator that a joined piece shares with its neighbours. Too low: a
# candidate that would fit is not tried; too high: drafts are rendered in vain.
_FRAME_TOKENS: Final = 24

# A trimmed candidate may fit whole into the tokens left by other sections (round 1) and free its own room (round 2).
_LEFTOVER_ROUNDS: Final = 2


class Trimmed(NamedTuple):
    """A candidate cut to fit, with its receipt, and a note for the caller about the cut."""

    candidate: Candidate
    note: str = ""


Cost = Callable[[Candidate], int]
"""Returns the tokens of a candidate when rendered."""

Trimmer = Callable[[Candidate, int, Cost], Trimmed | None]
"""Cuts a candidate to at most the given tokens; None if too little text would be left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingRules:
    """How a recipe packs its budget."""

    max_tokens: int
    max_pieces: int
    total_tokens: int = 0
    """The whole budget, if `max_tokens` leaves a part of the budget to the caller; else 0."""
    overflow: OverflowPolicy = OverflowPolicy.SKIP
    by_value: bool = False
    """True to pack the most valuable set (knapsack, `skip` only); False to take the best in order."""
    reservations: Mapping[str, int] = field(default_factory=dict)
    """Tokens reserved for each section; if empty, all candidates share the budget."""
    trimmer: Trimmer = lambda _candidate, _room, _cost: None
    min_trimmed_tokens: int = 0
    """The smallest room into which a candidate is trimmed."""
    patience: float = 0.0
    """The share of the room for shorter candidates before a better, longer candidate is trimmed into the rest."""
    pinned: frozenset[str] = frozenset()
    """The ids of candidates packed before the rest of their section."""


class Packed(NamedTuple):
    """The packed draft, and for each candidate left out its cost in tokens and the reason."""

    draft: Draft
    costs: Mapping[int, int] = {}
    left_out: Mapping[int, Reason] = {}
    notes: Mapping[int, str] = {}


def pack(candidates: Sequence[Candidate], layout: Layout, rules: PackingRules) -> Packed:
    """Return the best draft within the budget."""
    draft = layout.empty
    if not candidates and not layout.costs_add_up:
        return Packed(draft)
    budget = max(rules.max_tokens, rules.total_tokens)
    if draft.tokens + (not layout.costs_add_up) > budget:
        raise BudgetCannotBeMet(budget, draft.tokens)
    return _everything(candidates, layout, rules) or _Packer(candidates, layout, rules, draft).pack()


def _everything(candidates: Sequence[Candidate], layout: Layout, rules: PackingRules) -> Packed | None:
    """All candidates packed, or None if they do not fit together."""
    chars = sum(len(candidate.text) for candidate in candidates)
    if len(candidates) > rules.max_pieces or chars > rules.max_tokens * _MAX_CHARS_PER_TOKEN:
        return None
    draft = layout.draft(list(candidates))
    return Packed(draft) if draft.tokens <= rules.max_tokens else None


class _Packer:
    def __init__(self, candidates: Sequence[Candidate], layout: Layout, rules: PackingRules, draft: Draft) -> None:
        self._layout = layout
        self._rules = rules
        self._draft = draft
        self._room = rules.max_tokens - layout.overhead(candidates)
        # Best first, earlier ones first among equals.
        self._ranked = sorted(candidates, key=lambda item: (item.id not in rules.pinned, -item.score, item.place))
        self._costs = {candidate.place: layout.cost_of(candidate) for candidate in candidates}
        self._taken: dict[int, Candidate] = {}
        self._spent: dict[int, int] = {}
        self._notes: dict[int, str] = {}
        self._refused: set[int] = set()
        """Places of the candidates that did not fit in a rendered draft."""

    def pack(self) -> Packed:
        """Return the best draft within the budget."""
        if self._rules.reservations:
            self._pack_sections()
        else:
            self._pack_together()
        reasons = self._reasons()
        return Packed(self._draft, {place: self._costs[place] for place in reasons}, reasons, self._notes)

    # -- sections with reservations, whose costs add up

    def _pack_sections(self) -> None:
        """Pack each section within its reservation, then all sections with the tokens left over."""
        for section, reserved in self._reserved().items():
            self._spend([candidate for candidate in self._ranked if candidate.section == section], reserved)
        for _ in range(_LEFTOVER_ROUNDS):
            self._spend(self._ranked, self._room - sum(self._spent.values()))
        self._draft = self._layout.draft(list(self._taken.values()))
        # If the counts did not add up, remove the candidates with the lowest scores.
        while self._taken and self._draft.tokens > self._rules.max_tokens:
            del self._taken[min(self._taken, key=lambda place: (self._taken[place].score, -place))]
            self._draft = self._layout.draft(list(self._taken.values()))

    def _reserved(self) -> Mapping[str, int]:
        """The reserved tokens of each section, scaled down where they exceed the room."""
        shares, room = self._rules.reservations, max(0, self._room)
        total = sum(shares.values())
        return shares if total <= room else {name: share * room // total for name, share in shares.items()}

    def _spend(self, order: Sequence[Candidate], room: int) -> None:
        """Take the candidates that fit whole; longer candidates wait until shorter ones had their share of the room."""
        waiting: list[Candidate] = []
        withheld = 0
        for candidate in order:
            more = self._costs[candidate.place] - self._spent.get(candidate.place, 0)
            if not more:
                continue
            if more > room - withheld:
                if not withheld and room >= 2 * self._rules.min_trimmed_tokens:
                    withheld = int(room * (1 - self._rules.patience))
                waiting.append(candidate)
                continue
            self._take(candidate, self._costs[candidate.place])
            room -= more
        for candidate in waiting:
            spent = self._spent.get(candidate.place, 0)
            if self._costs[candidate.place] - spent <= room:
                self._take(candidate, self._costs[candidate.place])
            elif room + spent >= self._rules.min_trimmed_tokens:
                trimmed = self._rules.trimmer(candidate, room + spent, self._layout.cost_of)
                cost = self._layout.cost_of(trimmed.candidate) if trimmed else 0
                if trimmed and cost > spent:
                    self._take(trimmed.candidate, cost, trimmed.note)
            room -= self._spent.get(candidate.place, 0) - spent

    def _take(self, candidate: Candidate, cost: int, note: str = "") -> None:
        self._taken[candidate.place] = candidate
        self._spent[candidate.place] = cost
        self._notes[candidate.place] = note

    # -- a single section, whose pieces may join: the tokens of the rendered draft decide

    def _pack_together(self) -> None:
        """Pack the best set by the cost of each candidate alone, then fill the room left."""
        self._give_back()
        if self._rules.by_value:
            self._keep_the_best()
        self._fill()
        if self._rules.overflow is OverflowPolicy.TRUNCATE:
            self._trim_the_rest()
        if not self._draft.candidates:
            self._take_the_cheapest()
        if not self._draft.candidates and self._rules.overflow is OverflowPolicy.STOP:
            self._trim_in(self._ranked[0], self._rules.max_tokens)

    def _chosen_alone(self, room: int) -> list[Candidate]:
        """The candidates packed by the cost of each candidate alone."""
        ranked, limit = self._ranked, self._rules.max_pieces
        if not self._rules.by_value:
            return self._in_order(ranked, room, limit)
        offers = [Offer(item.score, self._costs[item.place], item.text or item.summary) for item in ranked]
        return [ranked[i] for i in pack_by_value(offers, room, limit)]

    def _in_order(self, order: Sequence[Candidate], room: int, limit: int) -> list[Candidate]:
        """Candidates in order while they fit; the overflow policy skips an oversized candidate or ends the list."""
        chosen: list[Candidate] = []
        for candidate in order:
            if len(chosen) >= limit:
                break
            if self._costs[candidate.place] <= room:
                chosen.append(candidate)
                room -= self._costs[candidate.place]
            elif self._rules.overflow is not OverflowPolicy.SKIP:
                break
        return chosen

    def _give_back(self) -> None:
        """Draft the set packed by single costs, and shrink the set while the rendered text is over the budget."""
        room = self._room
        self._draft = self._layout.draft(self._chosen_alone(room))
        while self._draft.tokens > self._rules.max_tokens and self._draft.candidates:
            room -= self._draft.tokens - self._rules.max_tokens
            fewer = self._chosen_alone(room)
            if len(fewer) >= len(self._draft.candidates):
                fewer = sorted(self._draft.candidates, key=lambda candidate: candidate.score, reverse=True)[:-1]
            self._draft = self._layout.draft(fewer)

    def _keep_the_best(self) -> None:
        """Restart with the best candidate that fits at all, unless the draft already contains the candidate."""
        inside = self._inside()
        for candidate in self._ranked:
            if candidate.place in inside:
                return
            # Alone, a candidate pays for no second section title and no separator: the count of its own draft decides.
            single_draft = self._layout.draft([candidate])
            if single_draft.tokens <= self._rules.max_tokens:
                self._draft = single_draft
                return

    def _fill(self) -> None:
        """Add candidates to the room freed by joined pieces and shared headings."""
        trials = _MAX_RENDER_TRIALS
        one_by_one = False
        while trials > 0 and len(self._draft.candidates) < self._rules.max_pieces:
            waiting = self._waiting()
            room = self._rules.max_tokens - self._draft.tokens
            places = self._rules.max_pieces - len(self._draft.candidates)
            more = [] if one_by_one else self._in_order(waiting, room, places)
            more = more or self._first_that_might_fit(waiting, room)
            if not more:
                break
            if self._add(*more):
                trials -= 1
                # After a failure add single candidates; a candidate that did not fit alone is not tried again.
                self._refused.update(candidate.place for candidate in more[:1] if len(more) == 1)
                one_by_one = True

    def _waiting(self) -> list[Candidate]:
        """The candidates outside the draft that may still fit, best first."""
        inside = self._inside()
        left = [candidate for candidate in self._ranked if candidate.place not in inside]
        if self._rules.overflow is not OverflowPolicy.SKIP:
            # `stop` and `truncate` take nothing past the first candidate that does not fit.
            return [] if left and left[0].place in self._refused else left
        return [candidate for candidate in left if candidate.place not in self._refused]

    def _first_that_might_fit(self, waiting: list[Candidate], room: int) -> list[Candidate]:
        """The first candidate (or none) whose cost joining or a shared heading could lower enough to fit."""
        written = self._draft.by_path()
        for candidate in waiting if self._rules.overflow is OverflowPolicy.SKIP else waiting[:1]:
            cost = self._costs[candidate.place]
            beside = written.get(candidate.path, ())
            if cost - cost // 8 - _FRAME_TOKENS <= room or any(touches(piece, candidate) for piece in beside):
                return [candidate]
        return []

    def _trim_the_rest(self) -> None:
        """Add the best candidates left out: whole if they fit now, else their beginning."""
        inside = self._inside()
        for candidate in self._ranked:
            if len(self._draft.candidates) >= self._rules.max_pieces:
                break
            room = self._rules.max_tokens - self._draft.tokens
            fits = self._costs[candidate.place] <= room
            if candidate.place in inside or (fits and not self._add(candidate)):
                continue
            if room >= self._rules.min_trimmed_tokens:
                self._trim_in(self._without_lines_shown(candidate), room)

    def _trim_in(self, candidate: Candidate, room: int) -> None:
        """Trim the candidate to the room and add the result."""
        for _ in range(_MAX_TRIMS):
            trimmed = self._rules.trimmer(candidate, room, self._layout.cost_of)
            over = self._add(trimmed.candidate) if trimmed else 0
            if trimmed is None or not over:
                return
            # The excess is a section title, a row of sources or a closing tag, absent from the cost of the piece alone.
            room = self._layout.cost_of(trimmed.candidate) - over

    def _without_lines_shown(self, candidate: Candidate) -> Candidate:
        """The candidate from its first line not yet shown by a piece."""
        rests = (lines_not_shown(piece, candidate) for piece in self._draft.by_path().get(candidate.path, ()))
        return next(filter(None, rests), candidate)

    def _take_the_cheapest(self) -> None:
        """Add the cheapest candidate if its draft alone fits: beside other candidates the same text costs more."""
        first = self._ranked[:1] if self._rules.overflow is OverflowPolicy.STOP else self._ranked
        cheapest = min(first, key=lambda candidate: self._costs[candidate.place])
        tokens = self._layout.draft([cheapest]).tokens
        self._costs[cheapest.place] = min(self._costs[cheapest.place], tokens)
        self._add(cheapest)

    def _add(self, *more: Candidate) -> int:
        """Add the candidates to the draft if they fit; return the tokens over the budget (0: added)."""
        fuller = self._layout.draft([*self._draft.candidates, *more])
        over = max(0, fuller.tokens - self._rules.max_tokens)
        if not over:
            self._draft = fuller
        return over

    def _inside(self) -> set[int]:
        return {candidate.place for candidate in self._draft.candidates}

    def _reasons(self) -> dict[int, Reason]:
        """The reason for each candidate left out of the draft."""
        inside, written = self._inside(), self._draft.by_path()
        full = len(inside) >= self._rules.max_pieces
        reasons: dict[int, Reason] = {}
        for candidate in self._ranked:
            if candidate.place in inside:
                continue
            if any(shows(piece, candidate) for piece in written.get(candidate.path, ())):
                reason = Reason.COVERED
            elif self._costs[candidate.place] > self._room:
                reason = Reason.OVER_BUDGET
            elif full:
                reason = Reason.MAX_CHUNKS
            elif reasons and self._rules.overflow is OverflowPolicy.STOP:
                reason = Reason.AFTER_STOP
            else:
                reason = Reason.LESS_VALUE if self._rules.by_value else Reason.OVER_BUDGET
            reasons[candidate.place] = reason
        return reasons
