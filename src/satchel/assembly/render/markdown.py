"""Markdown: a heading and a fenced block for a chunk; a heading, a place and a summary for an entity.

Text from outside stands only where it cannot do anything: inside a fence longer than any run of its own fence
characters, on the one line of a heading, or in a paragraph whose block markers are escaped.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Final

from satchel.assembly.render.format import (
    SYSTEM_SECTION,
    Document,
    Format,
    Sheet,
    join_sections,
    line_words,
    lines_of,
    page_of,
    percent,
    receipt,
)
from satchel.assembly.render.pages import guard_page, page_heading
from satchel.models.chunk import CandidateKind, Section
from satchel.models.options import HeadingStyle
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from satchel.models.chunk import Piece, Trim
    from satchel.models.context import ContextSource
    from satchel.models.options import ContextBuildOptions

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
"""S4's layout of a workspace: what stands between braces is where a part goes."""

_BACKTICKS: Final = re.compile("`{3,}")
_TILDES: Final = re.compile("~{3,}")
# A tag or a code span, and the backslashes before it, which would take its own away.
_MEANINGFUL: Final = re.compile(r"(\\*)([<`]|!(?=\[))")
_TAG_OR_IMAGE: Final = re.compile(r"(\\*)(<|!(?=\[))")
_INFO_STRING: Final = re.compile(r"[\w+#.-]+", re.ASCII)
_BLOCK_START: Final = re.compile(r"^[ \t]*(?:([-+*#>=~`<|:\[_])|(\d{1,9})([.)]))", re.MULTILINE)
_INDENT: Final = re.compile(r"^[ \t]+", re.MULTILINE)
_FENCE_LINE: Final = re.compile(r"(`{3,}|~{3,})(.*)")
_ANY_FENCE: Final = re.compile(r"`{3,}|~{3,}")
# Raw HTML that does not end at a blank line, wherever in a list or a quote it stands.
_ENDLESS_HTML: Final = re.compile(
    r"^([\s>*+\-\d.)]*)<(?=!|\?|(?:pre|script|style|textarea)\b)", re.IGNORECASE | re.MULTILINE
)

# A line that would be more than text in Markdown, or that looks like one of ours: a heading, a rule, an underline, a
# fence, a tag, a link definition, the head of an item, a receipt, the question.
_MORE_THAN_TEXT: Final = re.compile(
    r"^[^\S\n]*(?:>[^\S\n]*){0,8}(?:(?:[-+*]|\d{1,9}[.)])[^\S\n]+(?:\[[ x]\][^\S\n]+)?+){0,8}"
    r"(?:#{1,6}(?:[ \t]|$)|`{3}|~{3}|<|\[[^\]\n]{0,500}\](?:[ \t:(\[]|$)|User Query:|_No relevant"
    r"|(?:=+|-+)[ \t]*$|(?:[*_-][ \t]*){3,}$)",
    re.MULTILINE | re.IGNORECASE,
)


