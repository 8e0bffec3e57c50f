"""Documents are read page by page: in reading order, under the right numbers, with nothing made up."""

from __future__ import annotations

import io
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from satchel.indexing.documents.paging import cut_tables, into_pages
from satchel.indexing.documents.pdf import without_furniture
from satchel.indexing.documents.pictures import render_page
from satchel.indexing.documents.read_document import is_document, kind_of, read_document
from satchel.indexing.documents.readers import DocumentReaders
from satchel.indexing.documents.recognition import Line, ReadOptions, engine_named, in_reading_order, with_labels
from satchel.indexing.documents.tidy import captions_in
from satchel.models.document import Bookmark, Document, Unreadable
from satchel.models.files import DOCUMENT_KINDS, PageUnit, document_suffixes, page_unit, page_words
from tests.support.documents import (
    LINES,
    bar_chart_picture,
    chart_picture,
    docx_of,
    encrypted_pdf,
    epub_of,
    form_pdf,
    illustrated_pdf,
    noted_docx,
    odf_of,
    pdf_of_lines,
    picture_of_text,
    png_of_text,
    pptx_of,
    prose,
    report_pdf,
    saved,
    scanned_pdf,
    strips_pdf,
    text_pdf,
    turned_pdf,
    two_column_pdf,
    vector_chart_pdf,
    xlsx_of,
)

PLAIN = ReadOptions()
CHART = {"Whales counted per year", "Orcinus orca", "Bergen Tromso Narvik Lofoten", "Number of whales"}
NEEDS_TESSERACT = pytest.mark.skipif(not shutil.which("tesseract"), reason="scripts/system.sh could not install it")
SCAN = ("The harbour master counted", "seventeen grey whales", "before the fog came in.")


def read(name: str, data: bytes, options: ReadOptions = PLAIN) -> Document:
    document = read_document(name, data, options)
    assert isinstance(document, Document), document
    return document


def markdown_of(document: Document) -> str:
    return "\n\n".join(page.markdown for page in document.pages)


def test_two_columns_are_read_one_after_the_other() -> None:
    left = [f"left {i}, the river carries its stones down" for i in range(25)]
    right = [f"right {i}, the wind carries its sand along" for i in range(25)]
    text = read("paper.pdf", two_column_pdf(left, right, "On rivers and winds")).pages[0].markdown
    places = [text.index(words) for words in ["On rivers", *(line[:9] for line in left + right)]]
    assert places == sorted(places)


def test_every_physical_page_is_there_under_its_own_number() -> None:
    pages = [[f"Mark {i} stands on this sheet and nowhere else."] if i % 3 else [] for i in range(1, 12)]
    document = read("numbers.pdf", pdf_of_lines(pages))
    assert [page.number for page in document.pages] == list(range(1, 12))
    for page in document.pages:
        assert (f"Mark {page.number} stands" in page.markdown) == bool(page.number % 3)


def test_headings_tables_captions_pictures_and_bookmarks_of_a_report() -> None:
    document = read("report.pdf", report_pdf())
    first, second = document.pages
    assert "# Results of operations" in first.markdown
    assert "| Q2 | 1,350 | 910 |" in first.markdown
    assert first.captions == ("Table 1. Revenue and cost by quarter",)
    assert second.captions == ("Figure 2: Cash at the end of each year",)
    assert (first.pictures, second.pictures) == (0, 1)
    assert document.title == "Annual report"
    assert document.bookmarks == (Bookmark(1, "Results of operations", 1), Bookmark(2, "Liquidity", 2))


def test_captions_go_on_over_their_lines_and_no_further() -> None:
    lines = [
        "Figure 1: The number of grey whales that the harbour master coun-",
        "ted in the bay before the fog came in, by month",
        "",
        "Nobody objected to the proposal, although several members asked for it.",
        "",
        "Table 2. Stones of the bridge over the river in the long valley of",
        "Upper Lofoten",
        "",
        "Figure 3: Short",
        "The text goes on after a caption that ends where its line does.",
        "Table 4: Whole.",
        "and a line that begins small.",
    ]
    (page,) = read("captions.pdf", pdf_of_lines([lines])).pages
    assert page.captions == (
        "Figure 1: The number of grey whales that the harbour master counted in the bay before the fog came in, "
        "by month",
        "Table 2. Stones of the bridge over the river in the long valley of Upper Lofoten",
        "Figure 3: Short",
        "Table 4: Whole.",
    )
    columns = "Figure 2. Fish of the     the right column\nnorthern ports            Table 3: Its costs\n\nx"
    assert captions_in(columns) == ("Figure 2. Fish of the northern ports", "Table 3: Its costs")
    table = "Table 1. Towns\ntown people\n"
    assert captions_in(table, "Table 1. Towns\n\n| town | people |") == ("Table 1. Towns",)
    assert captions_in("Figure 1: a\n" + "b c d\n" * 9) == ("Figure 1: a b c d b c d",)
    assert captions_in("**Figure\xa01: Fish**\n- a point") == ("Figure\xa01: Fish",)


