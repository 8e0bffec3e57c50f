"""Recognizes a tree of source code, where pictures are icons, and web pages and tables are source.

Only names decide, in a fixed order: the same tree always gives the same answer.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import translate
from itertools import islice
from typing import Final

from satchel.indexing.walk import NAMES, in_repository
from satchel.models.files import PROSE, PageUnit, detect_language, page_unit

_PROJECT_FILES: Final = re.compile("|".join(map(translate, NAMES["project_files"])))
_NEVER_ENTERED: Final = frozenset(NAMES["never_entered"])
_MAX_LOOKED_AT_ENTRIES: Final = 2_000  # a few milliseconds at each question; the files nearest to the top say enough
_MIN_SOURCE_FILES: Final = 5  # a few scripts beside documents make no project
_MAX_PICTURES_PER_SOURCE_FILE: Final = 10  # with more of them, the folder is about the pictures


def is_source_tree(folder: str) -> bool:
    """True if the folder, given by the real path, lies in a repository, is a project, or holds mostly source code."""
    if in_repository(folder):
        return True
    with suppress(OSError), os.scandir(folder) as entries:
        if any(_PROJECT_FILES.match(entry.name.lower()) and entry.is_file() for entry in entries):
            return True
    return _is_mostly_source(islice(_names_of_files(folder), _MAX_LOOKED_AT_ENTRIES))


def _is_mostly_source(names: Iterator[str]) -> bool:
    """True if most of the readable files are source code."""
    from satchel.indexing.code.read_code import GRAMMARS  # in repositories and projects nothing is counted

    sources = texts = pictures = 0
    for name in names:
        language, unit = detect_language(name), page_unit(name)
        if language in GRAMMARS:
            sources += 1
        elif unit is PageUnit.PICTURE:
            pictures += 1
        elif unit is not None or language in PROSE:
            texts += 1
    is_enough = sources >= _MIN_SOURCE_FILES and pictures <= _MAX_PICTURES_PER_SOURCE_FILE * sources
    return is_enough and sources > texts


def _names_of_files(folder: str) -> Iterator[str]:
    """The names of the files below a folder, those nearest to the top first."""
    waiting = deque([folder])
    while waiting:
        try:
            with os.scandir(waiting.popleft()) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        names = {entry.name for entry in listed}
        for entry in listed:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.name
            elif not _is_left_out(entry.name, names) and len(waiting) < _MAX_LOOKED_AT_ENTRIES:
                waiting.append(entry.path)


def _is_left_out(folder: str, beside: set[str]) -> bool:
    """True for installed packages and caches, and for the scripts and pictures of a web page that a browser saved."""
    page = folder.removesuffix("_files")
    return folder in _NEVER_ENTERED or (page != folder and not beside.isdisjoint({f"{page}.html", f"{page}.htm"}))
