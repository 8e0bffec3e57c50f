"""Checks of a folder, the index (local or in PostgreSQL) and the machine: settings, git, terminal, leftovers.

An index in a folder is opened read-only and without a lock: a concurrent writer is not disturbed. In a database, the
checks create nothing.
"""

from __future__ import annotations

import locale
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import ExtraMissing, InvalidOption, SatchelError, shown
from satchel.text.visible import counted

if TYPE_CHECKING:
    from satchel.ports.store import Store
    from satchel.service.factory.opening import DatabasePlace
    from satchel.service.settings import Settings


LATE_WATCHING: Final = (
    "the folder has too many subfolders to watch: watch a part of it, or run `satchel index` regularly"
)
_INOTIFY: Final = Path("/proc/sys/fs/inotify")
# A folder that has changed within the last hour may belong to a run that still goes on.
_LEFTOVER_SECONDS: Final = 3600.0
# Paths in one command to copy: more would fill the screen; the next run names the rest.
_MAX_PATHS_IN_REMEDY: Final = 20
_UTF8: Final = ("utf-8", "utf8")
_OUR_FOLDER: Final = re.compile(r"satchel-(?:eval-)?[a-z0-9_]{8}")
_MAY_HOLD_A_PASSWORD: Final = ("store", "url", "key", "password", "secret")


def check_folder(path: str) -> list[Finding]:
    """Check if the folder exists and is readable."""
    from satchel.service.factory.opening import workspace

    try:
        root = workspace(path)
    except SatchelError as error:
        return [problem("folder", str(error), "give an existing folder: satchel doctor path/to/folder")]
    if os.access(root, os.R_OK | os.X_OK):
        return [ok("folder", str(root))]
    return [problem("folder", f"{root} is not readable by this user", f"ls -ld {root}   (and ask its owner)")]


def check_settings(path: str) -> Iterator[Finding]:
    """Report the origin of each setting, and every invalid setting."""
    from satchel.service.factory.opening import is_database, workspace
    from satchel.service.settings import configure, doubts

    heed_project = not is_database(path)
    root = workspace(path) if heed_project else Path(os.curdir)
    invalid = doubts(root, heed_project=heed_project)
    for error in invalid:
        detail = error.problem.partition("known settings:")[0].rstrip(" ;")
        yield problem("settings", f"{_setting_with_value(error)}: {detail}", _settings_remedy(error))
    if not invalid:
        origins = configure(root, heed_project=heed_project).origins
        listed = ", ".join(f"{name} ({origin})" for name, origin in origins.items())
        yield ok("settings", listed or "all defaults")
    yield from _check_user_file()
    yield from _check_variables()


def _setting_with_value(error: InvalidOption) -> str:
    """The setting, with the value unless the value may be a secret."""
    name, value = str(error.field), str(error.value)
    is_secret = any(part in name.lower() for part in _MAY_HOLD_A_PASSWORD) or "://" in value or "@" in value
    return name if is_secret or "no such setting" in error.problem else f"{name}={shown(error.value)}"


def _settings_remedy(error: InvalidOption) -> str:
    if error.field == "config":
        return "correct the named line; the file must be TOML, e.g. token_budget = 2000"
    if "a project may not set this" in error.problem:
        return f"remove {error.field} from the project's file; to set it, use: export SATCHEL_{error.field.upper()}=…"
    if "no such setting" in error.problem:
        return "correct or remove the name; docs/settings.md lists all settings"
    if "(environment)" in error.problem:
        return f"unset SATCHEL_{error.field.upper()}, or give it a value as described"
    return "correct the value"


def _check_user_file() -> Iterator[Finding]:
    """Report a user settings file that is missing, a folder or too large."""
    from satchel.service.settings import MAX_CONFIG_BYTES, user_file

    variable = os.environ.get("SATCHEL_CONFIG", "")
    file = Path(variable) if variable else user_file()
    if variable and not file.exists():
        yield problem("user file", f"SATCHEL_CONFIG names {file}, which does not exist", "unset SATCHEL_CONFIG")
    elif file.is_dir():
        yield problem("user file", f"{file} is a folder; settings are read from a file", f"rmdir {file}")
    elif file.is_file() and file.stat().st_size > MAX_CONFIG_BYTES:
        yield problem("user file", f"{file} is larger than {MAX_CONFIG_BYTES:,} bytes and is not read", "shorten it")


def _check_variables() -> Iterator[Finding]:
    """Report unknown environment variables with Satchel's prefix."""
    from satchel.service.settings import strangers

    for name, near in strangers().items():
        if near:
            how = f'export {near}="${name}"; unset {name}'
            yield problem("environment", f"{name} is not a setting of Satchel; did you mean {near}?", how)
        else:
            yield note("environment", f"{name} is not a setting of Satchel", f"unset {name}")


