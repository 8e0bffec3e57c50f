"""Layouts: which pieces are made of the candidates that were chosen, in which order they stand, and what they cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from satchel.assembly.arrange import arrange
from satchel.assembly.render.format import SYSTEM_SECTION, Document, Sheet, between, format_for
from satchel.models.chunk import Candidate, CandidateKind, Piece, Section, Trim, alone
from satchel.models.context import ContextSource, SectionSummary
from satchel.models.options import ContextBuildOptions, ContextFormat, ProviderFormat
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.tokens.counter import TokenCounter

_NO_SCORES: Final[Mapping[int, float]] = defaultdict(float)

_SYSTEM_TITLE: Final = "Instructions"


class Draft(NamedTuple):
    """A finished text that may still be given up for a better one."""

    candidates: list[Candidate]
    trims: Mapping[int, Trim]
    sections: list[Section]
    sheet: Sheet
    tokens: int

    @property
    def text(self) -> str:
        """The text."""
        return "".join(self.sheet.parts)

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in the order in which they are written."""
        return [piece for section in self.sections for piece in section.pieces]

    def by_path(self) -> dict[str, list[Piece]]:
        """The pieces of each file."""
        pieces: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            pieces.setdefault(piece.lead.path, []).append(piece)
        return pieces


class Layout(ABC):
    """Arranges candidates into sections of pieces, and renders and counts them in one format."""

    costs_add_up = False
    """Whether a text costs what its pieces cost alone: not where neighbours are joined and share headings."""
    typical_number = 88
    """Citation numbers are given last; until then one of two digits stands for them all."""

    def __init__(self, options: ContextBuildOptions, counter: TokenCounter, *, metadata_hints: bool = True) -> None:
        self.options = options
        self.counter = counter
        self.format = format_for(options, metadata_hints=metadata_hints)
        self._known_counts: dict[str, int] = {}

    @abstractmethod
    def arrange(
        self, candidates: Sequence[Candidate], scores: Mapping[int, float], trims: Mapping[int, Trim]
    ) -> list[Section]:
        """The sections to write, their pieces numbered from 1."""

    @abstractmethod
    def cost(self, piece: Piece) -> int:
        """The tokens of the piece by itself, with what comes between it and the next."""

    @abstractmethod
    def overhead(self, candidates: Sequence[Candidate]) -> int:
        """The tokens of everything that would stand around these candidates."""

    def document(self, sections: list[Section]) -> Document:
        """What is rendered of the sections."""
        return Document(sections)

    def cost_of(self, candidate: Candidate, trim: Trim | None = None) -> int:
        """The tokens of the candidate as a piece of its own."""
        return self.cost(alone(candidate, self.typical_number, trim))

    def draft(self, candidates: list[Candidate], scores: Mapping[int, float], trims: Mapping[int, Trim]) -> Draft:
        """The candidates arranged, rendered and counted."""
        sections = self.arrange(candidates, scores, trims)
        sheet = self.format.document(self.document(sections))
        return Draft(candidates, trims, sections, sheet, self.measure(sections, sheet))

    def measure(self, sections: Sequence[Section], sheet: Sheet) -> int:  # noqa: ARG002 - some layouts need them
        """The tokens of the finished text."""
        return self.counter.count_joined(sheet.parts, self._known_counts)

    def piece_tokens(self, draft: Draft) -> list[int]:
        """What each piece takes in the text, with the separator behind it."""
        return [self.counter.count_joined(pair, self._known_counts) for pair in draft.sheet.pieces()]

    def section_tokens(self, section: Section) -> int:
        """What a section takes with its title."""
        sheet = Sheet()
        self.format.add_section(sheet, section)
        return self.counter.count("".join(sheet.parts))

    def section_summaries(self, draft: Draft) -> tuple[SectionSummary, ...]:
        """The titled sections, with what each takes of the text."""
        return tuple(
            SectionSummary(name=section.name, title=section.title, tokens=self.section_tokens(section))
            for section in draft.sections
            if section.title is not None
        )

    def provider_content(self, draft: Draft) -> list[dict[str, Any]]:  # noqa: ARG002 - chunks alone have it
        """The message content for the provider that the options name."""
        return []


