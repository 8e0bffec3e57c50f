"""Satchel packs what matters into a model's context window."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.adapters.langchain import from_langchain
    from satchel.adapters.llamaindex import from_llamaindex
    from satchel.errors import (
        BudgetCannotBeMet,
        InvalidHit,
        InvalidInput,
        InvalidOption,
        RerankerMissing,
        SatchelError,
        TokenizerUnavailable,
        UnknownPiece,
        UnknownTokenizer,
    )
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
    from satchel.tokens import TokenCounter, counter_for, describe_tokenizer, estimate_tokens

__version__ = "0.1.0"

# Names are imported when they are first used: `import satchel` costs next to nothing.
_HOME = {
    "BudgetCannotBeMet": "errors",
    "CitationFinding": "model.citation",
    "CitationProblem": "model.citation",
    "CitationReport": "model.citation",
    "ContextBuildOptions": "model.options",
    "ContextBuildResult": "model.result",
    "ContextFormat": "model.options",
    "ContextSource": "model.citation",
    "Entity": "model.entity",
    "EntityResult": "model.entity",
    "Fate": "model.ledger",
    "FormattedChunk": "model.chunk",
    "HeadingStyle": "model.options",
    "InvalidHit": "errors",
    "InvalidInput": "errors",
    "InvalidOption": "errors",
    "KnowledgeChunk": "model.chunk",
    "Ledger": "model.ledger",
    "LedgerEntry": "model.ledger",
    "Ordering": "model.options",
    "OverflowPolicy": "model.options",
    "Packing": "model.options",
    "ProviderFormat": "model.options",
    "Reason": "model.ledger",
    "RerankerMissing": "errors",
    "RerankingStrategy": "model.options",
    "SatchelError": "errors",
    "TokenCounter": "tokens",
    "TokenEstimationMethod": "model.options",
    "TokenizerUnavailable": "errors",
    "UnknownPiece": "errors",
    "UnknownTokenizer": "errors",
    "assemble": "pipeline.build",
    "counter_for": "tokens",
    "describe_tokenizer": "tokens",
    "estimate_tokens": "tokens",
    "format_chunk": "pipeline.build",
    "from_langchain": "adapters.langchain",
    "from_llamaindex": "adapters.llamaindex",
    "verify": "pipeline.verify",
}

__all__ = [
    "BudgetCannotBeMet",
    "CitationFinding",
    "CitationProblem",
    "CitationReport",
    "ContextBuildOptions",
    "ContextBuildResult",
    "ContextFormat",
    "ContextSource",
    "Entity",
    "EntityResult",
    "Fate",
    "FormattedChunk",
    "HeadingStyle",
    "InvalidHit",
    "InvalidInput",
    "InvalidOption",
    "KnowledgeChunk",
    "Ledger",
    "LedgerEntry",
    "Ordering",
    "OverflowPolicy",
    "Packing",
    "ProviderFormat",
    "Reason",
    "RerankerMissing",
    "RerankingStrategy",
    "SatchelError",
    "TokenCounter",
    "TokenEstimationMethod",
    "TokenizerUnavailable",
    "UnknownPiece",
    "UnknownTokenizer",
    "assemble",
    "counter_for",
    "describe_tokenizer",
    "estimate_tokens",
    "format_chunk",
    "from_langchain",
    "from_llamaindex",
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
