"""Obsidian's boards: canvas files (cards on a plane, and arrows between them), and notes of the Kanban plugin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from satchel.importers.markdown_blocks import Page, Piece, digest, walk_pieces
from satchel.importers.note_markup import task_metadata, task_title
from satchel.importers.storable import storable, storable_line
from satchel.models.block import Block, BlockType


@dataclass(frozen=True, slots=True)
class Card:
    """A card as a block, and the Markdown or the file name in which links may stand."""

    block: Block
    text: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge from one card's block to another's."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Canvas:
    """The cards in reading order (from the top, then from the left), and the arrows; or what was wrong."""

    cards: list[Card] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    problem: str = ""


def read_canvas(page: Page, text: str) -> Canvas:
    """The cards and arrows of a canvas file."""
    try:
        data = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return Canvas(problem="it is not JSON")
    if not isinstance(data, dict):
        return Canvas(problem="it is no canvas")
    nodes = {str(node["id"]): node for node in _objects(data, "nodes") if isinstance(node.get("id"), str | int)}
    ids = {name: _block_id(page, name) for name in nodes}
    in_order = sorted(nodes, key=lambda name: (_number(nodes[name], "y"), _number(nodes[name], "x"), name))
    cards = [_card(page, ids[name], place, nodes[name]) for place, name in enumerate(in_order, 1)]
    return Canvas(cards, list(_arrows(data, ids)))


def _block_id(page: Page, name: str) -> str:
    plain = name.isascii() and name.isalnum() and len(name) <= 64
    return f"{page.id}#^{name}" if plain else f"{page.id}#~{digest(name)}"


def _card(page: Page, block_id: str, place: int, node: dict[str, Any]) -> Card:
    def said(name: str) -> str:
        value = node.get(name)
        return storable(value) if isinstance(value, str) else ""

    kind, title, content, metadata = BlockType.TEXT, storable_line(said("label")), said("text"), {}
    file = storable_line(said("file")) + said("subpath")
    if file or said("url"):
        kind, content, metadata = BlockType.EMBED, file or said("url"), {"source": file or said("url")}
    block = Block(
        id=block_id,
        type=kind,
        source_path=page.source_path,
        title=title,
        parent=page.id,
        position=place,
        content=content,
        last_modified=page.last_modified,
        metadata=metadata,
    )
    return Card(block, said("text"), file)


def _arrows(data: dict[str, Any], ids: dict[str, str]) -> Iterator[Arrow]:
    for edge in _objects(data, "edges"):
        source, target = ids.get(str(edge.get("fromNode"))), ids.get(str(edge.get("toNode")))
        if source and target:
            label = edge.get("label")
            yield Arrow(source, target, storable_line(label) if isinstance(label, str) else "")


def _objects(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = data.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _number(node: dict[str, Any], name: str) -> float:
    value = node.get(name)
    # NaN compares with nothing and would scramble the order.
    ordinary = isinstance(value, int | float) and value == value and abs(value) < 1e15  # noqa: PLR0124
    return float(value) if ordinary and value is not None else 0.0


_PROPERTY: Final = "kanban-plugin"
_SETTINGS: Final = re.compile(r"^%% kanban:settings", re.MULTILINE)
_COMPLETE_MARK: Final = "**Complete**"

# The plugin marks a lane as complete; people who do not know that call it so.
_COMPLETE_LANES: Final = frozenset({"done", "complete", "completed", "archive"})


def is_board(properties: Mapping[str, Any]) -> bool:
    """Whether a note with this front matter is a board."""
    return bool(properties.get(_PROPERTY))


def without_settings(text: str) -> str:
    """The text of a board without what the plugin keeps for itself at its end."""
    found = _SETTINGS.search(text)
    return text[: found.start()] if found else text


def as_board(pieces: list[Piece]) -> list[Piece]:
    """The pieces of a note with its lanes' items as cards that know their lane."""
    for lane in list(walk_pieces(pieces)):
        if lane.type is BlockType.HEADING:
            _mark_lane(lane)
    return pieces


def _mark_lane(lane: Piece) -> None:
    marks = [piece for piece in lane.children if piece.type is BlockType.TEXT and piece.content == _COMPLETE_MARK]
    lane.children = [piece for piece in lane.children if piece not in marks]
    complete = bool(marks) or lane.title.strip().casefold() in _COMPLETE_LANES
    if complete:
        lane.metadata["complete"] = True
    for card in lane.children:
        if card.type in (BlockType.TODO, BlockType.LIST_ITEM):
            _mark_card(card, lane.title, complete)


def _mark_card(card: Piece, lane: str, complete: bool) -> None:
    if card.type is BlockType.LIST_ITEM:
        card.title = task_title(card.content)
        card.metadata = task_metadata(" ", card.content)
    card.type = BlockType.KANBAN_CARD
    card.metadata["lane"] = lane
    if complete and not card.metadata["done"]:
        card.metadata |= {"done": True, "status": "done"}
