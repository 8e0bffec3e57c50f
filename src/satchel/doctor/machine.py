"""The machine and the folder: the terminal, git, the watching of files, and what was left behind."""

from __future__ import annotations

import locale
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import SatchelError
from satchel.text.counted import counted

LATE_WATCHING: Final = "the folder has very many folders: watch a part of it, or run `satchel index` now and then"
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
_LEFT_BEHIND_S: Final = 3600.0
_MOST_NAMED: Final = 20
_UTF8: Final = ("utf-8", "utf8")
_OURS: Final = re.compile(r"satchel-(?:eval-)?[a-z0-9_]{8}")


def folder(path: str) -> Iterator[Finding]:
    """Whether there is a folder, and it may be read."""
    from satchel.service.factory.opening import workspace

    try:
        root = workspace(path)
    except SatchelError as error:
        yield problem("folder", str(error), "name a folder that is there: satchel doctor path/to/folder")
        return
    if not os.access(root, os.R_OK | os.X_OK):
        yield problem("folder", f"{root} may not be read by this user", f"ls -ld {root}   (and ask its owner)")
        return
    yield ok("folder", str(root))


def terminal() -> Iterator[Finding]:
    """Whether what is printed can be written: contexts hold whatever files hold."""
    used = (sys.stdout.encoding or "").lower().replace("_", "-")
    names = sys.getfilesystemencoding()
    if names.lower() not in _UTF8:
        yield problem(
            "locale",
            f"the locale ({locale.getencoding()}) has names of files read as {names}, so that many are not found again",
            "export LC_ALL=C.UTF-8",
        )
    if used in _UTF8:
        yield ok("terminal", f"{sys.stdout.encoding} (locale {locale.getencoding()})")
    else:
        yield problem(
            "terminal",
            f"what is printed is encoded as {sys.stdout.encoding}, in which many characters cannot be written",
            "export PYTHONUTF8=1 LC_ALL=C.UTF-8; unset PYTHONIOENCODING",
        )


def git(path: str) -> Iterator[Finding]:
    """Whether the history of the folder's repository can be read."""
    import pygit2

    from satchel.service.factory.opening import workspace

    root = workspace(path)
    try:
        place = pygit2.discover_repository(os.fspath(root))
        if place is None:
            yield ok("git", "no repository here; nothing is needed of it")
            return
        repository = pygit2.Repository(place)
        if repository.is_empty or repository.head_is_unborn:
            yield ok("git", "a repository without commits")
            return
        head = str(repository.head.target)[:10]
        yield ok("git", f"history is read up to {head}{' (shallow)' if repository.is_shallow else ''}")
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        how = f"git config --global --add safe.directory {root}" if "owned" in str(error) else f"git -C {root} fsck"
        yield problem("git", f"the history cannot be read: {error}", how)


def watching(path: str, limits: Path = _INOTIFY) -> Iterator[Finding]:
    """Whether `satchel index --watch` may watch all folders; each takes one of the user's watches."""
    from satchel.service.factory.opening import workspace

    try:
        most = int((limits / "max_user_watches").read_text())
    except (OSError, ValueError):
        yield ok("file watching", "no limit is known here")
        return
    folders = sum(1 for _ in os.walk(workspace(path)))
    if folders > most:
        yield problem(
            "file watching",
            f"{folders:,} folders, and this user may watch {most:,}: `satchel index --watch` would miss changes",
            f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}",
        )
    else:
        yield ok("file watching", f"{counted(folders, 'folder')} of at most {most:,}")


def leftovers() -> Iterator[Finding]:
    """Folders that a run which was killed left where temporary things are."""
    now = time.time()
    places = {Path(tempfile.gettempdir()), Path("/tmp")}  # noqa: S108 - where we make them
    found = sorted(one for place in places if place.is_dir() for one in place.glob("satchel-*") if _is_left(one, now))
    if not found:
        yield ok("leftovers", "none")
        return
    told = counted(len(found), "folder")
    named = " ".join(shlex.quote(str(one)) for one in found[:_MOST_NAMED])
    yield note("leftovers", f"{told} of runs that were killed, such as {found[0]}", f"when nothing runs: rm -r {named}")


def _is_left(place: Path, now: float) -> bool:
    """Whether a run of ours made it for our user, and nothing was done in it for long."""
    if not _OURS.fullmatch(place.name):
        return False
    try:
        facts = place.lstat()
    except OSError:
        return False
    return facts.st_uid == os.getuid() and place.is_dir() and now - facts.st_mtime > _LEFT_BEHIND_S
