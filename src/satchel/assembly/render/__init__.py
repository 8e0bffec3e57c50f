"""The last stage but one: pieces become text. One writer for each format; each output parses, whatever is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.assembly.render.json import JsonWriter
from satchel.assembly.render.markdown import MarkdownWriter
from satchel.assembly.render.plain import PlainWriter
from satchel.assembly.render.xml import XmlWriter
from satchel.models.options import ContextFormat

if TYPE_CHECKING:
    from satchel.assembly.render.document import Writer
    from satchel.models.options import ContextBuildOptions

_WRITERS: dict[ContextFormat, type[Writer]] = {
    ContextFormat.MARKDOWN: MarkdownWriter,
    ContextFormat.PLAIN: PlainWriter,
    ContextFormat.XML: XmlWriter,
    ContextFormat.JSON: JsonWriter,
}


def writer_for(options: ContextBuildOptions) -> Writer:
    """The writer for the format that the options name."""
    return _WRITERS[options.format](options)
