"""How fresh a hit is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.models.candidate import Candidate

FADES_OVER = timedelta(days=30)

# What is known to be neither old nor new stands in the middle.
UNDATED = 0.5


def recency_signals(items: Sequence[Candidate], now: datetime | None) -> tuple[dict[int, float], datetime | None]:
    """For each item 1 if changed at the moment of reference, falling to 0 over 30 days; and that moment.

    Without `now`, the newest hit is the reference: the same hits then give the same bytes on any day.
    """
    dates = {item.place: _aware(item.modified) for item in items if item.modified is not None}
    reference = _aware(now) if now is not None else max(dates.values(), default=None)
    signals = dict.fromkeys((item.place for item in items), UNDATED)
    if reference is not None:
        for index, modified in dates.items():
            signals[index] = min(1.0, max(0.0, 1 - (reference - modified) / FADES_OVER))
    return signals, reference


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
