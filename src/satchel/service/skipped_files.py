"""The note on files that are not in the index and may matter to a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

from satchel.indexing.walk import MAX_LARGE_FILES_BYTES, Skip, can_read_documents
from satchel.models.files import detect_language
from satchel.retrieval.query import understand
from satchel.text.patterns import matches
from satchel.text.words import STOP_WORDS, stem, words

if TYPE_CHECKING:
    from satchel.models.files import SkippedFile
    from satchel.models.search import Filters
    from satchel.ports.file_index import FileIndex
    from satchel.retrieval.freshness import Folder

_MAX_NAMED_FILES: Final = 3  # more would make a note too long to be read; `satchel index --list-skipped` has all
_MAX_PATH_CHARS: Final = 60  # MCP shows 300 characters of a note: three files with their reasons
_MAX_REASON_CHARS: Final = 40
_RELEVANT: Final = 0.05  # without a more relevant piece, the question is hardly answered
_MANY_FILES: Final = 3  # fewer skipped files seldom hold the answer to a question with weak results

_REASONS: Final[Mapping[str, str]] = {
    Skip.SECRET: "may hold secrets",
    Skip.UNREADABLE: "cannot be read",
    Skip.TOO_MANY_LARGE: f"beyond {MAX_LARGE_FILES_BYTES // 1_000_000} MB of large files",
}


def note_on_skipped(
    index: FileIndex, folder: Folder, question: str, filters: Filters, best_relevance: float
) -> str | None:
    """The note on skipped files whose paths match the question, or on all if nothing relevant was found; else None.

    `best_relevance` is that of the best piece, 0 if nothing was found. Only files that the filters' readers may read
    are named or counted.
    """
    files = [file for file in index.skipped(filters) if file.reason != Skip.BINARY and _passes(file.path, filters)]
    if not files:
        return None
    matched = _matching(files, understand(question).terms.keys())
    if matched:
        return _note(matched, " and may matter", filters, folder)
    if not best_relevance or (best_relevance < _RELEVANT and len(files) >= _MANY_FILES):
        return _note(files, "", filters, folder)
    return None


def _passes(path: str, filters: Filters) -> bool:
    """True if the path passes the filters on paths and languages."""
    is_included = not filters.patterns or matches(path, filters.patterns)
    return is_included and (not filters.languages or detect_language(path) in filters.languages)


def _matching(files: Sequence[SkippedFile], asked: Set[str]) -> list[SkippedFile]:
    """The files whose paths match the question, with the most matching words first."""
    matched = ((_matched_words(file.path, asked), file) for file in files)
    return [file for count, file in sorted(matched, key=lambda entry: (-entry[0], entry[1])) if count]


def _matched_words(path: str, asked: Set[str]) -> int:
    """The number of words of a path in the question; 0 if less than half of the file's name is in the question."""
    folder, _, name = path.removesuffix("/").rpartition("/")
    own = _stems(name.rpartition(".")[0] or name)
    in_name = len(own & asked)
    return in_name + len(_stems(folder) & asked) if in_name and 2 * in_name >= len(own) else 0


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text) if word not in STOP_WORDS}


def _note(files: Sequence[SkippedFile], matter: str, filters: Filters, folder: Folder) -> str:
    named = [f"{_short(file.path)} ({_reason(file, folder)})" for file in files[:_MAX_NAMED_FILES]]
    more = f" and {len(files) - len(named):,} more" if len(files) > len(named) else ""
    were = "1 file is" if len(files) == 1 else f"{len(files):,} files are"
    # Only the owner of a workspace can index it.
    advice = "; `satchel index --list-skipped` lists all" if filters.readers is None else ""
    return f"{were} not indexed{matter}: {', '.join(named)}{more}{advice}"


def _short(path: str) -> str:
    return path if len(path) <= _MAX_PATH_CHARS else f"…{path[1 - _MAX_PATH_CHARS :]}"


def _reason(file: SkippedFile, folder: Folder) -> str:
    if file.reason == Skip.DOCUMENT:
        return "the setting `documents` is off" if can_read_documents() else "needs the extra `documents`"
    if file.reason == Skip.TOO_LARGE and file.size:
        is_document = folder.documents.takes(file.path)
        limit = folder.documents.max_bytes if is_document else folder.max_file_bytes
        return f"{_megabytes(file.size)}, over the limit of {_megabytes(limit)}"
    reason = _REASONS.get(file.reason, file.reason)
    reason = reason if len(reason) <= _MAX_REASON_CHARS else f"{reason[: _MAX_REASON_CHARS - 1]}…"
    return f"{_megabytes(file.size)}, {reason}" if file.size else reason


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
