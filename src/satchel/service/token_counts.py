"""Token counts, and the text files at a path."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from satchel.indexing.walk import PassedOver, Skip, read_file, surroundings, walk
from satchel.text.decoding import decode_text, is_binary
from satchel.tokens.counter import TokenCounter
from satchel.tokens.registry import counter_for, describe_tokenizer, known_models

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "Passed",
    "TextFile",
    "TokenCounter",
    "count_tokens",
    "counter_for",
    "describe_tokenizer",
    "known_models",
    "text_files",
]

MAX_FILE_BYTES: Final = 50_000_000  # a larger file is skipped: the whole text is held in memory to be counted


def count_tokens(text: str, model: str = "gpt-4o") -> int:
    """Count the tokens of a text for a model."""
    return counter_for(model).count(text)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text, and its path below the given folder ('' if the file itself was given)."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Passed:
    """A skipped file or folder, with the reason."""

    path: str
    reason: str


def text_files(path: Path) -> Iterator[TextFile | Passed]:
    """Yield the file itself, or every text file below the folder except files excluded by ignore files."""
    if not path.is_dir():
        yield _read_given_file(path)
        return
    # A link given by the user is followed; links below the folder are not.
    real = path.resolve()
    folder = os.open(real, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for entry in walk(folder, max_file_bytes=MAX_FILE_BYTES, within=surroundings(str(real))):
            shown_path = f"{path}/{entry.path}"
            if isinstance(entry, PassedOver):
                yield Passed(shown_path, entry.reason.value)
                continue
            text = read_file(folder, entry.path, MAX_FILE_BYTES)
            yield Passed(shown_path, text.value) if isinstance(text, Skip) else TextFile(entry.path, text)
    finally:
        os.close(folder)


def _read_given_file(path: Path) -> TextFile | Passed:
    """Read the file at a path given by the user, even if the file is a pipe or generated."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        return Passed(str(path), Skip.UNREADABLE.value)
    if len(data) > MAX_FILE_BYTES:
        return Passed(str(path), Skip.TOO_LARGE.value)
    if is_binary(data):
        return Passed(str(path), Skip.BINARY.value)
    return TextFile("", decode_text(data))
