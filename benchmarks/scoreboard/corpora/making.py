"""Folders that are made once, whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.scoreboard.corpora.model import Unavailable


def made(folder: Path, recipe: str, fill: Callable[[Path], None]) -> Path:
    """The folder, filled if it is not there yet or was made by another recipe.

    It is filled under another name first; a file beside it keeps the recipe's hash.
    """
    stamp = folder.with_name(f"{folder.name}.made")
    fingerprint = hashlib.sha256(recipe.encode()).hexdigest()
    if folder.is_dir() and stamp.is_file() and stamp.read_text(encoding="ascii") == fingerprint:
        return folder
    part = folder.with_name(f"{folder.name}.part")
    for old in (part, folder):
        shutil.rmtree(old, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    part.mkdir(parents=True)
    try:
        fill(part)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    part.rename(folder)
    stamp.write_text(fingerprint, encoding="ascii")
    return folder


def write_below(folder: Path, path: str, content: bytes) -> None:
    """Writes a file that must lie in the folder: paths come from archives and data of others."""
    target = folder / path
    if ".." in Path(path).parts or Path(path).is_absolute() or not path or "\0" in path:
        raise Unavailable(f"{path!r} would lie outside of {folder}; nothing of this corpus is written")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