def test_running_heads_and_page_numbers_go_and_the_text_stays() -> None:
    document = read("report.pdf", text_pdf(12))
    heads = [page.number for page in document.pages if "Annual report of the bridge" in page.markdown]
    assert heads == [1]
    for page in document.pages:
        assert page.markdown.splitlines()[-1] != str(page.number)
        assert f" {page.number}/0" in page.markdown
        assert f" {page.number}/39" in page.markdown


def test_what_only_looks_like_furniture_stays() -> None:
    pages = [f"Item {i}\n\nThe text of item {i} is unlike any other.\n\nTotal {i * 37 + 5}" for i in range(8)]
    pages[3] = "7\n\nA lonely number above."
    pages[5] = "Item 5\n\n12"
    assert without_furniture(pages)[3] == pages[3]
    assert without_furniture(pages)[5].endswith("12")
    assert all(f"Total {i * 37 + 5}" in page for i, page in enumerate(without_furniture(pages)) if i not in (3, 5))


def test_numbered_running_heads_of_a_chapter_are_kept_where_they_stand_first() -> None:
    pages = [f"Chapter 4: Functions {i + 10}\n\nThe body of page {i} says this." for i in range(6)]
    cleaned = without_furniture(pages)
    assert cleaned[0] == pages[0]
    assert all(page.startswith("The body") for page in cleaned[1:])


def test_words_broken_at_line_ends_are_whole_again() -> None:
    lines = ["The govern-", "ment has a long-term view, and its long-", "term view is pub-", "lic."]
    text = markdown_of(read("words.pdf", pdf_of_lines([lines])))
    assert text == "The government has a long-term view, and its long-term view is public."


def test_words_that_are_still_broken_are_joined_when_the_document_has_them_whole() -> None:
    pages = [
        ["NOT_FOUND if ELE- MENT is NULL, a long- term view of pre- and post-war times."],
        ["An ELEMENT, long-term."],
    ]
    text = markdown_of(read("words.pdf", pdf_of_lines(pages)))
    assert "if ELEMENT is NULL, a long-term view of pre- and post-war times." in text


def test_a_pdf_with_an_empty_password_is_read_and_one_with_a_password_is_not() -> None:
    assert "secret of the vault" in markdown_of(read("open.pdf", encrypted_pdf("")))
    closed = read_document("closed.pdf", encrypted_pdf("hunter2"), ReadOptions())
    assert isinstance(closed, Unreadable)
    assert closed.reason.startswith("is encrypted")


def test_scanned_pages_are_recognized() -> None:
    document = read("scan.pdf", scanned_pdf(SCAN, ()))
    scan, empty = document.pages
    assert scan.is_recognized
    assert " ".join(scan.markdown.split()) == " ".join(SCAN)
    assert (empty.markdown, empty.is_recognized, empty.pictures) == ("", False, 0)
    assert document.notes == ()


@pytest.mark.parametrize(
    "engine", [pytest.param("tesseract", marks=NEEDS_TESSERACT), pytest.param("rapidocr", marks=pytest.mark.slow)]
)
def test_both_engines_read_prose_and_the_labels_of_charts(engine: str) -> None:
    assert engine_named(engine) is not None, "both engines are part of the development install"
    options = ReadOptions(engine=engine)
    (page,) = read("sign.png", png_of_text(["Ferry leaves at seven"], size=(700, 200)), options).pages
    assert page.markdown == "Ferry leaves at seven"
    (page,) = read("whales.pdf", illustrated_pdf(1, [chart_picture()]), options).pages
    assert set(page.seen.split("\n")) == CHART


