"""Renders Markdown: a heading and a fenced block for a chunk; a heading, a place and a summary for an entity.

Untrusted text appears only where `guard` makes it safe.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Final

from satchel.assembly.render.format import SYSTEM_SECTION, Document, Sheet, TextFormat, bracketed_receipt
from satchel.assembly.render.guard import closed, fence_for, heading_text, is_plain, paragraph, undefined
from satchel.models.chunk import Piece, Section
from satchel.models.options import HeadingStyle
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.models.chunk import Piece
    from satchel.models.context import ContextSource

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
"""The workspace template of S4, with placeholders in braces."""

_INFO_STRING: Final = re.compile(r"[\w+#.-]+", re.ASCII)


class MarkdownFormat(TextFormat):
    """Renders Markdown."""

    sources_title = "---\n**Sources:**"

    def separator_for(self, separator: str) -> str:
        """The separator; a blank line after visible separators keeps them apart from the next heading."""
        separator = closed(separator)
        return f"{separator}\n" if separator.strip() and not separator.endswith("\n\n") else separator

    def wrapping(self, text: str | None) -> str:
        """The caller's Markdown, with open fences and tags escaped to protect the text after the header."""
        return closed(super().wrapping(text))

    def title(self, title: str) -> str:
        """The heading of a section."""
        return f"## {title}"

    def section_title(self, section: Section) -> str:
        """The heading of a workspace section; system instructions get the level of the context, not a level below."""
        return f"## {section.title}\n" if section.name == SYSTEM_SECTION else f"### {section.title}\n"

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        number = self.number_label(source)
        label = heading_text(source.label)
        # A list item can begin with a fence or a heading as well as a line can.
        row = f"{number}{label}" if number else paragraph(label)
        place = "" if source.label == source.location else f" ({heading_text(source.location)})"
        return f"- {row}{place}\n"

    def sections(self, document: Document, query: str) -> Sheet:
        """The filled template; sections without a placeholder come before the closing rule.

        The text is built from parts, never by putting content where a placeholder stood: a block that holds `{query}`
        is a block that holds `{query}`.
        """
        sheet = Sheet()
        if document.notice:
            sheet.add(f"{document.notice}\n\n")
        sections = {section.name: section for section in document.sections}
        if system := sections.pop(SYSTEM_SECTION, None):
            self.add_section(sheet, system)
        for literal, field, _, _ in Formatter().parse(CONTEXT_TEMPLATE):
            if field == "query":
                for section in sections.values():
                    sheet.add(f"\n\n{self.section_title(section)}")
                    self.add_blocks(sheet, section)
                sheet.add(f"{literal}{undefined(make_visible(query).text)}")
            elif field:
                sheet.add(literal)
                self.add_blocks(sheet, sections.pop(field.removesuffix("_section"), Section(None, ())))
        sheet.parts[-1] = sheet.parts[-1].rstrip("\n")
        return sheet

    def chunk_heading(self, piece: Piece, number: str, lines: tuple[int, int] | None) -> str:
        """The number and the file with lines and relevance below them; in the compact style all on a single line."""
        path = "" if piece.continues_file else heading_text(piece.lead.path or piece.lead.name)
        if self.options.heading_style is not HeadingStyle.FULL:
            return self._compact_heading(piece, number, path, self.place(piece, lines))
        heading = f"### {number} {path}\n" if path and number else f"### {path}\n" if path else ""
        facts = (
            [f"Lines {lines[0]}-{lines[1]}"]
            if lines
            else [self.place(piece, None).capitalize()]
            if piece.lead.page
            else []
        )
        if self.options.include_scores:
            facts.append(f"Relevance: {percent(piece.relevance)}")
        if number and not path:
            facts[:1] = [" ".join([number, *facts[:1]])]
        below = "\n".join(facts)
        return f"{heading}{below}\n\n" if below else f"{heading}\n"

    def _compact_heading(self, piece: Piece, number: str, path: str, where: str) -> str:
        facts = [where] if where else []
        if self.options.include_scores:
            facts.append(f"relevance {percent(piece.relevance)}")
        about = ", ".join(facts)
        in_brackets = f"({about})" if about else ""
        symbol = heading_text(self.symbol(piece))
        if path:
            words = ["###", number, f"{path} · {symbol}" if symbol else path, in_brackets]
        else:
            words = [number, symbol, in_brackets] if symbol else [number, about[:1].upper() + about[1:]]
        heading = " ".join(filter(None, words))
        return f"{heading}\n" if heading else ""

    def chunk_body(self, piece: Piece) -> str:
        """A fenced block."""
        language = piece.lead.language or "text"
        if not _INFO_STRING.fullmatch(language):
            language = "text"
        fence = fence_for(piece.text)
        tail = f"{bracketed_receipt(piece.trim)}\n" if piece.trim else ""
        body = f"{fence}{language}\n{piece.text}\n{fence}\n{tail}"
        # In S0's compact style the separator alone stands between chunks.
        return body.removesuffix("\n") if self.options.heading_style is HeadingStyle.COMPACT else body

    def entity_heading(self, piece: Piece) -> str:
        """The number and the name, with the place below."""
        item = piece.lead
        place = item.path and (f"{item.path}:{item.first_line}" if item.first_line else item.path)
        score = f"Relevance: {percent(piece.relevance)}\n" if self.options.include_scores else ""
        where = heading_text(place or item.type).replace("*", "\\*")
        return f"### {self.number_label(piece)}{heading_text(item.name)}\n*{where}*\n{score}"

    def entity_body(self, piece: Piece) -> str:
        """The summary as paragraphs, the content in a fenced block."""
        item, trim = piece.lead, piece.trim
        lines = ["", paragraph(item.summary)] if item.summary else [""]
        if piece.text:
            fence = fence_for(piece.text)
            lines += ["", f"{fence}{item.language or ''}", piece.text]
            if trim:
                lines.append(f'// ... (truncated) {trim.missing_characters} more characters: expand("{trim.id}")')
            lines.append(fence)
        return "\n".join(lines)

    def block_body(self, piece: Piece) -> str:
        """The text of a block, fenced if Markdown would read more than text."""
        text, language = piece.text.strip("\n"), piece.lead.language or ""
        if language in ("", "markdown", "text"):
            if is_plain(text):
                return text
            language = ""
        fence = fence_for(text)
        return f"{fence}{language if _INFO_STRING.fullmatch(language) else ''}\n{text}\n{fence}"


def percent(relevance: float) -> str:
    """The relevance in whole percent, halves rounded up."""
    return f"{int(relevance * 100 + 0.5)}%"
