"""Create adapters from the settings: embedders of texts and pages, the language model, document policy, workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.errors import EmbedderUnavailable, InvalidOption, LanguageModelUnavailable, SatchelError
from satchel.registry import Registry

if TYPE_CHECKING:
    from satchel.indexing.walk import DocumentPolicy
    from satchel.ports.embedder import Embedder
    from satchel.ports.language_model import LanguageModel
    from satchel.ports.page_embedder import PageEmbedder
    from satchel.ports.workers import Load, Workers, WorkersMaker
    from satchel.service.settings import Settings

MakeEmbedder = Callable[[str, "Settings"], "Embedder"]
"""Creates an embedder from the MODEL in `NAME:MODEL` (may be empty) and the settings."""


def _static(model: str, _: Settings) -> Embedder:
    from satchel.integrations.embedders.static_embedder import StaticEmbedder

    return StaticEmbedder(Path(model) if model else None)


def _sentence_transformers(model: str, _: Settings) -> Embedder:
    from satchel.integrations.embedders.model_embedders import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(model)


def _fastembed(model: str, _: Settings) -> Embedder:
    from satchel.integrations.embedders.model_embedders import FastembedEmbedder

    return FastembedEmbedder(model)


def _openai(model: str, settings: Settings) -> Embedder:
    from satchel.integrations.embedders.openai_embedder import OpenAIEmbedder

    key = os.environ.get("SATCHEL_EMBEDDER_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    return OpenAIEmbedder(model, url=settings.embedder_url or None, key=key)


EMBEDDERS: Final[Registry[MakeEmbedder]] = Registry(
    "embedder",
    "satchel.embedders",
    {
        "static": _static,
        "sentence-transformers": _sentence_transformers,
        "fastembed": _fastembed,
        "openai": _openai,
    },
    Callable,  # type: ignore[arg-type]  # isinstance takes it
)
"""Factory function of each embedder. A package adds a factory through the entry-point group `satchel.embedders`."""

_NEED_A_MODEL: Final = frozenset({"sentence-transformers", "fastembed", "openai"})

ON_WORKERS: Final = frozenset({"static", "sentence-transformers", "fastembed"})
"""Embedders for workers on other machines. Not openai: the key stays here. Not plug-ins: may be installed only here."""


def make_embedder(settings: Settings) -> Embedder:
    """Create the embedder of the settings: `NAME`, or `NAME:MODEL`."""
    name, _, model = settings.embedder.partition(":")
    if name not in EMBEDDERS.names() or (name in _NEED_A_MODEL and not model):
        known = ", ".join(f"{known}:<model>" if known in _NEED_A_MODEL else known for known in EMBEDDERS.names())
        raise EmbedderUnavailable(settings.embedder, f"unknown; use {known}")
    try:
        return EMBEDDERS.get(name)(model, settings)
    except InvalidOption as error:
        raise EmbedderUnavailable(settings.embedder, error.problem) from error
    except (SatchelError, OSError):
        raise
    except Exception as error:  # a plug-in's function may raise any exception
        raise EmbedderUnavailable(settings.embedder, f"cannot be made ({type(error).__name__}: {error})") from error


def make_named_embedder(name: str) -> Embedder:
    """Create an embedder by name, with default settings; remote workers call this function."""
    from satchel.service.settings import Settings

    return make_embedder(Settings(embedder=name))


_LOCAL_SERVERS: Final = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "llamacpp": "http://localhost:8080/v1",
}
"""Default addresses of these servers."""


def make_page_embedder(settings: Settings, embedder: Embedder) -> PageEmbedder:
    """Create the page embedder: `written` embeds the lines of a page, `multi-vector:MODEL` the picture of a page."""
    from satchel.integrations.embedders.page_embedders import MultiVectorPageEmbedder, WrittenPageEmbedder

    kind, _, model = settings.page_embedder.partition(":")
    if kind == "written" and not model:
        return WrittenPageEmbedder(embedder)
    if kind == "multi-vector" and model:
        return MultiVectorPageEmbedder(model)
    raise EmbedderUnavailable(settings.page_embedder, "unknown; use written or multi-vector:<model>")


def make_document_policy(root: Path, settings: Settings) -> DocumentPolicy:
    """Create the policy for reading documents below a folder."""
    from satchel.indexing.source_tree import is_source_tree
    from satchel.indexing.walk import Reading, policy_for

    return policy_for(
        Reading(settings.documents),
        # Where `auto` does not decide, the folder need not be looked at.
        is_source=settings.documents == "auto" and is_source_tree(os.fspath(root)),
        max_bytes=settings.max_document_bytes,
        ocr=settings.ocr != "off",
        languages=settings.ocr_languages,
    )


def make_workers(
    settings: Settings, documents: DocumentPolicy, embedder: Embedder, *, is_ours: bool = True
) -> WorkersMaker:
    """Return a function to create workers for files: local processes, or Ray's; small loads always run locally.

    `is_ours` is True if the embedder was made from the settings: a remote worker can then create the same embedder.
    """
    count = settings.workers or None

    def find(load: Load) -> AbstractContextManager[Workers]:
        from satchel.indexing.work import FEW_BYTES, LocalWorkers, Tools

        if settings.ingest_on == "local":
            return LocalWorkers(count, documents=documents, load=load)
        from satchel.integrations.ray.ray_workers import RayWorkers, require_ray

        require_ray()
        if sum(load) <= FEW_BYTES:
            return LocalWorkers(count, documents=documents, load=load)
        can_be_sent = is_ours and settings.embedder.partition(":")[0] in ON_WORKERS
        maker = "satchel.service.factory.adapters:make_named_embedder" if can_be_sent else ""
        tools = Tools(documents=documents, embedder_maker=maker, embedder_name=settings.embedder)
        return RayWorkers(settings.ingest_on, tools, embedder, count=count)

    return find


class ModelEndpoint(NamedTuple):
    """Endpoint of a language model (OpenAI's without a URL). The key must be sent to no other endpoint."""

    kind: str
    model: str
    url: str | None
    key: str


def language_model_endpoint(settings: Settings) -> ModelEndpoint | None:
    """Return the endpoint of the language model of the settings (`openai:MODEL`), or None if none is set."""
    if not settings.language_model:
        return None
    kind, _, model = settings.language_model.partition(":")
    if kind not in ("openai", *_LOCAL_SERVERS) or not model:
        known = ", ".join(f"{known_kind}:<model>" for known_kind in ("openai", *_LOCAL_SERVERS))
        raise LanguageModelUnavailable(settings.language_model, f"unknown; use one of {known}")
    url = settings.language_model_url or _LOCAL_SERVERS.get(kind)
    # Send OpenAI's key to OpenAI only: any other endpoint gets SATCHEL_LANGUAGE_MODEL_KEY, or no key.
    key = os.environ.get("SATCHEL_LANGUAGE_MODEL_KEY") or ("" if url else os.environ.get("OPENAI_API_KEY")) or ""
    return ModelEndpoint(kind, model, url, key)


def make_language_model(settings: Settings) -> LanguageModel | None:
    """Create the language model of the settings (`openai:MODEL`), or None if none is set."""
    endpoint = language_model_endpoint(settings)
    if endpoint is None:
        return None
    from satchel.integrations.openai.chat_model import OpenAILanguageModel

    return OpenAILanguageModel(endpoint.model, kind=endpoint.kind, url=endpoint.url, key=endpoint.key)
