"""The pipeline behind every kind of context: turns gathered candidates into a context.

gather ─► admit ─► rank ─► pack ⇄ render ─► report ─► Context

Who gathers, what is admitted, which signals rank, which table of sections is packed and which layout renders is a
recipe: `assemble` (chunks and entities), `workspace.build` (the sections of a workspace), `research.builder` (pages).
Nothing in here reads the world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from satchel.assembly.layout import Layout, shows
from satchel.assembly.pack import Packed, PackingRules, pack
from satchel.models.context import ContextKind, Fate, Ledger, LedgerEntry, Reason
from satchel.text.secrets import redactions

if TYPE_CHECKING:
    from satchel.models.chunk import Candidate, Piece


class Merged(NamedTuple):
    """The candidate into which a duplicate was merged, and the reason."""

    into: Candidate
    reason: Reason = Reason.DUPLICATE


class Admitted(NamedTuple):
    """The admitted candidates, the reason for each dropped candidate, and the target of each merged candidate."""

    candidates: list[Candidate]
    dropped: Mapping[int, Reason]
    merged: Mapping[int, Merged]

    @classmethod
    def among(
        cls, candidates: Sequence[Candidate], dropped: Mapping[int, Reason], merged: Mapping[int, Merged]
    ) -> Admitted:
        """Admit the candidates that were neither dropped nor merged."""
        left = [item for item in candidates if item.place not in dropped and item.place not in merged]
        return cls(left, dropped, merged)


class Formed(NamedTuple):
    """The candidates to pack, and what became of the candidates from which they were made."""

    candidates: Sequence[Candidate]
    dropped: Mapping[int, Reason] = {}
    merged: Mapping[int, Merged] = {}


class Ranking(NamedTuple):
    """A score from 0 to 1 for each candidate's place, the signals behind the score, and a note for the caller."""

    scores: Mapping[int, float]
    signals: Mapping[int, Mapping[str, float]] = {}
    note: str | None = None