def test_what_is_written_in_a_picture_is_seen_and_what_the_page_says_anyhow_is_not() -> None:
    first, second = read("whales.pdf", illustrated_pdf(2, [chart_picture(LINES[0][:28]), chart_picture()])).pages
    assert set(first.seen.split("\n")) == CHART - {"Whales counted per year"}
    assert set(second.seen.split("\n")) == CHART
    assert not any(page.is_recognized or "Orcinus" in page.markdown for page in (first, second))


def test_labels_of_a_chart_stay_though_the_text_names_them_too() -> None:
    text = ["Sales of 2021 and 2024 in Q1, Q2, Q3 and Q4 were 12.6, 9.9, 14.2 and 17.3.", prose(1, 1)[:70]]
    (page,) = read("sales.pdf", illustrated_pdf(1, [bar_chart_picture()], text=text)).pages
    assert set(page.seen.split("\n")) >= {"12.6", "9.9", "14.2", "17.3", "Q1 Q2 Q3 Q4"}


def test_labels_that_are_text_over_a_picture_are_not_told_twice() -> None:
    (page,) = read("sales.pdf", illustrated_pdf(1, [bar_chart_picture()], over=["Harbour Nine"])).pages
    assert "Harbour Nine" in page.markdown
    assert "Harbour" not in page.seen
    assert "17.3" in page.seen


@NEEDS_TESSERACT
def test_a_chart_that_is_a_file_of_its_own_keeps_its_values() -> None:
    options = ReadOptions(engine="tesseract")
    (page,) = read("sales.png", saved(bar_chart_picture(), "PNG"), options).pages
    assert page.markdown.split("\n") == ["Sales by quarter", "17.3", "14.2", "12.6", "9.9", "Q1 Q2 Q3 Q4"]


def test_labels_are_added_to_what_was_read_and_not_doubled() -> None:
    def line(top: int, text: str) -> Line:
        return Line(0, top, 100, top + 10, text)

    text = "The ferry leaves at seven o'clock\nand returns at nine"
    same = [line(0, "The ferry leaves at sewen o'clock"), line(20, "and returns at nine")]
    assert with_labels(text, same) == text
    assert with_labels(text, [*same[:1], line(20, "9.9"), line(40, "nine")]) == f"{text}\n\n9.9"
    assert with_labels("Sales", [line(0, "Sales"), line(20, "9.9")]) == "Sales\n9.9"
    assert with_labels("", []) == ""


def test_a_logo_is_read_once_and_told_where_it_stands_first() -> None:
    asked: list[None] = []
    document = read_document(
        "logo.pdf", illustrated_pdf(20, [chart_picture("Harbour & Sons")]), PLAIN, lambda: asked.append(None)
    )
    assert isinstance(document, Document)
    assert "Harbour & Sons" in document.pages[0].seen
    assert not any(page.seen for page in document.pages[1:])
    assert len(asked) == 2, "told before and after one picture"


def test_pictures_are_read_until_their_own_time_is_used_up() -> None:
    charts = [chart_picture(f"Whales of {year}") for year in ("spring", "summer", "autumn")]
    document = read("whales.pdf", illustrated_pdf(3, charts), ReadOptions(picture_seconds=0.01))
    assert [bool(page.seen) for page in document.pages] == [True, False, False]
    assert document.notes == ("2 of its pictures were not read: reading them took too long",)


def test_pictures_are_left_alone_without_an_engine_or_when_nobody_wants_them_read() -> None:
    data = illustrated_pdf(3, [chart_picture()])
    off = read("whales.pdf", data, ReadOptions(ocr=False))
    assert (off.notes, [page.seen for page in off.pages]) == ((), [""] * 3)
    without = read("whales.pdf", data, ReadOptions(engine="none"))
    assert without.notes == (
        "has pictures that may contain text; install tesseract-ocr or Satchel's extra `ocr` to read them",
    )
    assert [page.pictures for page in without.pages] == [1] * 3
    assert read("text.pdf", text_pdf(1), ReadOptions(engine="none")).notes == ()


