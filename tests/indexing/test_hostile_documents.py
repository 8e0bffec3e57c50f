"""Files made to do harm fail alone: with a reason, within their limits, without the network and without a trace."""

from __future__ import annotations

import io
import os
import random
import signal
import socketserver
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from satchel.indexing.child_process import FRAME_HEADER, Garbled, decode, encode, frame
from satchel.indexing.documents.read_document import read_document
from satchel.indexing.documents.readers import Answer, DocumentMessage, DocumentReaders
from satchel.indexing.documents.recognition import ReadOptions
from satchel.models.document import Bookmark, Document, Page, Unreadable
from tests.support.documents import (
    docx_of,
    encrypted_pdf,
    epub_of,
    exponential_pdf,
    odf_of,
    pdf_of_lines,
    picture_of_text,
    png_bomb,
    png_of_text,
    pptx_of,
    prose,
    raw_pdf,
    report_pdf,
    saved,
    text_pdf,
    xlsx_of,
    zip_of,
)
from tests.support.measuring import unmeasured
from tests.support.waiting import HANG_SECONDS, wait_for

TRIES = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "fuzz" else 6
"""How often each kind of file is spoiled: `make fuzz` has more time."""
GOOD = pdf_of_lines([["The next file is read as if nothing had happened."]])
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(12))
    + "]>"
)


@pytest.fixture(scope="module")
def readers() -> Iterator[DocumentReaders]:
    with DocumentReaders(2, deadline=HANG_SECONDS, memory_bytes=1 << 30, options=ReadOptions(ocr=False)) as readers:
        yield readers


def checked(answer: Document | Unreadable) -> Document | Unreadable:
    """The answer, whose words fit on one line of a terminal."""
    lines = [answer.reason] if isinstance(answer, Unreadable) else [answer.title, *answer.notes]
    lines += [] if isinstance(answer, Unreadable) else [page.name for page in answer.pages]
    assert all((line.isprintable() or not line) and len(line) < 1000 for line in lines), lines
    if isinstance(answer, Unreadable):
        assert 5 < len(answer.reason) <= 200
        assert "Traceback" not in answer.reason
    return answer


def reason_of(answer: Document | Unreadable) -> str:
    assert isinstance(answer, Unreadable), answer
    checked(answer)
    return answer.reason


@cache
def samples() -> dict[str, bytes]:
    return {
        "a.pdf": report_pdf(),
        "a.docx": docx_of([(1, "Heading", prose(1, 3))], table=[["a", "b"], ["1", "2"]]),
        "a.pptx": pptx_of([("Slide", ["point"], "note")]),
        "a.xlsx": xlsx_of({"Sheet": [["a", "b"], [1, 2]]}),
        "a.epub": epub_of([("One", prose(1, 3)), ("Two", prose(2, 3))]),
        "a.odt": odf_of("text", "<text:p>Words.</text:p>"),
        "a.rtf": rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0 Some \b bold\b0  words.\par}",
        "a.html": b"<!doctype html><html><body><h1>Head</h1><table><tr><td>1</td></tr></table></body></html>",
        "a.csv": b"a,b\n1,2\n",
        "a.png": png_of_text(["x"], size=(100, 100)),
        "a.jpg": saved(picture_of_text(["x"], size=(100, 100)), "JPEG"),
        "a.tif": saved(picture_of_text(["x"], size=(100, 100)), "TIFF", compression="tiff_lzw"),
        "a.webp": saved(picture_of_text(["x"], size=(100, 100)), "WEBP"),
        "a.gif": saved(picture_of_text(["x"], size=(100, 100)), "GIF"),
        "a.bmp": saved(picture_of_text(["x"], size=(20, 20)), "BMP"),
    }


