"""Charts of slides as tables: a row for each category, a column for each series.

Xberg writes what a chart's file holds as one line of values, in which no number has a name.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from xml.etree.ElementTree import Element

from satchel.indexing.documents.tidy import one_line
from satchel.indexing.documents.zips import local_name, markup_of

_MAX_CHART_BYTES: Final = 5_000_000  # of a chart as XML: bounds memory
_MAX_CHARTS: Final = 20  # of a slide
_MAX_ROWS: Final = 500  # of a chart; a drawing of more points is not read as a table
_MAX_COLUMNS: Final = 30  # series; more are a drawing, too
_SHOWN_DIGITS: Final = 12  # as many as a spreadsheet shows
_NO_LETTERS: Final = re.compile(r"[\W_]+")


def with_charts(markdown: str, archive: zipfile.ZipFile, slide: int) -> str:
    """The slide with its charts as tables, each in place of its line of values, or else at the end."""
    for chart in _charts(archive, slide):
        table = _table(chart)
        if not table:
            continue
        values = _letters(", ".join(part.text or "" for part in chart.iter() if local_name(part) == "v"))
        lines = markdown.split("\n")
        place = next((at for at, line in enumerate(lines) if values and _letters(line) == values), None)
        if place is None:
            markdown = f"{markdown}\n\n{table}".lstrip("\n")
        else:
            markdown = "\n".join([*lines[:place], table, *lines[place + 1 :]])
    return markdown


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", text).casefold()


def _charts(archive: zipfile.ZipFile, slide: int) -> Iterator[Element]:
    relations = markup_of(archive, f"ppt/slides/_rels/slide{slide}.xml.rels", _MAX_CHART_BYTES)
    found = 0
    for part in relations.iter() if relations is not None else ():
        is_chart = part.get("Type", "").rpartition("/")[2] == "chart" and part.get("TargetMode") != "External"
        if is_chart and found < _MAX_CHARTS:
            found += 1
            place = posixpath.normpath(posixpath.join("/ppt/slides", part.get("Target", ""))).lstrip("/")
            chart = markup_of(archive, place, _MAX_CHART_BYTES)
            if chart is not None:
                yield chart


def _table(chart: Element) -> str:
    """The chart as a Markdown table below its title; empty if there is nothing to show."""
    series = [part for part in chart.iter() if local_name(part) == "ser"][:_MAX_COLUMNS]
    columns = [(_name(each), _points(each, "val", "yVal")) for each in series]
    labels = next((points for each in series if (points := _points(each, "cat", "xVal"))), {})
    rows = sorted({index for _, points in columns for index in points} | labels.keys())
    if not columns or not rows or len(rows) > _MAX_ROWS:
        return ""
    title = _title(chart)
    head = ["", *(name or f"Series {number}" for number, (name, _) in enumerate(columns, 1))]
    body = [[labels.get(row, str(row + 1)), *(points.get(row, "") for _, points in columns)] for row in rows]
    lines = ["| " + " | ".join(map(_cell, cells)) + " |" for cells in (head, *body)]
    lines.insert(1, "|" + " --- |" * len(head))
    return "\n".join([*([f"Chart: {title}", ""] if title else []), *lines])


def _name(series: Element) -> str:
    """The name of a series; a series without one has the name of the chart or none."""
    return next((_number(part.text) for each in _named(series, "tx") for part in _named(each, "v") if part.text), "")


def _points(series: Element, *names: str) -> dict[int, str]:
    """The values of a series, or its categories, by their place."""
    points: dict[int, str] = {}
    for part in (part for name in names for part in series if local_name(part) == name):
        for point in _named(part, "pt"):
            with suppress(ValueError):
                points[int(point.get("idx", ""))] = _number(next((v.text for v in _named(point, "v")), ""))
        break
    return points


def _title(chart: Element) -> str:
    shown = next((part for part in chart.iter() if local_name(part) == "title"), None)
    return one_line("".join(part.text or "" for part in _named(shown, "t"))) if shown is not None else ""


def _named(element: Element, name: str) -> Iterator[Element]:
    return (part for part in element.iter() if local_name(part) == name)


def _number(text: str | None) -> str:
    """A value as people write it: 0.30000000000000004 is 0.3."""
    text = one_line(text or "")
    with suppress(ValueError, OverflowError):
        if len(text) > _SHOWN_DIGITS and "." in text:
            return f"{float(text):.10g}"
    return text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
