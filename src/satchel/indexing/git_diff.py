"""The diff of a revision of a folder's git repository, read by a confined child: a repository is untrusted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from satchel.errors import InvalidOption
from satchel.indexing.child_process import ChildFailed, ChildProcess, RequestLimits, encode, frame, receive
from satchel.indexing.child_process import serve as serve_requests

_COMMAND: Final = "from satchel.indexing.git_diff import serve; serve()"
_SECONDS: Final = 60.0  # a diff of a large working tree takes a second
_MAX_DIFF_BYTES: Final = 8_000_000  # of an answer of the child: bounds memory
_MAX_REQUEST_BYTES: Final = 100_000  # a path and a revision
_HELP: Final = "HEAD, HEAD~2, a branch, A..B, or - for a diff on stdin"


class _Request(NamedTuple):
    root: str
    revision: str


class _Answer(NamedTuple):
    diff: str = ""
    problem: str = ""


def diff_of(root: Path, revision: str) -> str:
    """The diff from a revision to the files as they are, or between two (`A..B`; `A...B` from where B branched off).

    Raises InvalidOption if there is no such revision, or no repository.
    """
    child = ChildProcess(_COMMAND)
    limits = RequestLimits(seconds=_SECONDS, answer_bytes=_MAX_DIFF_BYTES)
    try:
        answer = child.ask([frame(encode(_Request(os.fspath(root), revision)))], limits, _Answer)
    except ChildFailed as error:
        raise InvalidOption("diff", revision, f"cannot be read: the repository {error}") from error
    finally:
        child.stop()
    if answer.problem:
        raise InvalidOption("diff", revision, f"{answer.problem}; give {_HELP}")
    return answer.diff


# -- in the child


def serve() -> None:
    """Read diffs of repositories named by the parent."""
    serve_requests(_answer)


def _answer(requests: IO[bytes], send: Callable[[_Answer], None]) -> None:
    request = receive(requests, _Request, _MAX_REQUEST_BYTES)
    signal.setitimer(signal.ITIMER_REAL, 2 * _SECONDS)  # if the parent is gone, this ends the process
    import pygit2

    # Git refuses repositories of other users because of the programs they name; nothing is executed here.
    pygit2.settings.owner_validation = False
    try:
        answer = _read(request)
    except Exception:  # whatever is wrong with it, the caller can give the text of the diff
        answer = _Answer(problem="is no revision of the folder's repository")
    send(answer)


def _read(request: _Request) -> _Answer:
    import pygit2

    found = pygit2.discover_repository(request.root)
    if not found:
        return _Answer(problem="needs a git repository, and the folder is in none")
    repository = pygit2.Repository(found)
    before, dots, after = request.revision.partition("..")
    if dots:
        old, new = _commit(repository, before or "HEAD"), _commit(repository, after.removeprefix(".") or "HEAD")
        if after.startswith("."):
            old = repository.get(repository.merge_base(old.id, new.id))
        diff = repository.diff(old, new)
    else:
        diff = repository.diff(_commit(repository, request.revision), None)
    diff.find_similar()
    text = (diff.patch or "").encode("utf-8", "replace")
    if len(text) > _MAX_DIFF_BYTES // 2:
        return _Answer(problem="changes too much for anything in particular to follow from it")
    return _Answer(text.decode("utf-8", "replace"))


def _commit(repository: Any, revision: str) -> Any:
    import pygit2

    return repository.revparse_single(revision).peel(pygit2.Commit)