class ChunkLayout(Layout):
    """Chunks and entities: grouped by type and file as the options say, with a header, a footer and sources."""

    def __init__(
        self, options: ContextBuildOptions, counter: TokenCounter, candidates: int, *, with_sources: bool
    ) -> None:
        super().__init__(options, counter)
        self.typical_number = candidates
        self.with_sources = with_sources

    def arrange(
        self, candidates: Sequence[Candidate], scores: Mapping[int, float], trims: Mapping[int, Trim]
    ) -> list[Section]:
        """The sections to write, their pieces numbered from 1."""
        return arrange(candidates, self.options, scores, trims) if candidates else []

    def document(self, sections: list[Section]) -> Document:
        """The sections, and the sources that are listed at the end."""
        pieces = (piece for section in sections for piece in section.pieces)
        listed = islice(pieces, self.options.max_sources if self.with_sources else 0)
        return Document(sections, [source_of(piece) for piece in listed])

    def cost(self, piece: Piece) -> int:
        """The tokens of the piece by itself, with its separator and its row among the sources."""
        after = between(piece, self.format.separator)
        cost = self.counter.count_joined(self.format.piece(piece, after), self._known_counts)
        return cost + (self.counter.count(self.format.source(source_of(piece))) if self.with_sources else 0)

    def overhead(self, candidates: Sequence[Candidate]) -> int:
        """Header, footer and the titles of all sections; behind the last piece there is no separator."""
        bare = self.draft([], _NO_SCORES, {}).tokens
        return bare + self._titles(candidates) - self.counter.count(self.format.separator)

    def measure(self, sections: Sequence[Section], sheet: Sheet) -> int:
        """The tokens of the finished text, or of the provider's blocks where those are more."""
        tokens = super().measure(sections, sheet)
        if self.options.provider is ProviderFormat.ANTHROPIC:
            from satchel.assembly.render.provider import anthropic_content, strings_of

            blocks = anthropic_content(sections, self.options)
            tokens = max(tokens, self.counter.count("".join(strings_of(blocks))))
        return tokens

    def provider_content(self, draft: Draft) -> list[dict[str, Any]]:
        """The message content for the provider that the options name."""
        if self.options.provider is ProviderFormat.NONE:
            return []
        from satchel.assembly.render.provider import anthropic_content, openai_content

        if self.options.provider is ProviderFormat.ANTHROPIC:
            return anthropic_content(draft.sections, self.options)
        return openai_content(draft.sheet.parts)

    def _titles(self, candidates: Sequence[Candidate]) -> int:
        if not self.options.group_by_type:
            return 0
        first = {candidate.section: candidate for candidate in candidates}
        sections = arrange(list(first.values()), self.options, _NO_SCORES, {})
        titles = [section.title for section in sections if section.title]
        return sum(self.counter.count(f"{self.format.title(title)}\n\n---\n\n") for title in titles)


