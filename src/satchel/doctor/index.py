"""Checks of the index, in its folder or in PostgreSQL: writable, whole, of our version, up to date.

A folder is opened for reading only and nothing is locked: a run that writes meanwhile is not disturbed. In a database
nothing is made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import ExtraMissing, SatchelError
from satchel.text.visible import counted

if TYPE_CHECKING:
    from satchel.ports.store import Store
    from satchel.service.factory.locations import DatabasePlace
    from satchel.service.settings import Settings

LATE: Final = "the index is large, or its disk slow: run `satchel doctor` again when nothing else uses the disk"
LATE_DATABASE: Final = "look whether the database is up and reachable from here: pg_isready -h HOST -p PORT"
_SETUP: Final = "an administrator has to run: satchel postgres setup 'postgresql://ADMIN@HOST/DATABASE'"
_ELSEWHERE: Final = "export SATCHEL_INDEX_DIR=/path/to/a/local/folder"
# With less, an index run may stop in the middle.
_MIN_FREE_BYTES: Final = 100_000_000
_MOUNTS: Final = Path("/proc/self/mounts")
_NETWORK_FILE_SYSTEMS: Final = tuple(
    "nfs cifs smb 9p afs ceph gluster lustre fuse.sshfs fuse.rclone fuse.s3fs drvfs".split()
)
_KERNEL_FILE_SYSTEMS: Final = ("proc", "sysfs", "devpts", "cgroup2", "securityfs")


def check_folder(folder: Path, mounts: Path = _MOUNTS) -> Iterator[Finding]:
    """Whether the index can be written where it is, or would be."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        yield problem("index folder", f"{existing} is a file; {folder} cannot be made below it", _ELSEWHERE)
        return
    files = (folder / name for name in ("truth.sqlite", "truth.sqlite-wal", "write.lock", "derived"))
    paths = (existing, *(file for file in files if file.exists()))
    blocked = next((path for path in paths if not os.access(path, os.W_OK)), None)
    kind, free = file_system_of(existing, mounts), shutil.disk_usage(existing).free
    if blocked:
        yield problem("index folder", f"{blocked} cannot be written by this user", _ELSEWHERE)
    elif kind in _KERNEL_FILE_SYSTEMS:
        yield problem("index folder", f"{existing} holds no files of ours ({kind})", _ELSEWHERE)
    elif free < _MIN_FREE_BYTES:
        how = f"df -h {existing}; {_ELSEWHERE}"
        yield problem("index folder", f"only {free / 1e6:,.0f} MB are free at {folder}", how)
    elif kind.startswith(_NETWORK_FILE_SYSTEMS):
        detail = f"{folder} is on a network file system ({kind}), where SQLite's locks cannot be relied on"
        yield problem("index folder", detail, _ELSEWHERE)
    else:
        yield ok("index folder", f"{folder} ({free / 1e9:.0f} GB free{f', {kind}' if kind else ''})")


