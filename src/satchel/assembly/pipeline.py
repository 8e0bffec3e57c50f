"""The one pipeline: gathered candidates in, a context out.

gather ─► admit ─► rank ─► pack ⇄ render ─► report ─► Context

Who gathers, what is admitted, which signals rank, which table of sections is packed and which layout renders is a
recipe: `assemble` (chunks and entities), `workspace.build` (the sections of a workspace), `research.builder` (pages).
Nothing in here reads the world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from satchel.assembly.pack import Packed, PackingRules, pack
from satchel.assembly.report import Provenance, ledger_of
from satchel.models.candidate import Shortened
from satchel.models.context import ContextKind

if TYPE_CHECKING:
    from satchel.assembly.admit import Admitted
    from satchel.assembly.layout import Draft, Layout
    from satchel.assembly.rerank import Ranking
    from satchel.models.candidate import Candidate
    from satchel.models.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What tells one kind of context from another."""

    kind: ContextKind
    rank: Callable[[Sequence[Candidate]], Ranking]
    layouts: Sequence[Layout]
    """Tried in turn until one holds something: the last has the least around the pieces."""
    rules: PackingRules
    provenance_of: Callable[[Candidate], Provenance]
    shorten: Callable[[Sequence[Candidate]], Shortened] = lambda candidates: Shortened(candidates, {})
    """Cuts candidates to what is ever shown of them, whatever the budget is."""


class Built(NamedTuple):
    """A finished text with its ledger: what every kind of context is made of."""

    draft: Draft
    layout: Layout
    packed: Packed
    ranking: Ranking
    ledger: Ledger
    fields: dict[str, Any]
    """What every `Context` has."""


def build(candidates: Sequence[Candidate], admitted: Admitted, recipe: Recipe) -> Built:
    """The best text that the recipe makes of the admitted candidates, and what became of all of them."""
    ranking = recipe.rank(admitted.candidates)
    shown, trims = recipe.shorten(admitted.candidates)
    for layout in recipe.layouts:
        packed = pack(shown, ranking.scores, layout, recipe.rules, trims)
        if packed.draft.candidates:
            break
    draft = packed.draft
    ledger = ledger_of(candidates, admitted, ranking, packed, layout=layout, provenance_of=recipe.provenance_of)
    pieces = draft.pieces
    text = draft.text if pieces or layout.costs_add_up else ""
    fields = {
        "kind": recipe.kind,
        "text": text,
        "tokens": draft.tokens if text else 0,
        "budget": recipe.rules.total_tokens or recipe.rules.max_tokens,
        "format": layout.options.format,
        "spans": tuple(span for piece, span in zip(pieces, draft.sheet.spans(), strict=True) if piece.number),
        "ledger": ledger,
        "provider_content": tuple(layout.provider_content(draft)) if pieces else (),
    }
    return Built(draft, layout, packed, ranking, ledger, fields)
