"""How a block that does not fit is cut: by the strategy of the configuration, with a receipt."""

from __future__ import annotations

from typing import Final

from satchel.assembly.trim import GAP, ContentTruncator, Cost, Trimmed, Trimmer
from satchel.models.block import BlockType
from satchel.models.chunk import Candidate, Trim
from satchel.models.files import PROSE
from satchel.models.options import TruncationConfig, TruncationStrategy
from satchel.models.results import ContextItem

_MAX_TRIES: Final = 6
"""How often another length is tried, because wrappers make a text dearer than it is by itself."""

_FULL_SHARE: Final = 0.9
"""What fills this share of its room need not be tried again."""

_LONGEST_RECEIPT: Final = (9999, 999_999)
"""The lines and characters of a receipt that is as long as receipts get."""


def shorten_blocks(truncator: ContentTruncator, truncation: TruncationConfig) -> Trimmer:
    """A trimmer that cuts blocks by the configured strategy."""

    def trim(block: Candidate, room: int, cost: Cost) -> Trimmed | None:
        item = block.origin
        whole = item.whole if isinstance(item, ContextItem) and item.whole is not None else block.text
        bare = cost(block._replace(text=""), Trim(block.id, *_LONGEST_RECEIPT))
        allowance, best = room - bare, None
        tried: set[int] = set()
        while len(tried) < _MAX_TRIES and allowance > 0 and allowance not in tried:
            tried.add(allowance)
            cut = truncator.shorten(whole, allowance, truncation.default_strategy, is_code=is_code(block))
            if len(cut.text) >= len(whole):
                return best
            trimmed = Trimmed(block._replace(text=cut.text), _receipt(block.id, whole, cut.text), cut.note)
            price = cost(trimmed.candidate, trimmed.trim)
            if price <= room:
                is_enough = len(cut.text) >= truncation.min_content_length
                if (is_enough or cut.strategy is TruncationStrategy.SUMMARIZE) and cut.text.strip():
                    best = trimmed
                if price >= _FULL_SHARE * room:
                    break
            # What is written costs more than what is said, in some formats by far: the share that it does is kept.
            allowance = min(room - bare, max(1, int(allowance * (room - bare) / max(1, price - bare))))
            if price > room:
                allowance = min(allowance, max(tried) - 1)
        return best

    return trim


def _receipt(block_id: str, whole: str, text: str) -> Trim:
    shown_lines = sum(bool(line.strip()) and line.strip() != GAP for line in text.split("\n"))
    all_lines = sum(bool(line.strip()) for line in whole.split("\n"))
    missing_characters = max(1, len(whole) - len(text.replace(GAP, "")))
    return Trim(block_id, max(0, all_lines - shown_lines), missing_characters)


def is_code(block: Candidate) -> bool:
    """Whether lines are what the text of the block is made of."""
    return block.type == BlockType.CODE or (block.language or "text") not in PROSE | {"text"}
