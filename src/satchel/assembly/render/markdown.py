"""Markdown: a heading and a fenced block for a chunk; a heading, a place and a summary for an entity.

Text from outside stands only where it cannot do anything: inside a fence longer than any run of its own fence
characters, on the one line of a heading, or in a paragraph whose block markers are escaped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from satchel.assembly.render.document import (
    Bodies,
    Document,
    Sheet,
    line_words,
    lines_of,
    page_of,
    percent,
    receipt,
    write_text,
)
from satchel.models.item import ItemKind
from satchel.models.options import HeadingStyle
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.models.citation import ContextSource
    from satchel.models.item import Piece, Trim
    from satchel.models.options import ContextBuildOptions

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


class MarkdownWriter:
    """Writes Markdown."""

    def __init__(self, options: ContextBuildOptions) -> None:
        self._options = options
        self._compact = options.heading_style is HeadingStyle.COMPACT
        self.separator = _apart(closed(make_visible(options.chunk_separator).text))
        self._blocks = Bodies(_block)
        self._entities = Bodies(_entity_body)

    def piece(self, piece: Piece, after: str = "") -> tuple[str, str]:
        """The heading, and the fenced block or the summary under it."""
        if piece.lead.kind is ItemKind.ENTITY:
            return self._entity_heading(piece), self._entities.of(piece, after)
        return self._heading(piece), self._blocks.of(piece, after)

    def title(self, title: str) -> str:
        """A section's heading."""
        return f"## {title}"

    def source(self, source: ContextSource) -> str:
        """A row of the list of sources."""
        number = f"[{source.number}] " if self._options.include_citations else ""
        label = heading_text(source.label)
        # A list item can begin with a fence or a heading as well as a line can.
        told = f"{number}{label}" if number else paragraph(label)
        place = "" if source.label == source.location else f" ({heading_text(source.location)})"
        return f"- {told}{place}\n"

    def write(self, document: Document) -> Sheet:
        """The whole document."""
        rows = "".join(map(self.source, document.sources))
        return write_text(
            self,
            document,
            header=closed(make_visible(self._options.context_header or "").text),
            footer=closed(make_visible(self._options.context_footer or "").text).rstrip(),
            sources=f"---\n**Sources:**\n{rows}" if rows else "",
            section_break="---",
        )

    def _heading(self, piece: Piece) -> str:
        options = self._options
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
        if self._options.include_scores:
            facts.append(f"relevance {percent(piece.relevance)}")
        told = ", ".join(facts)
        words = ["###", number, path, f"({told})" if told else ""] if path else [number, told[:1].upper() + told[1:]]
        heading = " ".join(filter(None, words))
        return f"{heading}\n" if heading else ""

    def _entity_heading(self, piece: Piece) -> str:
        item = piece.lead
        number = f"[{piece.number}] " if self._options.include_citations else ""
        place = item.path and (f"{item.path}:{item.first_line}" if item.first_line else item.path)
        score = f"Relevance: {percent(piece.relevance)}\n" if self._options.include_scores else ""
        told = heading_text(place or item.type).replace("*", "\\*")
        return f"### {number}{heading_text(item.name)}\n*{told}*\n{score}"


def _block(piece: Piece) -> str:
    language = piece.lead.language or "text"
    if not _INFO_STRING.fullmatch(language):
        language = "text"
    text = piece.text
    fence = fence_for(text)
    tail = f"{_receipt(piece.trim)}\n" if piece.trim else ""
    return f"{fence}{language}\n{text}\n{fence}\n{tail}"


def _receipt(trim: Trim) -> str:
    """The receipt, its id escaped: a bracket in it could make a link definition of it, which is not shown."""
    told = heading_text(trim.id).replace("[", "\\[").replace("]", "\\]")
    return receipt(trim._replace(id=told))


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
