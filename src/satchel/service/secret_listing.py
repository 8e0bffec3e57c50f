"""Where secrets are in a folder's files: what the index redacts, and what stands in files that it does not read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from satchel.errors import InvalidOption
from satchel.indexing.walk import PassedOver, Skip, read_bytes, surroundings, walk
from satchel.text.decoding import decode_text, is_binary
from satchel.text.secrets import find_secrets, redact

_MAX_FILE_BYTES: Final = 50_000_000  # a larger file is not read: its text is held in memory


class ListedSecret(NamedTuple):
    """A secret by its place and kind, without its text."""

    path: str
    line: int
    """0 for a secret in the path itself."""
    kind: str
    is_indexed: bool
    """False in a file that the index does not read, because its name says that it holds secrets."""


def secrets_below(path: Path) -> Iterator[ListedSecret]:
    """The secrets in a file, or in every file of a folder that is not excluded by ignore files."""
    if not path.exists():
        raise InvalidOption("path", str(path), "does not exist")
    if not path.is_dir():
        folder = os.open(path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            data = read_bytes(folder, path.resolve().name, _MAX_FILE_BYTES)
        finally:
            os.close(folder)
        if not isinstance(data, bytes):
            raise InvalidOption("path", str(path), f"cannot be read ({data.value})")
        yield from _listed(redact(path.name), data, is_indexed=True)
        return
    real = path.resolve()
    folder = os.open(real, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for entry in walk(folder, max_file_bytes=_MAX_FILE_BYTES, within=surroundings(str(real))):
            is_indexed = not isinstance(entry, PassedOver)
            if isinstance(entry, PassedOver) and entry.reason is not Skip.SECRET:
                continue
            name = entry.on_disk if isinstance(entry, PassedOver) else entry.path
            for secret in find_secrets(name):
                yield ListedSecret(redact(name), 0, secret.rule, is_indexed)
            data = read_bytes(folder, name, _MAX_FILE_BYTES)
            if isinstance(data, bytes):
                yield from _listed(redact(name), data, is_indexed=is_indexed)
    finally:
        os.close(folder)


def _listed(path: str, data: bytes, *, is_indexed: bool) -> Iterator[ListedSecret]:
    if is_binary(data):
        return
    text = decode_text(data)
    line = 1
    at = 0
    for secret in find_secrets(text):
        line += text.count("\n", at, secret.start)
        at = secret.start
        yield ListedSecret(path, line, secret.rule, is_indexed)
