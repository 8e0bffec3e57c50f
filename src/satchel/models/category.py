"""The four categories by which results are grouped, with their titles and their order."""

from __future__ import annotations

from typing import Final

from satchel.models.language import PROSE

_CODE_TYPES: Final = frozenset({"function", "method", "class", "interface", "type", "file", "module"})
_DOCUMENTATION_TYPES: Final = frozenset({"document", "section", "requirement", "feature"})
_CONVERSATION_TYPES: Final = frozenset({"session", "message", "decision"})

CATEGORY_ORDER: Final = ("code", "documentation", "conversation", "other")

CATEGORY_TITLES: Final = {
    "code": "Relevant Code",
    "documentation": "Related Documentation",
    "conversation": "Previous Conversations",
    "other": "Other Context",
}


def categorize(type_name: str, language: str | None = None) -> str:
    """The category of a type; a chunk that names no type is judged by its language."""
    if type_name in _CODE_TYPES:
        return "code"
    if type_name in _DOCUMENTATION_TYPES:
        return "documentation"
    if type_name in _CONVERSATION_TYPES:
        return "conversation"
    if not type_name and language:
        return "documentation" if language in PROSE else "code"
    return "other"
