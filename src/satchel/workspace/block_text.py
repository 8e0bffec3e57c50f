"""Render blocks as text, the way a reader of the workspace sees blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from satchel.models.block import PAGE_TYPES, TASK_TYPES, Block, BlockType, is_done
from satchel.models.results import ContextItem, ItemMetadata, Place, SectionType

if TYPE_CHECKING:
    from collections.abc import Sequence

# A longer outline would use the budget for titles instead of content.
_MAX_OUTLINE_TITLES: Final = 30

# Children read for the outline: a title comes from one child, so that more would not be rendered.
MAX_OUTLINE_BLOCKS: Final = 30

_TASK_FACTS: Final = ("due", "status", "lane", "priority", "assignee")
_BOXED: Final = frozenset({"open", "done", "todo", "x"})


def own_text(block: Block) -> str:
    """The block's own text: title and content, or the task line of a to-do or card."""
    if block.type in TASK_TYPES:
        return _task(block)
    title, content = block.title.strip(), block.content
    if block.source_path and block.language and not content:
        return block.summary or title
    if block.type == BlockType.MESSAGE:
        speaker = block.metadata.get("author") or block.metadata.get("role")
        return f"{speaker}: {content}" if isinstance(speaker, str) and speaker else content or title
    if not content.strip():
        return block.summary if block.type in PAGE_TYPES and block.summary else title
    if not title or is_code(block) or content.lstrip().startswith(title):
        return content
    return f"{title}\n{content}"


def brief(block: Block) -> str:
    """The summary or signature of a code block; the own text of every non-code block."""
    if is_code(block):
        return block.summary or block.signature or block.title
    return own_text(block)


def in_short(item: ContextItem, page: Block, children: Sequence[Block]) -> ContextItem:
    """The item with a page summary as content: title, summary, content and the headings among the children."""
    outlined = [block for block in children if block.type in _OUTLINED]
    # The summary of a page: title, summary, content and headings.
    parts = [page.title or page.id]
    if page.summary:
        parts.append(page.summary)
    if page.content.strip() and page.content.strip() != page.summary.strip():
        parts.append(page.content)
    headings = [block.title for block in outlined if block.title not in ("", page.title)]
    if headings:
        more = "; …" if len(headings) > _MAX_OUTLINE_TITLES else ""
        parts.append(f"Outline: {'; '.join(headings[:_MAX_OUTLINE_TITLES])}{more}")
    return replace(item, content="\n".join(dict.fromkeys(parts)), holds=tuple(block.id for block in outlined))


def item_of(
    block: Block, relevance: float, section: SectionType, reason: str, *, content: str | None = None
) -> ContextItem:
    """A context item for the block; `relevance` is clamped to 0..1."""
    return ContextItem(
        block_id=block.id,
        block_type=block.type,
        content=own_text(block) if content is None else content,
        relevance=max(0.0, min(1.0, relevance)),
        metadata=ItemMetadata(last_modified=block.last_modified),
        section=section,
        reasons=(reason,),
        language=block.language,
        source_path="" if is_code(block) else block.source_path,
        file_path=block.source_path if is_code(block) else "",
        place=Place(block.source_path, block.start_line, block.end_line, block.page) if is_code(block) else None,
    )


def is_code(block: Block) -> bool:
    """True if the block was read from a source file."""
    return bool(block.qualified_name or block.type == BlockType.FILE)


_OUTLINED_PROSE: Final = (BlockType.HEADING, BlockType.SECTION, BlockType.PAGE, BlockType.DB_ROW)
_OUTLINED_CODE: Final = (BlockType.CLASS, BlockType.FUNCTION, BlockType.METHOD, BlockType.STRUCT, BlockType.INTERFACE)
_OUTLINED: Final = frozenset((*_OUTLINED_PROSE, *_OUTLINED_CODE))


def _task(block: Block) -> str:
    meta = block.metadata
    text = (block.content if block.content.strip() else block.title).strip()
    facts = {name: " ".join(meta[name].split()) for name in _TASK_FACTS if isinstance(meta.get(name), str)}
    # Skip facts that are in the text or shown by the check box.
    details = [
        f"{name}: {value}" for name, value in facts.items() if value and value not in text and value not in _BOXED
    ]
    state = "- [x] " if is_done(meta) else "- [ ] "
    return f"{state}{text}" + (f"\n({'; '.join(details)})" if details else "")
