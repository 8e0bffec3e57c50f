"""Git history of files (author, time, subject): what the last commits on the way to HEAD say of files below a folder.

A repository is untrusted: a named pipe in the place of its configuration stops libgit2 for ever. So this process reads
the commit at HEAD with its own few lines, and a confined child with a deadline reads the history, when HEAD has moved.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import hexdigits
from typing import IO, Any, Final, NamedTuple

from satchel.errors import WorkspaceMissing
from satchel.indexing.child_process import ChildFailed, ChildProcess, RequestLimits, encode, frame, receive
from satchel.indexing.child_process import serve as serve_requests
from satchel.indexing.walk import Skip, opened_folder, read_bytes, top_of_repository
from satchel.models.block import Activity
from satchel.text.secrets import redact

_COMMAND: Final = "from satchel.indexing.git_history import serve; serve()"
_COMMIT_SECONDS: Final = 20.0  # a commit takes milliseconds; a child without news for so long waits for ever
_ALL_SECONDS: Final = 600.0  # more than any number of commits takes that a person would ask for
_MAX_COMMIT_FILES: Final = 300  # a sweep over everything says nothing about a single file
_MAX_SUBJECT_CHARS: Final = 200  # longer subjects are whole messages on a line; the rest is cut
_COMMIT_BYTES: Final = 500 * _MAX_COMMIT_FILES  # path, author, subject and id of each file, with room for long ones
_MAX_REQUEST_BYTES: Final = 100_000  # a path and a number, from our parent
_MAX_REF_BYTES: Final = 4096  # a name of at most 255 bytes and its folders
_MAX_PACKED_REFS_BYTES: Final = 100_000_000  # a million refs
_MAX_REF_STEPS: Final = 5  # git's own limit for a ref that names another
_PACK_WINDOW_BYTES: Final = 64 << 20  # of a pack file in memory at a time; a child's address space is limited
_MAPPED_BYTES: Final = 1 << 30


class History(NamedTuple):
    """Commits touching files below a folder, newest first, and the commit at HEAD."""

    head: str
    activities: tuple[Activity, ...] = ()
    note: str = ""


class UnreadableHistory(Exception):
    """The history of a repository cannot be read; the text says why."""


def head_of(root: Path) -> str:
    """The commit at HEAD of the folder's repository; empty without a repository or a commit.

    Raises UnreadableHistory. Never blocks, and runs no library on the repository.
    """
    top = top_of_repository(os.path.realpath(root))
    if top is None:
        return ""
    git = _git_folder(top)
    folders = (git, os.path.join(git, _text(git, "commondir").strip()))
    name = "HEAD"
    for _ in range(_MAX_REF_STEPS):
        stored = _stored_ref(folders, name)
        if not stored.startswith("ref: "):
            if stored.strip(hexdigits):
                raise UnreadableHistory(f"{name} names no commit")
            return stored
        name = stored.removeprefix("ref: ").strip()
    raise UnreadableHistory("HEAD names a ref that names itself")


def _git_folder(top: str) -> str:
    """The folder with HEAD: `.git`, or the place named in the file `.git` of a worktree or a submodule."""
    git = os.path.realpath(os.path.join(top, ".git"))
    if os.path.isdir(git):
        return git
    pointer = _text(top, ".git")
    if not pointer.startswith("gitdir: "):
        raise UnreadableHistory(".git is neither a folder nor the name of one")
    return os.path.join(top, pointer.removeprefix("gitdir: ").strip())


def _stored_ref(folders: tuple[str, ...], name: str) -> str:
    """What a ref holds: a commit, the name of another ref, or nothing."""
    if name.startswith("/") or ".." in name:
        raise UnreadableHistory(f"HEAD names {name!a}")
    for folder in folders:
        if text := _text(folder, name).strip():
            return text
    # Lines of commits and names, in no order that could be relied on.
    for line in _text(folders[-1], "packed-refs", _MAX_PACKED_REFS_BYTES).splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""


def _text(folder: str, name: str, max_bytes: int = _MAX_REF_BYTES) -> str:
    """The text of a file of the repository; empty if missing."""
    try:
        with opened_folder(folder) as handle:
            data = read_bytes(handle, name, max_bytes)
    except (WorkspaceMissing, ValueError):
        return ""
    if data in (Skip.SPECIAL, Skip.TOO_LARGE):
        raise UnreadableHistory(f"{name} is no file of git's")
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""


def read_history(root: Path, head: str, *, most_commits: int) -> History:
    """The last commits on the way to this commit at HEAD, as far as they touch files below the folder.

    Raises UnreadableHistory; the note says what is missing from a history that can be read in part.
    """
    child = ChildProcess(_COMMAND)
    limits = RequestLimits(
        seconds=_COMMIT_SECONDS,
        answer_bytes=_COMMIT_BYTES * (most_commits + 1),
        progress_seconds=_ALL_SECONDS,
    )
    request = _Request(os.fspath(root), head, most_commits)
    try:
        answer = child.ask([frame(encode(request))], limits, _Answer, progress=_PROGRESS)
        if answer.problem:
            raise UnreadableHistory(answer.problem)
        return History(head, tuple(map(_activity, answer.touched)), answer.note)
    except ChildFailed as error:
        raise UnreadableHistory(f"its repository {error}") from error
    except (ValueError, OverflowError, OSError) as error:  # no child of ours sends such times
        raise UnreadableHistory("its times are invalid") from error
    finally:
        child.stop()


def _activity(touched: _Touched) -> Activity:
    return Activity(
        block=touched.path,
        actor=touched.author,
        action="commit",
        timestamp=datetime.fromtimestamp(touched.seconds, UTC),
        detail=touched.subject,
        reference=touched.commit,
    )


# -- in the child


class _Request(NamedTuple):
    root: str
    head: str
    most_commits: int


class _Touched(NamedTuple):
    """A file that a commit touches."""

    path: str
    author: str
    seconds: int
    subject: str
    commit: str


class _Answer(NamedTuple):
    touched: list[_Touched]
    note: str = ""
    problem: str = ""
    is_last: bool = True


_PROGRESS: Final = _Answer([], is_last=False)


def serve() -> None:
    """Read the history of repositories named by the parent."""
    serve_requests(_answer)


def _answer(requests: IO[bytes], send: Callable[[_Answer], None]) -> None:
    request = receive(requests, _Request, _MAX_REQUEST_BYTES)
    # If the parent is gone, this timer ends the process: the default action of the signal needs no interpreter.
    signal.setitimer(signal.ITIMER_REAL, 2 * _ALL_SECONDS)
    import pygit2

    # Git refuses repositories of other users because of the programs they name; nothing is executed here.
    pygit2.settings.owner_validation = False
    pygit2.settings.mwindow_size, pygit2.settings.mwindow_mapped_limit = _PACK_WINDOW_BYTES, _MAPPED_BYTES
    try:
        answer = _read(request, lambda: send(_PROGRESS))
    except Exception as error:  # whatever it is, the parent indexes without the history
        answer = _Answer([], problem=str(error))
    send(answer)


def _read(request: _Request, report: Callable[[], None]) -> _Answer:
    import pygit2

    repository = pygit2.Repository(pygit2.discover_repository(request.root))
    below = os.path.relpath(request.root, repository.workdir)
    prefix = "" if below == "." else below.replace(os.sep, "/") + "/"
    # Newest first by their own times, and the only order that does not read the whole history before the first commit.
    walker = repository.walk(request.head, pygit2.enums.SortMode.NONE)
    touched: list[_Touched] = []
    count = unreadable = 0
    is_broken = False
    while count <= request.most_commits:
        try:
            commit = next(walker, None)
        except (pygit2.GitError, LookupError):
            commit, is_broken = None, True
        if commit is None or count == request.most_commits:
            break
        count += 1
        try:
            touched += list(_touched(repository, commit, prefix))
        except Exception:  # commits are untrusted: times may be out of range, encodings unknown, trees damaged
            unreadable += 1
        report()
    notes = (
        commit and f"only the last {count:,} commits of the git history were read",
        is_broken and f"the git history was read up to the last {count:,} commits: an older one is missing or damaged",
        unreadable and f"{unreadable:,} of the last {count:,} commits of the git history cannot be read",
        repository.is_shallow and "the git history is that of a shallow clone",
    )
    return _Answer(touched, "; ".join(note for note in notes if note))


def _touched(repository: Any, commit: Any, prefix: str) -> Iterator[_Touched]:
    import pygit2

    if len(commit.parents) > 1 or (repository.is_shallow and not commit.parents):
        return  # a merge, or the first commit of a shallow clone, which has the files of all before it
    how = {"flags": pygit2.enums.DiffOption.SKIP_BINARY_CHECK, "context_lines": 0}
    parents, tree = commit.parents, commit.tree
    diff = repository.diff(parents[0], commit, **how) if parents else tree.diff_to_tree(swap=True, **how)
    deltas = list(diff.deltas)
    if len(deltas) > _MAX_COMMIT_FILES:
        return  # a sweep over everything says nothing about any one file
    datetime.fromtimestamp(commit.commit_time, UTC)  # or it cannot be stored
    author, subject = commit.author.name or "", redact(commit.message.partition("\n")[0])[:_MAX_SUBJECT_CHARS]
    for delta in deltas:
        path = delta.new_file.path
        if path.startswith(prefix):
            yield _Touched(path[len(prefix) :], author, commit.commit_time, subject, str(commit.id))