def check_terminal() -> Iterator[Finding]:
    """Check if file names and output are encoded as UTF-8: contexts contain arbitrary characters."""
    encoding, names, chosen = sys.stdout.encoding or "", sys.getfilesystemencoding(), locale.getencoding()
    if names.lower() not in _UTF8:
        detail = f"the locale ({chosen}) decodes file names as {names}, so files with other characters are not found"
        yield problem("locale", detail, "export LC_ALL=C.UTF-8")
    if encoding.lower().replace("_", "-") in _UTF8:
        yield ok("terminal", f"{encoding} (locale {chosen})")
    else:
        detail = f"output is encoded as {encoding}, which lacks many characters"
        yield problem("terminal", detail, "export PYTHONUTF8=1 LC_ALL=C.UTF-8; unset PYTHONIOENCODING")


def check_git(root: Path) -> Iterator[Finding]:
    """Check if the git history of the folder can be read."""
    from satchel.indexing.git_history import UnreadableHistory, head_of, read_history
    from satchel.indexing.walk import in_repository

    try:
        if not in_repository(os.path.realpath(root)):
            yield ok("git", "not a repository; git is optional")
        elif head := head_of(root):
            is_shallow = "shallow" in read_history(root, head, most_commits=1).note
            yield ok("git", f"the history is readable up to {head[:10]}{' (shallow)' if is_shallow else ''}")
        else:
            yield ok("git", "a repository without commits")
    except UnreadableHistory as error:
        yield problem("git", f"the history cannot be read: {error}", f"git -C {root} fsck")


def check_watching(root: Path, limits: Path = _INOTIFY) -> list[Finding]:
    """Check if the inotify limit allows `satchel index --watch` to watch all folders (a watch per folder)."""
    try:
        limit = int((limits / "max_user_watches").read_text())
    except (OSError, ValueError):
        return [ok("file watching", "the system's limit is unknown")]
    folders = sum(1 for _ in os.walk(root))
    if folders <= limit:
        return [ok("file watching", f"{counted(folders, 'folder')} of at most {limit:,}")]
    detail = f"{folders:,} folders, and this user may watch {limit:,}: `satchel index --watch` would miss changes"
    how = f"sudo sysctl fs.inotify.max_user_watches={max(524_288, 2 * folders)}"
    return [problem("file watching", detail, how)]


def check_leftovers() -> list[Finding]:
    """Report temporary folders of killed runs."""
    now = time.time()
    places = {Path(tempfile.gettempdir()), Path("/tmp")}  # noqa: S108 - where we make them
    folders = (folder for place in places if place.is_dir() for folder in place.glob("satchel-*"))
    left = sorted(folder for folder in folders if _is_leftover(folder, now))
    if not left:
        return [ok("leftovers", "none")]
    paths = " ".join(shlex.quote(str(folder)) for folder in left[:_MAX_PATHS_IN_REMEDY])
    detail = f"{counted(len(left), 'folder')} left behind by killed runs, e.g. {left[0]}"
    return [note("leftovers", detail, f"when no Satchel process runs: rm -r {paths}")]


def _is_leftover(folder: Path, now: float) -> bool:
    """True for a folder of a run by this user, unchanged for a long time."""
    with suppress(OSError):
        status = folder.lstat()
        is_ours = bool(_OUR_FOLDER.fullmatch(folder.name)) and status.st_uid == os.getuid() and folder.is_dir()
        return is_ours and now - status.st_mtime > _LEFTOVER_SECONDS
    return False


LATE_INDEX: Final = "the index is large or the disk is slow: run `satchel doctor` again when the disk is less busy"
LATE_DATABASE: Final = "check that the database is running and reachable: pg_isready -h HOST -p PORT"
_SETUP: Final = "an administrator has to run: satchel postgres setup 'postgresql://ADMIN@HOST/DATABASE'"
_ELSEWHERE: Final = "export SATCHEL_INDEX_DIR=/path/to/a/local/folder"
# With less, an index run may stop in the middle.
_MIN_FREE_BYTES: Final = 100_000_000
_MOUNTS: Final = Path("/proc/self/mounts")
_NETWORK_FILE_SYSTEMS: Final = tuple(
    "nfs cifs smb 9p afs ceph gluster lustre fuse.sshfs fuse.rclone fuse.s3fs drvfs".split()
)
_KERNEL_FILE_SYSTEMS: Final = ("proc", "sysfs", "devpts", "cgroup2", "securityfs")


