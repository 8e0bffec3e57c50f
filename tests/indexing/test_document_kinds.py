"""Kinds of documents: each has a unit and a reader, and its bytes decide what it is."""

from satchel.indexing.documents.read_document import kind_of
from satchel.models.files import DOCUMENT_KINDS, PageUnit, document_suffixes, page_unit, page_words


def test_every_suffix_of_ours_has_a_unit_and_a_reader() -> None:
    assert len(document_suffixes()) == 25
    for name in DOCUMENT_KINDS.names():
        kind = DOCUMENT_KINDS.get(name)
        assert {page_unit(f"a.{suffix}") for suffix in kind.suffixes} <= {kind.unit}
    assert page_words("a.pptx", 3) == "slide 3"
    assert page_unit("a.py") is None
    assert document_suffixes(often_source=True) | document_suffixes(often_source=False) == document_suffixes()
    assert PageUnit.PICTURE not in {page_unit(f"a.{suffix}") for suffix in document_suffixes(often_source=False)}


def test_the_bytes_decide_before_the_name() -> None:
    assert kind_of("a.docx", b"%PDF-1.4\n") == "pdf"
    assert kind_of("a.tif", b"MM\0*....") == "tiff"
    assert kind_of("a.txt", b"words") == "text"
    assert kind_of("a.bin", b"RIFF1234WEBPxxxx") == "webp"