def test_small_pictures_and_paper_under_text_are_not_read() -> None:
    small = illustrated_pdf(1, [chart_picture()], box=(72, 100, 90, 50))
    coarse = illustrated_pdf(1, [chart_picture().resize((180, 112))])
    paper = illustrated_pdf(1, [chart_picture()], box=(0, 0, 595, 842))
    for data in (small, coarse, paper):
        document = read("whales.pdf", data, ReadOptions(engine="none"))
        assert (document.notes, document.pages[0].pictures) == ((), 1)


def test_pictures_in_strips_in_forms_and_on_turned_pages_are_found_where_they_are_shown() -> None:
    for data in (strips_pdf(chart_picture(), 5), form_pdf(chart_picture()), turned_pdf(chart_picture())):
        (page,) = read("whales.pdf", data).pages
        assert set(page.seen.split("\n")) == CHART


def test_the_labels_of_a_drawn_chart_are_text() -> None:
    (page,) = read("fish.pdf", vector_chart_pdf()).pages
    for label in ("Catch by species", "Herring", "Mackerel", "Halibut", "Landed catch", "Export quota"):
        assert label in page.markdown
    assert (page.seen, page.pictures) == ("", 0)


def test_pictures_in_office_files_and_books_are_seen_on_their_pages() -> None:
    chart = saved(chart_picture(), "PNG")
    files = {
        "a.docx": docx_of([(1, "Rivers", prose(1, 12)), (1, "Whales", prose(2, 3))], picture=chart),
        "a.pptx": pptx_of([("Rivers", ["flow"], ""), ("Whales", ["sing"], "")], picture=chart),
        "a.epub": epub_of([("Rivers", prose(1, 3)), ("Whales", prose(2, 3))], picture=chart),
    }
    for name, data in files.items():
        document = read(name, data)
        assert [page.seen for page in document.pages[:-1]] == [""] * (len(document.pages) - 1), name
        assert len(document.pages) > 1
        last = document.pages[-1]
        assert (set(last.seen.split("\n")), last.pictures, last.name) == (CHART, 1, "Whales"), name
        without = read(name, data, ReadOptions(engine="none"))
        assert "install tesseract-ocr" in without.notes[0]
        assert read(name, data, ReadOptions(ocr=False)).notes == ()


def test_slides_that_were_moved_are_numbered_as_they_are_shown() -> None:
    show = pptx_of([(f"Slide {i}", ["point"], "") for i in range(12)], order=[11, 3, 0, *range(4, 11), 1])
    pages = read("talk.pptx", show).pages
    assert [page.name for page in pages] == [f"Slide {i}" for i in (11, 3, 0, *range(4, 11), 1)]
    assert [page.number for page in pages] == list(range(1, 12))


def test_a_scan_without_an_engine_says_what_to_install() -> None:
    document = read("scan.pdf", scanned_pdf(SCAN), ReadOptions(engine="none"))
    assert document.pages[0].markdown == ""
    assert document.notes == ("is a scan; install tesseract-ocr or Satchel's extra `ocr` to read it",)


def test_recognizing_ends_when_its_time_is_used_up() -> None:
    document = read("scan.pdf", scanned_pdf(SCAN, SCAN, SCAN), ReadOptions(ocr_seconds=0.01))
    assert [page.is_recognized for page in document.pages] == [True, False, False]
    assert document.notes == ("2 scanned pages were left out: recognizing them took too long",)


@NEEDS_TESSERACT
@pytest.mark.parametrize("languages", ["qqq", "eng+chi_qqq"])
def test_a_language_that_tesseract_lacks_is_named_and_the_others_are_used(languages: str) -> None:
    options = ReadOptions(engine="tesseract", languages=languages)
    document = read("scan.png", png_of_text(SCAN, size=(700, 300)), options)
    lacking = languages.removeprefix("eng+")
    package = f"tesseract-ocr-{lacking.replace('_', '-')}"
    assert document.notes == (
        f"its pictures were read without {lacking}, which Tesseract lacks: apt install {package}",
    )
    assert " ".join(document.pages[0].markdown.split()) == " ".join(SCAN)
    assert read("text.pdf", text_pdf(1), options).notes == ()


def test_recognized_lines_are_put_in_columns() -> None:
    title = Line(100, 10, 900, 40, "A title across both of the columns")
    left = [Line(50, 60 + 20 * i, 480, 75 + 20 * i, f"left line number {i} of the text") for i in range(6)]
    right = [Line(520, 62 + 20 * i, 950, 77 + 20 * i, f"right line number {i} of the text") for i in range(6)]
    mixed = [line for pair in zip(right, left, strict=True) for line in pair]
    rows = [row for part in in_reading_order([*mixed, title]) for row in part]
    assert rows == [line.text for line in (title, *left, *right)]


