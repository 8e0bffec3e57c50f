"""Checks of the folder and of the machine it is on: settings, git, file watching, the terminal, leftovers."""

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
from satchel.errors import InvalidOption, SatchelError, shown
from satchel.text.visible import counted

LATE_WATCHING: Final = "the folder has very many folders: watch a part of it, or run `satchel index` now and then"
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
# A folder that has changed within the last hour may belong to a run that still goes on.
_LEFTOVER_SECONDS: Final = 3600.0
_MAX_PATHS_IN_REMEDY: Final = 20
_UTF8: Final = ("utf-8", "utf8")
_OUR_FOLDER: Final = re.compile(r"satchel-(?:eval-)?[a-z0-9_]{8}")
_MAY_HOLD_A_PASSWORD: Final = ("store", "url", "key", "password", "secret")


def check_folder(path: str) -> Iterator[Finding]:
    """Whether there is a folder, and it may be read."""
    from satchel.service.factory.opening import workspace

    try:
        root = workspace(path)
    except SatchelError as error:
        yield problem("folder", str(error), "name a folder that is there: satchel doctor path/to/folder")
        return
    if os.access(root, os.R_OK | os.X_OK):
        yield ok("folder", str(root))
    else:
        yield problem("folder", f"{root} may not be read by this user", f"ls -ld {root}   (and ask its owner)")


def check_settings(path: str) -> Iterator[Finding]:
    """Where each setting comes from, and everything that is wrong with them."""
    from satchel.service.factory.opening import is_database, workspace
    from satchel.service.settings import configure, doubts

    heed_project = not is_database(path)
    root = workspace(path) if heed_project else Path(os.curdir)
    invalid = doubts(root, heed_project=heed_project)
    for error in invalid:
        detail = error.problem.partition("; known are")[0].partition("known are")[0].rstrip(" ;")
        yield problem("settings", f"{_setting_with_value(error)}: {detail}", _settings_remedy(error))
    if not invalid:
        origins = configure(root, heed_project=heed_project).origins
        listed = ", ".join(f"{name} ({origin})" for name, origin in origins.items())
        yield ok("settings", listed or "all defaults")
    yield from _check_user_file()
    yield from _check_variables()


def _setting_with_value(error: InvalidOption) -> str:
    """The setting, with its value where that cannot be a secret."""
    name, value = str(error.field), str(error.value)
    is_secret = any(part in name.lower() for part in _MAY_HOLD_A_PASSWORD) or "://" in value or "@" in value
    return name if is_secret or "no such setting" in error.problem else f"{name}={shown(error.value)}"


def _settings_remedy(error: InvalidOption) -> str:
    if error.field == "config":
        return "correct the file at the line that is named; it is written in TOML, as: token_budget = 2000"
    if "a project may not set this" in error.problem:
        return f"remove {error.field} from the project's file; if you want it: export SATCHEL_{error.field.upper()}=…"
    if "no such setting" in error.problem:
        return "correct or remove the name; docs/settings.md lists all settings"
    if "(environment)" in error.problem:
        return f"unset SATCHEL_{error.field.upper()}, or give it a value as described"
    return "correct the value"


def _check_user_file() -> Iterator[Finding]:
    """A user's settings file that cannot be read as one."""
    from satchel.service.settings import MAX_CONFIG_BYTES, user_file

    variable = os.environ.get("SATCHEL_CONFIG", "")
    file = Path(variable) if variable else user_file()
    if variable and not file.exists():
        yield problem("user file", f"SATCHEL_CONFIG names {file}, which is not there", "unset SATCHEL_CONFIG")
    elif file.is_dir():
        yield problem("user file", f"{file} is a folder; settings are read from a file", f"rmdir {file}")
    elif file.is_file() and file.stat().st_size > MAX_CONFIG_BYTES:
        yield problem("user file", f"{file} is larger than {MAX_CONFIG_BYTES:,} bytes and is not read", "shorten it")


