"""Equations within sentences of a DOCX, kept where they stand.

Xberg writes each equation before its paragraph. A mark behind the equation in the file tells where it belongs.
"""

from __future__ import annotations

import io
import re
import zipfile
from contextlib import suppress
from itertools import count
from typing import Final

from satchel.indexing.documents.zips import BROKEN

_TEXT: Final = "word/document.xml"
_MAX_BYTES: Final = 100_000_000  # unpacked, of files that are written again; in larger ones equations move
_EQUATION: Final = re.compile(rb"(?s)<m:oMathPara\b.*?</m:oMathPara>|<m:oMath(?:\s[^<>]*)?>.*?</m:oMath>")
_MARK: Final = re.compile(r"⟦([0-9]{1,6})⟧")
_DISPLAYED: Final = re.compile(r"\$\$(.+)\$\$", re.DOTALL)


def with_marks(data: bytes) -> bytes:
    """The document with a mark behind each equation that stands within a sentence; unchanged without one."""
    with suppress(*BROKEN), zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        text = archive.read(_TEXT)
        is_usual = b"<m:oMath" in text and b"xmlns:w=" in text and "⟦".encode() not in text
        if not is_usual or sum(entry.file_size for entry in entries) > _MAX_BYTES:
            return data
        numbers = count(1)

        def marked(match: re.Match[bytes]) -> bytes:
            if match[0].startswith(b"<m:oMathPara"):
                return match[0]
            mark = f"⟦{next(numbers)}⟧".encode()
            return match[0] + b'<w:r><w:t xml:space="preserve">' + mark + b"</w:t></w:r>"

        changed = _EQUATION.sub(marked, text)
        if changed == text:
            return data
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as copy:
            for entry in entries:
                copy.writestr(entry.filename, changed if entry.filename == _TEXT else archive.read(entry))
        return written.getvalue()
    return data


def in_place(markdown: str) -> str:
    """The Markdown with the equations at their marks, where there are as many as marks; no mark stays."""
    if not _MARK.search(markdown):
        return markdown
    kept: list[str] = []
    for paragraph in markdown.split("\n\n"):
        marks = _MARK.findall(paragraph)
        before = kept[-len(marks) :] if marks else []
        equations = [match[1] for each in before if (match := _DISPLAYED.fullmatch(each.strip()))]
        if marks and len(equations) == len(marks):
            del kept[-len(marks) :]
            kept.append(_with_equations(paragraph, equations))
        else:
            kept.append(_MARK.sub("", paragraph))
    return "\n\n".join(kept)


def _with_equations(paragraph: str, equations: list[str]) -> str:
    left = iter(equations)
    return _MARK.sub(lambda _: f"${next(left)}$", paragraph)