class MarkdownFormat(Format):
    """Renders Markdown."""

    def __init__(self, options: ContextBuildOptions, *, metadata_hints: bool = True) -> None:
        super().__init__(options, metadata_hints=metadata_hints)
        self._compact = options.heading_style is HeadingStyle.COMPACT
        self.separator = _apart(closed(self.separator))

    def heading(self, piece: Piece) -> str:
        """The heading of a chunk or an entity; one line for a page or a block."""
        match piece.lead.kind:
            case CandidateKind.CHUNK:
                return self._chunk_heading(piece)
            case CandidateKind.ENTITY:
                return self._entity_heading(piece)
            case CandidateKind.PAGE:
                return page_heading(piece)
            case CandidateKind.BLOCK:
                return block_heading(self, piece)

    def body(self, piece: Piece) -> str:
        """A fenced block for a chunk, a summary for an entity, the text of a page or a block as it is if it is safe."""
        match piece.lead.kind:
            case CandidateKind.CHUNK:
                return _fenced_chunk(piece)
            case CandidateKind.ENTITY:
                return _entity_body(piece)
            case CandidateKind.PAGE:
                return guard_page(piece.text)
            case CandidateKind.BLOCK:
                return f"{_block_body(piece)}{block_receipt(piece)}"

    def title(self, title: str) -> str:
        """A section's heading."""
        return f"## {title}"

    def section_title(self, section: Section) -> str:
        """The heading of a section of a workspace; instructions stand beside the context, not in it."""
        return f"## {section.title}\n" if section.name == SYSTEM_SECTION else f"### {section.title}\n"

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        number = f"[{source.number}] " if self.options.include_citations else ""
        label = heading_text(source.label)
        # A list item can begin with a fence or a heading as well as a line can.
        row = f"{number}{label}" if number else paragraph(label)
        place = "" if source.label == source.location else f" ({heading_text(source.location)})"
        return f"- {row}{place}\n"

    def document(self, document: Document) -> Sheet:
        """The finished text."""
        if document.query is not None:
            return self._fill_template(document, document.query)
        rows = "".join(map(self.source, document.sources))
        return join_sections(
            self,
            document,
            header=closed(make_visible(self.options.context_header or "").text),
            footer=closed(make_visible(self.options.context_footer or "").text).rstrip(),
            sources=f"---\n**Sources:**\n{rows}" if rows else "",
        )

    def _fill_template(self, document: Document, query: str) -> Sheet:
        """The template with its parts in their places; sections that it does not name stand before its rule.

        The text is built from parts, never by putting content where a placeholder stood: a block that holds `{query}`
        is a block that holds `{query}`.
        """
        sheet = Sheet()
        sections = {section.name: section for section in document.sections}
        if system := sections.pop(SYSTEM_SECTION, None):
            self.add_section(sheet, system)
        for literal, field, _, _ in Formatter().parse(CONTEXT_TEMPLATE):
            if field == "query":
                for section in sections.values():
                    sheet.add(f"\n\n{self.section_title(section)}")
                    self.add_blocks(sheet, section)
                sheet.add(f"{literal}{make_visible(query).text}")
            elif field:
                sheet.add(literal)
                self.add_blocks(sheet, sections.pop(field.removesuffix("_section"), Section(None, ())))
        sheet.parts[-1] = sheet.parts[-1].rstrip("\n")
        return sheet

    def _chunk_heading(self, piece: Piece) -> str:
        options = self.options
        number = f"[{piece.number}]" if options.include_citations else ""
        if not options.include_file_headers:
            return f"{number}\n" if number else ""
        lines = lines_of(piece) if options.include_line_numbers else None
        page = page_of(piece)
        path = "" if piece.continues_file else heading_text(piece.lead.path or piece.lead.name)
        if self._compact:
            return self._compact_heading(piece, number, path, page or (line_words(*lines) if lines else ""))
        heading = f"### {number} {path}\n" if path and number else f"### {path}\n" if path else ""
        facts = [page.capitalize()] if page else []
        if lines:
            facts.append(f"Lines {lines[0]}-{lines[1]}")
        if options.include_scores:
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
        words = (
            ["###", number, path, f"({about})" if about else ""] if path else [number, about[:1].upper() + about[1:]]
        )
        heading = " ".join(filter(None, words))
        return f"{heading}\n" if heading else ""

    def _entity_heading(self, piece: Piece) -> str:
        item = piece.lead
        number = f"[{piece.number}] " if self.options.include_citations else ""
        place = item.path and (f"{item.path}:{item.first_line}" if item.first_line else item.path)
        score = f"Relevance: {percent(piece.relevance)}\n" if self.options.include_scores else ""
        where = heading_text(place or item.type).replace("*", "\\*")
        return f"### {number}{heading_text(item.name)}\n*{where}*\n{score}"


def _fenced_chunk(piece: Piece) -> str:
    language = piece.lead.language or "text"
    if not _INFO_STRING.fullmatch(language):
        language = "text"
    text = piece.text
    fence = fence_for(text)
    tail = f"{_receipt(piece.trim)}\n" if piece.trim else ""
    return f"{fence}{language}\n{text}\n{fence}\n{tail}"


def _receipt(trim: Trim) -> str:
    """The receipt, its id escaped: a bracket in it could make a link definition of it, which is not shown."""
    return receipt(trim._replace(id=_bracketed(trim.id)))


