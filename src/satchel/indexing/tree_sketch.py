"""A sketch of a folder: tells whether two folders are copies of one tree, without reading either of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

_HASHES: Final = 128  # of the names and sizes: the likeness of two folders is then exact to about 5 %
_DEPTH: Final = 2  # the folder and its folders: hundreds of names in most repositories, and a few milliseconds
_MAX_ENTRIES: Final = 20_000  # bounds the time in folders of data


def sketch_of(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The smallest hashes of names and sizes in the upper folders; empty for a folder that cannot be listed."""
    hashes = set()
    for name, size in _entries(os.fspath(root), "", _DEPTH):
        hashes.add(blake2b(f"{name}\0{size}".encode("utf-8", "surrogateescape"), digest_size=6).hexdigest())
        if len(hashes) >= _MAX_ENTRIES:
            break
    return tuple(sorted(hashes)[:_HASHES])


def _entries(folder: str, prefix: str, depth: int) -> Iterator[tuple[str, int]]:
    """Relative paths and sizes of the files, without hidden folders (`.git` differs between worktrees)."""
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if depth > 1 and not entry.name.startswith("."):
                        yield from _entries(entry.path, f"{prefix}{entry.name}/", depth - 1)
                elif entry.name != ".git":
                    yield prefix + entry.name, entry.stat(follow_symlinks=False).st_size
    except OSError:
        return


def likeness(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """The estimated share of common names and sizes, from 0 to 1."""
    smallest = sorted({*one, *other})[: max(_HASHES, 1)]
    common = {*one} & {*other}
    return sum(entry in common for entry in smallest) / max(1, len(smallest))
