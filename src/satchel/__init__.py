"""Satchel packs what matters into a model's context window."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.adapters.langchain import from_langchain
    from satchel.adapters.llamaindex import from_llamaindex
    from satchel.config import Settings
    from satchel.engine import ContextEngine
    from satchel.errors import (
        BudgetCannotBeMet,
        EmbedderMismatch,
        EmbedderUnavailable,
        ExtraMissing,
        IndexBusy,
        IndexDamaged,
        IndexProblem,
        IndexTooNew,
        IndexUnwritable,
        InvalidHit,
        InvalidInput,
        InvalidOption,
        LanguageModelUnavailable,
        LibraryMismatch,
        LibraryUnavailable,
        NotAllowed,
        RerankerMissing,
        SatchelError,
        ServerUnavailable,
        StoreUnavailable,
        TokenizerUnavailable,
        UnknownBlock,
        UnknownPage,
        UnknownPiece,
        UnknownTokenizer,
        WorkspaceMissing,
    )
    from satchel.front.asynchronous import AsyncSatchel
    from satchel.front.door import Indexed, Satchel, Status, open_async
    from satchel.front.door import open as open
    from satchel.front.question import Question
    from satchel.front.research import ResearchAnswer
    from satchel.front.upkeep import IndexState
    from satchel.ingest.workspace import Workspace
    from satchel.model.access import DefaultAccess, Effect, Grant, Group
    from satchel.model.block import Action, Activity, Block, BlockType, Link, LinkKind
    from satchel.model.budget import TokenBudget
    from satchel.model.chunk import FormattedChunk, KnowledgeChunk
    from satchel.model.citation import (
        CitableSource,
        CitationFinding,
        CitationProblem,
        CitationReport,
        ContextSource,
        UncitedSentence,
    )
    from satchel.model.context_config import ContextConfig, TruncationStrategy
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
    from satchel.model.payload import (
        ContextItem,
        ContextMetadata,
        ContextPayload,
        ContextSection,
        ContextValidationResult,
        ItemMetadata,
        SectionType,
        ValidationCheck,
    )
    from satchel.model.request import (
        ContextHints,
        ContextRequest,
        ConversationMessage,
        Focus,
        RequestType,
        TimeRange,
        User,
    )
    from satchel.model.result import ContextBuildResult
    from satchel.model.search import Expansion, SearchHit, SearchResult
    from satchel.pipeline.build import assemble, format_chunk
    from satchel.pipeline.verify import verify
    from satchel.ports.store import Filters
    from satchel.tokens import TokenCounter, counter_for, describe_tokenizer, estimate_tokens
    from satchel.wiring import build_context, open_engine, open_library

__version__ = "0.1.0"

# Names are imported when they are first used: `import satchel` costs next to nothing.
_HOME = {
    "Action": "model.block",
    "Activity": "model.block",
    "AsyncSatchel": "front.asynchronous",
    "Block": "model.block",
    "BlockType": "model.block",
    "BudgetCannotBeMet": "errors",
    "CitableSource": "model.citation",
    "CitationFinding": "model.citation",
    "CitationProblem": "model.citation",
    "CitationReport": "model.citation",
    "ContextBuildOptions": "model.options",
    "ContextBuildResult": "model.result",
    "ContextConfig": "model.context_config",
    "ContextEngine": "engine",
    "ContextFormat": "model.options",
    "ContextHints": "model.request",
    "ContextItem": "model.payload",
    "ContextMetadata": "model.payload",
    "ContextPayload": "model.payload",
    "ContextRequest": "model.request",
    "ContextSection": "model.payload",
    "ContextSource": "model.citation",
    "ContextValidationResult": "model.payload",
    "ConversationMessage": "model.request",
    "DefaultAccess": "model.access",
    "Effect": "model.access",
    "EmbedderMismatch": "errors",
    "EmbedderUnavailable": "errors",
    "Entity": "model.entity",
    "EntityResult": "model.entity",
    "Expansion": "model.search",
    "ExtraMissing": "errors",
    "Fate": "model.ledger",
    "Filters": "ports.store",
    "Focus": "model.request",
    "FormattedChunk": "model.chunk",
    "Grant": "model.access",
    "Group": "model.access",
    "HeadingStyle": "model.options",
    "IndexBusy": "errors",
    "IndexDamaged": "errors",
    "IndexProblem": "errors",
    "IndexState": "front.upkeep",
    "IndexTooNew": "errors",
    "IndexUnwritable": "errors",
    "Indexed": "front.door",
    "InvalidHit": "errors",
    "InvalidInput": "errors",
    "InvalidOption": "errors",
    "ItemMetadata": "model.payload",
    "KnowledgeChunk": "model.chunk",
    "LanguageModelUnavailable": "errors",
    "Ledger": "model.ledger",
    "LedgerEntry": "model.ledger",
    "LibraryMismatch": "errors",
    "LibraryUnavailable": "errors",
    "Link": "model.block",
    "LinkKind": "model.block",
    "NotAllowed": "errors",
    "Ordering": "model.options",
    "OverflowPolicy": "model.options",
    "Packing": "model.options",
    "ProviderFormat": "model.options",
    "Question": "front.question",
    "Reason": "model.ledger",
    "RequestType": "model.request",
    "RerankerMissing": "errors",
    "RerankingStrategy": "model.options",
    "ResearchAnswer": "front.research",
    "Satchel": "front.door",
    "SatchelError": "errors",
    "SearchHit": "model.search",
    "SearchResult": "model.search",
    "SectionType": "model.payload",
    "ServerUnavailable": "errors",
    "StoreUnavailable": "errors",
    "Settings": "config",
    "Status": "front.door",
    "TimeRange": "model.request",
    "TokenBudget": "model.budget",
    "TokenCounter": "tokens",
    "TokenEstimationMethod": "model.options",
    "TokenizerUnavailable": "errors",
    "TruncationStrategy": "model.context_config",
    "UncitedSentence": "model.citation",
    "UnknownBlock": "errors",
    "UnknownPage": "errors",
    "UnknownPiece": "errors",
    "UnknownTokenizer": "errors",
    "User": "model.request",
    "ValidationCheck": "model.payload",
    "Workspace": "ingest.workspace",
    "WorkspaceMissing": "errors",
    "assemble": "pipeline.build",
    "build_context": "wiring",
    "counter_for": "tokens",
    "describe_tokenizer": "tokens",
    "estimate_tokens": "tokens",
    "format_chunk": "pipeline.build",
    "from_langchain": "adapters.langchain",
    "from_llamaindex": "adapters.llamaindex",
    "open": "front.door",
    "open_async": "front.door",
    "open_engine": "wiring",
    "open_library": "wiring",
    "verify": "pipeline.verify",
}

# `open` is left out: `from satchel import *` must not take the builtin's place.
__all__ = [
    "Action",
    "Activity",
    "AsyncSatchel",
    "Block",
    "BlockType",
    "BudgetCannotBeMet",
    "CitableSource",
    "CitationFinding",
    "CitationProblem",
    "CitationReport",
    "ContextBuildOptions",
    "ContextBuildResult",
    "ContextConfig",
    "ContextEngine",
    "ContextFormat",
    "ContextHints",
    "ContextItem",
    "ContextMetadata",
    "ContextPayload",
    "ContextRequest",
    "ContextSection",
    "ContextSource",
    "ContextValidationResult",
    "ConversationMessage",
    "DefaultAccess",
    "Effect",
    "EmbedderMismatch",
    "EmbedderUnavailable",
    "Entity",
    "EntityResult",
    "Expansion",
    "ExtraMissing",
    "Fate",
    "Filters",
    "Focus",
    "FormattedChunk",
    "Grant",
    "Group",
    "HeadingStyle",
    "IndexBusy",
    "IndexDamaged",
    "IndexProblem",
    "IndexState",
    "IndexTooNew",
    "IndexUnwritable",
    "Indexed",
    "InvalidHit",
    "InvalidInput",
    "InvalidOption",
    "ItemMetadata",
    "KnowledgeChunk",
    "LanguageModelUnavailable",
    "Ledger",
    "LedgerEntry",
    "LibraryMismatch",
    "LibraryUnavailable",
    "Link",
    "LinkKind",
    "NotAllowed",
    "Ordering",
    "OverflowPolicy",
    "Packing",
    "ProviderFormat",
    "Question",
    "Reason",
    "RequestType",
    "RerankerMissing",
    "RerankingStrategy",
    "ResearchAnswer",
    "Satchel",
    "SatchelError",
    "SearchHit",
    "SearchResult",
    "SectionType",
    "ServerUnavailable",
    "Settings",
    "Status",
    "StoreUnavailable",
    "TimeRange",
    "TokenBudget",
    "TokenCounter",
    "TokenEstimationMethod",
    "TokenizerUnavailable",
    "TruncationStrategy",
    "UncitedSentence",
    "UnknownBlock",
    "UnknownPage",
    "UnknownPiece",
    "UnknownTokenizer",
    "User",
    "ValidationCheck",
    "Workspace",
    "WorkspaceMissing",
    "assemble",
    "build_context",
    "counter_for",
    "describe_tokenizer",
    "estimate_tokens",
    "format_chunk",
    "from_langchain",
    "from_llamaindex",
    "open_async",
    "open_engine",
    "open_library",
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