def test_recognized_tables_stay_in_rows() -> None:
    cells = [Line(50 + 400 * x, 20 * y, 90 + 400 * x, 15 + 20 * y, f"c{y}{x}") for y in range(6) for x in range(2)]
    assert in_reading_order(cells) == [[f"c{y}0 c{y}1" for y in range(6)]]


def test_a_docx_is_cut_at_its_headings() -> None:
    long = "\n\n".join(prose(i, 8) for i in range(6))
    parts = [(1, "Rivers", prose(1, 3)), (2, "Floods", long), (2, "Droughts", prose(9, 10)), (1, "Roads", prose(3, 3))]
    document = read("handbook.docx", docx_of(parts, table=[["Name", "Year"], ["Bridge", "1904"]]))
    assert document.title == "Handbook"
    names = [page.name for page in document.pages]
    assert list(dict.fromkeys(names)) == ["Rivers", "Rivers > Floods", "Rivers > Droughts", "Roads"]
    assert "| Bridge | 1904 |" in document.pages[-1].markdown
    assert all(len(page.markdown) <= 3200 for page in document.pages)
    assert all(prose(i, 8) in markdown_of(document) for i in range(6))


def test_slides_are_pages_with_their_notes() -> None:
    show = pptx_of([("Plans", ["build a bridge", "paint it"], "Mention the ferry."), ("Money", ["none yet"], "")])
    first, second = read("talk.pptx", show).pages
    assert (first.number, first.name, second.number, second.name) == (1, "Plans", 2, "Money")
    assert "paint it" in first.markdown
    assert "Mention the ferry." in first.markdown
    assert "none yet" in second.markdown


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_notes_are_those_of_their_slide(order: tuple[int, ...]) -> None:
    slides = [("One", ["a"], ""), ("Two", ["b"], ""), ("Three", ["c"], "Note for three\nand more.")]
    pages = read("talk.pptx", pptx_of(slides, order=order)).pages
    assert [page.name for page in pages] == [slides[i][0] for i in order]
    for page in pages:
        assert ("Speaker notes: Note for three\nand more." in page.markdown) == (page.name == "Three")
        assert page.markdown.count("Speaker notes") == (page.name == "Three")


def test_a_title_stands_above_the_headings() -> None:
    parts = [(0, "The whole book", prose(1, 20)), (1, "Rivers", prose(2, 20)), (2, "Floods", prose(3, 20)),
             (1, "Roads", prose(4, 20))]  # fmt: skip
    pages = read("book.docx", docx_of(parts)).pages
    assert [(page.name, page.markdown.split("\n")[0]) for page in pages] == [
        ("The whole book", "# The whole book"),
        ("The whole book > Rivers", "## Rivers"),
        ("The whole book > Rivers > Floods", "### Floods"),
        ("The whole book > Roads", "## Roads"),
    ]


def test_marks_of_comments_and_notes_do_not_break_sentences() -> None:
    (page,) = read("a.docx", noted_docx(["Old bridge{2}s stand{3} long.", "Word{4}s. As [cmt:7] says."])).pages
    assert page.markdown == (
        "Old bridges stand long.[^1][^2]\n\nWords. As [cmt:7] says.[^3]\n\nThe ferry was late.\n\n"
        "[^1]: note 2\n\n[^2]: note 3\n\n[^3]: note 4\n\nComment: Check the ferry."
    )


def test_sheets_are_pages_and_every_piece_of_a_table_has_its_header() -> None:
    rows: list[list[object]] = [["town", "people"], *([f"town {i}", i * 10] for i in range(50))]
    document = read("census.xlsx", xlsx_of({"Towns": rows, "Nothing": [], "Notes": [["remark"], ["by hand"]]}))
    assert [(page.number, page.name) for page in document.pages] == [(1, "Towns"), (2, "Nothing"), (3, "Notes")]
    name, *pieces = document.pages[0].markdown.split("\n\n")
    assert name == "## Towns"
    assert [piece.splitlines()[0] for piece in pieces] == ["| town | people |"] * 3
    assert [len(piece.splitlines()) for piece in pieces] == [22, 22, 12]
    assert document.pages[1].markdown == ""
    assert document.pages[2].markdown == "## Notes\n\n| remark |\n| --- |\n| by hand |"


