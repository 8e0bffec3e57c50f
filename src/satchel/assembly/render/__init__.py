"""Formats: pieces in, text out. Each output parses, whatever is in the pieces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from satchel.models.options import FORMATS

if TYPE_CHECKING:
    from satchel.assembly.render.format import Format
    from satchel.models.options import ContextBuildOptions


def format_for(options: ContextBuildOptions, *, metadata_hints: bool = True) -> Format:
    """The format that the options name."""
    entry = FORMATS.get(options.format)
    if isinstance(entry, str):
        module, _, name = entry.partition(":")
        entry = getattr(import_module(module), name)
    return cast("Format", entry(options, metadata_hints=metadata_hints))
