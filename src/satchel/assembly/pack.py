"""Chooses what is shown: the best candidates within the budget, section by section, whole where they fit.

Each section is sure of its reservation; what it leaves goes to the best remaining candidate of any section. What a
candidate costs by itself is counted as it will be written. Beside others it may cost less, because neighbours join and
a file's heading is written once: so candidates are chosen by their cost alone, the text is rendered and counted, what
was too much is given back, and what is left is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.assembly.arrange import lines_not_shown, shows, touches
from satchel.assembly.knapsack import Offer, pack_by_value
from satchel.assembly.trim import Trimmed, Trimmer
from satchel.errors import BudgetCannotBeMet
from satchel.models.chunk import Candidate, Trim
from satchel.models.context import Reason
from satchel.models.options import OverflowPolicy

if TYPE_CHECKING:
    from satchel.assembly.layout import Draft, Layout

# How many fuller texts are rendered and counted before what there is will do.
_MAX_TRIALS: Final = 12

# No real text has more on average. Where there is more text than that, rendering it all to see is wasted.
_MOST_CHARS_PER_TOKEN: Final = 12

# How often a trimmed text that is still a little over is trimmed again.
_MAX_TRIMS: Final = 4

# About what a heading, a fence and a separator cost that a piece may share with its neighbours.
_FRAME_TOKENS: Final = 24

# What was trimmed may yet fit whole into what other sections leave, and then leave room itself.
_LEFTOVER_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingRules:
    """How a recipe spends its budget."""

    max_tokens: int
    max_pieces: int
    total_tokens: int = 0
    """The whole budget, where `max_tokens` leaves a part of it to the caller."""
    overflow: OverflowPolicy = OverflowPolicy.SKIP
    by_value: bool = False
    """Whether the set of most value is looked for (`skip` only), instead of taking the best in order."""
    reservations: Mapping[str, int] = field(default_factory=dict)
    """What each section is sure of; without any, all candidates share one section."""
    trimmer: Trimmer | None = None
    min_trimmed_tokens: int = 0
    """With less room than this nothing is trimmed into it."""
    patience: float = 0.0
    """The share of the room that shorter candidates may take before a better, longer one is trimmed into the rest."""
    pinned: frozenset[str] = frozenset()
    """The ids of the candidates that come before all others of their section."""


class Packed(NamedTuple):
    """The text that was chosen, what each candidate that is not in it would have cost, and why it is not in it."""

    draft: Draft
    costs: Mapping[int, int]
    left_out: Mapping[int, Reason]
    notes: Mapping[int, str] = {}


def pack(
    candidates: Sequence[Candidate],
    scores: Mapping[int, float],
    layout: Layout,
    rules: PackingRules,
    trims: Mapping[int, Trim] | None = None,
) -> Packed:
    """The best text within the budget; `trims` are the receipts of what was cut before."""
    return _Packer(candidates, scores, layout, rules, trims or {}).pack()


class _Packer:
    def __init__(
        self,
        candidates: Sequence[Candidate],
        scores: Mapping[int, float],
        layout: Layout,
        rules: PackingRules,
        trims: Mapping[int, Trim],
    ) -> None:
        self._candidates = list(candidates)
        self._scores = scores
        self._layout = layout
        self._rules = rules
        self._given_trims = trims
        self._trims = dict(trims)
        # Best first, earlier ones first among equals.
        self._ranked = sorted(candidates, key=lambda one: (one.id not in rules.pinned, -scores[one.place], one.place))
        self._costs: dict[int, int] = {}
        self._taken: dict[int, Candidate] = {}
        self._spent: dict[int, int] = {}
        self._notes: dict[int, str] = {}
        self._draft = self._drafted([])
        self._refused: set[int] = set()
        """What was tried in a rendered text and did not fit."""

    def pack(self) -> Packed:
        """The best text within the budget."""
        rules = self._rules
        if not self._candidates and not self._layout.costs_add_up:
            return Packed(self._draft, {}, {})
        least = self._draft.tokens + (not self._layout.costs_add_up)
        if least > max(rules.max_tokens, rules.total_tokens):
            raise BudgetCannotBeMet(max(rules.max_tokens, rules.total_tokens), self._draft.tokens)
        if self._take_everything():
            return Packed(self._draft, {}, {})
        for one in self._candidates:
            self._costs[one.place] = self._layout.cost_of(one, self._trims.get(one.place))
        room = rules.max_tokens - self._layout.overhead(self._candidates)
        if rules.reservations:
            self._pack_sections(room)
        else:
            self._pack_together(room)
        reasons = self._reasons(room)
        costs = {place: self._costs[place] for place in reasons}
        return Packed(self._draft, costs, reasons, self._notes)

    def _take_everything(self) -> bool:
        """Whether everything fits, and is in the draft then."""
        chars = sum(len(one.text) for one in self._candidates)
        if len(self._candidates) > self._rules.max_pieces or chars > self._rules.max_tokens * _MOST_CHARS_PER_TOKEN:
            return False
        everything = self._drafted(self._candidates)
        if everything.tokens > self._rules.max_tokens:
            return False
        self._draft = everything
        return True

    # -- sections with reservations, whose costs add up

    def _pack_sections(self, room: int) -> None:
        """Each section within its reservation, then all of them with what is left."""
        for section, reserved in self._reserved(room).items():
            self._spend([one for one in self._ranked if one.section == section], reserved)
        for _ in range(_LEFTOVER_ROUNDS):
            self._spend(self._ranked, room - sum(self._spent.values()))
        self._draft = self._drafted(list(self._taken.values()))
        # Should counts not have added up, the least relevant gives way.
        while self._taken and self._draft.tokens > self._rules.max_tokens:
            del self._taken[min(self._taken, key=lambda place: (self._scores[place], -place))]
            self._draft = self._drafted(list(self._taken.values()))

    def _reserved(self, room: int) -> Mapping[str, int]:
        """What each section is sure of; together never more than there is."""
        wanted = self._rules.reservations
        total = sum(wanted.values())
        if total <= max(0, room):
            return wanted
        return {name: share * max(0, room) // total for name, share in wanted.items()}

    def _spend(self, order: Sequence[Candidate], room: int) -> None:
        """Take what fits whole; what is too long waits until shorter ones have had their share of the room."""
        waiting: list[Candidate] = []
        withheld = 0
        for one in order:
            spent = self._spent.get(one.place, 0)
            if spent == self._costs[one.place]:
                continue
            more = self._costs[one.place] - spent
            if more > room - withheld:
                if not withheld and room >= 2 * self._rules.min_trimmed_tokens:
                    withheld = int(room * (1 - self._rules.patience))
                waiting.append(one)
                continue
            self._take(one, self._costs[one.place])
            room -= more
        for one in waiting:
            spent = self._spent.get(one.place, 0)
            if self._costs[one.place] - spent <= room:
                self._take(one, self._costs[one.place])
            elif (trimmed := self._trimmed(one, room + spent)) is not None:
                cost = self._layout.cost_of(trimmed.candidate, trimmed.trim)
                if cost <= spent:
                    continue
                self._take(trimmed.candidate, cost, trimmed)
            room -= self._spent.get(one.place, 0) - spent

    def _take(self, one: Candidate, cost: int, trimmed: Trimmed | None = None) -> None:
        self._taken[one.place] = one
        self._spent[one.place] = cost
        trim = trimmed.trim if trimmed else self._given_trims.get(one.place)
        self._trims.pop(one.place, None)
        self._trims |= {one.place: trim} if trim else {}
        self._notes[one.place] = trimmed.note if trimmed else ""

    def _trimmed(self, one: Candidate, room: int) -> Trimmed | None:
        if self._rules.trimmer is None or room < self._rules.min_trimmed_tokens:
            return None
        return self._rules.trimmer(one, room, self._layout.cost_of)

    # -- one section, whose pieces may join: what is rendered decides

    def _pack_together(self, room: int) -> None:
        """The best set by the cost of each alone, then what else fits beside it."""
        self._give_back(self._chosen_alone(room), room)
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
        """What fits by the cost of each candidate alone."""
        ranked, limit = self._ranked, self._rules.max_pieces
        costs = [self._costs[one.place] for one in ranked]
        if self._rules.by_value:
            offers = [
                Offer(score=self._scores[one.place], cost=cost, text=one.text or one.summary)
                for one, cost in zip(ranked, costs, strict=True)
            ]
            return [ranked[i] for i in pack_by_value(offers, room, limit)]
        return self._in_order(ranked, room, limit)

    def _in_order(self, order: Sequence[Candidate], room: int, limit: int) -> list[Candidate]:
        """Candidates in their order while they fit; one that does not fit is skipped, or ends it."""
        chosen: list[Candidate] = []
        for one in order:
            if len(chosen) >= limit:
                break
            if self._costs[one.place] <= room:
                chosen.append(one)
                room -= self._costs[one.place]
            elif self._rules.overflow is not OverflowPolicy.SKIP:
                break
        return chosen

    def _give_back(self, chosen: list[Candidate], room: int) -> None:
        """The choice, less what is over because counts do not quite add up."""
        self._draft = self._drafted(chosen)
        while self._draft.tokens > self._rules.max_tokens and self._draft.candidates:
            room -= self._draft.tokens - self._rules.max_tokens
            fewer = self._chosen_alone(room)
            if len(fewer) >= len(self._draft.candidates):
                best_first = sorted(self._draft.candidates, key=lambda one: self._scores[one.place], reverse=True)
                fewer = best_first[:-1]
            self._draft = self._drafted(fewer)

    def _keep_the_best(self) -> None:
        """If the best that fits at all is not in the draft, begin again with that one alone."""
        inside = self._inside()
        for one in self._ranked:
            if one.place in inside:
                return
            # Alone it pays for no other section's title and no separator: its own count decides.
            alone_in = self._drafted([one])
            if alone_in.tokens <= self._rules.max_tokens:
                self._draft = alone_in
                return

    def _fill(self) -> None:
        """Add what else fits into the room that joining and shared headings have freed."""
        trials = _MAX_TRIALS
        one_by_one = False
        while trials > 0 and len(self._draft.candidates) < self._rules.max_pieces:
            waiting = self._waiting()
            room = self._rules.max_tokens - self._draft.tokens
            places = self._rules.max_pieces - len(self._draft.candidates)
            more = [] if one_by_one else self._in_order(waiting, room, places)
            more = more or self._first_that_might_fit(waiting, room)
            if not more:
                break
            if self._add(more):
                trials -= 1
                # In doubt one by one; what was tried alone and did not fit is not tried again.
                self._refused.update(one.place for one in more[:1] if len(more) == 1)
                one_by_one = True

    def _waiting(self) -> list[Candidate]:
        """What is not in the draft and may still be, best first."""
        inside = self._inside()
        left = [one for one in self._ranked if one.place not in inside]
        if self._rules.overflow is not OverflowPolicy.SKIP:
            # Nothing may be taken past the first that does not fit.
            return [] if left and left[0].place in self._refused else left
        return [one for one in left if one.place not in self._refused]

    def _first_that_might_fit(self, waiting: list[Candidate], room: int) -> list[Candidate]:
        """One that costs less beside what is there than it costs alone, perhaps little enough."""
        written = self._draft.by_path()
        for one in waiting if self._rules.overflow is OverflowPolicy.SKIP else waiting[:1]:
            cost = self._costs[one.place]
            beside = written.get(one.path, ())
            if cost - cost // 8 - _FRAME_TOKENS <= room or any(touches(piece, one) for piece in beside):
                return [one]
        return []

    def _trim_the_rest(self) -> None:
        """Add the best that did not fit: whole if it does now, else its beginning."""
        inside = self._inside()
        for one in self._ranked:
            if len(self._draft.candidates) >= self._rules.max_pieces:
                break
            room = self._rules.max_tokens - self._draft.tokens
            if one.place in inside or (self._costs[one.place] <= room and not self._add([one])):
                continue
            if room >= self._rules.min_trimmed_tokens:
                self._trim_in(self._without_lines_shown(one), room)

    def _trim_in(self, one: Candidate, room: int) -> None:
        """Add the candidate cut to the room."""
        for _ in range(_MAX_TRIMS):
            trimmed = self._rules.trimmer(one, room, self._layout.cost_of) if self._rules.trimmer else None
            over = self._add([trimmed.candidate], {one.place: trimmed.trim}) if trimmed else 0
            if trimmed is None or not over:
                return
            # A section's title, a row of sources or a closing tag that the piece alone does not have.
            room = self._layout.cost_of(trimmed.candidate, trimmed.trim) - over

    def _without_lines_shown(self, one: Candidate) -> Candidate:
        """The candidate from its first line that no piece shows yet."""
        rests = (lines_not_shown(piece, one) for piece in self._draft.by_path().get(one.path, ()))
        return next((rest for rest in rests if rest is not None), one)

    def _take_the_cheapest(self) -> None:
        """The cheapest alone if that fits: what it costs beside others is more."""
        first = self._ranked[:1] if self._rules.overflow is OverflowPolicy.STOP else self._ranked
        cheapest = min(first, key=lambda one: self._costs[one.place])
        tokens = self._drafted([cheapest]).tokens
        self._costs[cheapest.place] = min(self._costs[cheapest.place], tokens)
        self._add([cheapest])

    def _add(self, more: Sequence[Candidate], trims: Mapping[int, Trim] | None = None) -> int:
        """Add these to the draft if they fit; the tokens by which they do not."""
        fuller = self._drafted([*self._draft.candidates, *more], trims)
        over = max(0, fuller.tokens - self._rules.max_tokens)
        if not over:
            self._draft = fuller
            self._trims |= trims or {}
        return over

    def _inside(self) -> set[int]:
        return {one.place for one in self._draft.candidates}

    def _drafted(self, candidates: list[Candidate], trims: Mapping[int, Trim] | None = None) -> Draft:
        return self._layout.draft(candidates, self._scores, {**self._trims, **trims} if trims else self._trims)

    def _reasons(self, room: int) -> dict[int, Reason]:
        """Why each candidate that is not in the draft is not."""
        inside, written = self._inside(), self._draft.by_path()
        full = len(inside) >= self._rules.max_pieces
        reasons: dict[int, Reason] = {}
        for one in self._ranked:
            if one.place in inside:
                continue
            if any(shows(piece, one) for piece in written.get(one.path, ())):
                reason = Reason.COVERED
            elif self._costs[one.place] > room:
                reason = Reason.OVER_BUDGET
            elif full:
                reason = Reason.MAX_CHUNKS
            elif reasons and self._rules.overflow is OverflowPolicy.STOP:
                reason = Reason.AFTER_STOP
            else:
                reason = Reason.LESS_VALUE if self._rules.by_value else Reason.OVER_BUDGET
            reasons[one.place] = reason
        return reasons
