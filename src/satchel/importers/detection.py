"""What importers look at to recognize a source: the names in it, and how a file begins."""

from __future__ import annotations

import json
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any, Final

from satchel.workspace.blocks import list_files

_NAMES_LOOKED_AT: Final = 200
"""Enough to see what a folder holds, few enough for a large disk."""
_HEAD_BYTES: Final = 65_536
"""A first line that is longer is not parsed."""


def first_names(path: Path) -> list[str]:
    """The names of the first files in a folder or a ZIP; none for another file."""
    if path.is_dir():
        return [name for name, _ in islice(list_files(str(path)), _NAMES_LOOKED_AT)]
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()[:_NAMES_LOOKED_AT]


def first_value(path: Path) -> Any:
    """The JSON value in the first line of a file; a list if the line begins one, None if it is something else."""
    with path.open("rb") as file:
        line = file.read(_HEAD_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return [] if line.startswith(b"[") else None