def block_heading(format: Format, piece: Piece) -> str:
    """`[3] [page title] [type] (where it stands, its date)`: the line above a block."""
    block = piece.lead
    if block.section == SYSTEM_SECTION:
        return ""
    title = f"[{_bracketed(block.name)}] " if block.name else ""
    hint = heading_text(format.block_hint(piece))
    return f"{format.number_label(piece)}{title}[{_bracketed(block.type)}]{f' ({hint})' if hint else ''}\n"


def block_receipt(piece: Piece) -> str:
    """The receipt below a block that was cut."""
    return f"\n{_receipt(piece.trim)}" if piece.trim else ""


def _block_body(piece: Piece) -> str:
    """The text of a block, fenced where it is more than text."""
    if piece.lead.section == SYSTEM_SECTION:
        return piece.text
    text, language = piece.text.strip("\n"), piece.lead.language or ""
    if language in ("", "markdown", "text"):
        if not _MORE_THAN_TEXT.search(text) and not text.startswith((" ", "\t")):
            return text
        language = ""
    fence = fence_for(text)
    return f"{fence}{language if _INFO_STRING.fullmatch(language) else ''}\n{text}\n{fence}"


def _bracketed(text: str) -> str:
    """Text that stands between brackets on one line."""
    return heading_text(make_visible_line(text).text).replace("[", "\\[").replace("]", "\\]")


def _entity_body(piece: Piece) -> str:
    item, trim = piece.lead, piece.trim
    lines = [""]
    if item.summary:
        lines.append(paragraph(item.summary))
    if piece.text:
        fence = fence_for(piece.text)
        lines += ["", f"{fence}{item.language or ''}", piece.text]
        if trim:
            lines.append(f'// ... (truncated) {trim.missing_characters} more characters: expand("{trim.id}")')
        lines.append(fence)
    return "\n".join(lines)


def _apart(separator: str) -> str:
    """A separator that says something, with a blank line after it: it must not run into the next heading."""
    return f"{separator}\n" if separator.strip() and not separator.endswith("\n\n") else separator


def fence_for(text: str) -> str:
    """A fence that nothing in the text can close."""
    # Looking for one character is many times faster than looking for three.
    if "`" not in text or "```" not in text:
        return "```"
    backticks = max(map(len, _BACKTICKS.findall(text)))
    tildes = max(map(len, _TILDES.findall(text)), default=2)
    return "`" * (backticks + 1) if backticks <= tildes + 3 else "~" * (tildes + 1)


def heading_text(text: str) -> str:
    """Text for the one line of a heading: no tags, no code span, no closing sequence, no lost space."""
    if "<" in text or "`" in text or "![" in text:
        text = _MEANINGFUL.sub(r"\1\1\\\2", text)
    if text.endswith("#"):
        text = f"{text[:-1]}\\#"
    if text != text.strip():
        body = text.strip()
        before, after = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
        text = "␠" * before + body + "␠" * after if body else "␠" * len(text)
    return text


def paragraph(text: str) -> str:
    """Text as paragraphs that open no heading, list, quote, fence, table or tag."""
    text = _INDENT.sub("", _TAG_OR_IMAGE.sub(r"\1\1\\\2", text))
    text = _BLOCK_START.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", text)
    return text.strip()


def closed(text: str) -> str:
    """The caller's own Markdown, made literal where it could swallow what follows it.

    Fences at the start of a line that are plainly opened and closed stay. Where that is not plain (a fence in a list or
    a quote, one left open), every fence is made literal; so is every tag that opens a block without an end.
    """
    if ("```" in text or "~~~" in text) and not _plainly_balanced(text):
        text = _ANY_FENCE.sub(lambda fence: "".join(f"\\{char}" for char in fence[0]), text)
    return _ENDLESS_HTML.sub(r"\1\\<", text) if "<" in text else text


def _plainly_balanced(text: str) -> bool:
    """Whether every fence stands at the start of its line and is closed again, and no tag could hide one."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE_LINE.match(line)
        if fence:
            if found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        elif "```" in line or "~~~" in line or _ENDLESS_HTML.match(line):
            return False
    return not fence
