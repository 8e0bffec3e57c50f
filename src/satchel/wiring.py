"""Who answers the engine's ports: the only place that names adapters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satchel.config import Settings, configure, index_folder
from satchel.engine import ContextEngine
from satchel.errors import EmbedderUnavailable, InvalidOption, LanguageModelUnavailable, WorkspaceMissing
from satchel.model.context_config import DEFAULT_CONTEXT_CONFIG, with_changes

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.model.context_config import ContextConfig
    from satchel.model.options import ContextBuildOptions
    from satchel.model.result import ContextBuildResult
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.ports.embedder import Embedder
    from satchel.ports.language_model import LanguageModel


def open_engine(
    path: str | os.PathLike[str] = ".",
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    cross_encoder: CrossEncoder | None = None,
    language_model: LanguageModel | str | None = None,
    context_config: ContextConfig | None = None,
    clock: Callable[[], datetime] | None = None,
    **changed: Any,
) -> ContextEngine:
    """The engine for a folder, with its index in the OS's cache (or `index_dir`).

    Settings come from the user's and the project's files and the environment; keyword arguments have the last word.
    """
    root = workspace(path)
    if isinstance(language_model, str):
        changed["language_model"], language_model = language_model, None
    settings = settings or configure(root, changed).settings
    from satchel.adapters.embedded.store import EmbeddedStore

    folder = index_folder(root, settings)
    own = folder.resolve()
    # The model first: it is what may be missing, and then nothing is made on disk.
    model = embedder or make_embedder(settings)
    return ContextEngine(
        root,
        EmbeddedStore(folder),
        model,
        max_file_bytes=settings.max_file_bytes,
        workers=settings.workers or None,
        history_commits=settings.history_commits,
        cross_encoder=cross_encoder,
        context_config=context_config or with_changes(DEFAULT_CONTEXT_CONFIG, settings.context),
        language_model=language_model or make_language_model(settings),
        clock=clock,
        model=settings.model,
        without=f"{own.relative_to(root).as_posix()}/" if own.is_relative_to(root) else "",
    )


def build_context(
    question: str,
    options: ContextBuildOptions,
    *,
    cross_encoder: CrossEncoder | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ContextBuildResult:
    """Retrieve from `options.workspace_path`, which is indexed first where it has changed, and assemble."""
    if not options.workspace_path:
        raise InvalidOption("workspace_path", options.workspace_path, "must name the folder to retrieve from")
    with open_engine(options.workspace_path, cross_encoder=cross_encoder, **(settings or {})) as engine:
        engine.index()
        return engine.build(question, options)


def workspace(path: str | os.PathLike[str]) -> Path:
    """The real folder that a path names."""
    given = Path(path)
    try:
        root = given.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise WorkspaceMissing("path", str(given), "there is no such folder") from None
    if not root.is_dir():
        raise WorkspaceMissing("path", str(given), "is a file; name the folder to search")
    return root


def make_language_model(settings: Settings) -> LanguageModel | None:
    """The language model of that name (`openai:MODEL`), or none."""
    if not settings.language_model:
        return None
    kind, _, model = settings.language_model.partition(":")
    if kind != "openai" or not model:
        raise LanguageModelUnavailable(settings.language_model, "unknown; use openai:<model>")
    from satchel.adapters.openai_language_model import OpenAILanguageModel

    key = os.environ.get("SATCHEL_LANGUAGE_MODEL_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    return OpenAILanguageModel(model, url=settings.language_model_url or None, key=key)


def make_embedder(settings: Settings) -> Embedder:
    """The embedder of that name: `static`, or `kind:model` for the others."""
    kind, _, model = settings.embedder.partition(":")
    if kind == "static":
        from satchel.adapters.static_embedder import StaticEmbedder

        return StaticEmbedder(Path(model) if model else None)
    if kind == "sentence-transformers" and model:
        from satchel.adapters.sentence_transformers_embedder import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model)
    if kind == "fastembed" and model:
        from satchel.adapters.fastembed_embedder import FastembedEmbedder

        return FastembedEmbedder(model)
    if kind == "openai" and model:
        from satchel.adapters.openai_embedder import OpenAIEmbedder

        key = os.environ.get("SATCHEL_EMBEDDER_KEY") or os.environ.get("OPENAI_API_KEY") or ""
        return OpenAIEmbedder(model, url=settings.embedder_url or None, key=key)
    raise EmbedderUnavailable(
        settings.embedder,
        "unknown; use static, sentence-transformers:<model>, fastembed:<model> or openai:<model>",
    )
