"""Satchel packs the relevant text for a question into a model's context window.

This module exports the names for most programs; errors are in `satchel.errors`, research in `satchel.research`, and all
other value types in the modules of `satchel.models`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel import errors as errors
    from satchel.assembly.assemble import assemble as assemble
    from satchel.assembly.assemble import format_chunk as format_chunk
    from satchel.assembly.citations.verify import verify as verify
    from satchel.errors import SatchelError as SatchelError
    from satchel.integrations.frameworks.retriever_hits import from_langchain as from_langchain
    from satchel.integrations.frameworks.retriever_hits import from_llamaindex as from_llamaindex
    from satchel.models.access import Grant as Grant
    from satchel.models.block import Block as Block
    from satchel.models.block import BlockType as BlockType
    from satchel.models.block import Link as Link
    from satchel.models.block import LinkKind as LinkKind
    from satchel.models.chunk import Entity as Entity
    from satchel.models.chunk import EntityResult as EntityResult
    from satchel.models.chunk import KnowledgeChunk as KnowledgeChunk
    from satchel.models.context import Context as Context
    from satchel.models.options import ContextBuildOptions as ContextBuildOptions
    from satchel.models.options import ContextConfig as ContextConfig
    from satchel.models.options import ContextFormat as ContextFormat
    from satchel.models.options import TokenBudget as TokenBudget
    from satchel.models.request import ContextHints as ContextHints
    from satchel.models.request import ContextRequest as ContextRequest
    from satchel.models.request import ConversationMessage as ConversationMessage
    from satchel.models.request import Focus as Focus
    from satchel.models.request import User as User
    from satchel.models.results import ContextBuildResult as ContextBuildResult
    from satchel.models.results import ContextPayload as ContextPayload
    from satchel.models.search import SearchResult as SearchResult
    from satchel.service.async_client import AsyncSatchel as AsyncSatchel
    from satchel.service.client import Satchel as Satchel
    from satchel.service.engine import ContextEngine as ContextEngine
    from satchel.service.factory.opening import build_context as build_context
    from satchel.service.factory.opening import open_engine as open_engine
    from satchel.service.factory.opening import open_library as open_library
    from satchel.service.opening import open as open
    from satchel.service.opening import open_async as open_async
    from satchel.service.question import Question as Question
    from satchel.service.settings import Settings as Settings
    from satchel.tokens import counter_for as counter_for
    from satchel.tokens import estimate_tokens as estimate_tokens
    from satchel.workspace.blocks import Workspace as Workspace

__version__ = "0.1.0"

# Names are imported when they are first used: `import satchel` costs next to nothing.
_HOME = {
    "assemble": "assembly.assemble",
    "AsyncSatchel": "service.async_client",
    "Block": "models.block",
    "BlockType": "models.block",
    "build_context": "service.factory.opening",
    "Context": "models.context",
    "ContextBuildOptions": "models.options",
    "ContextBuildResult": "models.results",
    "ContextConfig": "models.options",
    "ContextEngine": "service.engine",
    "ContextFormat": "models.options",
    "ContextHints": "models.request",
    "ContextPayload": "models.results",
    "ContextRequest": "models.request",
    "ConversationMessage": "models.request",
    "counter_for": "tokens",
    "Entity": "models.chunk",
    "EntityResult": "models.chunk",
    "estimate_tokens": "tokens",
    "Focus": "models.request",
    "format_chunk": "assembly.assemble",
    "from_langchain": "integrations.frameworks.retriever_hits",
    "from_llamaindex": "integrations.frameworks.retriever_hits",
    "Grant": "models.access",
    "KnowledgeChunk": "models.chunk",
    "Link": "models.block",
    "LinkKind": "models.block",
    "open": "service.opening",
    "open_async": "service.opening",
    "open_engine": "service.factory.opening",
    "open_library": "service.factory.opening",
    "Question": "service.question",
    "Satchel": "service.client",
    "SatchelError": "errors",
    "SearchResult": "models.search",
    "Settings": "service.settings",
    "TokenBudget": "models.options",
    "User": "models.request",
    "verify": "assembly.citations.verify",
    "Workspace": "workspace.blocks",
}

# `open` is left out: `from satchel import *` must not take the builtin's place.
__all__ = [
    "AsyncSatchel",
    "Block",
    "BlockType",
    "Context",
    "ContextBuildOptions",
    "ContextBuildResult",
    "ContextConfig",
    "ContextEngine",
    "ContextFormat",
    "ContextHints",
    "ContextPayload",
    "ContextRequest",
    "ConversationMessage",
    "Entity",
    "EntityResult",
    "Focus",
    "Grant",
    "KnowledgeChunk",
    "Link",
    "LinkKind",
    "Question",
    "Satchel",
    "SatchelError",
    "SearchResult",
    "Settings",
    "TokenBudget",
    "User",
    "Workspace",
    "assemble",
    "build_context",
    "counter_for",
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
    if name == "errors":
        return import_module("satchel.errors")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'satchel' has no attribute {name!r}")
    value = getattr(import_module(f"satchel.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