def check_index_folder(folder: Path, mounts: Path = _MOUNTS) -> list[Finding]:
    """Check if the index folder is writable, or can be created."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return [problem("index folder", f"{existing} is a file, so the folder {folder} cannot be made", _ELSEWHERE)]
    files = (folder / name for name in ("truth.sqlite", "truth.sqlite-wal", "write.lock", "derived"))
    paths = (existing, *(file for file in files if file.exists()))
    blocked = next((path for path in paths if not os.access(path, os.W_OK)), None)
    kind, free = file_system_of(existing, mounts), shutil.disk_usage(existing).free
    how = _ELSEWHERE
    if blocked:
        detail = f"{blocked} is not writable by this user"
    elif kind in _KERNEL_FILE_SYSTEMS:
        detail = f"{existing} is a file system without regular files ({kind})"
    elif free < _MIN_FREE_BYTES:
        detail, how = f"only {free / 1e6:,.0f} MB are free at {folder}", f"df -h {existing}; {_ELSEWHERE}"
    elif kind.startswith(_NETWORK_FILE_SYSTEMS):
        detail = f"{folder} is on a network file system ({kind}), where SQLite's locks are not reliable"
    else:
        shared = sum(path.stat().st_size for path in folder.parent.glob("shared/prepared-*"))
        more = f", {shared / 1e6:.0f} MB of shared prepared files" if shared else ""
        return [ok("index folder", f"{folder} ({free / 1e9:.0f} GB free{f', {kind}' if kind else ''}{more})")]
    return [problem("index folder", detail, how)]


def file_system_of(folder: Path, mounts: Path = _MOUNTS) -> str:
    """File system type of a folder; '' if the system has no list of mounts."""
    try:
        lines = [line.split(" ") for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    real = os.path.realpath(folder)
    mounted = {parts[1].replace("\\040", " "): parts[2] for parts in lines if len(parts) > 2}
    above = [point for point in mounted if real == point or real.startswith(point.rstrip("/") + "/")]
    return mounted[max(above, key=len)] if above else ""


def check_health(target: str, folder: Path, settings: Settings) -> Iterator[Finding]:
    """Check the database for damage, the version, the embedder of the vectors, and the segments.

    `target` is the command-line argument for this index.
    """
    from satchel.service.factory.opening import FolderPlace, folder_inspection

    again = f"satchel clear {target} && satchel index {target}"
    if not FolderPlace(folder).is_there():
        yield ok("index", "no index yet; the first `satchel build` makes it")
        return
    yield from _check_writer(folder)
    inspection = folder_inspection().look_at(folder)
    if inspection.version > inspection.ours:
        detail = f"made by a newer Satchel (version {inspection.version}; this Satchel reads up to {inspection.ours})"
        yield problem("index", detail, f"update Satchel, or: {again}")
    elif inspection.damage:
        how = f"{again}   (if you imported blocks or granted access, first: cp -r {folder} {folder}.old)"
        yield problem("index", f"{folder} is damaged: {inspection.damage}", how)
    elif inspection.version < inspection.ours:
        yield note(
            "index", f"version {inspection.version}, the current version is {inspection.ours}; the next run upgrades it"
        )
    else:
        yield from _check_contents(inspection, target, again, settings)


def _check_contents(inspection: Any, target: str, again: str, settings: Settings) -> Iterator[Finding]:
    """Report counts of a readable index, missing parts and vectors of a different embedder."""
    if inspection.moving:
        how = f"satchel migrate {inspection.moving} {target}, or satchel clear {target}"
        yield problem("index", f"the move from {inspection.moving} is not finished", how)
    yield from _check_vectors(inspection.embedder, settings, f"unset SATCHEL_EMBEDDER, or: {again}")
    if inspection.segments:
        yield problem("index", f"the search arrays are damaged ({inspection.segments})", f"satchel index {target}")
    elif inspection.behind:
        yield note("index", f"the search arrays are {inspection.behind} commits behind; the next run updates them")
    yield ok(
        "index",
        f"{counted(inspection.files, 'file')}, {counted(inspection.pieces, 'piece')}, version {inspection.version}",
    )


def _check_writer(folder: Path) -> Iterator[Finding]:
    """Report the process now writing, or killed while writing."""
    lock = folder / "write.lock"
    try:
        owner = lock.read_bytes()[:32].decode("ascii", "replace").strip().removeprefix("pid ")
        holder = _lock_holder(lock.stat())
    except OSError:
        return
    if holder:
        yield note("writer", f"process {holder} is writing this index now", f"wait for it, or: kill {holder}")
    elif owner.isdigit():
        yield note("writer", f"process {owner} was killed while writing; the lock is free, and the next run continues")


def _lock_holder(status: os.stat_result) -> str:
    """Process id with a lock on a file, from the kernel's list of locks; '' if none."""
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ""
    locks = (line.split() for line in lines if "->" not in line)
    return next((parts[4] for parts in locks if len(parts) > 5 and parts[1] == "FLOCK" and parts[5] == file), "")


