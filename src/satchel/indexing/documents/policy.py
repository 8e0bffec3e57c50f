"""Which files of a folder are read as documents, and how much trouble is taken with them."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.models.files import DOCUMENT_KINDS, document_suffixes, extension_of, kind_name

if TYPE_CHECKING:
    from satchel.indexing.documents.readers import DocumentReaders

DEFAULT_MAX_DOCUMENT_BYTES: Final = 100_000_000
_READERS: Final = ("liteparse", "pypdfium2", "xberg")


class Reading(StrEnum):
    """Which files are read as documents.

    In a repository, web pages and tables are mostly source and pictures mostly icons; `all` reads those too.
    """

    AUTO = "auto"
    ALL = "all"
    OFF = "off"


class DocumentPolicy(NamedTuple):
    """What is read as a document (by suffix), up to which size, and whether pictures of text are read."""

    extensions: frozenset[str] = frozenset()
    max_bytes: int = DEFAULT_MAX_DOCUMENT_BYTES
    ocr: bool = True
    languages: str = "eng"

    def takes(self, path: str) -> bool:
        """Whether the file at a path may be a document, going by its name."""
        return extension_of(path) in self.extensions


READER_VERSION: Final = 1
"""Grows when documents are read so differently that those which were read before should be read again."""


def way_of_reading(policy: DocumentPolicy) -> str:
    """What decides how documents are read: where it changes, what was read otherwise is read again."""
    if not policy.extensions:
        return "off"
    engine = "no"
    if policy.ocr:
        engine = "tesseract" if which("tesseract") else "rapidocr" if find_spec("rapidocr") else "none"
    taken = "+".join(sorted(policy.extensions & document_suffixes(often_source=True))) or "documents"
    own = {suffix for suffix in policy.extensions if DOCUMENT_KINDS.is_plugin(kind_name(f"x.{suffix}"))}
    taken = "+".join([taken, *sorted(own)])
    return f"{READER_VERSION} {taken} ocr {engine} {policy.languages if policy.ocr else ''}".strip()


NO_DOCUMENTS: Final = DocumentPolicy()


def policy_for(
    reading: Reading, *, in_repository: bool, max_bytes: int, ocr: bool = True, languages: str = "eng"
) -> DocumentPolicy:
    """What is read in a folder; without the libraries that read them, no documents are."""
    if reading is Reading.OFF:
        return DocumentPolicy(max_bytes=max_bytes)
    taken = document_suffixes(often_source=False if in_repository and reading is Reading.AUTO else None)
    if not can_read_documents():
        taken = frozenset(suffix for suffix in taken if not DOCUMENT_KINDS.get(kind_name(f"x.{suffix}")).needs_extra)
    return DocumentPolicy(taken, max_bytes, ocr, languages) if taken else DocumentPolicy(max_bytes=max_bytes)


def can_read_documents() -> bool:
    """Whether what `satchel[documents]` brings is installed."""
    return all(find_spec(name) is not None for name in _READERS)


def readers_for(policy: DocumentPolicy, workers: int | None = None) -> DocumentReaders:
    """The child processes that read documents as the policy has it."""
    from satchel.indexing.documents.read_document import ReadOptions
    from satchel.indexing.documents.readers import DocumentReaders

    return DocumentReaders(workers, options=ReadOptions(ocr=policy.ocr, languages=policy.languages))
