"""Who answers the engine's ports: the only place that names adapters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import (
    EmbedderUnavailable,
    InvalidOption,
    LanguageModelUnavailable,
    MoveUnfinished,
    WorkspaceMissing,
)
from satchel.models.options import DEFAULT_CONTEXT_CONFIG, with_changes
from satchel.ports.transfer import MOVING
from satchel.service.engine import ContextEngine
from satchel.service.factory.embedders import ON_WORKERS, make_embedder
from satchel.service.factory.locations import database_place, is_database, place_of
from satchel.service.settings import Settings, configure, index_folder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    from satchel.indexing.documents.policy import DocumentPolicy
    from satchel.models.options import ContextBuildOptions, ContextConfig
    from satchel.models.request import User
    from satchel.models.results import ContextBuildResult
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.ports.embedder import Embedder
    from satchel.ports.language_model import LanguageModel
    from satchel.ports.page_embedder import PageEmbedder
    from satchel.ports.store import Store
    from satchel.ports.workers import Load, Workers, WorkersMaker
    from satchel.research.library import WorkspaceLibrary
    from satchel.service.factory.locations import Place


_LOCAL_SERVERS: Final = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "llamacpp": "http://localhost:8080/v1",
}
"""Where these servers listen unless told otherwise."""


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
    """The engine for a folder, with its index in the OS's cache (or `index_dir`), or in a database (`store`).

    A `postgresql://…?workspace=name` in place of the folder is a workspace there, without a folder on this machine.

    Settings come from the user's and the project's files and the environment; keyword arguments have the last word.
    """
    if isinstance(language_model, str):
        changed["language_model"], language_model = language_model, None
    settings = settings or settings_at(path, changed)
    root, place = root_and_place(path, settings)
    own = None if place.folder is None else place.folder.resolve()
    # The model first: it is what may be missing, and then nothing is made on disk.
    model = embedder or make_embedder(settings)
    documents = make_document_policy(root, settings)
    return ContextEngine(
        root,
        _complete(place),
        model,
        max_file_bytes=settings.max_file_bytes,
        workers=make_workers(settings, documents, model, is_ours=embedder is None),
        history_commits=settings.history_commits,
        cross_encoder=cross_encoder,
        context_config=context_config or with_changes(DEFAULT_CONTEXT_CONFIG, settings.context),
        language_model=language_model or make_language_model(settings),
        clock=clock,
        model=settings.model,
        documents=documents,
        without=f"{own.relative_to(root).as_posix()}/" if own is not None and own.is_relative_to(root) else "",
        is_here=not is_database(path),
    )


def _complete(place: Place) -> Store:
    """The store at a place; not one that is still being filled from another."""
    store = place.open()
    begun = store.fact(MOVING)
    if begun is not None:
        store.close()
        raise MoveUnfinished(place.shown, str(begun))
    return store


def open_library(
    path: str | os.PathLike[str] = ".",
    *,
    user: User | None = None,
    embedder: Embedder | None = None,
    page_embedder: PageEmbedder | None = None,
    settings: Settings | None = None,
    **changed: Any,
) -> WorkspaceLibrary:
    """The documents of a folder as a library of pages, for `satchel.research.ContextBuilder`.

    Pages are found by their text and by what is written on them; with the setting `page_embedder`, or one that is
    given, by what a model sees on them. `engine.index()` brings it up to the folder.
    """
    settings = settings or settings_at(path, changed)
    engine = open_engine(path, settings=settings, embedder=embedder)
    return library_over(engine, settings, user=user, page_embedder=page_embedder)


def library_over(
    engine: ContextEngine, settings: Settings, *, user: User | None = None, page_embedder: PageEmbedder | None = None
) -> WorkspaceLibrary:
    """The documents of an engine's folder as a library of pages."""
    from satchel.research.library import PageImages, WorkspaceLibrary
    from satchel.storage.sqlite.page_vectors import EmbeddedPageVectors

    folder = index_folder(engine.root, settings)
    seer = page_embedder or make_page_embedder(settings, engine.embedder)
    vectors = EmbeddedPageVectors(folder / "pages.sqlite", seer.name, seer.dimensions)
    images = PageImages(engine.folder, folder / "pages")
    return WorkspaceLibrary(engine, user=user, page_embedder=seer, page_vectors=vectors, images=images)


def settings_at(path: str | os.PathLike[str], changed: Mapping[str, Any], *, heed_project: bool = True) -> Settings:
    """The settings for a folder, or for a workspace in a database."""
    if is_database(path):  # there is no project here, and the user's own settings count
        return configure(Path(os.curdir), changed, heed_project=False).settings
    return configure(workspace(path), changed, heed_project=heed_project).settings


