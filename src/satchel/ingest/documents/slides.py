"""The order in which a presentation shows its slides, which is not the order of their files."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final
from xml.etree.ElementTree import ParseError, fromstring

from satchel.ingest.documents.inlays import Illustrated
from satchel.ingest.documents.zips import BROKEN

_NUMBER: Final = re.compile(r"slides/slide(\d{1,9})\.xml$")
_ID: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def in_shown_order(data: bytes, slides: list[Illustrated]) -> list[Illustrated]:
    """The slides, given in the order of their files' numbers, as they are shown; as given when that cannot be told."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # No entities are declared in it (`objection_to`), and Expat has its own guard besides.
            relations = fromstring(archive.read("ppt/_rels/presentation.xml.rels"))  # noqa: S314
            show = fromstring(archive.read("ppt/presentation.xml"))  # noqa: S314
    except (ParseError, *BROKEN):
        return slides
    numbers = {
        one.get("Id"): int(found[1]) for one in relations.iter() if (found := _NUMBER.search(one.get("Target", "")))
    }
    if len(numbers) != len(slides):
        return slides
    by_number = dict(zip(sorted(numbers.values()), slides, strict=True))
    listed = [one.get(_ID) for one in show.iter() if one.tag.endswith("}sldId")]
    shown = [by_number[numbers[name]] for name in dict.fromkeys(listed) if name in numbers]
    return [one._replace(page=one.page._replace(number=at)) for at, one in enumerate(shown, 1)] or slides