def check_age(root: Path, folder: Path, settings: Settings) -> list[Finding]:
    """Report how many files have changed since the last index run."""
    from satchel.service.factory.opening import FolderPlace, folder_inspection

    if not FolderPlace(folder).is_there():
        return [ok("index age", "no index yet")]
    inspection = folder_inspection().look_at(folder, thoroughly=False)
    if inspection.damage or inspection.version != inspection.ours:
        return [note("index age", "unknown: the index cannot be read")]
    own = folder.resolve()
    without = f"{own.relative_to(root).as_posix()}/" if own.is_relative_to(root) else ""
    with folder_inspection().reading(folder) as store:
        return [_check_changes(root, store, settings, without)]


def check_database(place: DatabasePlace, root: Path | None, settings: Settings) -> Iterator[Finding]:
    """Check if the server answers, is set up for Satchel and accepts the login; then check the workspace."""
    from satchel.service.factory.opening import administration

    try:
        inspection = administration().look_at(place.address)
    except ExtraMissing as error:
        yield problem("database", str(error), pip_install("postgres"))
        return
    except SatchelError as error:
        yield problem(
            "database", str(error), f"correct the address or the password, or start the database; {LATE_DATABASE}"
        )
        return
    yield ok("database", f"{place.shown} (PostgreSQL {inspection.server}, as {inspection.user})")
    findings = list(_check_setup(inspection))
    yield from findings
    if findings:
        return
    yield ok("database", f"version {inspection.version}, pgvector {inspection.pgvector}, roles granted")
    if inspection.has_workspace:
        yield from _check_stored_workspace(place, root, settings)
    else:
        yield ok("index", "no index yet; the first `satchel index` makes it")


def _check_setup(inspection: Any) -> Iterator[Finding]:
    login = f"{_SETUP} --login {inspection.user}"
    versions = f"(version {inspection.version}; this Satchel has version {inspection.ours})"
    if not inspection.pgvector:
        yield problem("database", "the extension pgvector is missing", _SETUP)
    elif inspection.pgvector_too_old:
        yield problem(
            "database",
            f"pgvector {inspection.pgvector} is too old; 0.8 or newer is needed",
            "ALTER EXTENSION vector UPDATE",
        )
    if inspection.not_let_in:
        yield problem("database", f"the login {inspection.user} has no access", login)
    elif not inspection.version:
        yield problem("database", "the database is not set up for Satchel", login)
    elif inspection.version > inspection.ours:
        yield problem("database", f"set up by a newer Satchel {versions}", "update Satchel")
    elif inspection.version < inspection.ours:
        yield problem("database", f"set up by an older Satchel {versions}", _SETUP)
    elif not inspection.can_read:
        yield problem("database", f"{inspection.user} may not use the role satchel_reader", login)
    elif not inspection.can_write:
        yield note("database", f"the login {inspection.user} has read access only", login)


def _check_stored_workspace(place: DatabasePlace, root: Path | None, settings: Settings) -> Iterator[Finding]:
    # It is there and of our version, so that opening it makes nothing.
    store = place.open()
    try:
        facts, damage = store.facts(), store.check()  # type: ignore[attr-defined]
        yield from _check_vectors(facts.embedder, settings, "unset SATCHEL_EMBEDDER, or satchel clear and index again")
        if damage:
            yield problem("index", damage, "satchel index PATH --store URL")
        yield ok("index", f"{counted(facts.files, 'file')}, {counted(facts.pieces, 'piece')}")
        if root is not None:
            yield _check_changes(root, store, settings, "")
    finally:
        store.close()


def _check_vectors(stored: str, settings: Settings, how: str) -> Iterator[Finding]:
    """Report a problem if the vectors in the index are from an embedder different from the configured embedder."""
    from satchel.service.factory.adapters import make_embedder

    try:
        chosen = make_embedder(settings).name
    except SatchelError:
        return  # the embedder's own check says why
    if stored and stored != chosen:
        yield problem("index", f"the index contains vectors of {stored}, but the embedder is {chosen}", how)


def _check_changes(root: Path, store: Store, settings: Settings, without: str) -> Finding:
    """Report how many files have changed since indexing; ignores files of the index below `without`."""
    from satchel.indexing.changes import Lookout
    from satchel.service.factory.adapters import make_document_policy

    documents, limit = make_document_policy(root, settings), settings.max_file_bytes
    changes = Lookout(root, store, limit, without, documents).changes()
    if not changes.to_look_at:
        return ok("index age", "up to date")
    changed = f"{counted(len(changes.suspect), 'file')} new or changed, {len(changes.missing):,} deleted"
    return note("index age", f"{changed}; the next `satchel build` reads them")
