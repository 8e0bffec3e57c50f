"""Git history of files (author, time, subject), read in a single pass by a library that executes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from satchel.models.block import Activity

_MAX_SECONDS: Final = 3.0  # history is optional, and nobody should wait for more; older commits are left out
_MAX_COMMIT_FILES: Final = 300  # a sweep over everything says nothing about a single file
_MAX_SUBJECT_CHARS: Final = 200  # longer subjects are whole messages on a line; the rest is cut


class History(NamedTuple):
    """Commits touching files below a folder, newest first, and the commit at HEAD."""

    head: str
    activities: tuple[Activity, ...]
    note: str = ""


def head_of(root: Path) -> str:
    """The commit at HEAD of the folder's repository; empty without a readable repository."""
    opened = _opened(root)
    return "" if opened is None else str(opened[0].head.target)


def read_history(root: Path, *, most_commits: int) -> History:
    """The last commits on the way to HEAD, as far as they touch files below the folder."""
    opened = _opened(root)
    if opened is None:
        return History("", (), "no git history")
    repository, prefix = opened
    head = str(repository.head.target)
    deadline = time.monotonic() + _MAX_SECONDS
    activities: list[Activity] = []
    note = ""
    for count, commit in enumerate(_commits(repository, head)):
        if count >= most_commits or time.monotonic() > deadline:
            note = f"only the last {count:,} commits of the git history were read"
            break
        # Commits are untrusted: times may be out of range, encodings unknown.
        with suppress(ValueError, LookupError, OverflowError, OSError):
            activities += list(_touched(repository, commit, prefix))
    return History(head, tuple(activities), note)


def _opened(root: Path) -> tuple[Any, str] | None:
    """The repository containing the folder, and the folder's path in the repository."""
    import pygit2

    try:
        place = pygit2.discover_repository(os.fspath(root))
        if place is None:
            return None
        repository = pygit2.Repository(place)
        if repository.is_bare or repository.is_empty or repository.head_is_unborn:
            return None
        below = os.path.relpath(root, repository.workdir)
    except (pygit2.GitError, KeyError, ValueError, OSError):
        return None
    return repository, "" if below == "." else below.replace(os.sep, "/") + "/"


def _commits(repository: Any, head: str) -> Iterator[Any]:
    import pygit2

    with suppress(pygit2.GitError, KeyError):  # a shallow clone ends where its objects end
        # Git's own order, and the only one that does not read the whole history before the first commit is given.
        yield from repository.walk(head, pygit2.enums.SortMode.NONE)


def _touched(repository: Any, commit: Any, prefix: str) -> Iterator[Activity]:
    import pygit2

    if len(commit.parents) > 1:
        return
    try:
        how = {"flags": pygit2.enums.DiffOption.SKIP_BINARY_CHECK, "context_lines": 0}
        parents, tree = commit.parents, commit.tree
        diff = repository.diff(parents[0], commit, **how) if parents else tree.diff_to_tree(swap=True, **how)
        deltas = list(diff.deltas)
    except (pygit2.GitError, KeyError, ValueError):
        return
    if len(deltas) > _MAX_COMMIT_FILES:
        return  # a sweep over everything says nothing about any one file
    when = datetime.fromtimestamp(commit.commit_time, UTC)
    subject = commit.message.partition("\n")[0][:_MAX_SUBJECT_CHARS]
    for delta in deltas:
        path = delta.new_file.path
        if path.startswith(prefix):
            yield Activity(
                block=path[len(prefix) :],
                actor=commit.author.name or "",
                action="commit",
                timestamp=when,
                detail=subject,
                reference=str(commit.id),
            )