def test_the_name_of_a_sheet_is_text_whatever_stands_in_it() -> None:
    (page,) = read("a.xlsx", xlsx_of({"<b> max_len _x_ C#": [["a"], [1]]})).pages
    assert (page.name, page.markdown.split("\n")[0]) == ("<b> max_len _x_ C#", r"## \<b> max_len \_x\_ C\#")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b'name,n\n"x, y",1\nz|w,2\n'),
        ("b.csv", b'name;n\r\n"x, y";1\r\nz|w;2\r\n'),
        ("c.tsv", b"name\tn\nx, y\t1\nz|w\t2\n"),
        ("d.csv", "name,n\n\"x, y\",1\nz|w,2\n".encode("utf-16")),
        ("e.csv", b'sep=;\r\nname;;n\r\n"x,\r\ny";;1\r\n"z|w";;2\r\n'),
    ],
)  # fmt: skip
def test_plain_tables(name: str, data: bytes) -> None:
    (page,) = read(name, data).pages
    assert page.markdown == "| name | n |\n| --- | --- |\n| x, y | 1 |\n| z\\|w | 2 |"


def test_plain_tables_in_odd_clothes() -> None:
    def table(data: bytes) -> str:
        return read("a.csv", data).pages[0].markdown

    assert table(b'a;"b"\r\n"x;y";"one\ntwo ""three"""\r\n') == '| a | b |\n| --- | --- |\n| x;y | one two "three" |'
    assert table("Städte,n\nKöln,1\n".encode("latin-1")) == "| Städte | n |\n| --- | --- |\n| Köln | 1 |"
    assert table(b"1,5;2,5\n3,5;4,5\n") == "| 1,5 | 2,5 |\n| --- | --- |\n| 3,5 | 4,5 |"
    assert table(b"Of 2024\na,b\n1,2\n") == "| Of 2024 |  |\n| --- | --- |\n| a | b |\n| 1 | 2 |"


def test_sheets_with_titles_groups_and_gaps_keep_their_header_over_every_piece() -> None:
    rows: list[list[object]] = [
        ["Catch of 2024"],
        [None, "Landed", None, None, "Sold"],
        ["Port", 2023, 2024, None, 2024],
    ]
    rows += [[f"p{i}|x", i + 0.5, "two\nlines" if i == 3 else i, None, -i] for i in range(25)]
    (page,) = read("catch.xlsx", xlsx_of({"Catch": rows}, merged=["A1:E1", "B2:C2"])).pages
    name, first, second = page.markdown.split("\n\n")
    assert name == "## Catch"
    header = [
        "| Catch of 2024 |  |  |  |", "| --- | --- | --- | --- |", "|  | Landed |  | Sold |",
        "| Port | 2023 | 2024 | 2024 |",
    ]  # fmt: skip
    assert first.split("\n")[:4] == second.split("\n")[:4] == header
    assert first.split("\n")[7] == "| p3\\|x | 3.5 | two lines | -3 |"
    assert second.split("\n")[-1] == "| p24\\|x | 24.5 | 24 | -24 |"


def test_web_pages_are_read_and_templates_are_not() -> None:
    page = (
        b"<!DOCTYPE html><html><head><title>Tides &amp; moons</title><script>bad()</script></head><body><h1>Tides</h1>"
        b"<p>Twice a day.</p><img src='http://example.com/x.png' alt='A tide table'>"
        b"<h2>Moons</h2><p>One.</p></body></html>"
    )
    document = read("tides.html", page)
    assert document.title == "Tides & moons"
    text = markdown_of(document)
    assert "A tide table" in text
    assert "example.com" not in text
    assert "bad()" not in text
    assert document.pages[0].pictures == 1
    assert is_document("site/tides.html", page)
    assert not is_document("site/tides.html", b"<!-- a part --><div>part of {{ a }} page</div>")
    assert not is_document("site/tides.html", b"<html><body>{{ content }}</body></html>")
    assert not is_document("site/tides.html", b"<?php ?><html></html>")


