"""A collector: what the note "House rules" says is in every context of a workspace, in a section of its own."""

from satchel.models.request import ContextRequest
from satchel.models.results import ContextItem, SectionType
from satchel.workspace.block_text import item_of
from satchel.workspace.collectors import CollectorContext, CollectorEntry

NOTE = "House rules"
MOST_RULES = 20


class HouseRulesCollector:
    """Reads the blocks of one note, as far as the user may read them."""

    name = "house_rules"

    def __init__(self, view: CollectorContext) -> None:
        self._view = view

    def collect(self, request: ContextRequest) -> list[ContextItem]:
        """The rules, whatever is asked."""
        below = self._view.store.descendants([NOTE], self._view.filters, limit=MOST_RULES, deepest=3)
        return [item_of(rule, 1.0, SectionType.FOCUS, "a house rule") for rule in below.get(NOTE, ()) if rule.content]


HOUSE_RULES = CollectorEntry(collector=HouseRulesCollector, title="House Rules", share=0.1, ranked=False)
