"""Collector for the conversation: recent turns verbatim, older turns condensed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.models.block import BlockType
from satchel.models.results import ContextItem, ItemMetadata, SectionType
from satchel.text.boundaries import sentences
from satchel.workspace.collectors import CollectorContext

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from satchel.models.request import ContextRequest, ConversationMessage

# Relevance of the newest turn, and the step down to each older turn: the budget drops old turns first.
_NEWEST_RELEVANCE, _OLDER_STEP = 0.95, 0.03
_MIN_RELEVANCE: Final = 0.3  # relevance of the condensed turns; no verbatim turn ranks lower

# Condensed turns, the newest: older turns rarely matter and would use the budget of recent turns.
_MAX_CONDENSED_TURNS: Final = 40

# Characters of a condensed turn: room for a sentence.
_MAX_CONDENSED_CHARS: Final = 160


class HistoryCollector:
    """Collects the turns of the request's conversation history."""

    name = "history"

    def __init__(self, view: CollectorContext) -> None:
        self._config = view.config.history

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """Items for the turns, oldest first; newer turns have higher relevance."""
        turns = request.conversation_history
        recent = turns[-self._config.max_turns :] if self._config.max_turns else ()
        older = turns[: len(turns) - len(recent)]
        items = [self.condense(older)] if older else []
        for number, message in enumerate(recent, start=len(older) + 1):
            relevance = max(_MIN_RELEVANCE, _NEWEST_RELEVANCE - _OLDER_STEP * (len(turns) - number))
            text, reason = f"{message.name or message.role}: {message.content}", "turn of the conversation"
            items.append(_item(f"conversation:{number}", text, relevance, reason, message.timestamp))
        return items

    def condense(self, turns: Sequence[ConversationMessage]) -> ContextItem:
        """An item with the first sentence of each older turn."""
        lines = [f"{turn.name or turn.role}: {_first_words(turn.content)}" for turn in turns[-_MAX_CONDENSED_TURNS:]]
        head = f"Earlier in this conversation ({len(turns)} turns, shortened):"
        return _item("conversation:earlier", "\n".join([head, *lines]), _MIN_RELEVANCE, "older turns, condensed")


def _item(item_id: str, text: str, relevance: float, reason: str, timestamp: datetime | None = None) -> ContextItem:
    return ContextItem(
        block_id=item_id,
        block_type=BlockType.MESSAGE,
        content=text,
        relevance=relevance,
        metadata=ItemMetadata(last_modified=timestamp),
        section=SectionType.HISTORY,
        reasons=(reason,),
    )


def _first_words(text: str) -> str:
    first = next((sentence.strip() for sentence in sentences(text) if sentence.strip()), "")
    return first if len(first) <= _MAX_CONDENSED_CHARS else f"{first[:_MAX_CONDENSED_CHARS].rstrip()} …"
