"""Whether documents can be read, and scans in which languages, and whether their readers are shut in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem

if TYPE_CHECKING:
    from satchel.service.settings import Settings


def readers() -> Iterator[Finding]:
    """A child reads a small table, as it would read any document."""
    from satchel.indexing.documents.policy import NO_DOCUMENTS, can_read_documents, readers_for
    from satchel.models.document import DOCUMENT_KINDS, Unreadable, document_suffixes

    document_suffixes()  # loads the plug-ins
    for reason in DOCUMENT_KINDS.problems.values():
        yield problem("documents", reason, "update or uninstall that package")
    if not can_read_documents():
        yield note("documents", "PDF, office files and e-books are not read: the extra `documents` is not installed")
        return
    with readers_for(NO_DOCUMENTS, 1) as children:
        read = children.read("probe.csv", b"a,b\n1,2\n")
        confined = children.is_confined()
    if isinstance(read, Unreadable):
        yield problem("documents", f"the reader {read.reason}", pip_install("documents"))
        return
    yield ok("documents", "PDF, office files, e-books, web pages")
    if not confined:
        yield note("documents", "the kernel does not keep their readers from the network: beware of strangers' files")


def scans(settings: Settings) -> Iterator[Finding]:
    """Who reads pages that are pictures, and whether in the languages that are set."""
    from satchel.indexing.documents.ocr import languages_missing
    from satchel.indexing.documents.policy import can_read_documents

    program = shutil.which("tesseract")
    if settings.ocr == "off":
        yield ok("scans", "not read: the setting `ocr` is off")
    elif not can_read_documents():
        yield ok("scans", "not read, as no documents are")
    elif program:
        missing = languages_missing(settings.ocr_languages)
        if missing:
            packages = " ".join(f"tesseract-ocr-{one.replace('_', '-').lower()}" for one in missing)
            told = f"tesseract does not know {', '.join(missing)} (the setting ocr_languages)"
            yield problem("scans", told, f"sudo apt install {packages}   (or export SATCHEL_OCR_LANGUAGES=eng)")
        else:
            yield ok("scans", f"by tesseract ({program}), {settings.ocr_languages}")
    elif find_spec("rapidocr"):
        yield ok("scans", "by rapidocr")
    else:
        how = f"sudo apt install tesseract-ocr, or {pip_install('ocr')}"
        yield note("scans", "pages that are pictures are not read", how)
