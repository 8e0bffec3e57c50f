"""Make a folder of documents of a waterworks that does not exist.

    pip install reportlab python-docx python-pptx openpyxl pillow
    python examples/documents/make.py FOLDER

An annual report in two columns with a table and a chart, a scanned letter, a contract, slides, a workbook, an e-book, a
web page, a table and a chart as a picture. The same bytes each time, so that what was indexed stays as it is.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

_MADE: Final = datetime(2026, 3, 31, 9, 0)
_MADE_IN_ZIP: Final = (2026, 3, 31, 9, 0, 0)

_REPLACED: Final = (
    "In the old town 14.2 kilometres of cast-iron mains from before 1930 were replaced with ductile iron. The work was "
    "done street by street between March and October, so that no household was without water for more than six hours.",
    "Leakage fell to 11.8 percent of the water put into supply, the lowest since records began. Most of the gain "
    "came from 640 acoustic loggers that listen for leaks at night.",
    "The drought of the summer was the longest in forty years. The reservoir at Fern Hill stood at 41 percent on "
    "2 September, and a ban on watering lawns was in force for nine weeks.",
)
_PEOPLE: Final = (
    "The utility employed 212 people at the end of the year, nine more than the year before. Eleven apprentices began "
    "in August, four of them as pipe fitters.",
    "There was one accident that had to be reported: an excavator touched a power cable in Quarry Road. Nobody was "
    "hurt. All crews have since been trained in locating cables.",
    "Rosalind Okafor succeeded Peter Lindqvist as managing director on 1 July.",
)


def annual_report() -> bytes:
    """Four pages: a cover, two columns, a table of figures, a chart that is a picture."""
    from reportlab.lib import colors
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import (
        BaseDocTemplate,
        Frame,
        FrameBreak,
        Image,
        NextPageTemplate,
        PageBreak,
        PageTemplate,
        Paragraph,
        Spacer,
        Table,
        TableStyle,
    )

    class Report(BaseDocTemplate):  # type: ignore[misc]
        def afterFlowable(self, flowable: Any) -> None:  # noqa: N802 - ReportLab's name
            style = getattr(getattr(flowable, "style", None), "name", "")
            if style in ("Heading1", "Heading2"):
                self.canv.bookmarkPage(flowable.getPlainText())
                level = int(style[-1]) - 1
                self.canv.addOutlineEntry(flowable.getPlainText(), flowable.getPlainText(), level=level)

    def foot(canvas: Any, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 40, "Harrow Valley Water · Annual report 2025")
        canvas.drawRightString(523, 40, str(document.page))

    styles = getSampleStyleSheet()
    body, heading, smaller = styles["BodyText"], styles["Heading1"], styles["Heading2"]
    out = io.BytesIO()
    report = Report(out, pagesize=(595, 842), title="Annual report 2025", author="Harrow Valley Water", invariant=1)
    one = Frame(72, 60, 451, 720, id="one")
    head = Frame(60, 700, 475, 80, id="head")
    left, right = Frame(60, 60, 227, 640, id="left"), Frame(308, 60, 227, 640, id="right")
    report.addPageTemplates(
        [PageTemplate("plain", [one], onPage=foot), PageTemplate("columns", [head, left, right], onPage=foot)]
    )
    figures = Table(
        [
            ["thousand euros", "2025", "2024"],
            ["Water charges", "38,410", "36,905"],
            ["Connection fees", "2,175", "2,340"],
            ["Other income", "865", "790"],
            ["Total revenue", "41,450", "40,035"],
            ["Personnel", "14,220", "13,480"],
            ["Energy", "5,930", "6,415"],
            ["Depreciation", "9,105", "8,870"],
            ["Net income", "3,685", "2,940"],
        ],
        colWidths=[200, 90, 90],
    )
    figures.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("ALIGN", (1, 0), (-1, -1), "RIGHT")]))
    energy = chart(
        "Energy for pumping", "kWh per cubic metre", [("2021", 0.61), ("2022", 0.58), ("2023", 0.57), ("2024", 0.52),
                                                      ("2025", 0.46)]
    )  # fmt: skip
    report.build(
        [
            Paragraph("Harrow Valley Water", styles["Title"]),
            Paragraph("Annual report 2025", styles["Title"]),
            Spacer(1, 40),
            Paragraph("Drinking water for 96,000 people in Harrow, Stonebridge and nine villages.", body),
            NextPageTemplate("columns"),
            PageBreak(),
            Paragraph("The year in the valley", heading),
            FrameBreak(),
            Paragraph("Mains and leakage", smaller),
            *(Paragraph(text, body) for text in _REPLACED),
            FrameBreak(),
            Paragraph("People", smaller),
            *(Paragraph(text, body) for text in _PEOPLE),
            NextPageTemplate("plain"),
            PageBreak(),
            Paragraph("Figures", heading),
            Paragraph("Table 1: Income and expenses", body),
            figures,
            Spacer(1, 12),
            Paragraph("A dividend of 1.2 million euros goes to the municipalities that own the utility.", body),
            PageBreak(),
            Paragraph("Energy", heading),
            Paragraph("The variable-speed pumps at Fern Hill have been running since May 2024.", body),
            Spacer(1, 12),
            Image(io.BytesIO(energy), width=430, height=300),
            Paragraph("Figure 1: Energy used for pumping, 2021 to 2025", body),
        ]
    )
    return out.getvalue()


def chart(title: str, axis: str, bars: Sequence[tuple[str, float]]) -> bytes:
    """A bar chart as a PNG; its text is only in the pixels."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (1000, 700), "white")
    draw = ImageDraw.Draw(image)
    large, small = ImageFont.load_default(40), ImageFont.load_default(28)
    draw.text((60, 20), title, fill="black", font=large)
    draw.text((60, 80), axis, fill="black", font=small)
    most = max(value for _, value in bars)
    step = 900 // len(bars)
    for i, (name, value) in enumerate(bars):
        x, top = 70 + i * step, 620 - round(430 * value / most)
        draw.rectangle((x, top, x + step // 2, 620), fill=(60, 110, 170))
        draw.text((x, top - 40), str(value), fill="black", font=small)
        draw.text((x, 635), name, fill="black", font=small)
    return _saved(image, "PNG")


def scanned_letter() -> bytes:
    """A PDF that is nothing but the picture of a letter."""
    from PIL import Image, ImageDraw, ImageFont
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    lines = (
        "Margarethe Holm", "17 Orchard Street", "Stonebridge", "",
        "To Harrow Valley Water, customer service", "12 November 2025", "",
        "Dear Sir or Madam,", "",
        "since Monday the water in our house has been brown and smells", "of iron. My neighbours at number 19 see the "
        "same. I ask you to", "flush the main in Orchard Street and to refund the bottled", "water that I bought, "
        "38.50 euros, receipts enclosed.", "", "Yours faithfully,", "M. Holm",
    )  # fmt: skip
    image = Image.new("L", (1240, 1754), 250)
    draw = ImageDraw.Draw(image)
    face = ImageFont.load_default(34)
    for i, line in enumerate(lines):
        draw.text((120, 160 + i * 58), line, fill=25, font=face)
    turned = image.rotate(0.4, fillcolor=250, resample=Image.Resampling.BICUBIC)
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(595, 842), invariant=1)
    canvas.drawImage(ImageReader(io.BytesIO(_saved(turned, "PNG"))), 0, 0, 595, 842)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def contract() -> bytes:
    """A contract with numbered headings and a table of prices."""
    from docx import Document

    document = Document()
    _settle_properties(document.core_properties)
    document.add_heading("Supply contract for ductile iron pipes", 0)
    document.add_paragraph(
        "between Harrow Valley Water, Harrow, and Brandt & Soehne Giesserei GmbH, Siegen, signed on 14 January 2026."
    )
    parts = (
        ("1 Subject", "The supplier delivers ductile iron pipes of the classes C40 and C64 with cement lining, about "
         "9 kilometres a year, to the yard in Quarry Road."),
        ("2 Term and notice", "The contract runs from 1 February 2026 to 31 January 2029. Either party may end it with "
         "six months' notice to the end of a calendar year."),
        ("3 Prices", "Prices per metre hold until the end of 2026 and then follow the steel index."),
        ("4 Late delivery", "For each full week of delay the supplier owes a penalty of 0.5 percent of the value of "
         "the late part, at most 5 percent of it. No penalty is owed for strikes and floods."),
        ("5 Warranty", "The warranty is ten years from delivery. Damage to the lining is to be reported within "
         "fourteen days."),
    )  # fmt: skip
    for title, text in parts:
        document.add_heading(title, 1)
        document.add_paragraph(text)
        if title.startswith("3"):
            table = document.add_table(rows=1, cols=2)
            table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Nominal width", "Euros per metre"
            for width, price in (("DN 100", "48.20"), ("DN 200", "87.60"), ("DN 300", "139.00")):
                cells = table.add_row().cells
                cells[0].text, cells[1].text = width, price
    return _settled(_kept(document))


def slides() -> bytes:
    """Four slides for a board, one of them with speaker notes."""
    from pptx import Presentation

    deck = Presentation()
    _settle_properties(deck.core_properties)
    shown = (
        ("Pumping station Mill Lane", ("Board meeting, 22 April 2026",), ""),
        ("Why a new station", ("The pumps of 1978 fail four times a year", "Spare parts are no longer made",
                               "The site was flooded in 2021 and 2024"), ""),
        ("Options", ("A: repair, 1.9 million euros, ten more years", "B: new building on the hill, 6.4 million euros",
                     "C: connect Stonebridge to Fern Hill, 4.1 million euros"),
         "The engineers prefer B. The treasurer warns that C needs the consent of the railway."),
        ("Decision asked for", ("Approve option B and a loan of 5 million euros", "Open the tender in September 2026"),
         ""),
    )  # fmt: skip
    for title, points, notes in shown:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(points)
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return _settled(_kept(deck))


def workbook() -> bytes:
    """A workbook of two sheets."""
    from openpyxl import Workbook

    book = Workbook()
    tariff = book.active
    assert tariff is not None
    tariff.title = "Tariff 2026"
    for row in (
        ("Item", "Unit", "Euros"),
        ("Water", "cubic metre", 2.14),
        ("Standing charge, meter Q3 4", "year", 96),
        ("Standing charge, meter Q3 10", "year", 168),
        ("Standpipe rental", "week", 35),
    ):
        tariff.append(row)
    meters = book.create_sheet("Large customers")
    for customer in (
        ("Customer", "Cubic metres in 2025", "Contact"),
        ("Stonebridge Dairy", 184200, "J. Fenwick"),
        ("Harrow General Hospital", 96300, "Dr. A. Mensah"),
        ("Kestrel Paper Mill", 412750, "I. Novak"),
        ("Valley Swimming Baths", 38900, "T. Laird"),
    ):
        meters.append(customer)
    out = io.BytesIO()
    book.save(out)
    return _settled(out.getvalue())


def handbook() -> bytes:
    """An e-book of three chapters."""
    chapters = (
        ("Before you dig", "Ask the control room for the plan of cables and gas pipes. A plan is valid for ten days."),
        ("Flushing a hydrant", "Open the hydrant slowly, by a quarter turn, and wait until the air is out. Flush until "
         "the water is clear, for three minutes at least, and write the time into the log. Close it as slowly: a fast "
         "hand makes a pressure surge that breaks old mains."),
        ("Taking samples", "Burn off the tap, let the water run for two minutes, and fill the sterile bottle without "
         "touching its rim. Samples reach the laboratory within six hours, cooled to five degrees."),
    )  # fmt: skip
    page = (
        '<?xml version="1.0" encoding="utf-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{0}</title>'
        "</head><body><h1>{0}</h1><p>{1}</p></body></html>"
    )
    items = "".join(
        f'<item id="c{i}" href="c{i}.xhtml" media-type="application/xhtml+xml"/>' for i in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
        "</container>",
        "book.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">handbook</dc:identifier><dc:title>Handbook '
        f"for crews</dc:title><dc:language>en</dc:language></metadata><manifest>{items}</manifest><spine>{spine}"
        "</spine></package>",
        **{f"c{i}.xhtml": page.format(*chapter) for i, chapter in enumerate(chapters)},
    }
    return _zipped({name: text.encode() for name, text in parts.items()})


NOTICE: Final = """<!DOCTYPE html>
<html lang="en"><head><title>Service notice</title></head><body>
<nav><a href="/">Home</a> <a href="/tariff">Tariff</a></nav>
<h1>Water off in Orchard Street</h1>
<p>On Thursday 4 December 2025 the water will be off in Orchard Street, numbers 1 to 41, from 8:30 to 13:00. The main is
flushed and a valve is replaced.</p>
<h2>What to do</h2>
<p>Fill a bucket for the toilet. Afterwards let the cold tap run until the water is clear. Call 0800 555 0147 if
it stays brown.</p>
</body></html>
"""

SAMPLES: Final = """site,date,nitrate mg/l,hardness dH,E. coli per 100 ml
Fern Hill reservoir,2025-10-06,8.1,9.4,0
Stonebridge well 2,2025-10-06,31.7,16.2,0
Harrow town hall,2025-10-07,9.0,9.6,0
Quarry Road yard,2025-10-07,9.2,9.5,0
"""


def documents() -> dict[str, bytes]:
    """All documents by their paths."""
    leakage = [("Q1", 14.1), ("Q2", 12.6), ("Q3", 9.9), ("Q4", 10.7)]
    return {
        "annual-report-2025.pdf": annual_report(),
        "contracts/pipe-supply.docx": contract(),
        "board/pumping-station.pptx": slides(),
        "board/leakage-2025.png": chart("Leakage 2025", "percent of water put into supply", leakage),
        "tariff-and-customers.xlsx": workbook(),
        "letters/2025-11-12-holm.pdf": scanned_letter(),
        "handbook-for-crews.epub": handbook(),
        "website/orchard-street.html": NOTICE.encode(),
        "laboratory/samples-2025-10.csv": SAMPLES.encode(),
    }


def write(folder: Path) -> list[Path]:
    """Write them below a folder."""
    written = []
    for name, data in documents().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)
    return written


def _saved(image: Any, form: str) -> bytes:
    out = io.BytesIO()
    image.save(out, form)
    return out.getvalue()


def _kept(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _settle_properties(properties: Any) -> None:
    properties.author = properties.last_modified_by = "Harrow Valley Water"
    properties.created = properties.modified = _MADE


def _settled(data: bytes) -> bytes:
    """An office file without the time at which it was made."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    core = parts["docProps/core.xml"]
    parts["docProps/core.xml"] = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2026-03-31T09:00:00Z", core)
    return _zipped(parts)


def _zipped(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, _MADE_IN_ZIP), data, how)
    return out.getvalue()


def main() -> int:
    """Make the folder."""
    if len(sys.argv) != 2:
        print("python examples/documents/make.py FOLDER", file=sys.stderr)
        return 2
    for path in write(Path(sys.argv[1])):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