def by_relevance(candidates: Sequence[Candidate]) -> Ranking:
    """Rank every candidate by its own relevance."""
    return Ranking({candidate.place: candidate.relevance for candidate in candidates})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The parts in which kinds of contexts differ: layouts, packing rules and ranking."""

    kind: ContextKind
    layouts: Sequence[Layout]
    """Tried in order until a draft has pieces: the last layout has the least overhead."""
    rules: PackingRules
    rank: Callable[[Sequence[Candidate]], Ranking] = by_relevance
    form: Callable[[Sequence[Candidate]], Formed] = Formed
    """Makes the units to show of the ranked candidates; by default each candidate is a unit."""


class Built(NamedTuple):
    """A packed text with its ledger, from which every kind of context is made."""

    candidates: Sequence[Candidate]
    admitted: Admitted
    packed: Packed
    layout: Layout
    ranking: Ranking
    fields: dict[str, Any]
    """The fields common to every `Context`."""

    def common_notes(self) -> Iterator[str]:
        """Notes on the secrets that were redacted in the text, and on a count that is an estimate."""
        kinds = Counter(redactions(self.fields["text"]))
        if kinds:
            yield _redaction_note(kinds)
        counter = self.layout.counter
        if not counter.exact:
            yield f"token counts are estimated ({counter.name}), not exact"


def _redaction_note(kinds: Counter[str]) -> str:
    told = ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(kinds.items()))
    secrets = "1 secret is" if kinds.total() == 1 else f"{kinds.total()} secrets are"
    return f"{secrets} redacted in this text: {told}"


def build(candidates: Sequence[Candidate], admitted: Admitted, recipe: Recipe) -> Built:
    """Rank, pack and render the admitted candidates by the recipe, with a ledger of all candidates."""
    ranking = recipe.rank(admitted.candidates)
    ranked = [_scored(candidate, ranking.scores[candidate.place]) for candidate in admitted.candidates]
    formed = recipe.form(ranked)
    dropped, merged = {**admitted.dropped, **formed.dropped}, {**admitted.merged, **formed.merged}
    admitted = Admitted(list(formed.candidates), dropped, merged)
    for layout in recipe.layouts:
        packed = pack([layout.shorten(candidate) for candidate in formed.candidates], layout, recipe.rules)
        if packed.draft.candidates:
            break
    draft = packed.draft
    pieces = draft.pieces
    text = draft.text if pieces or layout.costs_add_up else ""
    fields = {
        "kind": recipe.kind,
        "text": text,
        "tokens": draft.tokens if text else 0,
        "budget": recipe.rules.total_tokens or recipe.rules.max_tokens,
        "is_estimated": not layout.counter.exact,
        "format": layout.options.format,
        "spans": tuple(span for piece, span in zip(pieces, draft.sheet.spans(), strict=True) if piece.number),
        "ledger": _ledger(candidates, admitted, ranking, packed, layout.piece_tokens(draft)),
        "provider_content": tuple(layout.provider_content(draft)) if pieces else (),
    }
    return Built(candidates, admitted, packed, layout, ranking, fields)


def _scored(candidate: Candidate, score: float) -> Candidate:
    return candidate if candidate.score == score else candidate._replace(score=score)


def _ledger(
    candidates: Sequence[Candidate], admitted: Admitted, ranking: Ranking, packed: Packed, piece_tokens: Sequence[int]
) -> Ledger:
    """A ledger entry for each candidate, in gathered order."""
    pieces = packed.draft.pieces
    piece_of = {candidate.place: piece for piece in pieces for candidate in piece.candidates}
    tokens = {piece.lead.place: count for piece, count in zip(pieces, piece_tokens, strict=True)}
    entries = []
    for candidate in candidates:
        place = candidate.place
        fate, reason, into, number = _fate(candidate, admitted, packed, piece_of)
        entries.append(
            LedgerEntry(
                id=candidate.id,
                fate=fate,
                reason=reason,
                relevance=candidate.relevance,
                score=ranking.scores.get(place, candidate.relevance),
                tokens=tokens.get(place) or packed.costs.get(place, 0),
                number=number,
                into=into,
                collector=candidate.collector,
                signals={**candidate.signals, **ranking.signals[place]}
                if place in ranking.signals
                else candidate.signals,
            )
        )
    return Ledger(tuple(entries))


def _fate(
    candidate: Candidate, admitted: Admitted, packed: Packed, piece_of: Mapping[int, Piece]
) -> tuple[Fate, Reason, str | None, int | None]:
    """The fate of the candidate, the reason, the id of the candidate containing it, and the piece number."""
    place = candidate.place
    piece = piece_of.get(place)
    if piece is not None:
        number = piece.number or None
        if piece.trim is not None:
            reason = Reason.FELL_BACK if packed.notes.get(place) else Reason.TRIMMED_TO_FIT
            return Fate.TRIMMED, reason, None, number
        if candidate.elided or piece.lead.elided:
            return Fate.TRIMMED, Reason.EXCERPT, None, number
        into = piece.lead.id if piece.lead.place != place else None
        return Fate.KEPT, Reason.JOINED if len(piece.candidates) > 1 else Reason.FITS, into, number
    merged = admitted.merged.get(place)
    if merged is not None:
        shown_in = piece_of.get(merged.into.place)
        if shown_in is not None:
            return Fate.MERGED, merged.reason, merged.into.id, shown_in.number or None
        # The merged-into candidate was left out too: same fate, same reason.
        return _fate(merged.into, admitted, packed, piece_of)
    if place in admitted.dropped:
        return Fate.DROPPED, admitted.dropped[place], None, None
    reason = packed.left_out[place]
    if reason is Reason.COVERED:
        container = next(piece for piece in packed.draft.pieces if shows(piece, candidate))
        return Fate.MERGED, reason, container.lead.id, container.number
    return Fate.DROPPED, reason, None, None
