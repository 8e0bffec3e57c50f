"""What the indexes of a user of this machine share: prepared files and vectors, and a start for an index of a copy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from satchel.ports.embedder import Embedder
    from satchel.service.settings import Settings
    from satchel.storage.sqlite.prepared_cache import SqlitePreparedCache

SHARED_FOLDER: Final = "shared"
"""Name of the folder beside the index folders."""

_SHARING_EMBEDDERS: Final = frozenset({"static", "sentence-transformers", "fastembed", "openai"})
"""Embedders whose settings determine the vectors; a plug-in may make others under the same name."""


def prepared_cache(
    folder: Path | None, settings: Settings, embedder: Embedder | None = None
) -> SqlitePreparedCache | None:
    """The cache beside an index folder, with vectors only for an embedder made from the settings.

    None for an index in a database, which other users may share.
    """
    if folder is None:
        return None
    from satchel.storage.sqlite.prepared_cache import SqlitePreparedCache

    return SqlitePreparedCache(
        folder.parent / SHARED_FOLDER, "" if embedder is None else _vectors_of(embedder, settings)
    )


def _vectors_of(embedder: Embedder, settings: Settings) -> str:
    """The name under which vectors are shared, or "": a model in a folder may be trained again under its name."""
    kind, _, model = settings.embedder.partition(":")
    if kind not in _SHARING_EMBEDDERS or (kind == "static" and model):
        return ""
    return "\0".join((settings.embedder, settings.embedder_url, embedder.name, str(embedder.dimensions)))


def seeding(
    folder: Path | None, store: Any, root: Path, embedder: Embedder
) -> Callable[[Callable[[], Collection[str]]], bool] | None:
    """The function that starts a new index in a folder as a copy of a similar index; None for a database.

    Its argument gives the paths that the folder has: a copy holds no other file.
    """
    if folder is None:
        return None

    def seed(present: Callable[[], Collection[str]]) -> bool:
        from satchel.storage.sqlite.seeding import Seeding

        return Seeding(store, folder, root, present, embedder.name, embedder.dimensions).run()

    return seed
