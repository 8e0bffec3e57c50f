"""Pages of PDFs whose layout is contradicted by the places of their letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import pypdfium2
import pytest

from satchel.indexing.documents.page_check import PageFault, _is_vertical, _vertical_text, checked
from satchel.indexing.documents.page_letters import Letter, letters_on, segments_of
from satchel.indexing.documents.pdf import read_pdf
from satchel.indexing.documents.recognition import DocumentSource, ReadOptions, Recognition

ROWS = (("Act", "Begins", "Ends"), ("The Tides", "17:30", "18:15"), ("Low Anchor", "18:30", "19:20"),
        ("Harbor Noise", "19:45", "20:40"), ("Grey Pilots", "21:00", "22:30"))  # fmt: skip


def page_of(draw: Callable[[Any], None], **how: Any) -> Any:
    return pypdfium2.PdfDocument(pdf_of(draw, **how))[0]


def pdf_of(draw: Callable[[Any], None], **how: Any) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    out = BytesIO()
    canvas = Canvas(out, pagesize=(595, 842), invariant=1, **how)
    canvas.setFont("Helvetica", 11)
    draw(canvas)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def read(data: bytes) -> list[str]:
    options = ReadOptions(ocr=False, most_pages=9, read_seconds=20)
    document = read_pdf(DocumentSource("pdf", data, options, Recognition(options, lambda: None)))
    return [page.markdown for page in document.pages] + list(document.notes)


def timetable(canvas: Any) -> None:
    for row, cells in enumerate(ROWS):
        for column, cell in enumerate(cells):
            canvas.drawString(60 + 160 * column, 780 - 16 * row, cell)


def as_markdown(rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---|---|---|", *lines[1:]]) + "\n"


def test_a_table_whose_rows_mix_lines_of_the_page_is_rebuilt() -> None:
    merged = ("The Tides Low Anchor", "17:30 18:30", "18:15 19:20")
    wrong = as_markdown([ROWS[0], merged, *ROWS[3:]])
    right = checked(wrong, page_of(timetable)).markdown
    assert [line.strip("| ").split(" | ") for line in right.strip().split("\n") if "---" not in line] == [
        list(row) for row in ROWS
    ]


def test_a_value_beside_another_row_is_put_back() -> None:
    shifted = [ROWS[0], ("The Tides", "18:30", "18:15"), ("Low Anchor", "17:30", "19:20"), *ROWS[3:]]
    right = checked(as_markdown(shifted), page_of(timetable)).markdown
    assert "| The Tides | 17:30 | 18:15 |" in right


def test_a_right_table_stays_as_it_is() -> None:
    markdown = as_markdown(list(ROWS))
    assert checked(markdown, page_of(timetable)).markdown == markdown


def test_a_cell_of_several_lines_stays_one_cell() -> None:
    def draw(canvas: Any) -> None:
        for y, part, use in (
            (780, "Part", "What it is for"),
            (764, "Winch", "lifts the anchor and"),
            (752, "", "holds it"),
            (736, "Keel", "keeps the ship"),
            (724, "", "from drifting"),
        ):
            canvas.drawString(60, y, part)
            canvas.drawString(220, y, use)

    rows = ("| Winch | lifts the anchor and holds it |", "| Keel | keeps the ship from drifting |")
    markdown = "\n".join(["| Part | What it is for |", "|---|---|", *rows, ""])
    assert checked(markdown, page_of(draw)).markdown == markdown


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_page_is_read_in_the_direction_of_its_text(turn: int) -> None:
    def draw(canvas: Any) -> None:
        canvas.translate(300, 420)
        canvas.rotate(turn)
        for line, text in enumerate(("The bridge opens at nine", "and closes again at ten.")):
            canvas.drawString(-150, -14 * line, text)

    assert checked("opens nine bridge", page_of(draw)).markdown == "The bridge opens at nine\nand closes again at ten."
    assert "The bridge opens at nine" in read(pdf_of(draw))[0]


def test_columns_of_vertical_japanese_are_read_from_right_to_left() -> None:
    columns = ("港の船は朝に出る", "夜には港に帰る")
    printed = [
        Letter(
            letter, 400 - 24 * column, 414 - 24 * column, 700 - 15 * row, 714 - 15 * row, 0, 20 * column + row, False
        )
        for column, text in enumerate(columns)
        for row, letter in enumerate(text)
    ]
    assert _is_vertical(printed)
    assert _vertical_text(printed) == "\n".join(columns)
    assert not _is_vertical(letters("港の船は朝に出る夜には港に帰る"))


def letters(text: str, *, y: float = 700, spaces: str = " ") -> list[Letter]:
    """Letters printed from left to right, ten points each, in the order of the text."""
    found, after_space = [], False
    for at, letter in enumerate(text):
        if letter in spaces:
            after_space = True
            continue
        found.append(Letter(letter, 50 + 6 * at, 56 + 6 * at, y, y + 10, 0, at, after_space))
        after_space = False
    return found


def test_words_from_right_to_left_are_in_reading_order_and_numbers_are_not_turned() -> None:
    printed = "םולש 2026 םלוע"  # as it looks from left to right
    assert [segment.text for segment in segments_of(letters(printed))] == ["עולם 2026 שלום"]


def test_a_word_from_right_to_left_in_an_english_line_is_turned_alone() -> None:
    printed = "The greeting םולש means peace to everybody"
    assert [segment.text for segment in segments_of(letters(printed))] == ["The greeting שלום means peace to everybody"]


@pytest.mark.parametrize(
    ("first", "second", "eaten", "right"),
    [
        ("a part that is FAA-", "approved by the office", "FAAapproved", "FAA-approved"),
        ("it was in the year 19-", "20 that they came", "1920", "19-20"),
        ("then came the revo-", "lution of the winter", "revolution", "revolution"),
    ],
)
def test_a_dash_at_the_end_of_a_line_comes_back(first: str, second: str, eaten: str, right: str) -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, 780, first)
        canvas.drawString(60, 766, second)

    whole = f"{first.rpartition(' ')[0]} {eaten} {second.partition(' ')[2]}"
    assert right in checked(whole, page_of(draw)).markdown


def test_a_page_that_lost_most_of_its_words_becomes_its_lines() -> None:
    def draw(canvas: Any) -> None:
        for line in range(12):
            canvas.drawString(60, 780 - 14 * line, f"Sentence number {line} tells of winch{line} and of keel{line}.")

    found = checked("Sentence number 0 tells of winch0", page_of(draw)).markdown
    assert all(f"winch{line} and of keel{line}" in found for line in range(12))


def test_text_outside_of_the_page_is_not_part_of_it() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, 780, "Inside of the page")
        canvas.drawString(60, 1400, "outside of it")

    page = page_of(draw, cropBox=(0, 0, 595, 842))
    assert "".join(letter.text for letter in letters_on(page, page.get_textpage())) == "Insideofthepage"


def raw_pdf(objects: list[bytes]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


def stream(content: bytes) -> bytes:
    return b"<</Length %d>>stream\n%b\nendstream" % (len(content), content)


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"/Next 8 0 R", b"/Next 7 0 R"), (b"/Next 8 0 R", b"/First 7 0 R/Last 7 0 R/Count 1"), (b"/Next 7 0 R", b"")],
)
def test_bookmarks_in_a_loop_cost_no_page(first: bytes, second: bytes) -> None:
    data = raw_pdf([
        b"<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        stream(b"BT /F 12 Tf 72 700 Td (The harbor opens at nine) Tj ET"),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", b"<</First 7 0 R/Last 8 0 R/Count 2>>",
        b"<</Title(A)/Parent 6 0 R/Dest[3 0 R/Fit]" + first + b">>",
        b"<</Title(B)/Parent 6 0 R/Dest[3 0 R/Fit]" + second + b">>",
    ])  # fmt: skip
    assert read(data) == ["The harbor opens at nine"]


def test_letters_without_a_meaning_are_told() -> None:
    mapping = (
        b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n"
        b"1 beginbfrange <20> <7E> <E020> endbfrange endcmap end"
    )
    data = raw_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        stream(b"BT /F 12 Tf 72 700 Td (The harbor opens at nine) Tj ET"),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>", stream(mapping),
    ])  # fmt: skip
    assert checked("", pypdfium2.PdfDocument(data)[0]).fault is PageFault.UNUSABLE_LETTERS
    assert any("is a scan" in line or "letters" in line for line in read(data)[1:])
