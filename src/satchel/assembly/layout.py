"""Layouts arrange the packed candidates into ordered, numbered pieces, render the pieces and count their tokens.

Chunks of one file that touch or overlap become one piece. Pieces are grouped by type and by file as the options say;
groups are sorted by their best score, and the pieces of a file by line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from satchel.assembly.render.format import Document, Sheet, between, format_for
from satchel.models.chunk import CATEGORY_ORDER, CATEGORY_TITLES, Candidate, CandidateKind, Piece, Section, Trim, alone
from satchel.models.context import ContextSource, SectionSummary
from satchel.models.options import ContextBuildOptions, Ordering, ProviderFormat
from satchel.text.boundaries import boundary_at_or_before

if TYPE_CHECKING:
    from satchel.tokens.counter import TokenCounter


class Draft(NamedTuple):
    """A rendered text with its token count; packing may replace the draft by a better draft."""

    candidates: list[Candidate]
    sections: list[Section]
    sheet: Sheet
    tokens: int

    @property
    def text(self) -> str:
        """The rendered text."""
        return "".join(self.sheet.parts)

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in rendered order."""
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
    """True if the tokens of a text are the sum of its pieces' tokens: no joined neighbours, no shared headings."""
    typical_number = 88
    """The number used to count costs before the real numbers are known: two digits, the usual width."""

    def __init__(self, options: ContextBuildOptions, counter: TokenCounter, *, metadata_hints: bool = True) -> None:
        self.options = options
        self.counter = counter
        self.format = format_for(options, metadata_hints=metadata_hints)
        self.separator = self.format.separator
        self._known_counts: dict[str, int] = {}

    @abstractmethod
    def arrange(self, candidates: Sequence[Candidate]) -> list[Section]:
        """The sections to render, their pieces numbered from 1."""

    @abstractmethod
    def overhead(self, candidates: Sequence[Candidate]) -> int:
        """The tokens of everything around these candidates: header, footer, titles."""

    def shorten(self, candidate: Candidate) -> Candidate:
        """The candidate cut to the length at which the layout shows candidates, whatever the budget."""
        return candidate

    def document(self, sections: list[Section]) -> Document:
        """The document to render from the sections."""
        return Document(sections)

    def cost(self, piece: Piece) -> int:
        """The tokens of the piece alone, with the separator behind the piece."""
        return self.counter.count_joined(self.format.piece(piece, self.separator), self._known_counts)

    def cost_of(self, candidate: Candidate) -> int:
        """The tokens of the candidate as a separate piece."""
        return self.cost(alone(candidate, self.typical_number))

    @cached_property
    def empty(self) -> Draft:
        """The draft without candidates: header, footer and titles only."""
        return self.draft([])

    def draft(self, candidates: list[Candidate]) -> Draft:
        """The candidates arranged, rendered and counted."""
        sections = self.arrange(candidates)
        sheet = self.format.document(self.document(sections))
        tokens = self.counter.count_joined(sheet.parts, self._known_counts)
        if self.options.provider is ProviderFormat.ANTHROPIC:
            from satchel.assembly.render.json import anthropic_content, strings_of

            # The provider's blocks may be more than the text.
            blocks = anthropic_content(sections, self.options)
            tokens = max(tokens, self.counter.count("".join(strings_of(blocks))))
        return Draft(candidates, sections, sheet, tokens)

    def piece_tokens(self, draft: Draft) -> list[int]:
        """The tokens of each rendered piece, with the separator behind the piece."""
        return [self.counter.count_joined(pair, self._known_counts) for pair in draft.sheet.pieces()]

    def section_tokens(self, section: Section) -> int:
        """The tokens of a section with its title."""
        sheet = Sheet()
        self.format.add_section(sheet, section)
        return self.counter.count("".join(sheet.parts))

    def section_summaries(self, draft: Draft) -> tuple[SectionSummary, ...]:
        """The titled sections with their tokens."""
        return tuple(
            SectionSummary(name=section.name, title=section.title, tokens=self.section_tokens(section))
            for section in draft.sections
            if section.title is not None
        )

    def provider_content(self, draft: Draft) -> list[dict[str, Any]]:
        """The message content in the provider format of the options."""
        if self.options.provider is ProviderFormat.NONE:
            return []
        from satchel.assembly.render.json import anthropic_content, openai_content

        if self.options.provider is ProviderFormat.ANTHROPIC:
            return anthropic_content(draft.sections, self.options)
        return openai_content(draft.sheet.parts)


