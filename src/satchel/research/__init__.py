"""Research answers questions about documents from numbered pages.

library = satchel.open_library("reports")
builder = satchel.research.ContextBuilder(library, library)
context = await builder.build_context("What caused the crisis?")
"""

from __future__ import annotations

from satchel.models.context import SourceDocument
from satchel.models.document import PageMetadata, extract_page_content
from satchel.models.results import ResearchContext
from satchel.ports.page_library import PageHit, PageLibrary, SearchEngine, SearchMode
from satchel.research.builder import RESEARCH_SYSTEM_PROMPT, ContextBuilder

__all__ = [
    "RESEARCH_SYSTEM_PROMPT",
    "ContextBuilder",
    "PageHit",
    "PageLibrary",
    "PageMetadata",
    "ResearchContext",
    "SearchEngine",
    "SearchMode",
    "SourceDocument",
    "extract_page_content",
]