class PageLayout(Layout):
    """Pages, one after the other, each under its number."""

    def arrange(
        self, candidates: Sequence[Candidate], scores: Mapping[int, float], trims: Mapping[int, Trim]
    ) -> list[Section]:
        """One section, best page first."""
        ranked = sorted(candidates, key=lambda page: (-scores[page.place], page.place))
        return (
            [Section(None, tuple(alone(page, i, trims.get(page.place)) for i, page in enumerate(ranked, start=1)))]
            if ranked
            else []
        )

    def cost(self, piece: Piece) -> int:
        """The tokens of the page with its heading."""
        return self.counter.count_joined(self.format.piece(piece, self.format.separator), self._known_counts)

    def overhead(self, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - pages have none
        """Nothing but pages is written; behind the last one there is no separator."""
        return -self.counter.count(self.format.separator)


class SectionEntry(Protocol):
    """A section of a workspace: its title, and how it is written."""

    @property
    def title(self) -> str:
        """The title above it."""
        ...

    @property
    def always(self) -> bool:
        """Whether it is there without blocks, too, and says so."""
        ...

    @property
    def ranked(self) -> bool:
        """Whether its blocks stand by their score, not as they were gathered."""
        ...

    @property
    def cited(self) -> bool:
        """Whether its blocks have citation numbers."""
        ...


class SectionLayout(Layout):
    """The blocks of a workspace under the titles of its sections, and the question at the end."""

    costs_add_up = True

    def __init__(
        self,
        format: ContextFormat | str,
        counter: TokenCounter,
        titles: Mapping[str, SectionEntry],
        query: str,
        *,
        system: str = "",
        citations: bool = True,
        metadata_hints: bool = True,
    ) -> None:
        super().__init__(
            ContextBuildOptions(format=format, include_citations=citations, chunk_separator="\n\n"),
            counter,
            metadata_hints=metadata_hints,
        )
        self._titles = titles
        self._query = query
        self._system = system_section(system, _SYSTEM_TITLE) if system else None

    def arrange(
        self, candidates: Sequence[Candidate], scores: Mapping[int, float], trims: Mapping[int, Trim]
    ) -> list[Section]:
        """The sections in the order of the titles; what the caller instructs comes first."""
        sections = [self._system] if self._system else []
        number = 0
        for name, title in self._titles.items():
            blocks = [block for block in candidates if block.section == name]
            if not blocks and not title.always:
                continue
            blocks.sort(key=lambda block: (-scores[block.place] if title.ranked else 0.0, block.place))
            pieces = []
            for block in blocks:
                number += title.cited
                piece = alone(block, number if title.cited else 0, trims.get(block.place))
                pieces.append(piece._replace(relevance=scores[block.place]))
            sections.append(Section(title.title, tuple(pieces), name))
        return sections

    def document(self, sections: list[Section]) -> Document:
        """The sections and the question."""
        return Document(sections, query=self._query)

    def cost(self, piece: Piece) -> int:
        """The tokens of a block with what comes between it and the next."""
        return self.counter.count("".join(self.format.piece(piece, self.format.block_separator)))

    def cost_of(self, candidate: Candidate, trim: Trim | None = None) -> int:
        """The tokens of the block; what is not cited pays for no number."""
        cited = self._titles[candidate.section].cited
        return self.cost(alone(candidate, self.typical_number if cited else 0, trim))

    def overhead(self, candidates: Sequence[Candidate]) -> int:
        """The titles, the instructions and the question."""
        bare = self.draft([], _NO_SCORES, {}).tokens
        sometimes = {block.section for block in candidates if not self._titles[block.section].always}
        empty = (Section(self._titles[name].title, (), name) for name in sorted(sometimes))
        return bare + sum(self.section_tokens(section) for section in empty)


def system_section(instructions: str, title: str) -> Section:
    """The caller's instructions as a section."""
    text = make_visible(instructions).text
    block = Candidate(place=-1, id="system", kind=CandidateKind.BLOCK, type="system", section=SYSTEM_SECTION, text=text)
    return Section(title, (alone(block, 0),), SYSTEM_SECTION)


def source_of(piece: Piece, section: str = "") -> ContextSource:
    """Where the piece came from, under its number, with what was shown of it."""
    lead = piece.lead
    return ContextSource(
        entity_id=lead.id,
        name=lead.name or lead.id,
        type=lead.type or "chunk",
        file=lead.path or None,
        line=piece.first_line,
        relevance=piece.relevance,
        number=piece.number,
        end_line=piece.last_line,
        page=lead.page,
        section=section,
        text="\n".join(filter(None, (lead.summary, piece.text))),
    )
