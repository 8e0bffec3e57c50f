"""Notes of a workspace as pages of a library: found by their sections, shown whole or as their best sections.

Notes are the workspace's own blocks: pages of a vault, databases, boards, conversations. A note is one page, whose
document id is the id of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from satchel.assembly.units import LineWorths, SourceText, best_runs, unit_text
from satchel.models.block import PAGE_TYPES, BlockType
from satchel.models.document import PageMetadata
from satchel.ports.page_library import ExcerptMaker, PageExcerpt
from satchel.retrieval.query import understand
from satchel.text.statements import LineRun
from satchel.workspace.block_text import is_code
from satchel.workspace.collectors.semantic import dated_tasks
from satchel.workspace.pages import PageText, read_pages
from satchel.workspace.sections import RankedSection, rank_sections, sections_of

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.search import Filters, SearchHit
    from satchel.ports.block_tree import Step
    from satchel.ports.embedder import Embedder
    from satchel.ports.store import Store
    from satchel.workspace.page_cache import PageCache

_NOTE_TYPES: Final = PAGE_TYPES - {BlockType.FILE}

# Due tasks looked up for a question: as many as a workspace context shows at most.
_MAX_DUE_TASKS: Final = 40

# Room in which the best paragraphs of a further section are shown: less is hardly more than its heading.
_MIN_SECTION_CHARS: Final = 200


class FoundSection(NamedTuple):
    """A section in which the search found something: the ids of its first and last block, and of the found blocks."""

    first: str
    last: str
    found: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A note with its relevance (that of its best section), and the found sections, best first."""

    text: PageText
    trail: tuple[str, ...]
    """The titles around the best section, outermost first, and its own."""
    relevance: float = 0.0
    sections: Sequence[FoundSection] = ()

    def metadata(self) -> PageMetadata:
        """The metadata in the form of page metadata."""
        block = self.text.page
        return PageMetadata(
            doc_id=block.id,
            filename=" ".join(block.title.split()) or block.source_path.rpartition("/")[2] or block.id,
            page=1,
            extension="md",  # notes are shown as Markdown, whatever they were
            timestamp=block.last_modified.isoformat() if block.last_modified else "",
            source_path=block.source_path or None,
            section_path=" > ".join(self.trail) or None,
            parent_heading=self.trail[-1] if self.trail else None,
            num_headings=len(self.text.source.spans) - 1,
        )

    @property
    def markdown(self) -> str:
        """The text of the whole note."""
        return "\n".join(self.text.source.lines)


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of a workspace, limited to the access of the filters."""

    store: Store
    filters: Filters

    def ranked(self, query: str, hits: Iterable[SearchHit], engine: NoteRanker, *, num_results: int) -> list[Note]:
        """The best notes: with sections around the blocks that a search found, or with tasks that are due."""
        evidence = [*self._due_tasks(query, engine.now()), *self._sections(query, hits, engine)]
        trails = self.store.trails([entry.root for entry in evidence], self.filters)
        by_page: dict[str, list[_Evidence]] = {}
        for entry in evidence:
            if trail := trails.get(entry.root):
                titles = tuple(step.title for step in reversed(trail) if step.title)
                by_page.setdefault(_page_of(trail), []).append(entry._replace(trail=titles))
        pages = self._read(list(by_page)[:num_results])
        notes = [note for page_id, page in pages.items() for note in _notes(page, by_page[page_id])]
        return sorted(notes, key=lambda note: -note.relevance)[:num_results]

    def _sections(self, query: str, hits: Iterable[SearchHit], engine: NoteRanker) -> list[_Evidence]:
        """The sections around the found blocks, best first, as in the context of a workspace."""
        blocks = [hit for hit in hits if not hit.path]
        if not blocks:
            return []
        sections = sections_of(blocks, self.store, self.filters, cache=engine.page_cache)
        ranked = rank_sections(understand(query), sections, engine.embedder)
        return [_section_evidence(entry) for entry in ranked]

    def _due_tasks(self, query: str, now: datetime) -> list[_Evidence]:
        tasks = dated_tasks(query, self.store, self.filters, now=now, limit=_MAX_DUE_TASKS)
        return [
            _Evidence(task.block.id, task.relevance, FoundSection(task.block.id, task.block.id, [task.block.id]))
            for task in tasks
        ]

    def get(self, block_id: str) -> Note | None:
        """The note of a block; None if the workspace has no such block, or if the block was read from a file."""
        text = self._read([block_id]).get(block_id)
        if text is None:
            return None
        steps = self.store.trails([block_id], self.filters).get(block_id, ())
        return Note(text, tuple(step.title for step in reversed(steps) if step.title))

    def excerpt_maker(self, block_id: str, query: str, sections: Sequence[FoundSection]) -> ExcerptMaker | None:
        """A function that shows the found sections of a note in a number of characters; None for an unknown note."""
        text = self._read([block_id]).get(block_id)
        if text is None:
            return None
        found = [text.lines[block] for section in sections for block in section.found if block in text.lines]
        places = [lines for section in sections if (lines := _lines_of(text, section))]
        worth_of = partial(LineWorths(understand(query).terms).of_run, text.source, found=found)
        return partial(_excerpt, text.source, places or [LineRun(1, len(text.source.lines))], worth_of)

    def _read(self, ids: Sequence[str]) -> dict[str, PageText]:
        pages = read_pages(ids, self.store, self.filters)
        return {page_id: page for page_id, page in pages.items() if page.lines and not is_code(page.page)}


class NoteRanker(Protocol):
    """The parts of an engine that rank notes."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the store's vectors."""

    @property
    def page_cache(self) -> PageCache:
        """The pages read for earlier questions."""

    def now(self) -> datetime:
        """The time, for questions about due tasks."""


