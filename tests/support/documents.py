"""Documents made on the spot, with the libraries that people make them with."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

LINES = (
    "The committee met in the old town hall and heard the report of its treasurer.",
    "Nobody objected to the proposal, although several members asked for a second reading.",
    "Costs had risen faster than expected because the bridge needed new foundations.",
    "A contractor from the valley offered to deliver the stones before the first frost.",
    "The minutes of the last session were read aloud and accepted without a change.",
    "Letters from the neighbouring parishes were filed under their dates of arrival.",
    "An engineer explained how the arches carry the load into the banks of the river.",
)


def prose(seed: int, sentences: int) -> str:
    """Plain sentences, different for every seed."""
    return " ".join(f"{LINES[(seed * 3 + i) % len(LINES)][:-1]} in case {seed}-{i}." for i in range(sentences))


def _canvas(**how: Any) -> tuple[Any, io.BytesIO]:
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    return Canvas(out, pagesize=(595, 842), invariant=1, **how), out


def pdf_of_lines(pages: Sequence[Sequence[str]], *, size: float = 11, **how: Any) -> bytes:
    """A PDF with the given lines on each page, top down."""
    canvas, out = _canvas(**how)
    for lines in pages:
        canvas.setFont("Helvetica", size)
        for i, line in enumerate(lines):
            canvas.drawString(72, 770 - i * size * 1.4, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def text_pdf(pages: int, *, lines: int = 40) -> bytes:
    """A PDF of prose: a running head, a page number at the foot, a heading on every fifth page."""
    canvas, out = _canvas()
    for page in range(pages):
        canvas.setFont("Helvetica-Oblique", 9)
        canvas.drawString(72, 810, "Annual report of the bridge committee")
        canvas.setFont("Helvetica", 9)
        canvas.drawCentredString(297, 30, str(page + 1))
        top = 770
        if page % 5 == 0:
            canvas.setFont("Helvetica-Bold", 18)
            canvas.drawString(72, top, f"Chapter {page // 5 + 1}: Matters of year {1900 + page}")
            top -= 36
        canvas.setFont("Helvetica", 11)
        for i in range(lines):
            canvas.drawString(72, top - i * 16, f"{LINES[(page + i) % len(LINES)][:70]} {page + 1}/{i}")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def two_column_pdf(left: Sequence[str], right: Sequence[str], title: str) -> bytes:
    """A page with a title over two columns whose lines stand side by side."""
    canvas, out = _canvas()
    canvas.setFont("Helvetica-Bold", 20)
    canvas.drawCentredString(297, 780, title)
    canvas.setFont("Helvetica", 10)
    for x, lines in ((60, left), (315, right)):
        for i, line in enumerate(lines):
            canvas.drawString(x, 740 - i * 13, line)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def report_pdf() -> bytes:
    """A report with a title, headings, a ruled table, a picture with its caption, and bookmarks."""
    from reportlab.lib import colors
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Image, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

    class Template(SimpleDocTemplate):  # type: ignore[misc]
        def afterFlowable(self, flowable: Any) -> None:  # noqa: N802 - ReportLab's name
            style = getattr(getattr(flowable, "style", None), "name", "")
            if style in ("Heading1", "Heading2"):
                key = f"{style}{self.page}"
                self.canv.bookmarkPage(key)
                self.canv.addOutlineEntry(flowable.getPlainText(), key, level=int(style[-1]) - 1)

    styles = getSampleStyleSheet()
    out = io.BytesIO()
    table = Table(
        [["Quarter", "Revenue", "Cost"], ["Q1", "1,200", "900"], ["Q2", "1,350", "910"], ["Q3", "1,500", "925"]],
        colWidths=[100, 100, 100],
    )
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)]))
    picture = io.BytesIO(png_of_text(["a chart"], size=(300, 120)))
    Template(out, title="Annual report", invariant=1).build(
        [
            Paragraph("Results of operations", styles["Heading1"]),
            Paragraph(prose(1, 6), styles["BodyText"]),
            Paragraph("Table 1. Revenue and cost by quarter", styles["BodyText"]),
            table,
            Spacer(1, 12),
            Paragraph(prose(2, 4), styles["BodyText"]),
            PageBreak(),
            Paragraph("Liquidity", styles["Heading2"]),
            Paragraph(prose(3, 6), styles["BodyText"]),
            Image(picture, width=300, height=120),
            Paragraph("Figure 2: Cash at the end of each year", styles["BodyText"]),
            Paragraph(prose(4, 3), styles["BodyText"]),
        ]
    )
    return out.getvalue()


def picture_of_text(lines: Iterable[str], *, size: tuple[int, int] = (1240, 1754), font: int = 34) -> Any:
    """A white picture with black text in it."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    face = ImageFont.load_default(font)
    for i, line in enumerate(lines):
        draw.text((size[0] // 12, size[1] // 12 + i * font * 1.5), line, fill="black", font=face)
    return image


def png_of_text(lines: Iterable[str], *, size: tuple[int, int] = (1240, 1754), font: int = 34) -> bytes:
    """The same as a PNG."""
    return saved(picture_of_text(lines, size=size, font=font), "PNG")


def saved(image: Any, form: str, **how: Any) -> bytes:
    """A picture as the bytes of a file."""
    out = io.BytesIO()
    image.save(out, form, **how)
    return out.getvalue()


def scanned_pdf(*pages: Sequence[str]) -> bytes:
    """A PDF whose pages are nothing but pictures of text."""
    from reportlab.lib.utils import ImageReader

    canvas, out = _canvas()
    for lines in pages:
        if lines:
            canvas.drawImage(ImageReader(picture_of_text(lines)), 0, 0, 595, 842)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def chart_picture(title: str = "Whales counted per year", axis: str = "Number of whales") -> Any:
    """A chart as programs draw it: a title, bars with their names under them, a legend, a name along its side."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (800, 500), "white")
    draw = ImageDraw.Draw(image)
    draw.text((220, 15), title, fill="black", font=ImageFont.load_default(28))
    small = ImageFont.load_default(20)
    draw.line([(110, 70), (110, 430), (760, 430)], fill="black", width=2)
    for i, (name, high) in enumerate((("Bergen", 120), ("Tromso", 260), ("Narvik", 90), ("Lofoten", 320))):
        draw.rectangle([150 + i * 150, 430 - high, 220 + i * 150, 430], fill=(60, 90 + i * 30, 160))
        draw.text((150 + i * 150, 440), name, fill="black", font=small)
    draw.text((560, 70), "Orcinus orca", fill="black", font=small)
    side = Image.new("RGB", (300, 34), "white")
    ImageDraw.Draw(side).text((10, 4), axis, fill="black", font=small)
    image.paste(side.transpose(Image.Transpose.ROTATE_90), (20, 120))
    return image


def bar_chart_picture() -> Any:
    """A chart of four bars, with their values over them."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (800, 500), "white")
    draw = ImageDraw.Draw(image)
    draw.text((260, 15), "Sales by quarter", fill="black", font=ImageFont.load_default(26))
    draw.line([(110, 70), (110, 430), (760, 430)], fill="black", width=2)
    small = ImageFont.load_default(20)
    for i, (name, value) in enumerate((("Q1", 12.6), ("Q2", 9.9), ("Q3", 14.2), ("Q4", 17.3))):
        left, top = 150 + i * 150, 430 - value * 18
        draw.rectangle([left, top, left + 70, 430], fill=(60, 90 + i * 30, 160))
        draw.text((left + 15, 440), name, fill="black", font=small)
        draw.text((left + 10, top - 28), str(value), fill="black", font=small)
    return image


def illustrated_pdf(
    pages: int,
    pictures: Sequence[Any],
    *,
    box: tuple[float, float, float, float] = (72, 100, 450, 281),
    text: Sequence[str] = (),
    over: Sequence[str] = (),
) -> bytes:
    """A PDF of prose with pictures (the first of them on the first page, and so on, the last on all that follow).

    The first lines of every page can be given, and some that are written over its picture.
    """
    from reportlab.lib.utils import ImageReader

    canvas, out = _canvas()
    readers = [ImageReader(picture) for picture in pictures]
    for page in range(pages):
        canvas.setFont("Helvetica", 11)
        for i in range(20):
            line = f"{LINES[(page + i) % len(LINES)][:70]} {page + 1}/{i}"
            canvas.drawString(72, 770 - i * 16, text[i] if i < len(text) else line)
        canvas.drawImage(readers[min(page, len(readers) - 1)], *box)
        for i, line in enumerate(over):
            canvas.drawString(box[0] + 80, box[1] + box[3] - 60 - i * 16, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def strips_pdf(picture: Any, count: int) -> bytes:
    """A page of prose whose picture lies in the file in strips, as some programs leave them."""
    from reportlab.lib.utils import ImageReader

    canvas, out = _canvas()
    canvas.drawString(72, 770, prose(1, 1))
    wide, high = picture.size
    for i in range(count):
        strip = picture.crop((0, high * i // count, wide, high * (i + 1) // count))
        canvas.drawImage(ImageReader(strip), 72, 381 - 281 * (i + 1) / count, 450, 281 / count)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def form_pdf(picture: Any) -> bytes:
    """A page of prose whose picture is in a form that is drawn smaller and elsewhere."""
    from reportlab.lib.utils import ImageReader

    canvas, out = _canvas()
    canvas.beginForm("figure", 0, 0, 1200, 800)
    canvas.drawImage(ImageReader(picture), 0, 0, 1200, 750)
    canvas.endForm()
    canvas.drawString(72, 770, prose(1, 1))
    canvas.translate(72, 100)
    canvas.scale(0.375, 0.375)
    canvas.doForm("figure")
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def turned_pdf(picture: Any) -> bytes:
    """A page that is shown turned, cut at its edges, with a picture that stands upright when it is."""
    from reportlab.lib.utils import ImageReader

    canvas, out = _canvas(cropBox=(20, 30, 575, 590))
    canvas.setPageRotation(90)
    canvas.drawString(72, 560, prose(1, 1))
    canvas.translate(500, 100)
    canvas.rotate(90)
    canvas.drawImage(ImageReader(picture), 0, 0, 440, 275)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def vector_chart_pdf() -> bytes:
    """A page with a bar chart that is drawn, not pasted: its labels are text."""
    from reportlab.graphics import renderPDF
    from reportlab.graphics.charts.barcharts import VerticalBarChart
    from reportlab.graphics.charts.legends import Legend
    from reportlab.graphics.shapes import Drawing, String
    from reportlab.lib import colors

    drawing = Drawing(450, 220)
    chart = VerticalBarChart()
    chart.x, chart.y, chart.width, chart.height = 50, 40, 260, 130
    chart.data = [[13, 5, 20], [14, 6, 21]]
    chart.categoryAxis.categoryNames = ["Herring", "Mackerel", "Halibut"]
    legend = Legend()
    legend.x, legend.y = 340, 150
    legend.colorNamePairs = [(colors.red, "Landed catch"), (colors.green, "Export quota")]
    for thing in (chart, legend, String(120, 200, "Catch by species", fontSize=14)):
        drawing.add(thing)
    canvas, out = _canvas()
    for i in range(10):
        canvas.drawString(72, 770 - i * 16, f"{LINES[i % len(LINES)][:70]} {i}")
    renderPDF.draw(drawing, canvas, 72, 200)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def encrypted_pdf(user_password: str) -> bytes:
    """A PDF that opens with a password only (or with none, when it is empty)."""
    from reportlab.lib.pdfencrypt import StandardEncryption

    how = StandardEncryption(user_password, ownerPassword="owner", canPrint=0)
    return pdf_of_lines([["The secret of the vault is written here."]], encrypt=how)


def docx_of(
    sections: Sequence[tuple[int, str, str]], *, table: Sequence[Sequence[str]] = (), picture: bytes = b""
) -> bytes:
    """A DOCX of headings (level, title) with their text, and a table and a picture at its end."""
    from docx import Document

    document = Document()
    document.core_properties.title = "Handbook"
    for level, title, text in sections:
        document.add_heading(title, level)
        for paragraph in text.split("\n\n"):
            document.add_paragraph(paragraph)
    if table:
        grid = document.add_table(rows=0, cols=len(table[0]))
        for row in table:
            for cell, value in zip(grid.add_row().cells, row, strict=True):
                cell.text = value
    if picture:
        document.add_picture(io.BytesIO(picture), width=4_000_000)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def noted_docx(paragraphs: Sequence[str]) -> bytes:
    """A DOCX with footnotes where `{number}` stands, which say `note number`, and a comment in its last paragraph."""
    from docx import Document

    document = Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    last = document.add_paragraph("The ")
    document.add_comment(last.add_run("ferry"), text="Check the ferry.", author="A", initials="a")
    last.add_run(" was late.")
    out = io.BytesIO()
    document.save(out)
    with zipfile.ZipFile(out) as archive:
        parts: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
        main, links, types = (
            archive.read(name).decode()
            for name in ("word/document.xml", "word/_rels/document.xml.rels", "[Content_Types].xml")
        )
    mark = r'</w:t></w:r><w:r><w:footnoteReference w:id="\1"/></w:r><w:r><w:t xml:space="preserve">'
    notes = "".join(
        f'<w:footnote w:id="{one}"><w:p><w:r><w:t xml:space="preserve"> note {one}</w:t></w:r></w:p></w:footnote>'
        for one in re.findall(r"\{(\d+)\}", " ".join(paragraphs))
    )
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    related = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    link = f'<Relationship Id="notes" Type="{related}" Target="footnotes.xml"/>'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = f'<Override PartName="/word/footnotes.xml" ContentType="{kind}"/>'
    parts["word/footnotes.xml"] = f"<w:footnotes {space}>{notes}</w:footnotes>"
    parts["word/document.xml"] = re.sub(r"\{(\d+)\}", mark, main)
    parts["word/_rels/document.xml.rels"] = links.replace("</Relationships>", f"{link}</Relationships>")
    parts["[Content_Types].xml"] = types.replace("</Types>", f"{part}</Types>")
    return zip_of(parts)


def pptx_of(
    slides: Sequence[tuple[str, Sequence[str], str]], *, picture: bytes = b"", order: Sequence[int] = ()
) -> bytes:
    """A PPTX of slides (title, points, speaker notes), a picture on the last, shown in the given order."""
    from pptx import Presentation

    show = Presentation()
    for title, points, notes in slides:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(points)
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    if picture:
        show.slides[len(slides) - 1].shapes.add_picture(io.BytesIO(picture), 0, 0)
    if order:
        listed = show.slides._sldIdLst
        entries = list(listed)
        for entry in entries:
            listed.remove(entry)
        for place in order:
            listed.append(entries[place])
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def xlsx_of(sheets: dict[str, Sequence[Sequence[object]]], *, merged: Sequence[str] = ()) -> bytes:
    """An XLSX of sheets, by their names; the cells in the ranges of all of them are merged."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
        for cells in merged:
            sheet.merge_cells(cells)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def zip_of(entries: dict[str, str | bytes], *, stored: Sequence[str] = ()) -> bytes:
    """A zip of the given files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(name, data, compress_type=kind)
    return out.getvalue()


def epub_of(chapters: Sequence[tuple[str, str]], *, title: str = "A small book", picture: bytes = b"") -> bytes:
    """An EPUB of chapters (title, text), a picture in the last; the files lie in another order than in the spine."""
    manifest = "".join(
        f'<item id="c{i}" href="text/c{i}.xhtml" media-type="application/xhtml+xml"/>' for i in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    entries: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<?xml version="1.0"?><container version="1.0" '
        'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OEBPS/content.opf": '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" '
        'unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">x</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language></metadata>'
        f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>",
    }
    for i in reversed(range(len(chapters))):
        name, text = chapters[i]
        paragraphs = "".join(f"<p>{paragraph}</p>" for paragraph in text.split("\n\n"))
        if picture and i == len(chapters) - 1:
            paragraphs += '<p><img src="../pictures/a%20chart.png" alt=""/></p>'
            entries["OEBPS/pictures/a chart.png"] = picture
        entries[f"OEBPS/text/c{i}.xhtml"] = (
            '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title>{name}</title></head><body><h1>{name}</h1>{paragraphs}</body></html>"
        )
    return zip_of(entries, stored=["mimetype"])


def odf_of(kind: str, body: str) -> bytes:
    """An OpenDocument file (`text`, `presentation`, `spreadsheet`) with the given XML in its body."""
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
        for short, long in (
            ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"),
            ("presentation", "presentation"), ("svg", "svg-compatible"),
        )
    )  # fmt: skip
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {names} office:version="1.2">'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    manifest = (
        '<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.{kind}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    return zip_of(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            "META-INF/manifest.xml": manifest,
        },
        stored=["mimetype"],
    )


def png_bomb(side: int) -> bytes:
    """A small PNG that says it is `side` × `side` pixels, and is."""
    row = b"\0" * (side // 8 + 1)
    pack = zlib.compressobj(9)
    data = b"".join(pack.compress(row * 64) for _ in range(side // 64)) + pack.flush()

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([1, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def exponential_pdf(levels: int, fan: int) -> bytes:
    """A small PDF whose one page draws a form that draws a form, `fan` times on each of its levels."""
    font = "/Font << /G << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /F 5 0 R >> >> >>",
        "<< /Length 5 >>\nstream\n/F Do\nendstream",
    ]
    for level in range(levels):
        is_last = level == levels - 1
        body = "BT /G 9 Tf (x) Tj ET" if is_last else "/F Do " * fan
        things = font if is_last else f"/XObject << /F {6 + level} 0 R >>"
        head = f"/Type /XObject /Subtype /Form /BBox [0 0 99 99] /Resources << {things} >> /Length {len(body)}"
        objects.append(f"<< {head} >>\nstream\n{body}\nendstream")
    return raw_pdf(objects)


def raw_pdf(objects: Sequence[str | bytes], *, root: int = 1) -> bytes:
    """A PDF of the given objects, numbered from 1, with a right cross-reference table."""
    out = io.BytesIO(b"")
    out.write(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        data = body.encode("latin-1") if isinstance(body, str) else body
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, data))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(b"trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, root, start))
    return out.getvalue()