def _check_variables() -> Iterator[Finding]:
    """Environment variables that begin like ours and that nothing reads."""
    from satchel.service.settings import strangers

    for name, near in strangers().items():
        if near:
            how = f'export {near}="${name}"; unset {name}'
            yield problem("environment", f"nobody reads {name}; did you mean {near}?", how)
        else:
            yield note("environment", f"nobody reads {name}", f"unset {name}")


def check_terminal() -> Iterator[Finding]:
    """Whether what is printed can be written: contexts hold whatever files hold."""
    encoding, names = sys.stdout.encoding or "", sys.getfilesystemencoding()
    if names.lower() not in _UTF8:
        yield problem(
            "locale",
            f"the locale ({locale.getencoding()}) has names of files read as {names}, so that many are not found again",
            "export LC_ALL=C.UTF-8",
        )
    if encoding.lower().replace("_", "-") in _UTF8:
        yield ok("terminal", f"{encoding} (locale {locale.getencoding()})")
    else:
        yield problem(
            "terminal",
            f"what is printed is encoded as {encoding}, in which many characters cannot be written",
            "export PYTHONUTF8=1 LC_ALL=C.UTF-8; unset PYTHONIOENCODING",
        )


def check_git(path: str) -> Iterator[Finding]:
    """Whether the history of the folder's repository can be read."""
    import pygit2

    from satchel.service.factory.opening import workspace

    root = workspace(path)
    try:
        place = pygit2.discover_repository(os.fspath(root))
        repository = None if place is None else pygit2.Repository(place)
        if repository is None:
            yield ok("git", "no repository here; nothing is needed of it")
        elif repository.is_empty or repository.head_is_unborn:
            yield ok("git", "a repository without commits")
        else:
            head = str(repository.head.target)[:10]
            yield ok("git", f"history is read up to {head}{' (shallow)' if repository.is_shallow else ''}")
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        how = f"git config --global --add safe.directory {root}" if "owned" in str(error) else f"git -C {root} fsck"
        yield problem("git", f"the history cannot be read: {error}", how)


def check_watching(path: str, limits: Path = _INOTIFY) -> Iterator[Finding]:
    """Whether `satchel index --watch` may watch all folders; each takes one of the user's watches."""
    from satchel.service.factory.opening import workspace

    try:
        limit = int((limits / "max_user_watches").read_text())
    except (OSError, ValueError):
        yield ok("file watching", "no limit is known here")
        return
    folders = sum(1 for _ in os.walk(workspace(path)))
    if folders > limit:
        yield problem(
            "file watching",
            f"{folders:,} folders, and this user may watch {limit:,}: `satchel index --watch` would miss changes",
            f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}",
        )
    else:
        yield ok("file watching", f"{counted(folders, 'folder')} of at most {limit:,}")


def check_leftovers() -> Iterator[Finding]:
    """Temporary folders of runs that were killed."""
    now = time.time()
    places = {Path(tempfile.gettempdir()), Path("/tmp")}  # noqa: S108 - where we make them
    folders = (folder for place in places if place.is_dir() for folder in place.glob("satchel-*"))
    left = sorted(folder for folder in folders if _is_leftover(folder, now))
    if not left:
        yield ok("leftovers", "none")
        return
    paths = " ".join(shlex.quote(str(folder)) for folder in left[:_MAX_PATHS_IN_REMEDY])
    detail = f"{counted(len(left), 'folder')} of runs that were killed, such as {left[0]}"
    yield note("leftovers", detail, f"when nothing runs: rm -r {paths}")


def _is_leftover(folder: Path, now: float) -> bool:
    """True for a folder that a run of this user made and that has not changed for long."""
    if not _OUR_FOLDER.fullmatch(folder.name):
        return False
    try:
        status = folder.lstat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and folder.is_dir() and now - status.st_mtime > _LEFTOVER_SECONDS