class _Evidence(NamedTuple):
    """A section or a task that may answer a question; `root` is its first block."""

    root: str
    relevance: float
    section: FoundSection
    text: PageText | None = None
    """The text of the section alone."""
    trail: tuple[str, ...] = ()
    """The titles around the block, outermost first, and its own."""


def _section_evidence(ranked: RankedSection) -> _Evidence:
    section = ranked.section
    blocks = section.text.holds([section.lines])
    found = FoundSection(blocks[0], blocks[-1], [hit.block_id for hit in section.found])
    return _Evidence(section.text.page.id, ranked.relevance, found, section.text)


def _page_of(trail: Sequence[Step]) -> str:
    """The id of the nearest page around a block; of the block itself if the user may read no page around it."""
    return next((step.id for step in trail if step.type in _NOTE_TYPES), trail[0].id)


def _notes(page: PageText, evidence: Sequence[_Evidence]) -> list[Note]:
    """The note of a page. A section beyond the part of a very long page that is read is a note of its own."""
    inside = [entry for entry in evidence if _lines_of(page, entry.section)]
    notes = [
        Note(best.text, best.trail, best.relevance, [best.section])
        for best in evidence
        if best.text is not None and best not in inside
    ]
    if inside:
        best = max(inside, key=lambda entry: entry.relevance)
        notes.append(Note(page, best.trail, best.relevance, [entry.section for entry in inside]))
    return notes


def _lines_of(page: PageText, section: FoundSection) -> LineRun | None:
    """The lines of a section on its page; None if they are not there."""
    first, last = page.lines.get(section.first), page.lines.get(section.last)
    return LineRun(first.first, last.last) if first and last and first.first <= last.last else None


def _excerpt(
    source: SourceText, sections: Sequence[LineRun], worth_of: Callable[[LineRun], float], max_chars: int
) -> PageExcerpt:
    """The title and the best sections that fit whole, each below its headings.

    Of the first section that does not fit, the best paragraphs are shown.
    """
    shown = [LineRun(1, 1)]
    room = max_chars - source.chars(shown[0])
    for section in sections:
        heads = [line for line in _headings(source, section) if line not in shown]
        size = sum(map(source.chars, [*heads, section]))
        if size <= room:
            shown += [*heads, section]
            room -= size
        elif room >= _MIN_SECTION_CHARS or len(shown) == 1:
            shown += best_runs(source, section, [*heads, LineRun(section.first, section.first)], worth_of, room)
            break
    unit = unit_text(source, LineRun(1, len(source.lines)), shown)
    return PageExcerpt(unit.text, unit.elided)


def _headings(source: SourceText, section: LineRun) -> Iterator[LineRun]:
    """The headings around a section, innermost first."""
    index = source.innermost(section.first)
    while index >= 0:
        first = source.spans[index].first_line
        if first < section.first:
            yield LineRun(first, first)
        index = source.spans[index].parent