@pytest.mark.parametrize(
    "start", [b"", b"\xef\xbb\xbf\n", b"<!-- saved --> <!-- twice -->\n", b'<?xml version="1.0"?>\n']
)
def test_parts_of_web_pages_are_read_alone(start: bytes) -> None:
    part = start + b"<h1 id='t'>Tides</h1><p>Twice a day.</p><script>bad()</script>"
    assert is_document("kept/tides.html", part)
    (page,) = read("kept/tides.html", part).pages
    assert (page.name, page.markdown) == ("Tides", "# Tides\n\nTwice a day.")
    assert read("tides.xls", b"<table><tr><td>high</td></tr><tr><td>low</td></tr></table>").pages


@pytest.mark.parametrize(
    "text",
    [b"<script>only()</script>", b"<template><p>x</p></template>", b"plain words <p>", b"<pfoo>x", b"<h1><%= t %></h1>",
     b"<!---->" * 500, b"<!-- never closed <p>"],
)  # fmt: skip
def test_what_is_no_part_of_a_page_is_source(text: bytes) -> None:
    assert not is_document("src/x.html", text)


def test_chapters_come_in_the_order_of_the_spine() -> None:
    chapters = [("Arrival", prose(1, 4)), ("Winter", "\n\n".join(prose(i, 9) for i in range(8))), ("Thaw", prose(2, 4))]
    document = read("novel.epub", epub_of(chapters, title="The long winter"))
    assert document.title == "The long winter"
    names = list(dict.fromkeys(page.name for page in document.pages))
    assert names == ["Arrival", "Winter", "Thaw"]
    assert len(document.pages) > 3
    assert [page.number for page in document.pages] == list(range(1, len(document.pages) + 1))


def test_open_document_files_and_rtf() -> None:
    text = read("a.odt", odf_of("text", '<text:h text:outline-level="1">Bees</text:h><text:p>They hum.</text:p>'))
    assert (text.pages[0].name, text.pages[0].markdown) == ("Bees", "# Bees\n\nThey hum.")
    frame = "<draw:frame><draw:text-box><text:p>{1}</text:p></draw:text-box></draw:frame>"
    slide = f"<draw:page draw:name='{{0}}'>{frame}</draw:page>"
    show = read("a.odp", odf_of("presentation", slide.format("one", "First words") + slide.format("two", "Last words")))
    assert [(page.name, page.markdown) for page in show.pages] == [("one", "First words"), ("two", "Last words")]
    cell = "<table:table-cell office:value-type='string'><text:p>{}</text:p></table:table-cell>"
    row = f"<table:table-row>{cell}</table:table-row>"
    table = f"<table:table table:name='Bees'>{row.format('hive')}{row.format('north')}</table:table>"
    (sheet,) = read("a.ods", odf_of("spreadsheet", table)).pages
    assert (sheet.name, sheet.markdown) == ("Bees", "## Bees\n\n| hive |\n| --- |\n| north |")
    rtf = rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0 In the summer, \'e9t\'e9.\par Again.\par}"
    assert read("a.rtf", rtf).pages[0].markdown == "In the summer, été.\n\nAgain."


def test_pages_of_markdown_end_before_headings_and_not_after_them() -> None:
    text = "\n\n".join(f"{'#' * (1 + i % 3)} Part {i}\n\n{prose(i, 5)}" for i in range(40))
    pages = into_pages(text)
    assert "\n\n".join(page.markdown for page in pages) == text
    assert all(len(page.markdown) <= 3000 for page in pages)
    assert all(not page.markdown.splitlines()[-1].startswith("#") for page in pages)
    assert all(page.markdown.startswith("#") for page in pages)
    assert len(pages) < 15
    assert pages[0].name == "Part 0"


def test_code_is_not_cut_at_its_comments_and_long_lists_are_cut_between_lines() -> None:
    code = "# Title\n\n```sh\n# no heading\necho\n\n# nor this\n```"
    (page,) = into_pages(code)
    assert (page.name, page.markdown) == ("Title", code)
    log = "\n".join(f"{i:05} something happened" for i in range(2000))
    pages = into_pages(log)
    assert all(len(one.markdown) <= 3100 for one in pages)
    assert "\n".join(one.markdown for one in pages) == log
    assert into_pages("") == ()


def test_plain_text_and_markdown_files_are_read_too() -> None:
    assert read("notes.md", b"# Notes\n\nBuy milk.").pages[0].name == "Notes"
    assert read("notes.txt", b"Buy milk.\r\nAnd bread.").pages[0].markdown == "Buy milk.\nAnd bread."


