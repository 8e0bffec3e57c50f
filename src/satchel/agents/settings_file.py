"""Settings files: read unchanged, written atomically, and refused if an edit is not certain."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

# Larger files are no settings written by people or agents; editing reads the whole file into memory.
MAX_BYTES: Final = 5_000_000


class CannotEdit(ValueError):
    """The file cannot be read, or cannot be edited without risk to the remaining content."""


def place_in(text: str, at: int) -> str:
    """Line and column of a position in a text."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


def line_end_of(text: str) -> str:
    """The first line end in a text; a line feed if there is none."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def appended(text: str, block: str) -> str:
    """The text with a block appended after an empty line; a text without a final line end stays without."""
    line_end = line_end_of(text)
    if text and not text.endswith("\n"):
        return text + line_end + line_end + block
    return text + line_end + block + line_end


def read_settings(path: Path) -> bytes | None:
    """The bytes of the file; None without a file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise CannotEdit("not a regular file")
        if status.st_size > MAX_BYTES:
            raise CannotEdit(f"the file has {status.st_size:,} bytes; settings files may have at most {MAX_BYTES:,}")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotEdit(error.strerror or str(error)) from None


def write_settings(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Replace the file's bytes (`after` None: remove the file), unless the file has changed since `before`.

    Follows a symbolic link and replaces the target.
    """
    target = Path(os.path.realpath(path))
    if read_settings(target) != before:
        raise CannotEdit("the file changed while this command ran; run it again")
    try:
        if after is None:
            target.unlink(missing_ok=True)
        else:
            _replace(target, after)
    except OSError as error:
        raise CannotEdit(error.strerror or str(error)) from None


def remove_empty_folders(path: Path, root: Path) -> None:
    """Remove the empty parent folders of a deleted file, up to but without `root`."""
    for folder in path.parents:
        if folder == root or root not in folder.parents:
            return
        try:
            folder.rmdir()
        except OSError:
            return


def _replace(target: Path, data: bytes) -> None:
    new_folders = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _copy_permissions(target, name)
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        for folder in new_folders:
            with suppress(OSError):
                folder.rmdir()
        raise


def _copy_permissions(target: Path, name: str) -> None:
    """Copy permissions and owner of the old file to the new file; without an old file, apply the umask."""
    if not target.exists():
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        return
    status = target.stat()
    os.chmod(name, stat.S_IMODE(status.st_mode))
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(name, status.st_uid, status.st_gid)
