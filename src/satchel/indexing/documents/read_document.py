"""Reading a document in this very process. For files that strangers made there are `DocumentReaders`."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name

from satchel.indexing.documents.kinds import kind_of
from satchel.indexing.documents.options import ReadOptions
from satchel.indexing.documents.paging import into_pages
from satchel.indexing.documents.recognition import DocumentSource, Recognition
from satchel.indexing.documents.tidy import unreadable
from satchel.models.document import Document, Page, Unreadable
from satchel.models.files import DOCUMENT_KINDS

__all__ = ["ReadOptions", "into_pages", "read_document"]


def read_document(
    name: str, data: bytes, options: ReadOptions, on_page: Callable[[], None] = lambda: None
) -> Document | Unreadable:
    """The document that the bytes are, or why it cannot be read; `on_page` is told of every page recognized."""
    kind = kind_of(name, data)
    if isinstance(kind, Unreadable):
        return kind
    try:
        document = _read(DocumentSource(kind, data, options, Recognition(options, on_page)))
    except ModuleNotFoundError as error:
        if DOCUMENT_KINDS.is_plugin(kind):
            return unreadable(f"cannot be read: its plug-in {kind!r} needs {error.name}, which is not installed")
        return Unreadable("needs Satchel's extra documents to be read")
    except MemoryError:
        return Unreadable("needs more memory to be read than it may have")
    except RecursionError:
        return Unreadable("is nested too deeply to be read")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # Rust's panics are no `Exception`
        return Unreadable(f"made the reader of {kind.upper()} fail; it is probably damaged")
    return document if isinstance(document, Unreadable) else _bounded(document, options)


def _read(source: DocumentSource) -> Document | Unreadable:
    document = resolve_name(DOCUMENT_KINDS.get(source.kind).reader)(source)
    if not isinstance(document, Document | Unreadable):
        raise TypeError(f"{source.kind} was read as {type(document).__name__}")
    return document


def _bounded(document: Document, options: ReadOptions) -> Document:
    """The document without what is beyond the limits."""
    left = options.most_chars
    kept: list[Page] = []
    for page in document.pages[: options.most_pages]:
        size = len(page.markdown) + len(page.name) + len(page.seen) + sum(map(len, page.captions))
        if size > left:
            # A page is kept as far as it goes: a sheet is one page, however long.
            kept.append(Page(page.number, page.markdown[:left].rpartition("\n")[0], page.name, pictures=page.pictures))
            note = f"is longer than {options.most_chars:,} characters; the rest of it was not read"
            notes = document.notes if note in document.notes else (*document.notes, note)
            return document._replace(pages=tuple(kept), notes=notes)
        left -= size
        kept.append(page)
    return document._replace(pages=tuple(kept))
