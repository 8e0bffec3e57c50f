"""Read a document in this process: the bytes decide the format, the name is a hint.

Untrusted files are read by `DocumentReaders` instead.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from itertools import chain
from pkgutil import resolve_name
from typing import Final

from satchel.indexing.documents.recognition import DocumentSource, ReadOptions, Recognition
from satchel.indexing.documents.tidy import CannotRead, unreadable
from satchel.models.document import Document, Page, Unreadable
from satchel.models.files import DOCUMENT_KINDS, DocumentKind, kind_name, page_unit
from satchel.text.decoding import is_binary

_TEXT: Final = frozenset({"md", "markdown", "txt", "text", "rst", ""})
_HTML_SEARCH_BYTES: Final = 4096  # HTML shows in its first tags; bounds the search

# Whole HTML pages are documents; templates, filled in by a program, are source text.
_WHOLE_PAGE: Final = re.compile(rb"<html[\s>]|<!doctype\s+html", re.IGNORECASE)
_TEMPLATE_MARKS: Final = (b"{{", b"{%", b"<?php", b"<%", b"<?=")

# HTML fragments, as exported by programs or saved by readers.
_FRAGMENT: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>\s+|<!--.*?-->|<\?xml[^>]*>)*+"
    rb"<(?:h[1-6]|p|div|article|section|main|header|body|head|title|nav|aside|figure|table|ul|ol|dl|blockquote|pre)"
    rb"(?=[\s/>])",
    re.IGNORECASE | re.DOTALL,
)

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP: Final = b"PK\x03\x04"
_ZIP_PARTS: Final = dict.fromkeys(("odt", "odp", "ods"), "content.xml") | {"epub": "META-INF/container.xml"}
_PDF_HEADER_SEARCH_BYTES: Final = 1024  # readers of PDF allow for a few bytes of rubbish before the header
_OFFICE_SUFFIXES: Final = frozenset({"doc", "xls", "ppt", "docx", "xlsx"})


def is_document(path: str, head: bytes = b"") -> bool:
    """True if the file at a path is read as a document; `head` (the first bytes) tells web pages from templates."""
    if page_unit(path) is None:
        return False
    if kind_name(path) == "html" and head:
        is_template = any(mark in head for mark in _TEMPLATE_MARKS)
        return head.startswith(b"%PDF-") or (_is_page(head) and not is_template)
    return True


def _is_page(data: bytes) -> bool:
    """True for a whole HTML page, or a fragment readable alone."""
    start = data[:_HTML_SEARCH_BYTES]
    return bool(_WHOLE_PAGE.search(start) or _FRAGMENT.match(start))


def kind_of(name: str, data: bytes) -> str | Unreadable:
    """The document format of the bytes, as a suffix (`text` for plain text)."""
    if not data:
        return Unreadable("is empty")
    expected = kind_name(name)
    by_bytes = _by_bytes(data, expected)
    if isinstance(by_bytes, Unreadable) or by_bytes:
        return by_bytes
    if expected in _TEXT and not is_binary(data):
        return "text"
    if page_unit(name) is None:
        return unreadable(f"is not a supported kind of document ({_describe_bytes(data)})")
    if _is_decided_by_suffix(DOCUMENT_KINDS.get(expected), data):
        return expected
    return unreadable(f"does not match its extension: expected {expected.upper()}, found {_describe_bytes(data)}")


def _is_decided_by_suffix(kind: DocumentKind, data: bytes) -> bool:
    """True if the suffix decides: text bytes of a text kind, or a kind without a signature in the bytes."""
    if kind.is_text:
        return not is_binary(data)
    return not (kind.magic or kind.zip_mime or kind.zip_folder or kind.ole_stream)


def _by_bytes(data: bytes, expected: str) -> str | Unreadable:
    """The kind recognized by the first bytes; empty if unknown."""
    if b"%PDF-" in data[:_PDF_HEADER_SEARCH_BYTES] and (expected == "pdf" or data.lstrip().startswith(b"%PDF-")):
        return "pdf"
    for name, kind in DOCUMENT_KINDS.entries():
        if kind.magic and data.startswith(kind.magic) and _is_unambiguous(name, data, expected):
            return name
    if data.startswith(_OLE):
        return _ole_kind(data, expected)
    if data.startswith(_ZIP):
        return _zip_kind(data, expected)
    # Some programs export HTML under an office suffix.
    return "html" if expected in _OFFICE_SUFFIXES and not is_binary(data) and _is_page(data) else ""


def _is_unambiguous(name: str, data: bytes, expected: str) -> bool:
    """False for ambiguous first bytes, shared with another format."""
    if name == "webp":
        return data[8:12] == b"WEBP"
    return name == expected if name == "bmp" else name != "pdf"


def _ole_kind(data: bytes, expected: str) -> str | Unreadable:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return Unreadable("is encrypted; save it without a password")
    streams = {name: kind.ole_stream for name, kind in DOCUMENT_KINDS.entries() if kind.ole_stream}
    for name, stream in streams.items():
        if stream.encode("utf-16-le") in data:
            return name
    return expected if expected in streams else unreadable("is an office file of an unknown kind")


def _zip_kind(data: bytes, expected: str) -> str | Unreadable:
    kinds = list(DOCUMENT_KINDS.entries())
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            has_mime = "mimetype" in names and archive.getinfo("mimetype").file_size < 200
            mime = archive.read("mimetype").strip() if has_mime else b""
    except Exception:  # whatever is wrong with it, it cannot be opened
        return unreadable(f"is a damaged {expected.upper() or 'ZIP'}: its archive cannot be opened")
    by_mime = (name for name, kind in kinds if mime and kind.zip_mime == mime)
    by_folder = (
        name for name, kind in kinds if kind.zip_folder and any(entry.startswith(kind.zip_folder) for entry in names)
    )
    if kind_by_content := next(chain(by_mime, by_folder), ""):
        return kind_by_content
    if _ZIP_PARTS.get(expected) in names:
        return expected
    return unreadable("is a ZIP without a document")


def _describe_bytes(data: bytes) -> str:
    if data.startswith(b"PK"):
        return "a ZIP"
    if is_binary(data):
        return "a binary file"
    return "a web page" if _is_page(data) else "plain text"


def read_document(
    name: str, data: bytes, options: ReadOptions, on_page: Callable[[], None] = lambda: None
) -> Document | Unreadable:
    """The document in the bytes, or the reason for failure; `on_page` is called for every recognized page."""
    kind = kind_of(name, data)
    if isinstance(kind, Unreadable):
        return kind
    try:
        source = DocumentSource(kind, data, options, Recognition(options, on_page))
        document = resolve_name(DOCUMENT_KINDS.get(kind).reader)(source)
        if not isinstance(document, Document | Unreadable):
            raise TypeError(f"{kind} was read as {type(document).__name__}")
    except CannotRead as refusal:
        return unreadable(str(refusal))
    except ModuleNotFoundError as error:
        if DOCUMENT_KINDS.is_plugin(kind):
            return unreadable(f"cannot be read: the plug-in {kind!r} needs {error.name}, which is not installed")
        return Unreadable("needs Satchel's extra `documents`")
    except MemoryError:
        return Unreadable("needs more memory than the limit allows")
    except RecursionError:
        return Unreadable("is nested too deeply to be read")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # Rust's panics are no `Exception`
        return Unreadable(f"made the reader of {kind.upper()} fail; it is probably damaged")
    return document if isinstance(document, Unreadable) else _bounded(document, options)


def _bounded(document: Document, options: ReadOptions) -> Document:
    """The document, cut to the limits."""
    left = options.most_chars
    pages: list[Page] = []
    for page in document.pages[: options.most_pages]:
        size = len(page.markdown) + len(page.name) + len(page.seen) + sum(map(len, page.captions))
        if size > left:
            # Part of the page is kept, because a sheet is a single page of any length.
            pages.append(Page(page.number, page.markdown[:left].rpartition("\n")[0], page.name, pictures=page.pictures))
            note = f"is longer than {options.most_chars:,} characters; the rest of it was not read"
            notes = document.notes if note in document.notes else (*document.notes, note)
            return document._replace(pages=tuple(pages), notes=notes)
        left -= size
        pages.append(page)
    return document._replace(pages=tuple(pages))
