"""Obsidian's boards: canvas files (cards on a plane, and arrows between cards), and notes of the Kanban plugin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from satchel.importers.json_values import list_of, text_of
from satchel.importers.markdown_blocks import MarkdownPage, MarkdownPiece, digest, walk_pieces
from satchel.importers.note_markup import task_metadata, task_title
from satchel.importers.storable import storable, storable_line
from satchel.models.block import Block, BlockType, Link, LinkKind


@dataclass(frozen=True, slots=True)
class Card:
    """A card as a block, with the Markdown or file name to search for links."""

    block: Block
    text: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The cards in reading order (top first, then left) and the arrows as links; or the problem."""

    cards: list[Card] = field(default_factory=list)
    arrows: list[Link] = field(default_factory=list)
    problem: str = ""


def read_canvas(page: MarkdownPage, text: str) -> Canvas:
    """The cards and arrows of a canvas file."""
    try:
        data = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return Canvas(problem="not valid JSON")
    if not isinstance(data, dict):
        return Canvas(problem="not a canvas")
    nodes = {str(node["id"]): node for node in _objects(data, "nodes") if isinstance(node.get("id"), str | int)}
    ids = {name: _block_id(page, name) for name in nodes}
    in_order = sorted(nodes, key=lambda name: (_number(nodes[name], "y"), _number(nodes[name], "x"), name))
    cards = [_card(page, ids[name], place, nodes[name]) for place, name in enumerate(in_order, 1)]
    return Canvas(cards, list(_arrows(data, ids)))


def _block_id(page: MarkdownPage, name: str) -> str:
    is_plain = name.isascii() and name.isalnum() and len(name) <= 64
    return f"{page.id}#^{name}" if is_plain else f"{page.id}#~{digest(name)}"


def _card(page: MarkdownPage, block_id: str, place: int, node: dict[str, Any]) -> Card:
    text = storable(text_of(node, "text"))
    file = storable_line(storable(text_of(node, "file"))) + storable(text_of(node, "subpath"))
    source = file or storable(text_of(node, "url"))
    block = Block(
        id=block_id,
        type=BlockType.EMBED if source else BlockType.TEXT,
        source_path=page.source_path,
        title=storable_line(storable(text_of(node, "label"))),
        parent=page.id,
        position=place,
        content=source or text,
        last_modified=page.last_modified,
        metadata={"source": source} if source else {},
    )
    return Card(block, text, file)


def _arrows(data: dict[str, Any], ids: dict[str, str]) -> Iterator[Link]:
    for edge in _objects(data, "edges"):
        source, target = ids.get(str(edge.get("fromNode"))), ids.get(str(edge.get("toNode")))
        if source and target:
            label = storable_line(text_of(edge, "label"))
            yield Link(source=source, kind=LinkKind.RELATION, name=label, target=target)


def _objects(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [entry for entry in list_of(data, name) if isinstance(entry, dict)]


def _number(node: dict[str, Any], name: str) -> float:
    value = node.get(name)
    # NaN compares with nothing and would scramble the order.
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else 0.0


_PROPERTY: Final = "kanban-plugin"
_SETTINGS: Final = re.compile(r"^%% kanban:settings", re.MULTILINE)

# The plugin can mark a lane as complete; many boards only name the lane accordingly.
_COMPLETE_LANES: Final = frozenset({"done", "complete", "completed", "archive"})


def is_board(properties: Mapping[str, Any]) -> bool:
    """True if the front matter marks the note as a board of the Kanban plugin."""
    return bool(properties.get(_PROPERTY))


def without_settings(text: str) -> str:
    """The text of a board without the plugin's settings at the end."""
    return _SETTINGS.split(text, maxsplit=1)[0]


def mark_lanes(pieces: list[MarkdownPiece]) -> None:
    """Turn the items below a board's headings into cards with the lane in their metadata."""
    for lane in list(walk_pieces(pieces)):
        if lane.type is BlockType.HEADING:
            others = [piece for piece in lane.children if not _is_complete_mark(piece)]
            is_complete = len(others) < len(lane.children) or lane.title.strip().casefold() in _COMPLETE_LANES
            if is_complete:
                lane.metadata["complete"] = True
            lane.children = others
            for card in others:
                _mark_card(card, lane.title, is_complete)


def _is_complete_mark(piece: MarkdownPiece) -> bool:
    return piece.type is BlockType.TEXT and piece.content == "**Complete**"


def _mark_card(card: MarkdownPiece, lane: str, is_complete: bool) -> None:
    if card.type not in (BlockType.TODO, BlockType.LIST_ITEM):
        return
    if card.type is BlockType.LIST_ITEM:
        card.title = task_title(card.content)
        card.metadata = task_metadata(" ", card.content)
    card.type = BlockType.KANBAN_CARD
    card.metadata["lane"] = lane
    if is_complete and not card.metadata["done"]:
        card.metadata |= {"done": True, "status": "done"}
