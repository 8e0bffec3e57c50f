"""Satchel packs what matters into a model's context window."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.adapters.langchain import from_langchain
    from satchel.adapters.llamaindex import from_llamaindex
    from satchel.config import Settings
    from satchel.engine import ContextEngine, Expansion, SearchHit, SearchResult
    from satchel.errors import (
        BudgetCannotBeMet,
        EmbedderMismatch,
        EmbedderUnavailable,
        IndexBusy,
        IndexDamaged,
        IndexProblem,
        IndexTooNew,
        IndexUnwritable,
        InvalidHit,
        InvalidInput,
        InvalidOption,
        RerankerMissing,
        SatchelError,
        TokenizerUnavailable,
        UnknownBlock,
        UnknownPiece,
        UnknownTokenizer,
        WorkspaceMissing,
    )
    from satchel.model.block import Activity, Block, BlockType, Link, LinkKind
    from satchel.model.chunk import FormattedChunk, KnowledgeChunk
    from satchel.model.citation import CitationFinding, CitationProblem, CitationReport, ContextSource
    from satchel.model.entity import Entity, EntityResult
    from satchel.model.ledger import Fate, Ledger, LedgerEntry, Reason
    from satchel.model.options import (
        ContextBuildOptions,
        ContextFormat,
        HeadingStyle,
        Ordering,
        OverflowPolicy,
        Packing,
        ProviderFormat,
        RerankingStrategy,
        TokenEstimationMethod,
    )
    from satchel.model.result import ContextBuildResult
    from satchel.pipeline.build import assemble, format_chunk
    from satchel.pipeline.verify import verify
    from satchel.ports.store import Filters
    from satchel.tokens import TokenCounter, counter_for, describe_tokenizer, estimate_tokens
    from satchel.wiring import build_context, open_engine

__version__ = "0.1.0"

# Names are imported when they are first used: `import satchel` costs next to nothing.
_HOME = {
    "Activity": "model.block",
    "Block": "model.block",
    "BlockType": "model.block",
    "BudgetCannotBeMet": "errors",
    "CitationFinding": "model.citation",
    "CitationProblem": "model.citation",
    "CitationReport": "model.citation",
    "ContextBuildOptions": "model.options",
    "ContextBuildResult": "model.result",
    "ContextEngine": "engine",
    "ContextFormat": "model.options",
    "ContextSource": "model.citation",
    "EmbedderMismatch": "errors",
    "EmbedderUnavailable": "errors",
    "Entity": "model.entity",
    "EntityResult": "model.entity",
    "Expansion": "engine",
    "Fate": "model.ledger",
    "Filters": "ports.store",
    "FormattedChunk": "model.chunk",
    "HeadingStyle": "model.options",
    "IndexBusy": "errors",
    "IndexDamaged": "errors",
    "IndexProblem": "errors",
    "IndexTooNew": "errors",
    "IndexUnwritable": "errors",
    "InvalidHit": "errors",
    "InvalidInput": "errors",
    "InvalidOption": "errors",
    "KnowledgeChunk": "model.chunk",
    "Ledger": "model.ledger",
    "LedgerEntry": "model.ledger",
    "Link": "model.block",
    "LinkKind": "model.block",
    "Ordering": "model.options",
    "OverflowPolicy": "model.options",
    "Packing": "model.options",
    "ProviderFormat": "model.options",
    "Reason": "model.ledger",
    "RerankerMissing": "errors",
    "RerankingStrategy": "model.options",
    "SatchelError": "errors",
    "SearchHit": "engine",
    "SearchResult": "engine",
    "Settings": "config",
    "TokenCounter": "tokens",
    "TokenEstimationMethod": "model.options",
    "TokenizerUnavailable": "errors",
    "UnknownBlock": "errors",
    "UnknownPiece": "errors",
    "UnknownTokenizer": "errors",
    "WorkspaceMissing": "errors",
    "assemble": "pipeline.build",
    "build_context": "wiring",
    "counter_for": "tokens",
    "describe_tokenizer": "tokens",
    "estimate_tokens": "tokens",
    "format_chunk": "pipeline.build",
    "from_langchain": "adapters.langchain",
    "from_llamaindex": "adapters.llamaindex",
    "open_engine": "wiring",
    "verify": "pipeline.verify",
}

__all__ = [
    "Activity",
    "Block",
    "BlockType",
    "BudgetCannotBeMet",
    "CitationFinding",
    "CitationProblem",
    "CitationReport",
    "ContextBuildOptions",
    "ContextBuildResult",
    "ContextEngine",
    "ContextFormat",
    "ContextSource",
    "EmbedderMismatch",
    "EmbedderUnavailable",
    "Entity",
    "EntityResult",
    "Expansion",
    "Fate",
    "Filters",
    "FormattedChunk",
    "HeadingStyle",
    "IndexBusy",
    "IndexDamaged",
    "IndexProblem",
    "IndexTooNew",
    "IndexUnwritable",
    "InvalidHit",
    "InvalidInput",
    "InvalidOption",
    "KnowledgeChunk",
    "Ledger",
    "LedgerEntry",
    "Link",
    "LinkKind",
    "Ordering",
    "OverflowPolicy",
    "Packing",
    "ProviderFormat",
    "Reason",
    "RerankerMissing",
    "RerankingStrategy",
    "SatchelError",
    "SearchHit",
    "SearchResult",
    "Settings",
    "TokenCounter",
    "TokenEstimationMethod",
    "TokenizerUnavailable",
    "UnknownBlock",
    "UnknownPiece",
    "UnknownTokenizer",
    "WorkspaceMissing",
    "assemble",
    "build_context",
    "counter_for",
    "describe_tokenizer",
    "estimate_tokens",
    "format_chunk",
    "from_langchain",
    "from_llamaindex",
    "open_engine",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'satchel' has no attribute {name!r}")
    value = getattr(import_module(f"satchel.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