def test_law_files_cut_off_anywhere_are_read_or_refused(readers: DocumentReaders) -> None:
    cut = [
        (name, data[: len(data) * part // TRIES]) for name, data in samples().items() for part in range(TRIES)
    ]  # fmt: skip
    with ThreadPoolExecutor(2) as threads:
        for (name, data), answer in zip(cut, threads.map(lambda one: readers.read(*one), cut), strict=True):
            checked(answer)
            if not data:
                assert answer == Unreadable("is empty"), name


def test_law_files_with_bytes_changed_at_random_are_read_or_refused(readers: DocumentReaders) -> None:
    dice = random.Random(20260728)
    changed: list[tuple[str, bytes]] = []
    for name, data in samples().items():
        for _ in range(TRIES):
            copy = bytearray(data)
            for _ in range(dice.choice((1, 4, 30))):
                copy[dice.randrange(len(copy))] = dice.randrange(256)
            changed.append((name, bytes(copy)))
    with ThreadPoolExecutor(2) as threads:
        for answer in threads.map(lambda one: readers.read(*one), changed):
            checked(answer)
    assert isinstance(readers.read("good.pdf", GOOD), Document)


def test_law_changed_parts_inside_of_sound_archives_are_read_or_refused(readers: DocumentReaders) -> None:
    dice = random.Random(7)
    for name in ("a.docx", "a.pptx", "a.xlsx", "a.epub", "a.odt"):
        with zipfile.ZipFile(io.BytesIO(samples()[name])) as archive:
            parts = {entry: archive.read(entry) for entry in archive.namelist()}
        for _ in range(TRIES):
            changed = dict(parts)
            entry = dice.choice([one for one in parts if len(parts[one]) > 50])
            data = bytearray(parts[entry])
            start = dice.randrange(len(data) - 20)
            data[start : start + dice.randrange(1, 20)] = dice.randbytes(dice.randrange(8))
            changed[entry] = bytes(data)
            checked(readers.read(name, zip_of(dict(changed))))


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.xlsx", "a.png", "a.csv", "a.html", "a.epub", "a.rtf", "a.doc"])
def test_empty_and_mislabelled_files(readers: DocumentReaders, name: str) -> None:
    assert readers.read(name, b"") == Unreadable("is empty")
    checked(readers.read(name, b"\0" * 5000))
    checked(readers.read(name, b"just some words\n"))
    checked(readers.read(name, random.Random(3).randbytes(5000)))
    assert isinstance(readers.read(name, GOOD), Document)


def test_old_office_files_that_are_broken_or_encrypted(readers: DocumentReaders) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    for name in ("a.doc", "a.xls", "a.ppt"):
        assert "damaged" in reason_of(readers.read(name, ole + random.Random(5).randbytes(4000)))
    locked = ole + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le") + b"\0" * 600
    assert reason_of(readers.read("a.docx", locked)).startswith("is encrypted")


def test_encrypted_files_say_so(readers: DocumentReaders) -> None:
    assert reason_of(readers.read("a.pdf", encrypted_pdf("secret"))).startswith("is encrypted")
    data = bytearray(samples()["a.docx"])
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(mark, at + 1)) >= 0:
            data[at + flags] |= 1
    assert reason_of(readers.read("a.docx", bytes(data))).startswith("is encrypted")


@pytest.mark.parametrize("name", ["bomb.docx", "bomb.xlsx", "bomb.odt", "bomb.epub"])
def test_zip_bombs_are_refused_before_they_are_unpacked(readers: DocumentReaders, name: str) -> None:
    inside = {"bomb.docx": "word/document.xml", "bomb.xlsx": "xl/workbook.xml"}.get(name, "content.xml")
    mimes = {"bomb.odt": "application/vnd.oasis.opendocument.text", "bomb.epub": "application/epub+zip"}
    entries: dict[str, str | bytes] = {"mimetype": mimes[name]} if name in mimes else {"[Content_Types].xml": "<x/>"}
    answer = readers.read(name, zip_of({**entries, inside: b"<a>" + b" " * 20_000_000}))
    assert "zip bomb" in reason_of(answer)
    if name == "bomb.docx":
        many = {**entries, **{f"{inside}{i}": b"" for i in range(20_001)}}
        assert "files in one archive" in reason_of(readers.read(name, zip_of(many)))


def test_a_part_that_is_longer_than_it_says_is_refused(readers: DocumentReaders) -> None:
    data = bytearray(docx_of([(1, "x", "y " * 2_000_000)]))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        long = archive.getinfo("word/document.xml").file_size
    told = long.to_bytes(4, "little")
    at = -1
    while (at := data.find(told, at + 1)) >= 0:
        data[at : at + 4] = (1000).to_bytes(4, "little")
    assert "archive cannot be unpacked" in reason_of(readers.read("liar.docx", bytes(data)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_that_grow_without_end_are_refused(readers: DocumentReaders, encoding: str) -> None:
    laughs = f"{LAUGHS}<x>&m;</x>".encode(encoding)
    bombs = {
        "a.docx": zip_of({"[Content_Types].xml": "<x/>", "word/document.xml": laughs}),
        "a.xlsx": zip_of({"[Content_Types].xml": "<x/>", "xl/workbook.xml": laughs}),
        "a.odt": zip_of({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": laughs}),
        "a.epub": zip_of({"mimetype": "application/epub+zip", "META-INF/container.xml": laughs}),
    }
    for name, data in bombs.items():
        assert "XML entities" in reason_of(readers.read(name, data)), name
    page = f"{LAUGHS}<html><body>&m;</body></html>".encode()
    assert "XML entities" in reason_of(readers.read("a.xhtml", page))


def test_notes_that_are_no_part_of_the_show_or_too_large_are_left_out(readers: DocumentReaders) -> None:
    slides = [("One", ["a"], "first note"), ("Two", ["b"], "second note"), ("Three", ["c"], "third note")]
    with zipfile.ZipFile(io.BytesIO(pptx_of(slides))) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    relations, page = "ppt/slides/_rels/slide1.xml.rels", "ppt/notesSlides/notesSlide1.xml"

    def first_slide(changed: dict[str, bytes]) -> str:
        answer = checked(readers.read("a.pptx", zip_of({**parts, **changed})))
        assert isinstance(answer, Document), answer
        assert [page.name for page in answer.pages] == ["One", "Two", "Three"]
        assert "third note" in answer.pages[2].markdown
        return answer.pages[0].markdown

    def pointing(place: str) -> dict[str, bytes]:
        return {relations: parts[relations].replace(b"../notesSlides/notesSlide1.xml", place.encode())}

    assert "first note" in first_slide(pointing("/ppt/notesSlides/notesSlide1.xml"))
    laughs = f"{LAUGHS}<sp><p><t>&m;</t></p></sp>".encode()
    for place in ("../../../../etc/passwd", "../notesSlides/none.xml", "file:///etc/passwd", "", "evil.bin"):
        assert "notes" not in first_slide({**pointing(place), "ppt/slides/evil.bin": laughs}), place
    long = random.Random(1).randbytes(1_100_000).hex().encode()
    assert "notes" not in first_slide({page: parts[page].replace(b"first note", long)})
    nested = b"<n>" + b"<sp><p>" * 100 + b"<t>deep</t>" + b"</p></sp>" * 100 + b"</n>"
    assert len(first_slide({page: nested})) < 100


def test_picture_bombs_are_refused_by_their_header(readers: DocumentReaders) -> None:
    bomb = png_bomb(20_000)
    assert len(bomb) < 200_000
    assert "too large a picture" in reason_of(readers.read("bomb.png", bomb))
    assert isinstance(readers.render(bomb, "bomb.png", 1), Unreadable)


def test_pictures_in_pdfs_and_archives_that_are_too_large_or_lie_cost_no_text() -> None:
    words = "(The text of this page is read whatever its pictures are.) Tj"
    content = f"BT /G 12 Tf 20 500 Td {words} ET q 400 0 0 300 20 20 cm /I Do Q"
    font = "/Font << /G << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    page = f"/MediaBox [0 0 595 842] /Contents 4 0 R /Resources << {font} /XObject << /I 5 0 R >> >>"
    head = "/Type /XObject /Subtype /Image /ColorSpace /DeviceGray /BitsPerComponent 8"
    with DocumentReaders(1, deadline=20, memory_bytes=1 << 30) as readers:
        for shape, filtered, body in (
            ("/Width 50000 /Height 50000", "/FlateDecode", zlib.compress(bytes(1_000_000))),
            ("/Width 900 /Height 700", "/DCTDecode", random.Random(5).randbytes(3000)),
            ("/Width 900 /Height 700", "/FlateDecode", b""),
            ("/Width -900 /Height 700", "/JBIG2Decode", b"xx"),
        ):
            picture = f"<< {head} {shape} /Filter {filtered} /Length {len(body)} >>\nstream\n".encode()
            data = raw_pdf(
                ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                 f"<< /Type /Page /Parent 2 0 R {page} >>",
                 f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
                 picture + body + b"\nendstream"]
            )  # fmt: skip
            document = checked(readers.read("a.pdf", data))
            assert isinstance(document, Document)
            assert "is read whatever its pictures are" in document.pages[0].markdown
            assert document.pages[0].seen == ""
        for bad in (png_bomb(20_000), random.Random(6).randbytes(3000)):
            document = checked(readers.read("a.epub", epub_of([("One", prose(1, 3))], picture=bad)))
            assert isinstance(document, Document)
            assert (document.pages[0].pictures, document.pages[0].seen) == (1, "")


def test_pdf_page_trees_that_bite_their_tail(readers: DocumentReaders) -> None:
    itself = "/Resources << /XObject << /F 4 0 R >> >>"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents 4 0 R {itself} >>"
    form = f"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] {itself} /Length 5 >>\nstream\n/F Do\nendstream"
    trees = [
        ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 99999999 >>"],
        ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, form],
        ["<< /Type /Catalog /Pages 2 0 R /Outlines 3 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
         "<< /First 5 0 R /Last 5 0 R >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
         "<< /Title (x) /Next 5 0 R /First 5 0 R /Parent 3 0 R >>"],
        ["<< /Type /Catalog /Pages 2 0 R >>", "[" * 100_000 + "]" * 100_000],
        ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
         "<< /Type /Page /Parent 3 0 R /MediaBox [0 0 1e30 1e30] >>"],
        ["<< /Type /Catalog /Pages 1 0 R >>"],
    ]  # fmt: skip
    for objects in trees:
        data = raw_pdf(objects)
        for answer in (readers.read("loop.pdf", data), readers.render(data, "loop.pdf", 1, width=100)):
            assert isinstance(answer, bytes) or checked(answer)
            assert not (isinstance(answer, Unreadable) and answer.reason.startswith("took")), "no limit has to end it"


def test_only_the_first_pages_of_a_very_long_pdf_are_read() -> None:
    kids = " ".join(f"{i} 0 R" for i in range(3, 10_003))
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] >>"
    data = raw_pdf(
        ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count 10000 >>", *[page] * 10_000]
    )
    with DocumentReaders(1, options=ReadOptions(most_pages=300)) as readers:
        document = readers.read("long.pdf", data)
    assert isinstance(document, Document)
    assert [one.number for one in document.pages] == list(range(1, 301))
    assert document.notes == ("has 10,000 pages; the first 300 were read",)


def test_a_pdf_that_takes_long_is_read_as_far_as_it_goes() -> None:
    document = read_document("long.pdf", text_pdf(150), ReadOptions(ocr=False, read_seconds=0.001))
    assert isinstance(document, Document)
    count = len(document.pages)
    assert 1 <= count < 150
    assert document.notes == (f"took too long to read; its first {count} pages were read",)


def test_only_so_many_characters_are_taken() -> None:
    with DocumentReaders(1, options=ReadOptions(most_chars=20_000)) as readers:
        for name, data in (
            ("a.pdf", text_pdf(20)),
            ("a.docx", docx_of([(1, f"Part {i}", prose(i, 30)) for i in range(20)])),
            ("a.csv", "\n".join(f"{i},{i}" for i in range(30_000)).encode()),
        ):
            document = readers.read(name, data)
            assert isinstance(document, Document)
            assert 5_000 < sum(len(page.markdown) for page in document.pages) <= 20_500, name
            assert "longer than 20,000 characters" in document.notes[-1]


def test_deeply_nested_web_pages_and_rtf(readers: DocumentReaders) -> None:
    deep = b"<!doctype html><html><body>" + b"<div>" * 200_000 + b"words" + b"</div>" * 200_000 + b"</body></html>"
    checked(readers.read("deep.html", deep))
    checked(readers.read("deep.rtf", rb"{\rtf1 " + b"{" * 300_000 + b"x" + b"}" * 300_000 + b"}"))
    checked(readers.read("wide.csv", b"," * 3_000_000))
    checked(readers.read("quote.csv", b'"' + b"x" * 3_000_000))
    assert isinstance(readers.read("good.pdf", GOOD), Document)


def test_names_with_line_breaks_and_commands(readers: DocumentReaders) -> None:
    for name in (
        "a\nb.pdf",
        "\x1b[2J.pdf",
        "x" * 5000 + ".pdf",
        "../../etc/passwd.pdf",
        "\udcff.pdf",
        "folder/a\n.pdf",
    ):
        document = readers.read(name, GOOD)
        assert isinstance(document, Document), name
        checked(readers.read(name, b"words"))
    checked(readers.read("a\nb.pdf\x1b[31m", b"\0\1\2"))


def test_titles_and_names_with_commands_are_made_harmless(readers: DocumentReaders) -> None:
    document = checked(readers.read("a.xlsx", xlsx_of({"Sheet": [["a\x07b".replace("\x07", ""), "c"]]})))
    assert isinstance(document, Document)
    page = "<!doctype html><html><head><title>a\x1b[31m\u202e\nb</title></head><body><h1>x\x1b]0;</h1></body></html>"
    web = checked(readers.read("a.html", page.encode()))
    assert isinstance(web, Document)
    assert "\x1b" not in repr([one.markdown for one in web.pages])


def set_deadline(readers: DocumentReaders, seconds: float) -> None:
    """Give the files that come next so much time."""
    readers._limits = readers._limits._replace(seconds=seconds, progress_seconds=0.0)


def test_a_file_that_takes_too_long_fails_alone() -> None:
    slow = exponential_pdf(9, 10)
    with DocumentReaders(1, deadline=1, options=ReadOptions(ocr=False)) as readers:
        assert reason_of(readers.read("slow.pdf", slow)) == "took longer than 1 s to read"
        set_deadline(readers, HANG_SECONDS)
        assert isinstance(readers.read("good.pdf", GOOD), Document)


def test_a_file_that_fills_the_memory_fails_alone() -> None:
    with DocumentReaders(1, memory_bytes=200 << 20, options=ReadOptions(ocr=False)) as readers:
        reason = reason_of(readers.read("large.pdf", exponential_pdf(14, 8)))
        assert reason == "needs more than 200 MB of memory to read"
        assert isinstance(readers.read("good.pdf", GOOD), Document)


def test_a_child_that_stops_reading_or_dies_is_replaced() -> None:
    slow = exponential_pdf(9, 10)
    with DocumentReaders(1) as readers, ThreadPoolExecutor(1) as thread:
        assert isinstance(readers.read("good.pdf", GOOD), Document)
        (child,) = readers.children
        assert child._process is not None
        os.kill(child._process.pid, signal.SIGSTOP)
        set_deadline(readers, 0.5)
        assert "took longer" in reason_of(readers.read("large.csv", b"x" * 50_000_000))
        set_deadline(readers, HANG_SECONDS)
        assert isinstance(readers.read("good.pdf", GOOD), Document)
        process = child._process
        assert process is not None
        reading = thread.submit(readers.read, "slow.pdf", slow)
        wait_for(lambda: child._requests == 2, "the child to be asked for the slow one")
        process.kill()
        assert "crash" in reason_of(reading.result(HANG_SECONDS))
        assert isinstance(readers.read("good.pdf", GOOD), Document)


def test_closing_ends_what_is_being_read_and_leaves_no_process() -> None:
    slow = exponential_pdf(9, 10)
    readers = DocumentReaders(1)
    assert isinstance(readers.read("good.pdf", GOOD), Document)
    process = readers.children[0]._process
    assert process is not None
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(readers.read, "slow.pdf", slow)
        wait_for(lambda: readers.children[0]._requests == 2, "the child to be asked for the slow one")
        readers.close()
        assert isinstance(waiting.result(HANG_SECONDS), Unreadable)
    assert process.returncode is not None


def probe(code: str, *, confined: bool = True) -> str:
    """What a piece of Python prints when it is run as confined as a child is."""
    before = "from satchel.indexing.confine import confine; confine(1 << 30)\n" if confined else ""
    command = [sys.executable, "-P", "-c", before + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False, env=unmeasured())
    return done.stdout + done.stderr


PYTHON_CALLS = "import socket; socket.create_connection(('127.0.0.1', PORT)).close()"
PROGRAM_CALLS = "import subprocess; subprocess.run(['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/PORT'])"
RUST_CALLS = """
import asyncio
from xberg import _xberg as x
web = x.UrlExtractionConfig(crawl=x.CrawlConfig(ssrf=x.SsrfPolicy(deny_private=False)))
async def call():
    given = x.ExtractInput.from_uri("http://127.0.0.1:PORT/a.html")
    return await asyncio.wait_for(x.extract(input=given, config=x.ExtractionConfig(url=web)), 60)
asyncio.run(call())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own guard is Linux's")
@pytest.mark.parametrize("code", [PYTHON_CALLS, PROGRAM_CALLS, RUST_CALLS], ids=["python", "program", "rust"])
def test_a_child_cannot_reach_the_network_whatever_its_language(code: str) -> None:
    callers: list[Any] = []

    class Called(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            callers.append(self.client_address)

    with socketserver.TCPServer(("127.0.0.1", 0), Called) as server, ThreadPoolExecutor(1) as thread:
        thread.submit(server.serve_forever, 0.01)
        try:
            code = code.replace("PORT", str(server.server_address[1]))
            probe(code)
            assert callers == []
            probe(code, confined=False)
            wait_for(lambda: callers, "a call of the one that is not confined")
        finally:
            server.shutdown()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own guard is Linux's")
def test_it_is_told_whether_the_kernel_guards_the_children() -> None:
    with DocumentReaders(1) as readers:
        assert readers.is_confined()
    told = "from satchel.indexing import confine as c; c._filter_calls = lambda: None; print(c.confine(1 << 30))"
    assert probe(told, confined=False).strip() == "False"


def descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from descendants(int(child))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own guard is Linux's")
@pytest.mark.parametrize("killed", ["the reader", "the one that started it"])
def test_no_recognizing_outlives_its_reader(tmp_path: Path, killed: str) -> None:
    engine = tmp_path / "tesseract"
    engine.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    engine.chmod(0o755)
    scan = tmp_path / "scan.png"
    scan.write_bytes(png_of_text(["words"], size=(700, 200)))
    code = (
        "from pathlib import Path; from satchel.indexing.documents.readers import DocumentReaders\n"
        f"with DocumentReaders(1) as readers: print(readers.read('scan.png', Path({str(scan)!r}).read_bytes()))"
    )
    surroundings = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    main = subprocess.Popen([sys.executable, "-P", "-c", code], env=surroundings, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(list(descendants(main.pid))) == 2, "the reader and its recognizing")
        reader, recognizing = descendants(main.pid)
        wait_for(lambda: b"tail" in Path(f"/proc/{recognizing}/cmdline").read_bytes(), "the recognizing")
        os.kill(reader if killed == "the reader" else main.pid, signal.SIGKILL)
        wait_for(lambda: not is_running(recognizing), "the recognizing's end")
        wait_for(lambda: not is_running(reader), "the reader's end")
        if killed == "the reader":
            assert "crash" in main.communicate(timeout=HANG_SECONDS)[0]
    finally:
        main.kill()
        main.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own guard is Linux's")
def test_a_child_cannot_write_move_or_remove_files(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    for deed in (
        f"open({str(tmp_path / 'new')!r}, 'w')",
        f"open({str(kept)!r}, 'a')",
        f"__import__('os').unlink({str(kept)!r})",
        f"__import__('os').rename({str(kept)!r}, {str(tmp_path / 'other')!r})",
        f"__import__('os').mkdir({str(tmp_path / 'folder')!r})",
        f"__import__('os').truncate({str(kept)!r}, 0)",
        f"__import__('os').symlink('/', {str(tmp_path / 'link')!r})",
        f"__import__('os').chmod({str(kept)!r}, 0)",
    ):
        assert "PermissionError" in probe(deed), deed
    shell = (
        f"import subprocess; print(subprocess.run(['sh', '-c', 'echo x > {tmp_path}/new; rm -f {kept}']).returncode)"
    )
    assert probe(shell).splitlines()[-1] != "0"
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]
    assert kept.read_text() == "as it was"
    assert kept.stat().st_mode & 0o600


def test_children_are_told_nothing_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy")
    with DocumentReaders(1) as readers:
        assert isinstance(readers.read("good.pdf", GOOD), Document)
        process = readers.children[0]._process
        assert process is not None
        told = Path(f"/proc/{process.pid}/environ").read_bytes()
    assert b"secret" not in told


def test_a_forged_answer_is_refused_and_runs_nothing() -> None:
    document = Document(
        (Page(1, "text", "name", ("Figure 1: x",), "seen", 2, True),), "title", (Bookmark(1, "b", 1),), ("n",)
    )
    answer = encode(Answer(document=DocumentMessage(*document)))
    opened = decode(answer, Answer).document
    assert opened is not None
    assert opened.document() == document
    for end in range(len(answer)):
        with pytest.raises(Garbled):
            decode(answer[:end], Answer)
    dice = random.Random(11)
    for _ in range(3000):
        forged = bytearray(answer)
        for _ in range(dice.randrange(1, 4)):
            forged[dice.randrange(len(forged))] = dice.randrange(256)
        try:
            decode(bytes(forged), Answer)
        except Garbled:
            continue


def test_numbers_of_a_forged_answer_are_brought_into_the_range_of_the_stores() -> None:
    page = Page(-1, "text", pictures=(1 << 64) - 1)
    message = DocumentMessage((page,), "", (Bookmark(-(1 << 63), "b", 1 << 40),), ())
    opened = decode(encode(Answer(document=message)), Answer).document
    assert opened is not None
    assert opened.document() == Document(
        pages=(Page(0, "text", pictures=0xFFFFFFFF),), bookmarks=(Bookmark(0, "b", 0xFFFFFFFF),)
    )


def test_an_answer_takes_no_more_memory_than_it_has_bytes_for() -> None:
    """Lists that claim more entries than there are bytes, more pages than a document has, and nesting without end."""
    claims = b"\xdd\xff\xff\xff\xff"
    pages = encode(Answer(document=DocumentMessage((Page(1, ""),) * 100_001, "", (), ())))
    for forged in (b"\0\x93\x94" + claims, b"\0\x93\xc0\xc6\xff\xff\xff\xff", b"\0" + b"\x91" * 100_000, pages):
        with pytest.raises(Garbled):
            decode(forged, Answer)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (FRAME_HEADER.pack(1 << 40), "contains too much text"),
        (frame(b"cos\nsyste"), "invalid answer"),
        (frame(encode(Answer(picture=b"abc"))), "invalid answer"),
        (frame(b""), "invalid answer"),
        (b"", "made its reader exit"),
    ],
)
def test_a_child_taken_over_by_a_file_cannot_deceive_its_parent(answer: bytes, reason: str) -> None:
    with DocumentReaders(1, deadline=5) as readers:
        assert isinstance(readers.read("good.pdf", GOOD), Document)
        (child,) = readers.children
        child.stop()
        # Whoever answers stays until it is ended: gone before the request was sent whole, it would have "ended".
        stays = "; sys.stdin.buffer.read()" if answer else ""
        forger = f"import os, sys; sys.stdin.buffer.read(20); os.write(1, {answer!r}){stays}"
        child._process = subprocess.Popen(
            [sys.executable, "-c", forger], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert reason in reason_of(readers.read("a.pdf", GOOD))
        assert isinstance(readers.read("good.pdf", GOOD), Document)
