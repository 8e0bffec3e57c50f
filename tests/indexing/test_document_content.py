"""What office files and web pages say: charts as tables, tables apart, equations in place, content without menus."""

from __future__ import annotations

import io
from typing import Any

import docx
import openpyxl
import pytest
from docx.oxml import parse_xml
from hypothesis import given
from hypothesis import strategies as st
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from satchel.indexing.documents.paging import parted_tables
from satchel.indexing.documents.read_document import read_document
from satchel.indexing.documents.recognition import ReadOptions
from satchel.indexing.documents.web_pages import main_content
from satchel.models.document import Document

EQUATION = (
    '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>{}=</m:t></m:r>'
    "<m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath>"
)


def text_of(name: str, data: bytes) -> str:
    document = read_document(name, data, ReadOptions(ocr=False))
    assert isinstance(document, Document), document
    return "\n\n".join(page.markdown for page in document.pages)


def saved(made: Any) -> bytes:
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


# -- charts


def slides(*charts: tuple[Any, Any]) -> bytes:
    shown = Presentation()
    for kind, data in charts:
        slide = shown.slides.add_slide(shown.slide_layouts[5])
        slide.shapes.title.text = "Boats in the harbour"
        slide.shapes.add_chart(kind, Inches(1), Inches(2), Inches(6), Inches(4), data)
    return saved(shown)


def test_a_chart_is_a_table_in_which_each_number_has_its_names() -> None:
    data = CategoryChartData()
    data.categories = ["Spring", "Summer | early"]
    data.add_series("East", (19.25, 0.1 + 0.2))
    data.add_series("West", (22, 15))
    text = text_of("a.pptx", slides((XL_CHART_TYPE.COLUMN_CLUSTERED, data)))
    assert "|  | East | West |\n| --- | --- | --- |\n| Spring | 19.25 | 22 |" in text
    assert "| Summer \\| early | 0.3 | 15 |" in text
    assert "East, Spring" not in text


def test_points_of_a_scatter_chart_keep_their_pairs() -> None:
    data = XyChartData()
    series = data.add_series("Depth")
    for x, y in ((1, 10.5), (2, 20.25)):
        series.add_data_point(x, y)
    text = text_of("a.pptx", slides((XL_CHART_TYPE.XY_SCATTER, data)))
    assert "| 1 | 10.5 |\n| 2 | 20.25 |" in text


# -- sheets


def test_tables_of_a_sheet_stand_apart_without_the_columns_of_the_others() -> None:
    book = openpyxl.Workbook()
    for row in (["Item", "Price"], ["Rope", 4], [], [None, None, None, "Month", "Boats"], [None, None, None, "May", 3]):
        book.active.append(row)
    text = text_of("a.xlsx", saved(book))
    assert "| Item | Price |\n| --- | --- |\n| Rope | 4 |" in text
    assert "| Month | Boats |\n| --- | --- |\n| May | 3 |" in text


@pytest.mark.parametrize(
    ("rows", "tables"),
    [
        ("| a | b |\n|---|---|\n| x | 1 |\n|  |  |\n| y | 2 |", 1),  # a gap within a table
        ("| a | b |\n|---|---|\n| x | 1 |\n|  |  |\n| c | d |\n| y | 2 |", 2),  # a header of its own
        ("| a | b |\n|---|---|\n| x | 1 |\n|  |  |\n| Total costs |  |\n| y | 2 |", 2),  # a title of its own
    ],
)
def test_a_gap_parts_tables_only_where_another_one_begins(rows: str, tables: int) -> None:
    parted = parted_tables(rows)
    assert sum(set(line) <= set("| -") and "-" in line for line in parted.split("\n")) == tables
    assert "|  |  |" not in parted


@given(st.lists(st.lists(st.sampled_from(["", "a", "7", "total"]), min_size=3, max_size=3), min_size=2, max_size=9))
def test_no_cell_is_lost_where_tables_are_parted(rows: list[list[str]]) -> None:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    text = "\n".join([lines[0], "| --- | --- | --- |", *lines[1:]])
    cells = sorted(cell for row in rows for cell in row if cell)
    found = parted_tables(text).replace("|", " ").replace("---", " ").split()
    assert sorted(found) == cells


# -- equations


def test_an_equation_stays_in_its_sentence() -> None:
    made = docx.Document()
    made.add_heading("Tides", 1)
    paragraph = made.add_paragraph("The height ")
    paragraph._p.append(parse_xml(EQUATION.format("h")))
    paragraph.add_run(" follows from the width ")
    paragraph._p.append(parse_xml(EQUATION.format("w")))
    paragraph.add_run(" of the gate.")
    made.add_paragraph("Another paragraph.")
    text = text_of("a.docx", saved(made))
    assert r"The height $h=\frac{a}{b}$ follows from the width $w=\frac{a}{b}$ of the gate." in text
    assert "$$" not in text
    assert "⟦" not in text


def test_an_equation_of_its_own_stays_displayed() -> None:
    made = docx.Document()
    paragraph = made.add_paragraph()
    para = '<m:oMathPara xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">{}</m:oMathPara>'
    paragraph._p.append(parse_xml(para.format(EQUATION.format("h"))))
    made.add_paragraph("A sentence without one.")
    text = text_of("a.docx", saved(made))
    assert r"$$h=\frac{a}{b}$$" in text
    assert "⟦" not in text


# -- web pages

PAGE = """<!doctype html><html><head><title>Mooring guide</title></head><body>
<header><nav><ul><li><a href=/a>Home</a><li><a href=/b>Products</a></ul></nav></header>
<div class="cookie-banner">We use cookies. <button>Accept all</button></div>
<{main}><h1>Mooring a ship</h1><p>A ship is moored with four ropes.<aside>Mind the wind.</aside>
<footer>Measured in May.</footer></{main}>
<aside><ul><li><a href=/1>Ten best anchors</a></ul></aside>
<footer><p>2026 Harbour Ltd. <a href=/p>Privacy</a></footer></body></html>"""


@pytest.mark.parametrize("main", ["main", "article", "div"])
def test_menus_banners_and_footers_are_left_out(main: str) -> None:
    text = text_of("a.html", PAGE.replace("{main}", main).encode())
    assert "# Mooring a ship" in text
    assert "four ropes" in text
    for around in ("Products", "cookies", "Ten best anchors", "Privacy"):
        assert around not in text
    if main != "div":  # what belongs to an article stays
        assert "Mind the wind" in text
        assert "Measured in May" in text


@pytest.mark.parametrize(
    "page",
    [
        "<p>No structure, no loss.",
        '<body><div class="footer"><p>Everything is in a box with the name of a footer.</div>',
        "<body><nav><ul><li>Only</li><li>a</li><li>table of contents</li></ul></nav><p>End</body>",
        "<body><main></main><p>The content is elsewhere: the element of the name is empty.</body>",
        "<div>" * 2_000 + "<nav>deep</nav><p>text",
    ],
)
def test_a_page_that_would_lose_too_much_is_kept_whole(page: str) -> None:
    assert main_content(page) == page


@given(
    st.lists(
        st.sampled_from(["<nav>", "</nav>", "<main>", "</main>", "<p>", "<li>", "x", "</div>", "<!--", "<", "<body>"])
    )
)
def test_no_page_stops_the_reader(parts: list[str]) -> None:
    page = "".join(parts)
    left = iter(page)
    assert all(char in left for char in main_content(page))  # only cut, nothing added or moved
