"""Where pieces are written and counted: the writer, the counter, and the counter's notebook."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from satchel.assembly.arrange import alone, arrange
from satchel.assembly.render import writer_for
from satchel.assembly.render.document import Document, Sheet, between
from satchel.assembly.render.provider import anthropic_content, openai_content, strings_of
from satchel.models.citation import ContextSource
from satchel.models.options import ProviderFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from satchel.models.item import Item, Piece, Section, Trim
    from satchel.models.options import ContextBuildOptions
    from satchel.tokens.counter import TokenCounter


class Draft(NamedTuple):
    """A finished text that may still be given up for a better one."""

    items: list[Item]
    trims: dict[int, Trim]
    sections: list[Section]
    sheet: Sheet
    tokens: int

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in the order of their numbers."""
        return [piece for section in self.sections for piece in section.pieces]

    def by_path(self) -> dict[str, list[Piece]]:
        """The pieces of each file."""
        found: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            found.setdefault(piece.lead.path, []).append(piece)
        return found


class Desk:
    """Writes and counts for one build."""

    def __init__(self, options: ContextBuildOptions, counter: TokenCounter, *, with_sources: bool) -> None:
        self.options = options
        self.counter = counter
        self.with_sources = with_sources
        self._writer = writer_for(options)
        self._known: dict[str, int] = {}

    def text(self, piece: Piece) -> str:
        """The piece as it is written."""
        return "".join(self._writer.piece(piece))

    def cost(self, piece: Piece) -> int:
        """What the piece costs by itself, with its separator and its row among the sources."""
        after = between(piece, self._writer.separator)
        cost = self.counter.count_joined(self._writer.piece(piece, after), self._known)
        if self.with_sources:
            cost += self.counter.count(self._writer.source(source_of(piece)))
        return cost

    def draft(self, items: list[Item], scores: Mapping[int, float], trims: dict[int, Trim]) -> Draft:
        """The items arranged, written and counted."""
        sections = arrange(items, self.options, scores, trims) if items else []
        sheet = self._writer.write(Document(sections, self._listed(sections)))
        return Draft(items, trims, sections, sheet, self._measure(sections, sheet))

    def _listed(self, sections: Sequence[Section]) -> list[ContextSource]:
        """The sources that the text lists at its end."""
        if not self.with_sources:
            return []
        pieces = (piece for section in sections for piece in section.pieces)
        return [source_of(piece) for piece in islice(pieces, self.options.max_sources)]

    def piece_tokens(self, draft: Draft) -> list[int]:
        """What each piece takes in the text, with the separator behind it."""
        return [self.counter.count_joined(pair, self._known) for pair in draft.sheet.pieces()]

    def separator_cost(self) -> int:
        """What the separator costs by itself."""
        return self.counter.count(self._writer.separator)

    def titles_cost(self, items: Sequence[Item]) -> int:
        """What the titles of all sections that these items could open cost."""
        if not self.options.group_by_type:
            return 0
        pieces = {item.category: alone(item, 0) for item in items}
        titled = arrange([piece.lead for piece in pieces.values()], self.options, _NO_SCORES, {})
        titles = [section.title for section in titled if section.title]
        return sum(self.counter.count(f"{self._writer.title(title)}\n\n---\n\n") for title in titles)

    def provider_content(self, draft: Draft) -> list[dict[str, Any]]:
        """The message content for the provider that was asked for."""
        if self.options.provider is ProviderFormat.ANTHROPIC:
            return anthropic_content(draft.sections, self.options)
        if self.options.provider is ProviderFormat.OPENAI:
            return openai_content(draft.sheet.parts)
        return []

    def _measure(self, sections: Sequence[Section], sheet: Sheet) -> int:
        """The tokens of the finished text, or of the provider's blocks where those are more."""
        tokens = self.counter.count_joined(sheet.parts, self._known)
        if self.options.provider is ProviderFormat.ANTHROPIC:
            blocks = anthropic_content(sections, self.options)
            tokens = max(tokens, self.counter.count("".join(strings_of(blocks))))
        return tokens


class _Nothing(dict[int, float]):
    def __missing__(self, key: int) -> float:
        return 0.0


_NO_SCORES = _Nothing()


def source_of(piece: Piece) -> ContextSource:
    """Where the piece came from, under its number."""
    lead = piece.lead
    return ContextSource(
        lead.id,
        lead.name,
        lead.type or "chunk",
        lead.path or None,
        piece.first_line,
        piece.relevance,
        piece.number,
        piece.last_line,
        lead.page,
    )
