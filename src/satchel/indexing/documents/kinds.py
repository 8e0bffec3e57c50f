"""What a file is: its bytes decide, its name is a hint."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final

from satchel.indexing.documents.tidy import unreadable
from satchel.indexing.read import is_binary
from satchel.models.document import PageUnit, Unreadable, extension_of, page_unit

_TEXT: Final = frozenset({"md", "markdown", "txt", "text", "rst", ""})
_LOOKED_AT: Final = 4096

# Pages as a browser shows them; what is filled in by a program first is source text.
_WHOLE_PAGE: Final = re.compile(rb"<html[\s>]|<!doctype\s+html", re.IGNORECASE)
_TEMPLATE_MARKS: Final = (b"{{", b"{%", b"<?php", b"<%", b"<?=")

# A part of a page that says something: what programs export, and people keep of what they read.
_FRAGMENT: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>\s+|<!--.*?-->|<\?xml[^>]*>)*+"
    rb"<(?:h[1-6]|p|div|article|section|main|header|body|head|title|nav|aside|figure|table|ul|ol|dl|blockquote|pre)"
    rb"(?=[\s/>])",
    re.IGNORECASE | re.DOTALL,
)

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"{\\rtf", "rtf"),
)
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_KINDS: Final = frozenset({"doc", "xls", "ppt"})
_OFFICE_FOLDERS: Final = (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx"))
_MIME_TYPES: Final = {
    b"application/epub+zip": "epub",
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.presentation": "odp",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
}
_ALIASES: Final = {"jpeg": "jpg", "tif": "tiff", "htm": "html", "xhtml": "html"}


def is_document(path: str, head: bytes = b"") -> bool:
    """Whether the file at a path is read as a document; `head` (its first bytes) tells web pages from templates."""
    if page_unit(path) is None:
        return False
    if _canonical(path) == "html" and head:
        return head.startswith(b"%PDF-") or is_whole_page(head)
    return True


def is_whole_page(head: bytes) -> bool:
    """Whether HTML is a page, or a part of one that can be read alone, and no template for one."""
    return _is_page(head) and not any(mark in head for mark in _TEMPLATE_MARKS)


def _is_page(data: bytes) -> bool:
    start = data[:_LOOKED_AT]
    return bool(_WHOLE_PAGE.search(start) or _FRAGMENT.match(start))


def kind_of(name: str, data: bytes) -> str | Unreadable:
    """The kind of document that the bytes are, as the suffix it should have (`text` for plain text)."""
    if not data:
        return Unreadable("is empty")
    told = _canonical(name)
    found = _by_bytes(data, told)
    if isinstance(found, Unreadable) or found:
        return found
    if told in _TEXT and not is_binary(data):
        return "text"
    if told in ("csv", "tsv", "html") and (not is_binary(data) or data[:2] in (b"\xff\xfe", b"\xfe\xff")):
        return told
    if page_unit(name) is None:
        return unreadable(f"is no kind of document that can be read ({_really(data)})")
    return unreadable(f"is not what its name says: no {told.upper()}, but {_really(data)}")


def _canonical(name: str) -> str:
    suffix = extension_of(name)
    return _ALIASES.get(suffix, suffix)


def _by_bytes(data: bytes, told: str) -> str | Unreadable:
    """What the first bytes say, or nothing."""
    # Readers of PDF allow for a few bytes of rubbish before the header.
    if b"%PDF-" in data[:1024] and (told == "pdf" or data.lstrip().startswith(b"%PDF-")):
        return "pdf"
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[:2] == b"BM" and told == "bmp":
        return "bmp"
    if data.startswith(_OLE):
        return _ole_kind(data, told)
    if data.startswith(b"PK\x03\x04"):
        return _zip_kind(data, told)
    is_office = told in _OLE_KINDS or told in ("docx", "xlsx")
    # Programs without an office write web pages under an office's suffix.
    return "html" if is_office and not is_binary(data) and _is_page(data) else ""


def _ole_kind(data: bytes, told: str) -> str | Unreadable:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return Unreadable("is encrypted; save it without a password to have it read")
    for stream, kind in (("WordDocument", "doc"), ("Workbook", "xls"), ("PowerPoint Document", "ppt")):
        if stream.encode("utf-16-le") in data:
            return kind
    return told if told in _OLE_KINDS else unreadable("is an office file of an unknown kind")


def _zip_kind(data: bytes, told: str) -> str | Unreadable:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                kind = _MIME_TYPES.get(archive.read("mimetype").strip(), "")
                if kind:
                    return kind
    except Exception:  # whatever is wrong with it, it cannot be opened
        return unreadable(f"is a damaged {told.upper() or 'ZIP'}: its archive cannot be opened")
    for folder, kind in _OFFICE_FOLDERS:
        if any(entry.startswith(folder) for entry in names):
            return kind
    if "content.xml" in names and told in ("odt", "odp", "ods"):
        return told
    return told if told == "epub" and "META-INF/container.xml" in names else unreadable("is a ZIP without a document")


def _really(data: bytes) -> str:
    if data.startswith(b"PK"):
        return "a ZIP"
    if is_binary(data):
        return "some binary file"
    return "a web page" if _is_page(data) else "plain text"


def is_picture(kind: str) -> bool:
    """Whether a kind is one of pictures."""
    return page_unit(f"x.{kind}") is PageUnit.PICTURE
