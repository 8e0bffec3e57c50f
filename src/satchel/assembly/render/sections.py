"""The text of a workspace's context: the template's sections, filled with items, in each of the four formats.

The text is built from parts, never by putting content where a placeholder stood: a block that holds `{query}` is a
block that holds `{query}`. What stands in an item can neither end it nor look like the head of another.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from string import Formatter
from typing import Any, Final

from satchel.assembly.render.document import receipt
from satchel.assembly.render.markdown import fence_for, heading_text
from satchel.assembly.render.xml import escaped, escaped_attribute
from satchel.models.options import ContextFormat
from satchel.models.payload import SECTION_TITLES, ContextItem, ContextSection, SectionType
from satchel.text.visible import make_visible, make_visible_line

CONTEXT_TEMPLATE: Final = """\
## Current Context

### Focused Content
{focus_section}

### Related Content
{semantic_section}

### Connected Items
{relations_section}

### Recent Activity
{activity_section}

---

User Query: {query}
"""
"""The layout: what stands between braces is where a part goes."""

NOTHING_FOUND: Final = "_No relevant content found._"

_SECTIONS: Final = (SectionType.FOCUS, SectionType.SEMANTIC, SectionType.RELATIONS, SectionType.ACTIVITY)
_CRUMB: Final = " › "
_INFO_STRING: Final = re.compile(r"[\w+#.-]+", re.ASCII)

# A line that would be more than text in Markdown, or that looks like one of ours: a heading, a rule, an underline, a
# fence, a tag, a link definition, the head of an item, a receipt, the question.
_MORE_THAN_TEXT: Final = re.compile(
    r"^[^\S\n]*(?:>[^\S\n]*){0,8}(?:(?:[-+*]|\d{1,9}[.)])[^\S\n]+(?:\[[ x]\][^\S\n]+)?+){0,8}"
    r"(?:#{1,6}(?:[ \t]|$)|`{3}|~{3}|<|\[[^\]\n]{0,500}\](?:[ \t:(\[]|$)|User Query:|_No relevant"
    r"|(?:=+|-+)[ \t]*$|(?:[*_-][ \t]*){3,}$)",
    re.MULTILINE | re.IGNORECASE,
)

_PLAIN_OURS: Final = re.compile(
    r"^(?=\\*[^\S\n]*(?:=== .* ===[^\S\n]*$|\[|-{3,}[^\S\n]*$|User Query:|_No relevant))", re.MULTILINE | re.IGNORECASE
)


class ContextAssembler(ABC):
    """Writes sections and the question as one text; `for_format` gives the one for a format."""

    def __init__(self, *, metadata_hints: bool = True, citations: bool = True) -> None:
        self._hints = metadata_hints
        self._citations = citations

    @staticmethod
    def for_format(
        format: ContextFormat = ContextFormat.MARKDOWN, *, metadata_hints: bool = True, citations: bool = True
    ) -> ContextAssembler:
        """The assembler that writes this format."""
        return _ASSEMBLERS[ContextFormat(format)](metadata_hints=metadata_hints, citations=citations)

    @abstractmethod
    def assemble(self, sections: Sequence[ContextSection], query: str) -> str:
        """The whole text."""

    def format_section(self, section: ContextSection) -> str:
        """A section's items, a blank line between them, or that there are none."""
        return "\n\n".join(map(self.format_item, section.items)) or NOTHING_FOUND

    @abstractmethod
    def format_item(self, item: ContextItem) -> str:
        """An item: where it is from, what it is, and what it says."""

    def written(self, section: ContextSection) -> str:
        """A section with its title, as it stands in the text."""
        return f"{self._title(section)}\n{self.format_section(section)}\n\n"

    def cost_text(self, item: ContextItem) -> str:
        """What an item adds to the text."""
        return f"{self.format_item(item)}\n\n"

    def spans(self, sections: Sequence[ContextSection], text: str) -> tuple[tuple[int, int], ...]:
        """Where each item stands in the text that `assemble` made of the sections; items are written in order."""
        spans = []
        end = 0
        for item in (item for section in sections for item in section.items):
            written = self.format_item(item)
            start = text.index(written, end)
            end = start + len(written)
            spans.append((start, end))
        return tuple(spans)

    def _title(self, section: ContextSection) -> str:
        return section.title

    def _hint(self, item: ContextItem) -> str:
        """Where the item stands, and of when it is."""
        if not self._hints:
            return ""
        told = item.metadata
        # The page's own title stands before this already.
        path = [make_visible_line(part).text for part in told.path if part != told.page_title]
        parts = [_CRUMB.join(path)] if path else []
        if told.last_modified is not None:
            parts.append(told.last_modified.date().isoformat())
        return ", ".join(parts)

    def _head(self, item: ContextItem) -> str:
        """The line above an item: its number, its page, its type, and where it stands."""
        title = f"[{_bracketed(item.metadata.page_title)}] " if item.metadata.page_title else ""
        hint = heading_text(self._hint(item))
        return f"{self._number(item)}{title}[{_bracketed(item.block_type)}]" + (f" ({hint})" if hint else "")

    def _number(self, item: ContextItem) -> str:
        return f"[{item.number}] " if self._citations and item.number else ""


