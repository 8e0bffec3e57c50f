"""The end of the story: the result, its counts, and the ledger."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from satchel.assembly.arrange import shows
from satchel.assembly.draft import source_of
from satchel.models.chunk import KnowledgeChunk
from satchel.models.ledger import Fate, Ledger, LedgerEntry, Reason
from satchel.models.result import ContextBuildResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.assembly.admit import Sieved
    from satchel.assembly.draft import Desk, Draft
    from satchel.assembly.pack import Choice
    from satchel.assembly.rerank import Ranking
    from satchel.models.item import Item, Piece


def report(
    items: Sequence[Item], sieved: Sieved, ranking: Ranking, choice: Choice, desk: Desk, *, seconds: float
) -> ContextBuildResult:
    """Everything the caller gets to know."""
    draft = choice.draft
    ledger = _ledger(items, sieved, ranking, choice, desk)
    fates = Counter(entry.fate for entry in ledger)
    truncated = fates[Fate.DROPPED] - len(sieved.dropped)
    pieces = draft.pieces
    relevances = [item.relevance for item in draft.items]
    return ContextBuildResult(
        context="".join(draft.sheet.parts) if pieces else "",
        estimated_tokens=draft.tokens if pieces else 0,
        chunks_included=len(draft.items),
        chunks_truncated=truncated,
        files_included=tuple(dict.fromkeys(piece.lead.path for piece in pieces if piece.lead.path)),
        was_truncated=truncated > 0 or any(piece.trim for piece in pieces),
        format=desk.options.format,
        build_time=timedelta(seconds=seconds),
        average_relevance=sum(relevances) / len(relevances) if relevances else 0.0,
        sources=tuple(map(source_of, pieces)),
        chunks_merged=fates[Fate.MERGED],
        spans=tuple(draft.sheet.spans()),
        shown=tuple(_shown(piece) for piece in pieces),
        ledger=ledger,
        notes=_notes(items, sieved, ranking, choice, desk),
        characters_made_visible=sum(item.made_visible for item in draft.items),
        provider_content=tuple(desk.provider_content(draft)) if pieces else (),
        originals=_originals(items, desk.options.expand_context),
        max_tokens=desk.options.max_tokens,
    )


def _shown(piece: Piece) -> str:
    return "\n".join(filter(None, (piece.lead.summary, piece.text)))


def _notes(items: Sequence[Item], sieved: Sieved, ranking: Ranking, choice: Choice, desk: Desk) -> tuple[str, ...]:
    notes = [ranking.note] if ranking.note else []
    if set(sieved.dropped.values()) == {Reason.BELOW_RELEVANCE} and not sieved.kept:
        best = max(item.relevance for item in items)
        least = desk.options.min_relevance
        notes.append(f"every hit is below min_relevance={least:g} (the best has {best:.2f}); lower it, or rescale")
    if desk.options.include_sources and not desk.with_sources and choice.draft.items:
        notes.append("the list of sources did not fit and was left out")
    if not desk.counter.exact:
        notes.append(f"tokens are estimated ({desk.counter.name}), not counted")
    return tuple(notes)


def _originals(items: Sequence[Item], expand_context: bool) -> dict[str, str]:
    """The exact text of every hit by its id."""
    texts = {}
    for item in items:
        origin = item.origin
        if isinstance(origin, KnowledgeChunk):
            widened = origin.expanded_context if expand_context else None
            texts[item.id] = origin.content if widened is None else widened
        else:
            entity = origin.entity
            texts[item.id] = "\n\n".join(filter(None, (entity.summary, entity.content)))
    for item in items:
        # Also by the id as it was given, where that had to be made visible.
        given = item.origin.id if isinstance(item.origin, KnowledgeChunk) else item.origin.entity_id
        texts.setdefault(given, texts[item.id])
    return texts


def _ledger(items: Sequence[Item], sieved: Sieved, ranking: Ranking, choice: Choice, desk: Desk) -> Ledger:
    pieces = choice.draft.pieces
    piece_of = {item.place: piece for piece in pieces for item in piece.items}
    tokens = {piece.lead.place: count for piece, count in zip(pieces, desk.piece_tokens(choice.draft), strict=True)}
    entries = []
    for item in items:
        i = item.place
        fate, reason, into, number = _fate(item, sieved, choice, piece_of)
        entries.append(
            LedgerEntry(
                item.id,
                fate,
                reason,
                item.relevance,
                ranking.scores.get(i, item.relevance),
                tokens.get(i) or choice.costs.get(i, 0),
                number,
                into,
                *_provenance(item, ranking),
            )
        )
    return Ledger(tuple(entries))


def _provenance(item: Item, ranking: Ranking) -> tuple[str, Mapping[str, float]]:
    """Who found the hit, and what spoke for it: then and in this ranking."""
    origin = item.origin
    found = origin.metadata if isinstance(origin, KnowledgeChunk) else {}
    signals = {**found.get("satchel.signals", {}), **ranking.signals.get(item.place, {})}
    return found.get("satchel.collector", "given"), signals


def _fate(
    item: Item, sieved: Sieved, choice: Choice, piece_of: Mapping[int, Piece]
) -> tuple[Fate, Reason, str | None, int | None]:
    """How the item ended, why, as part of which other, and under which number."""
    i = item.place
    piece = piece_of.get(i)
    if piece is not None:
        if piece.trim is not None:
            return Fate.TRIMMED, Reason.TRIMMED_TO_FIT, None, piece.number
        joined = len(piece.items) > 1
        into = piece.lead.id if piece.lead.place != i else None
        return Fate.KEPT, Reason.JOINED if joined else Reason.FITS, into, piece.number
    twin = sieved.duplicate_of.get(i)
    if twin is not None:
        shown_in = piece_of.get(twin.place)
        if shown_in is not None:
            return Fate.MERGED, Reason.DUPLICATE, twin.id, shown_in.number
        # What it repeats is not there either, for the same reason.
        return _fate(twin, sieved, choice, piece_of)
    if i in sieved.dropped:
        return Fate.DROPPED, sieved.dropped[i], None, None
    reason = choice.left_out[i]
    if reason is Reason.COVERED:
        container = _showing(choice.draft, item)
        return Fate.MERGED, reason, container.lead.id, container.number
    return Fate.DROPPED, reason, None, None


def _showing(draft: Draft, item: Item) -> Piece:
    return next(piece for piece in draft.pieces if shows(piece, item))
