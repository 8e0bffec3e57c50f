"""Opening what lies below a folder, in a tree that somebody else may be changing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from satchel.errors import WorkspaceMissing


class NotRegular(Exception):
    """What is there is a pipe, a device or a socket."""


class TooLong(Exception):
    """The file has more bytes than it may."""


@contextmanager
def opened_folder(path: str | Path) -> Iterator[int]:
    """The folder, open."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def opened_workspace(root: Path) -> Iterator[int]:
    """The folder of a workspace, open; raises WorkspaceMissing where there is none."""
    with ExitStack() as opened:
        try:
            folder = opened.enter_context(opened_folder(root))
        except NotADirectoryError:
            raise WorkspaceMissing("path", str(root), "is not a folder") from None
        except OSError as error:
            raise WorkspaceMissing("path", str(root), f"cannot be opened ({error.strerror})") from None
        yield folder


def bytes_below(folder: int, path: str, limit: int) -> bytes:
    """The bytes of the regular file at `path` (with `/`) below an open folder.

    No link is followed on the way, so nothing outside the folder is ever read; a pipe is not waited for.
    """
    with ExitStack() as opened:
        *parents, name = path.split("/")
        for parent in parents:
            folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            opened.callback(os.close, folder)
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        opened.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NotRegular(path)
        data = bytearray()
        while chunk := os.read(file, min(1 << 20, limit + 1 - len(data))):
            data += chunk
            if len(data) > limit:
                raise TooLong(path)
        return bytes(data)
