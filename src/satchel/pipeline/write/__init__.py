"""The last stage but one: pieces become text. One writer for each format; each output parses, whatever is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.model.options import ContextFormat
from satchel.pipeline.write.json import JsonWriter
from satchel.pipeline.write.markdown import MarkdownWriter
from satchel.pipeline.write.plain import PlainWriter
from satchel.pipeline.write.xml import XmlWriter

if TYPE_CHECKING:
    from satchel.model.options import ContextBuildOptions
    from satchel.pipeline.write.document import Writer

_WRITERS: dict[ContextFormat, type[Writer]] = {
    ContextFormat.MARKDOWN: MarkdownWriter,
    ContextFormat.PLAIN: PlainWriter,
    ContextFormat.XML: XmlWriter,
    ContextFormat.JSON: JsonWriter,
}


def writer_for(options: ContextBuildOptions) -> Writer:
    """The writer for the format that the options name."""
    return _WRITERS[options.format](options)