def root_and_place(path: str | os.PathLike[str], settings: Settings) -> tuple[Path, Place]:
    """The folder, or the name of a workspace without one, and where its index is."""
    if is_database(path):
        place = database_place(str(path))
        return Path(place.address.workspace), place
    root = workspace(path)
    return root, place_of(root, settings)


def make_page_embedder(settings: Settings, embedder: Embedder) -> PageEmbedder:
    """Who looks at pages: `written` sees what is written on them, `multi-vector:MODEL` sees the pages."""
    kind, _, model = settings.page_embedder.partition(":")
    if kind == "written" and not model:
        from satchel.integrations.embedders.written_page_embedder import WrittenPageEmbedder

        return WrittenPageEmbedder(embedder)
    if kind == "multi-vector" and model:
        from satchel.integrations.embedders.multi_vector_page_embedder import MultiVectorPageEmbedder

        return MultiVectorPageEmbedder(model)
    raise EmbedderUnavailable(settings.page_embedder, "unknown; use written or multi-vector:<model>")


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
    if "://" in str(path):
        # It may hold a password.
        scheme = str(path).partition("://")[0]
        known = (
            "a Satchel server is asked from Python, with satchel.open(URL); a repository has to be cloned first"
            if scheme in ("http", "https")
            else "a database is postgresql://user@host/database?workspace=name"
        )
        raise WorkspaceMissing("path", f"{scheme}://...", f"is no folder; {known}")
    try:
        root = given.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise WorkspaceMissing("path", str(given), "there is no such folder") from None
    if not root.is_dir():
        raise WorkspaceMissing("path", str(given), "is a file; name the folder to search")
    return root


def make_document_policy(root: Path, settings: Settings) -> DocumentPolicy:
    """What is read as a document below a folder."""
    from satchel.indexing.documents.policy import Reading, policy_for
    from satchel.indexing.walk import in_repository

    return policy_for(
        Reading(settings.documents),
        in_repository=in_repository(os.fspath(root)),
        max_bytes=settings.max_document_bytes,
        ocr=settings.ocr != "off",
        languages=settings.ocr_languages,
    )


def make_workers(
    settings: Settings, documents: DocumentPolicy, embedder: Embedder, *, is_ours: bool = True
) -> WorkersMaker:
    """Who prepares files: processes of this machine, or Ray's; a little is always done here.

    `is_ours` says whether the embedder is what the settings name, so that a worker elsewhere can have the same.
    """
    count = settings.workers or None

    def find(load: Load) -> AbstractContextManager[Workers]:
        from satchel.indexing.work import FEW_BYTES, LocalWorkers, Tools

        if settings.ingest_on == "local":
            return LocalWorkers(count, documents=documents, load=load)
        from satchel.integrations.ray.workers import RayWorkers, require_ray

        require_ray()
        if sum(load) <= FEW_BYTES:
            return LocalWorkers(count, documents=documents, load=load)
        can_be_sent = is_ours and settings.embedder.partition(":")[0] in ON_WORKERS
        maker = "satchel.service.factory.embedders:make_named_embedder" if can_be_sent else ""
        tools = Tools(documents=documents, embedder_maker=maker, embedder_name=settings.embedder)
        return RayWorkers(settings.ingest_on, tools, embedder, count=count)

    return find


class ModelEndpoint(NamedTuple):
    """Where a language model is asked; without a URL at OpenAI's. The key is for nobody else."""

    kind: str
    model: str
    url: str | None
    key: str


def language_model_endpoint(settings: Settings) -> ModelEndpoint | None:
    """Where the language model of the settings (`openai:MODEL`) is asked, if they name one."""
    if not settings.language_model:
        return None
    kind, _, model = settings.language_model.partition(":")
    if kind not in ("openai", *_LOCAL_SERVERS) or not model:
        known = ", ".join(f"{known_kind}:<model>" for known_kind in ("openai", *_LOCAL_SERVERS))
        raise LanguageModelUnavailable(settings.language_model, f"unknown; use one of {known}")
    url = settings.language_model_url or _LOCAL_SERVERS.get(kind)
    # OpenAI's key is for OpenAI: whoever else is asked gets the key that was meant for them, or none.
    key = os.environ.get("SATCHEL_LANGUAGE_MODEL_KEY") or ("" if url else os.environ.get("OPENAI_API_KEY")) or ""
    return ModelEndpoint(kind, model, url, key)


def make_language_model(settings: Settings) -> LanguageModel | None:
    """The language model of that name (`openai:MODEL`), or none."""
    asked = language_model_endpoint(settings)
    if asked is None:
        return None
    from satchel.integrations.openai.language_model import OpenAILanguageModel

    return OpenAILanguageModel(asked.model, kind=asked.kind, url=asked.url, key=asked.key)