def file_system_of(folder: Path, mounts: Path = _MOUNTS) -> str:
    """The kind of file system that a folder is on; '' where the system has no list of mounts."""
    try:
        lines = [line.split(" ") for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    real = os.path.realpath(folder)
    mounted = {parts[1].replace("\\040", " "): parts[2] for parts in lines if len(parts) > 2}
    above = [point for point in mounted if real == point or real.startswith(point.rstrip("/") + "/")]
    return mounted[max(above, key=len)] if above else ""


def check_health(target: str, folder: Path, settings: Settings) -> Iterator[Finding]:
    """Whether the database is whole and ours, its vectors are the embedder's, and its segments are there.

    `target` is what a command has to be given to mean this index.
    """
    from satchel.service.factory.locations import folder_inspection

    again = f"satchel clear {target} && satchel index {target}"
    if not (folder / "truth.sqlite").exists():
        yield ok("index", "not there yet; the first `satchel build` makes it")
        return
    yield from _check_writer(folder)
    seen = folder_inspection().look_at(folder)
    if seen.version > seen.ours:
        detail = f"made by a newer Satchel (version {seen.version}; this one reads up to {seen.ours})"
        yield problem("index", detail, f"update Satchel, or: {again}")
        return
    if seen.damage:
        how = f"{again}   (if you imported blocks or granted rights, first: cp -r {folder} {folder}.old)"
        yield problem("index", f"{folder} is damaged: {seen.damage}", how)
        return
    if seen.version < seen.ours:
        yield note("index", f"of an older version ({seen.version} of {seen.ours}); the next run brings it up")
        return
    if seen.moving:
        how = f"satchel migrate {seen.moving} {target}, or satchel clear {target}"
        yield problem("index", f"a move from {seen.moving} has not come to its end", how)
    yield from _check_vectors(seen.embedder, settings, f"unset SATCHEL_EMBEDDER, or: {again}")
    if seen.segments:
        yield problem("index", f"its search arrays are damaged ({seen.segments})", f"satchel index {target}")
    elif seen.behind:
        yield note("index", f"the search arrays are {seen.behind} commits behind; the next run catches up")
    yield ok("index", f"{counted(seen.files, 'file')}, {counted(seen.pieces, 'piece')}, version {seen.version}")


def _check_writer(folder: Path) -> Iterator[Finding]:
    """The process that writes now, or was killed while writing."""
    lock = folder / "write.lock"
    try:
        owner = lock.read_bytes()[:32].decode("ascii", "replace").strip().removeprefix("pid ")
        holder = _lock_holder(lock.stat())
    except OSError:
        return
    if holder:
        yield note("writer", f"process {holder} is writing this index now", f"wait for it, or: kill {holder}")
    elif owner.isdigit():
        yield note("writer", f"process {owner} was killed while writing; nothing is locked, and the next run goes on")


def _lock_holder(status: os.stat_result) -> str:
    """The process that has a file locked, from the kernel's list of locks; '' if none."""
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ""
    locks = (line.split() for line in lines if "->" not in line)
    return next((parts[4] for parts in locks if len(parts) > 5 and parts[1] == "FLOCK" and parts[5] == file), "")


def check_age(root: Path, folder: Path, settings: Settings) -> Iterator[Finding]:
    """How much of the workspace has changed since it was indexed."""
    from satchel.service.factory.locations import folder_inspection

    if not (folder / "truth.sqlite").exists():
        yield ok("index age", "nothing is indexed yet")
        return
    seen = folder_inspection().look_at(folder, thoroughly=False)
    if seen.damage or seen.version != seen.ours:
        yield note("index age", "not known: the index cannot be read")
        return
    own = folder.resolve()
    without = f"{own.relative_to(root).as_posix()}/" if own.is_relative_to(root) else ""
    with folder_inspection().reading(folder) as store:
        yield _check_changes(root, store, settings, without)


def check_database(place: DatabasePlace, root: Path | None, settings: Settings) -> Iterator[Finding]:
    """Whether the server answers, is set up for Satchel and lets this login in; then the workspace in it."""
    from satchel.service.factory.locations import administration

    try:
        seen = administration().look_at(place.address)
    except ExtraMissing as error:
        yield problem("database", str(error), pip_install("postgres"))
        return
    except SatchelError as error:
        yield problem("database", str(error), f"correct the address or the password, or start it; {LATE_DATABASE}")
        return
    yield ok("database", f"{place.shown} (PostgreSQL {seen.server}, as {seen.user})")
    findings = list(_check_setup(seen))
    yield from findings
    if findings:
        return
    yield ok("database", f"version {seen.version}, pgvector {seen.pgvector}, roles granted")
    if seen.has_workspace:
        yield from _check_stored_workspace(place, root, settings)
    else:
        yield ok("index", "not there yet; the first `satchel index` makes it")


def _check_setup(seen: Any) -> Iterator[Finding]:
    login = f"{_SETUP} --login {seen.user}"
    versions = f"(version {seen.version} of {seen.ours})"
    if not seen.pgvector:
        yield problem("database", "it has no pgvector", _SETUP)
    elif seen.pgvector_too_old:
        yield problem("database", f"its pgvector is {seen.pgvector}; 0.8 is needed", "ALTER EXTENSION vector UPDATE")
    if seen.not_let_in:
        yield problem("database", f"{seen.user} was not let in", login)
    elif not seen.version:
        yield problem("database", "it is not set up for Satchel", login)
    elif seen.version > seen.ours:
        yield problem("database", f"set up by a newer Satchel {versions}", "update Satchel")
    elif seen.version < seen.ours:
        yield problem("database", f"set up by an older Satchel {versions}", _SETUP)
    elif not seen.can_read:
        yield problem("database", f"{seen.user} may not take on the role satchel_reader", login)
    elif not seen.can_write:
        yield note("database", f"{seen.user} may ask, and change nothing", login)


def _check_stored_workspace(place: DatabasePlace, root: Path | None, settings: Settings) -> Iterator[Finding]:
    # It is there and of our version, so that opening it makes nothing.
    store = place.open()
    try:
        facts, damage = store.facts(), store.check()  # type: ignore[attr-defined]
        how = "unset SATCHEL_EMBEDDER, or satchel clear and index again"
        yield from _check_vectors(facts.embedder, settings, how)
        if damage:
            yield problem("index", damage, "satchel index PATH --store URL")
        yield ok("index", f"{counted(facts.files, 'file')}, {counted(facts.pieces, 'piece')}")
        if root is not None:
            yield _check_changes(root, store, settings, "")
    finally:
        store.close()


def _check_vectors(stored: str, settings: Settings, how: str) -> Iterator[Finding]:
    """A problem if the index holds vectors of another embedder than the one that is set."""
    from satchel.service.factory.embedders import make_embedder

    try:
        chosen = make_embedder(settings).name
    except SatchelError:
        return  # the embedder's own check says why
    if stored and stored != chosen:
        yield problem("index", f"it holds vectors of {stored}, and {chosen} is set", how)


def _check_changes(root: Path, store: Store, settings: Settings, without: str) -> Finding:
    """How many files have changed since they were indexed; those below `without` are the index's own."""
    from satchel.indexing.changes import Lookout
    from satchel.service.factory.opening import make_document_policy

    documents, limit = make_document_policy(root, settings), settings.max_file_bytes
    changes = Lookout(root, store, max_file_bytes=limit, without=without, documents=documents).changes()
    if not changes.to_look_at:
        return ok("index age", "up to date")
    changed = f"{counted(len(changes.suspect), 'file')} may be new or changed, and {len(changes.missing):,} gone, since"
    return note("index age", f"{changed}; the next `satchel build` reads them")
