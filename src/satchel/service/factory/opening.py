"""Open workspaces: locate the index (in a folder or a database), and create the engine or library over the index."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from satchel.errors import (
    ExtraMissing,
    IndexBusy,
    InvalidOption,
    MoveUnfinished,
    PlatformUnsupported,
    WorkspaceMissing,
)
from satchel.models.options import DEFAULT_CONTEXT_CONFIG, with_changes
from satchel.ports.transfer import MOVING
from satchel.service.engine import ContextEngine
from satchel.service.factory.adapters import (
    make_document_policy,
    make_embedder,
    make_language_model,
    make_page_embedder,
    make_workers,
)
from satchel.service.factory.sharing import prepared_cache, seeding
from satchel.service.settings import Settings, configure, index_folder

if TYPE_CHECKING:
    from datetime import datetime

    from satchel.models.options import ContextBuildOptions, ContextConfig
    from satchel.models.request import User
    from satchel.models.results import ContextBuildResult
    from satchel.ports.cross_encoder import CrossEncoder
    from satchel.ports.embedder import Embedder
    from satchel.ports.language_model import LanguageModel
    from satchel.ports.page_embedder import PageEmbedder
    from satchel.ports.store import Store
    from satchel.research.library import WorkspaceLibrary
    from satchel.storage.postgres.address import Address


_DATABASES: Final = ("postgresql://", "postgres://")


def is_database(place: object) -> bool:
    """True if a text is the URL of a database."""
    return isinstance(place, str) and place.startswith(_DATABASES)


INDEX_FILES: Final = ("truth.sqlite", "derived/current.json")
"""The files that tell an index in a folder: the database, and the manifest of the arrays made from the database."""


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """An index in a folder with a SQLite file."""

    folder: Path

    @property
    def shown(self) -> str:
        """The path of the folder."""
        return str(self.folder)

    def is_there(self) -> bool:
        """True if the folder holds an index, or the rest of an index whose database is lost."""
        return any((self.folder / name).exists() for name in INDEX_FILES)

    def open(self) -> Store:
        """Open the embedded store."""
        from satchel.storage.sqlite.store import EmbeddedStore

        return EmbeddedStore(self.folder)

    def check(self) -> str:
        """Describe the damage to the files; '' if there is none."""
        from satchel.storage.sqlite.store import EmbeddedStore

        return _checked(EmbeddedStore(self.folder))

    def remove(self) -> None:
        """Remove the files of the index, and the folder if no more files are in the folder.

        Raises IndexBusy while another process writes the index.
        """
        with _no_writer(self.folder):
            self._remove_files()

    def _remove_files(self) -> None:
        # The database goes last but one: what is left by an interrupted removal can be completed or removed again.
        databases = (*self.folder.glob("seed.part*"), *self.folder.glob("truth.sqlite*"))
        for path in (*self.folder.glob("derived/*"), *databases, self.folder / "write.lock"):
            path.unlink(missing_ok=True)
        for place in (self.folder / "derived", self.folder):
            with suppress(OSError):
                place.rmdir()


@contextmanager
def _no_writer(folder: Path) -> Iterator[None]:
    """Hold the write lock of an index folder, if there is one; raises IndexBusy while another process holds it."""
    try:
        handle = os.open(folder / "write.lock", os.O_RDWR)
    except OSError:  # never written, or on a read-only medium
        yield
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise IndexBusy(str(folder), "") from error
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """A workspace in a PostgreSQL database."""

    address: Address

    @property
    def shown(self) -> str:
        """The address without the password."""
        return self.address.shown

    @property
    def folder(self) -> Path | None:
        """None: the index is in no folder of this machine."""
        return None

    def is_there(self) -> bool:
        """True if the workspace holds files or blocks."""
        store = self.open()
        try:
            return bool(store.files()) or store.holds_blocks()
        finally:
            store.close()

    def open(self) -> Store:
        """Open the store in the database."""
        return _postgres().PostgresStore(self.address)  # type: ignore[no-any-return]

    def check(self) -> str:
        """Describe the damage to the derived data; '' if there is none."""
        return _checked(self.open())

    def remove(self) -> None:
        """Remove all data of this workspace; the rest of the database is not touched."""
        store: Any = self.open()
        try:
            store.clear()
        finally:
            store.close()


Place: TypeAlias = "FolderPlace | DatabasePlace"
"""Location of an index, existing or not."""


def _checked(store: Any) -> str:
    try:
        return str(store.check())
    finally:
        store.close()


def _postgres() -> Any:
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise ExtraMissing("a store in PostgreSQL", "postgres") from error
    import satchel.storage.postgres.store

    return satchel.storage.postgres.store


def database_place(url: str, workspace: str = "") -> DatabasePlace:
    """Parse a database URL; `workspace` is the default for a URL without a workspace."""
    from satchel.storage.postgres.address import address_of

    return DatabasePlace(address_of(url, workspace))


def administration() -> Any:
    """The module with the administration of a database."""
    _postgres()
    import satchel.storage.postgres.administration

    return satchel.storage.postgres.administration


def folder_inspection() -> Any:
    """The module for read-only inspection of an index in a folder."""
    import satchel.storage.sqlite.inspection

    return satchel.storage.sqlite.inspection


def place_of(root: Path, settings: Settings) -> Place:
    """Location of the index of a folder; in a database, named after the index folder if the URL names no workspace."""
    folder = index_folder(root, settings)
    if settings.store:
        return database_place(settings.store, folder.name)
    return FolderPlace(folder)


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
    """Open the engine for a folder, with the index in the OS's cache (or `index_dir`), or in a database (`store`).

    A `postgresql://…?workspace=name` in place of the folder opens a workspace without a folder on this machine.

    Settings come from the user's and the project's files and the environment; keyword arguments override them.
    """
    if find_spec("fcntl") is None:
        raise PlatformUnsupported(sys.platform)
    if isinstance(language_model, str):
        changed["language_model"], language_model = language_model, None
    settings = settings or settings_at(path, changed)
    root, place = root_and_place(path, settings)
    own = None if place.folder is None else place.folder.resolve()
    # Create the embedder first: if its model is missing, nothing is created on disk.
    model = embedder or make_embedder(settings)
    documents = make_document_policy(root, settings)
    store = _complete(place)
    return ContextEngine(
        root,
        store,
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
        cache=prepared_cache(place.folder, settings, model if embedder is None else None),
        seed=seeding(place.folder, store, root, model),
    )


def _complete(place: Place) -> Store:
    """Open the store at a place; raise MoveUnfinished if a migration into the store is not complete."""
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
    """Open the documents of a folder as a library of pages, for `satchel.research.ContextBuilder`.

    Pages are found by their text and by vectors of the lines written on them; with the setting or argument
    `page_embedder`, by a model's vectors of their pictures. `engine.index()` refreshes the library from the folder.
    """
    settings = settings or settings_at(path, changed)
    engine = open_engine(path, settings=settings, embedder=embedder)
    return library_over(engine, settings, user=user, page_embedder=page_embedder)


def library_over(
    engine: ContextEngine, settings: Settings, *, user: User | None = None, page_embedder: PageEmbedder | None = None
) -> WorkspaceLibrary:
    """Create the library of pages over the documents of an engine's folder."""
    from satchel.research.library import PageImages, WorkspaceLibrary
    from satchel.storage.sqlite.page_vector_file import EmbeddedPageVectors

    folder = index_folder(engine.root, settings)
    seer = page_embedder or make_page_embedder(settings, engine.embedder)
    vectors = EmbeddedPageVectors(folder / "pages.sqlite", seer.name, seer.dimensions)
    images = PageImages(engine.folder, folder / "pages")
    return WorkspaceLibrary(engine, user=user, page_embedder=seer, page_vectors=vectors, images=images)