class PageLayout(Layout):
    """Renders numbered pages in a single section."""

    def arrange(self, candidates: Sequence[Candidate]) -> list[Section]:
        """A single section, best page first."""
        ranked = sorted(candidates, key=lambda page: (-page.score, page.place))
        pieces = tuple(alone(page, number) for number, page in enumerate(ranked, start=1))
        return [Section(None, pieces)] if pieces else []

    def overhead(self, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - the same for all pages
        """The tokens of the header, less the separator after the last page."""
        return self.empty.tokens - self.counter.count(self.separator)


class ChunkLayout(Layout):
    """Renders chunks and entities, grouped by type and file as the options say, with a header, a footer and sources."""

    def __init__(
        self, options: ContextBuildOptions, counter: TokenCounter, candidates: int, *, with_sources: bool
    ) -> None:
        super().__init__(options, counter)
        self.typical_number = candidates
        self.with_sources = with_sources

    def arrange(self, candidates: Sequence[Candidate]) -> list[Section]:
        """The sections to render, their pieces numbered from 1."""
        options = self.options
        pieces = _joined(candidates) if options.merge_adjacent else [alone(candidate, 0) for candidate in candidates]
        if not options.group_by_type:
            return _numbered([Section(None, tuple(_in_order(pieces, options)))] if pieces else [], options)
        sections = [
            Section(CATEGORY_TITLES[category], tuple(_in_order(members, options)), category)
            for category in CATEGORY_ORDER
            if (members := [piece for piece in pieces if piece.lead.section == category])
        ]
        return _numbered(sections, options)

    def shorten(self, candidate: Candidate) -> Candidate:
        """An entity reduced to the fields shown by the format, cut to `entity_content_chars`; chunks are unchanged."""
        if candidate.kind is CandidateKind.CHUNK:
            return candidate
        entity, one_body = candidate, self.format.has_one_body
        if (one_body and entity.summary) or not (one_body or self.options.include_code_content):
            entity = entity._replace(text="")
        full, most = entity.text or (entity.summary if one_body else ""), self.options.entity_content_chars
        if not self.format.cuts_entities or len(full) <= most:
            return entity
        end = boundary_at_or_before(full, most)
        cut = entity._replace(trim=Trim(entity.id, full.count("\n", end) + 1, len(full) - end))
        return cut._replace(text=full[:end]) if entity.text else cut._replace(summary=full[:end])

    def document(self, sections: list[Section]) -> Document:
        """The sections with the list of sources for the end of the text."""
        pieces = (piece for section in sections for piece in section.pieces)
        listed = islice(pieces, self.options.max_sources if self.with_sources else 0)
        return Document(sections, [source_of(piece) for piece in listed])

    def cost(self, piece: Piece) -> int:
        """The tokens of the piece alone, with its separator and its row in the list of sources."""
        parts = self.format.piece(piece, between(piece, self.separator))
        row = self.counter.count(self.format.source(source_of(piece))) if self.with_sources else 0
        return self.counter.count_joined(parts, self._known_counts) + row

    def overhead(self, candidates: Sequence[Candidate]) -> int:
        """The tokens of header, footer and all section titles, less the separator after the last piece."""
        names = {candidate.section for candidate in candidates} if self.options.group_by_type else ()
        titles = (f"{self.format.title(CATEGORY_TITLES[name])}\n\n---\n\n" for name in names)
        around = self.empty.tokens + sum(map(self.counter.count, titles))
        return around - self.counter.count(self.separator)


def source_of(piece: Piece, section: str = "") -> ContextSource:
    """The source of the piece: number, place, relevance and rendered text."""
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
        elided=lead.elided,
        is_entity=lead.kind is CandidateKind.ENTITY,
    )


def _in_order(pieces: Sequence[Piece], options: ContextBuildOptions) -> list[Piece]:
    """The pieces sorted by the best score in their group, or in the order of the hits."""
    groups = _groups(pieces) if options.group_by_file else [[piece] for piece in pieces]
    # Ungrouped chunks keep the order of the hits; entities are always sorted by score.
    is_given = not options.group_by_file and all(piece.lead.kind is CandidateKind.CHUNK for piece in pieces)
    if options.ordering is Ordering.GIVEN or (options.ordering is None and is_given):
        groups.sort(key=_first_position)
    else:
        groups.sort(key=lambda group: (-_score(group), _first_position(group)))
        if options.ordering is Ordering.EDGES:
            # The best first, the second best last, and so on: models read the middle of a long context least.
            groups = [*groups[0::2], *reversed(groups[1::2])]
    return [piece for group in groups for piece in group]