class MarkdownAssembler(ContextAssembler):
    """The specification's own layout."""

    def assemble(self, sections: Sequence[ContextSection], query: str) -> str:
        """The template with its parts in their places; a conversation and instructions where there are any."""
        by_type = {section.type: section for section in sections}
        parts: list[str] = []
        system = by_type.get(SectionType.SYSTEM)
        if system is not None and system.items:
            parts.append(f"## {system.title}\n{self.format_section(system)}\n\n")
        history = by_type.get(SectionType.HISTORY)
        for literal, name, _, _ in Formatter().parse(CONTEXT_TEMPLATE):
            if history is not None and history.items and literal.startswith("\n\n---"):
                parts.append(f"\n\n### {history.title}\n{self.format_section(history)}")
            parts.append(literal)
            if name == "query":
                parts.append(make_visible(query).text)
            elif name:
                kind = SectionType(name.removesuffix("_section"))
                parts.append(self.format_section(by_type.get(kind) or _empty(kind)))
        return "".join(parts).rstrip("\n")

    def format_item(self, item: ContextItem) -> str:
        """`[page title] [block_type]`, where it stands, and the content, fenced where it is more than text."""
        if item.section is SectionType.SYSTEM:
            return item.content
        return f"{self._head(item)}\n{self._body(item)}{_tail(item)}"

    def _title(self, section: ContextSection) -> str:
        return f"### {section.title}"

    def _body(self, item: ContextItem) -> str:
        text = item.content.strip("\n")
        language = item.language or ""
        if language in ("", "markdown", "text"):
            if not _MORE_THAN_TEXT.search(text) and not text.startswith((" ", "\t")):
                return text
            language = ""
        info = language if _INFO_STRING.fullmatch(language) else ""
        fence = fence_for(text)
        return f"{fence}{info}\n{text}\n{fence}"


class PlainAssembler(ContextAssembler):
    """The same without markup: a line that looks like one of ours gets a backslash in front."""

    def assemble(self, sections: Sequence[ContextSection], query: str) -> str:
        """Titles between signs, and the items below them."""
        parts = [self.written(section) for section in _in_order(sections)]
        return f"{''.join(parts)}---\n\nUser Query: {make_visible(query).text}"

    def format_item(self, item: ContextItem) -> str:
        """A line that says what it is, and the content."""
        if item.section is SectionType.SYSTEM:
            return item.content
        return f"{self._head(item)}\n{_PLAIN_OURS.sub(_BACKSLASH, item.content)}{_tail(item)}"

    def _title(self, section: ContextSection) -> str:
        return f"=== {section.title} ==="