def test_short_tables_are_left_as_they_are() -> None:
    table = "before\n\n| a |\n|---|\n" + "\n".join(f"| {i} |" for i in range(20)) + "\n\nafter"
    assert cut_tables(table) == table


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF"])
def test_pictures_are_recognized(form: str) -> None:
    image = picture_of_text(["Ferry leaves at seven"], size=(700, 200))
    suffix = {"JPEG": "jpg", "TIFF": "tif"}.get(form, form.lower())
    (page,) = read(f"sign.{suffix}", saved(image, form)).pages
    assert (page.markdown, page.is_recognized, page.pictures) == ("Ferry leaves at seven", True, 1)


def test_frames_of_a_tiff_are_pages_and_small_or_wordless_pictures_are_empty() -> None:
    frames = [picture_of_text([text], size=(700, 200)) for text in ("First sheet of two", "Second sheet of two")]
    fax = saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    assert [page.markdown for page in read("fax.tiff", fax).pages] == ["First sheet of two", "Second sheet of two"]
    for size in ((40, 300), (300, 300)):
        (page,) = read("icon.png", png_of_text([], size=size)).pages
        assert (page.markdown, page.is_recognized) == ("", False)


def test_transparent_pictures_are_read_on_white() -> None:
    from PIL import Image, ImageOps

    ink = ImageOps.invert(picture_of_text(["Black on nothing"], size=(700, 200)).convert("L"))
    image = Image.merge("RGBA", [Image.new("L", ink.size)] * 3 + [ink])
    assert read("logo.png", saved(image, "PNG")).pages[0].markdown == "Black on nothing"


def test_what_the_bytes_are_decides_over_the_name() -> None:
    assert "secret of the vault" in markdown_of(read("letter.docx", encrypted_pdf("")))
    assert read("table.docx", xlsx_of({"S": [["a"], ["b"]]})).pages[0].name == "S"
    lie = read_document("report.pdf", b"This is but a text.\n", ReadOptions())
    assert lie == Unreadable("does not match its extension: expected PDF, found plain text")


def test_pages_are_rendered_in_the_size_and_form_that_was_asked_for() -> None:
    from PIL import Image

    pdf = report_pdf()
    for form in ("jpeg", "png", "webp"):
        data = render_page(pdf, "report.pdf", 2, width=200, format=form)
        assert isinstance(data, bytes)
        image = Image.open(io.BytesIO(data))
        assert (image.format, image.width) == (form.upper(), 200)
    data = render_page(pdf_of_lines([["x"]]), "report.pdf", 1, dpi=72, format="png")
    assert isinstance(data, bytes)
    assert Image.open(io.BytesIO(data)).size == (595, 842)
    thumb = render_page(png_of_text(["x"], size=(400, 200)), "x.png", 1, width=100)
    assert isinstance(thumb, bytes)
    assert Image.open(io.BytesIO(thumb)).size == (100, 50)
    assert render_page(pdf, "report.pdf", 0) == Unreadable("has no page 0")
    assert render_page(pdf, "report.pdf", 3) == Unreadable("has no page 3")
    assert render_page(b"a,b\n", "x.csv", 1) == Unreadable("has no page pictures: it is a CSV")


def test_children_give_what_reading_here_gives() -> None:
    files = {
        "report.pdf": report_pdf(),
        "talk.pptx": pptx_of([("Plans", ["build"], "a note")]),
        "scan.png": png_of_text(SCAN, size=(700, 300)),
        "whales.pdf": illustrated_pdf(1, [chart_picture()]),
        "census.xlsx": xlsx_of({"Towns": [["town"], ["one"]]}),
        "lie.pdf": b"no pdf",
    }
    with DocumentReaders(2) as readers, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda name: readers.read(name, files[name]), list(files) * 2))
        assert answers == [read_document(name, data, ReadOptions()) for name, data in files.items()] * 2
        picture = readers.render(files["report.pdf"], "report.pdf", 1, width=100, format="png")
        assert picture == render_page(files["report.pdf"], "report.pdf", 1, width=100, format="png")
    with pytest.raises(ValueError, match="closed"):
        readers.read("report.pdf", b"")


# -- kinds of documents


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
