"""The index in its folder: whether it can be written, whether it is whole, and whether it is up to date.

It is opened for reading only, and nothing is locked: whoever writes meanwhile does not notice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import SatchelError
from satchel.text.counted import counted

if TYPE_CHECKING:
    from satchel.service.settings import Settings

LATE: Final = "the index is large, or its disk slow: run `satchel doctor` again when nothing else uses the disk"
_ELSEWHERE: Final = "export SATCHEL_INDEX_DIR=/path/to/a/local/folder"
_LITTLE_BYTES: Final = 100_000_000
_MOUNTS: Final = Path("/proc/self/mounts")
_NETWORK: Final = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse.sshfs", "fuse.rclone",
                   "fuse.s3fs", "drvfs")  # fmt: skip
_NO_DISKS: Final = ("proc", "sysfs", "devpts", "cgroup2", "securityfs")


def folder(place: Path, mounts: Path = _MOUNTS) -> Iterator[Finding]:
    """Whether the index can be written where it is, or would be."""
    there = place
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        yield problem("index folder", f"{there} is a file; {place} cannot be made below it", _ELSEWHERE)
        return
    blocked = [one for one in (there, *_files_of(place)) if not os.access(one, os.W_OK)]
    if blocked:
        yield problem("index folder", f"{blocked[0]} cannot be written by this user", _ELSEWHERE)
        return
    kind = file_system_of(there, mounts)
    if kind in _NO_DISKS:
        yield problem("index folder", f"{there} holds no files of ours ({kind})", _ELSEWHERE)
        return
    free = shutil.disk_usage(there).free
    if free < _LITTLE_BYTES:
        yield problem("index folder", f"only {free / 1e6:,.0f} MB are free at {place}", f"df -h {there}; {_ELSEWHERE}")
        return
    if kind.startswith(_NETWORK):
        yield problem(
            "index folder",
            f"{place} is on a network file system ({kind}), where SQLite's locks cannot be relied on",
            _ELSEWHERE,
        )
        return
    yield ok("index folder", f"{place} ({free / 1e9:.0f} GB free{f', {kind}' if kind else ''})")


def _files_of(place: Path) -> list[Path]:
    names = ("truth.sqlite", "truth.sqlite-wal", "write.lock", "derived")
    return [place / name for name in names if (place / name).exists()]


def file_system_of(place: Path, mounts: Path = _MOUNTS) -> str:
    """The kind of file system that a folder is on, where the system tells."""
    try:
        lines = [line.split(" ") for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    at = os.path.realpath(place)
    mounted = {parts[1].replace("\\040", " "): parts[2] for parts in lines if len(parts) > 2}
    above = [point for point in mounted if at == point or at.startswith(point.rstrip("/") + "/")]
    return mounted[max(above, key=len)] if above else ""


def health(named: str, place: Path, settings: Settings) -> Iterator[Finding]:
    """Whether the database is whole and ours, its vectors are the embedder's, and its segments are there.

    `named` is what a command has to be given to mean this index.
    """
    from satchel.service.factory.locations import folder_inspection
    from satchel.service.factory.opening import make_embedder

    again = f"satchel clear {named} && satchel index {named}"
    if not (place / "truth.sqlite").exists():
        yield ok("index", "not there yet; the first `satchel build` makes it")
        return
    yield from _writer(place)
    seen = folder_inspection().look_at(place)
    if seen.too_new:
        yield problem("index", f"made by a newer Satchel (version {seen.version}; this one reads up to {seen.ours})",
                      f"update Satchel, or: {again}")  # fmt: skip
        return
    if seen.damage:
        how = f"{again}   (if you imported blocks or granted rights, first: cp -r {place} {place}.old)"
        yield problem("index", f"{place} is damaged: {seen.damage}", how)
        return
    if seen.version < seen.ours:
        yield note("index", f"of an older version ({seen.version} of {seen.ours}); the next run brings it up")
        return
    if seen.moving:
        how = f"satchel migrate {seen.moving} {named}, or satchel clear {named}"
        yield problem("index", f"a move from {seen.moving} has not come to its end", how)
    try:
        chosen = make_embedder(settings).name
    except SatchelError:
        chosen = ""  # the embedder's own line says why
    if seen.embedder and chosen and seen.embedder != chosen:
        yield problem(
            "index", f"it holds vectors of {seen.embedder}, and {chosen} is set", f"unset SATCHEL_EMBEDDER, or: {again}"
        )
    if seen.segments:
        yield problem("index", f"its search arrays are damaged ({seen.segments})", f"satchel index {named}")
    elif seen.behind:
        yield note("index", f"the search arrays are {seen.behind} commits behind; the next run catches up")
    yield ok("index", f"{counted(seen.files, 'file')}, {counted(seen.pieces, 'piece')}, version {seen.version}")


def _writer(place: Path) -> Iterator[Finding]:
    """Who writes now, or was killed while writing."""
    lock = place / "write.lock"
    try:
        owner = lock.read_bytes()[:32].decode("ascii", "replace").strip().removeprefix("pid ")
        holder = _holder(lock.stat())
    except OSError:
        return
    if holder:
        yield note("writer", f"process {holder} is writing this index now", f"wait for it, or: kill {holder}")
    elif owner.isdigit():
        yield note("writer", f"process {owner} was killed while writing; nothing is locked, and the next run goes on")


def _holder(facts: os.stat_result) -> str:
    """The process that has a file locked, as the kernel tells it."""
    this = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ""
    held = (line.split() for line in lines if "->" not in line)
    return next((parts[4] for parts in held if len(parts) > 5 and parts[1] == "FLOCK" and parts[5] == this), "")


def age(root: Path, place: Path, settings: Settings) -> Iterator[Finding]:
    """How much of the folder has changed since it was indexed."""
    from satchel.indexing.changes import Lookout
    from satchel.service.factory.locations import folder_inspection
    from satchel.service.factory.opening import make_document_policy

    subject = "index age"
    if not (place / "truth.sqlite").exists():
        yield ok(subject, "nothing is indexed yet")
        return
    seen = folder_inspection().look_at(place, thoroughly=False)
    if seen.damage or seen.version != seen.ours:
        yield note(subject, "not known: the index cannot be read")
        return
    own = place.resolve()
    with folder_inspection().reading(place) as store:
        lookout = Lookout(
            root,
            store,
            max_file_bytes=settings.max_file_bytes,
            without=f"{own.relative_to(root).as_posix()}/" if own.is_relative_to(root) else "",
            documents=make_document_policy(root, settings),
        )
        changes = lookout.changes()
    if changes.to_look_at:
        told = (
            f"{counted(len(changes.suspect), 'file')} may be new or changed, and {len(changes.missing):,} gone, since"
        )
        yield note(subject, f"{told}; the next `satchel build` reads them")
    else:
        yield ok(subject, "up to date")