class XmlAssembler(ContextAssembler):
    """One root, a section for each type, everything from outside escaped."""

    def assemble(self, sections: Sequence[ContextSection], query: str) -> str:
        """The document."""
        parts = [self.written(section) for section in _in_order(sections)]
        return f"<context>\n{''.join(parts)}<query>{escaped(make_visible(query).text)}</query>\n</context>"

    def written(self, section: ContextSection) -> str:
        """A `section` element."""
        title = escaped_attribute(section.title)
        return f'<section type="{section.type.value}" title="{title}">\n{self.format_section(section)}\n</section>\n'

    def format_section(self, section: ContextSection) -> str:
        """The `item` elements."""
        return "\n".join(map(self.format_item, section.items)) or f"<empty>{NOTHING_FOUND}</empty>"

    def format_item(self, item: ContextItem) -> str:
        """An `item` element."""
        told = item.metadata
        fields: dict[str, str | None] = {
            "n": str(item.number) if self._citations and item.number else None,
            "id": make_visible_line(item.block_id).text,
            "type": str(item.block_type),
            "page": make_visible_line(told.page_title).text if told.page_title else None,
        }
        if self._hints:
            fields["path"] = _CRUMB.join(make_visible_line(part).text for part in told.path) or None
            fields["modified"] = told.last_modified.isoformat() if told.last_modified else None
        if item.trim:
            lines, characters = item.trim.missing_lines, item.trim.missing_characters
            fields["truncated"] = f"{lines} lines, {characters} characters"
        attributes = "".join(f' {name}="{escaped_attribute(value)}"' for name, value in fields.items() if value)
        return f"<item{attributes}>\n{escaped(item.content)}\n</item>"

    def cost_text(self, item: ContextItem) -> str:
        """What an item adds to the text."""
        return f"{self.format_item(item)}\n"


class JsonAssembler(ContextAssembler):
    """One document; each item is an object on a line of its own."""

    def assemble(self, sections: Sequence[ContextSection], query: str) -> str:
        """The document."""
        parts = ",\n".join(self.written(section) for section in _in_order(sections))
        return f'{{"context": [\n{parts}\n],\n"query": {_json(make_visible(query).text)}}}'

    def written(self, section: ContextSection) -> str:
        """A section as an object."""
        head = f'{{"type": "{section.type.value}", "title": {_json(section.title)}, "items": ['
        return f"{head}\n{self.format_section(section)}\n]}}" if section.items else f"{head}]}}"

    def format_section(self, section: ContextSection) -> str:
        """The items as objects."""
        return ",\n".join(map(self.format_item, section.items))

    def format_item(self, item: ContextItem) -> str:
        """An item as an object."""
        told = item.metadata
        fields: dict[str, Any] = {"n": item.number} if self._citations and item.number else {}
        fields |= {"blockId": make_visible_line(item.block_id).text, "blockType": str(item.block_type)}
        if told.page_title:
            fields["pageTitle"] = make_visible_line(told.page_title).text
        if self._hints and told.path:
            fields["path"] = [make_visible_line(part).text for part in told.path]
        if self._hints and told.last_modified:
            fields["lastModified"] = told.last_modified.isoformat()
        fields["content"] = item.content
        if item.trim:
            fields["truncated"] = {"lines": item.trim.missing_lines, "characters": item.trim.missing_characters}
        return _json(fields)

    def cost_text(self, item: ContextItem) -> str:
        """What an item adds to the text."""
        return f"{self.format_item(item)},\n"


_ASSEMBLERS: Final[dict[ContextFormat, type[ContextAssembler]]] = {
    ContextFormat.MARKDOWN: MarkdownAssembler,
    ContextFormat.PLAIN: PlainAssembler,
    ContextFormat.XML: XmlAssembler,
    ContextFormat.JSON: JsonAssembler,
}
_BACKSLASH: Final = r"\\"


def _in_order(sections: Sequence[ContextSection]) -> list[ContextSection]:
    """The sections in the order of the template, with those that are always there."""
    by_type = {section.type: section for section in sections}
    return [
        by_type.get(kind) or _empty(kind)
        for kind in SectionType
        if kind in _SECTIONS or (kind in by_type and by_type[kind].items)
    ]


def _empty(kind: SectionType) -> ContextSection:
    return ContextSection(type=kind, title=SECTION_TITLES[kind])


def _bracketed(text: str) -> str:
    """Text that stands between brackets on one line."""
    return heading_text(make_visible_line(text).text).replace("[", "\\[").replace("]", "\\]")


def _tail(item: ContextItem) -> str:
    """The receipt of an item that was trimmed."""
    return f"\n{receipt(item.trim._replace(id=_bracketed(item.trim.id)))}" if item.trim else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
