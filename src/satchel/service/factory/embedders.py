"""The embedders by name, and the one that the settings choose."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.errors import EmbedderUnavailable, InvalidOption, SatchelError
from satchel.registry import Registry

if TYPE_CHECKING:
    from satchel.ports.embedder import Embedder
    from satchel.service.settings import Settings

MakeEmbedder = Callable[[str, "Settings"], "Embedder"]
"""Makes an embedder from what stands behind its name (`NAME:MODEL`; may be empty) and the settings."""


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
"""What makes each embedder. A package adds one through the entry-point group `satchel.embedders`."""

_NEED_A_MODEL: Final = frozenset({"sentence-transformers", "fastembed", "openai"})

ON_WORKERS: Final = frozenset({"static", "sentence-transformers", "fastembed"})
"""The embedders that run on other machines: a key stays on ours, and a plug-in may be installed only here."""


def make_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name: `NAME`, or `NAME:MODEL`."""
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
    except Exception as error:  # a stranger's function may raise anything
        raise EmbedderUnavailable(settings.embedder, f"cannot be made ({type(error).__name__}: {error})") from error


def make_named_embedder(name: str) -> Embedder:
    """The embedder of that name with no other setting of this machine: workers elsewhere make it so."""
    from satchel.service.settings import Settings

    return make_embedder(Settings(embedder=name))
