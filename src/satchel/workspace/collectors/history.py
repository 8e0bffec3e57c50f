"""The conversation so far: the newest turns as they were, the older ones in short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.models.block import BlockType
from satchel.models.results import ContextItem, ItemMetadata, SectionType
from satchel.text.boundaries import sentences
from satchel.workspace.collectors import CollectorContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.request import ContextRequest, ConversationMessage

_NEWEST, _OLDER_STEP = 0.95, 0.03
_LEAST: Final = 0.3
_MOST_CONDENSED: Final = 40
_CONDENSED_CHARS: Final = 160


class HistoryCollector:
    """Turns of the conversation that came with the request."""

    name = "history"

    def __init__(self, view: CollectorContext) -> None:
        self._config = view.config.history

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """The turns, oldest first, each the more relevant the newer it is."""
        turns = request.conversation_history
        kept = turns[-self._config.max_turns :] if self._config.max_turns else ()
        older = turns[: len(turns) - len(kept)]
        items = [self.condense(older)] if older else []
        for i, message in enumerate(kept):
            age = len(kept) - 1 - i
            items.append(_turn(message, len(older) + i + 1, max(_LEAST, _NEWEST - _OLDER_STEP * age)))
        return items

    def condense(self, turns: Sequence[ConversationMessage]) -> ContextItem:
        """The beginning of each of the older turns."""
        shown = [f"{turn.name or turn.role}: {_first_words(turn.content)}" for turn in turns[-_MOST_CONDENSED:]]
        head = f"Earlier in this conversation ({len(turns)} turns, shortened):"
        return ContextItem(
            block_id="conversation:earlier",
            block_type=BlockType.MESSAGE,
            content="\n".join([head, *shown]),
            relevance=_LEAST,
            section=SectionType.HISTORY,
            reasons=("older turns, condensed",),
        )


def _turn(message: ConversationMessage, number: int, relevance: float) -> ContextItem:
    return ContextItem(
        block_id=f"conversation:{number}",
        block_type=BlockType.MESSAGE,
        content=f"{message.name or message.role}: {message.content}",
        relevance=relevance,
        metadata=ItemMetadata(last_modified=message.timestamp),
        section=SectionType.HISTORY,
        reasons=("turn of the conversation",),
    )


def _first_words(text: str) -> str:
    first = next((one.strip() for one in sentences(text) if one.strip()), "")
    return first if len(first) <= _CONDENSED_CHARS else f"{first[:_CONDENSED_CHARS].rstrip()} …"