def _groups(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Groups of pieces: a group per file, sorted by line, and a group for each piece without a file."""
    groups: dict[object, list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(_file_of(piece) or piece.lead.place, []).append(piece)
    for group in groups.values():
        group.sort(key=lambda piece: (not piece.lead.leads, piece.first_line or 0, piece.lead.place))
    return list(groups.values())


def _file_of(piece: Piece) -> str:
    """The path by which a chunk is grouped; empty for entities."""
    return piece.lead.path if piece.lead.kind is CandidateKind.CHUNK else ""


def _score(group: Sequence[Piece]) -> float:
    """The score of the group's best candidate."""
    return max(candidate.score for piece in group for candidate in piece.candidates)


def _first_position(group: Sequence[Piece]) -> int:
    """The position of the group's first candidate among all candidates."""
    return min(candidate.place for piece in group for candidate in piece.candidates)


def _numbered(sections: Sequence[Section], options: ContextBuildOptions) -> list[Section]:
    numbered = []
    numbers = count(1)
    for section in sections:
        pieces: list[Piece] = []
        before = ""
        for piece in section.pieces:
            file = _file_of(piece) if options.group_by_file else ""
            pieces.append(piece.numbered(next(numbers), continues_file=bool(file) and before == file))
            before = file
        numbered.append(section._replace(pieces=tuple(pieces)))
    return numbered


def _joined(candidates: Sequence[Candidate]) -> list[Piece]:
    """A piece for each candidate; candidates of a file are joined where their lines touch or overlap."""
    pieces: list[Piece] = []
    by_file: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.whole_lines and candidate.path and candidate.trim is None:
            by_file.setdefault(candidate.path, []).append(candidate)
        else:
            pieces.append(alone(candidate, 0))
    for members in by_file.values():
        pieces += _runs(sorted(members, key=attrgetter("first_line", "last_line", "place")))
    pieces.sort(key=lambda piece: piece.lead.place)
    return pieces


def _runs(members: Sequence[Candidate]) -> Iterator[Piece]:
    """The pieces of a file, from candidates sorted by line; touching or overlapping candidates become one piece."""
    run, lines = alone(members[0], 0), list[str]()
    for candidate in members[1:]:
        longer = _join(run, candidate, lines)
        if longer is None:
            yield run._replace(text="\n".join(lines)) if lines else run
            lines.clear()
        run = longer or alone(candidate, 0)
    yield run._replace(text="\n".join(lines)) if lines else run


def _join(run: Piece, candidate: Candidate, lines: list[str]) -> Piece | None:
    """The run extended by the candidate's lines; None if the two do not touch, or their shared lines differ."""
    (first, last), (start, end), lead = _lines(run), _lines(candidate), run.lead
    if start > last + 1:
        return None
    if (candidate.language, candidate.type, candidate.page) != (lead.language, lead.type, lead.page):
        return None
    own, more = lines or lines_of_text(run), lines_of_text(candidate)
    shared = min(last, end) - start + 1
    if shared > 0 and own[start - first : start - first + shared] != more[:shared]:
        return None
    lines += [*own[len(lines) :], *more[max(shared, 0) :]]
    relevance = max(run.relevance, candidate.relevance)
    return run._replace(candidates=(*run.candidates, candidate), last_line=max(last, end), relevance=relevance)


def _lines(piece: Piece | Candidate) -> tuple[int, int]:
    """The first and last line of a piece or candidate with whole lines."""
    return cast("tuple[int, int]", (piece.first_line, piece.last_line))


def lines_of_text(shown: Piece | Candidate) -> list[str]:
    """The lines of the text, without an empty line after a trailing line end."""
    first, last = _lines(shown)
    return shown.text.split("\n")[: last - first + 1]


def touches(piece: Piece, candidate: Candidate) -> bool:
    """True if the candidate could be joined to the piece."""
    lead = piece.lead
    same_place = (lead.path, lead.page) == (candidate.path, candidate.page)
    if not same_place or not candidate.whole_lines or not lead.whole_lines:
        return False
    (first, last), (start, end) = _lines(piece), _lines(candidate)
    return start <= last + 1 and first <= end + 1


def shows(piece: Piece, candidate: Candidate) -> bool:
    """True if the piece already shows every line of the candidate."""
    return _lines_after(piece, candidate) == []


def lines_not_shown(piece: Piece, candidate: Candidate) -> Candidate | None:
    """The candidate without the lines already shown by the piece; None if the piece does not show its first lines."""
    lines = _lines_after(piece, candidate)
    return candidate._replace(text="\n".join(lines), first_line=_lines(piece)[1] + 1) if lines else None


def _lines_after(piece: Piece, candidate: Candidate) -> list[str] | None:
    """The candidate's lines after the end of the piece; None if the piece does not show the candidate's first lines."""
    if piece.trim is not None or not touches(piece, candidate):
        return None
    (first, last), (start, _) = _lines(piece), _lines(candidate)
    if not first <= start <= last:
        return None
    lines = lines_of_text(candidate)
    shared = last - start + 1
    return lines[shared:] if lines_of_text(piece)[start - first :][: len(lines)] == lines[:shared] else None
