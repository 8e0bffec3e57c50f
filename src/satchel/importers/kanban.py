"""Boards of Obsidian's Kanban plugin: a note whose headings are lanes and whose list items are cards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from satchel.importers.markdown_blocks import Piece, walk_pieces
from satchel.importers.tasks import task_metadata, task_title
from satchel.models.block import BlockType

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