def settings_at(path: str | os.PathLike[str], changed: Mapping[str, Any], *, heed_project: bool = True) -> Settings:
    """Load the settings for a folder, or for a workspace in a database."""
    if is_database(path):  # a database has no project file; only the user's own settings apply
        return configure(Path(os.curdir), changed, heed_project=False).settings
    return configure(workspace(path), changed, heed_project=heed_project).settings


def root_and_place(path: str | os.PathLike[str], settings: Settings) -> tuple[Path, Place]:
    """Return the folder (or the name of a workspace without a folder) and the location of the index."""
    if is_database(path):
        place = database_place(str(path))
        return Path(place.address.workspace), place
    root = workspace(path)
    return root, place_of(root, settings)


def build_context(
    question: str,
    options: ContextBuildOptions,
    *,
    cross_encoder: CrossEncoder | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ContextBuildResult:
    """Index the changed files of `options.workspace_path`, retrieve from the index, and assemble a context."""
    if not options.workspace_path:
        raise InvalidOption("workspace_path", options.workspace_path, "must be the folder to search")
    with open_engine(options.workspace_path, cross_encoder=cross_encoder, **(settings or {})) as engine:
        engine.index()
        return engine.build(question, options)


def workspace(path: str | os.PathLike[str]) -> Path:
    """Resolve a path to a real folder; raise WorkspaceMissing if there is none."""
    requested = Path(path)
    if "://" in str(path):
        # A URL may hold a password: show only the scheme.
        scheme = str(path).partition("://")[0]
        known = (
            "to ask a Satchel server, use satchel.open(URL) in Python; to index a repository, clone it first"
            if scheme in ("http", "https")
            else "a database is postgresql://user@host/database?workspace=name"
        )
        raise WorkspaceMissing("path", f"{scheme}://...", f"is not a folder; {known}")
    try:
        root = requested.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise WorkspaceMissing("path", str(requested), "the folder does not exist") from None
    if not root.is_dir():
        raise WorkspaceMissing("path", str(requested), "is a file; give the folder to search")
    return root
