"""Named numpy arrays in one file that is written whole or not at all, and read by mapping it into memory."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MAGIC: Final = b"SATCHELARRAYS 1\n"
_ALIGNED: Final = 64


class DamagedArrays(Exception):
    """The file is not what was written."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays beside the place and move them there."""
    layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
    position = 0
    for name, array in arrays.items():
        position = _aligned(position)
        layout[name] = (array.dtype.str, array.shape, position)
        position += array.nbytes
    header = json.dumps({"layout": layout, "bytes": position}).encode()
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
            start = _aligned(file.tell())
            for name, array in arrays.items():
                file.seek(start + layout[name][2])
                np.ascontiguousarray(array).tofile(file)
            file.truncate(start + position)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def open_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file; they stay readable also after the file is removed."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < len(_MAGIC) + 8:
            raise DamagedArrays(str(path))
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[: len(_MAGIC)] != _MAGIC:
        raise DamagedArrays(str(path))
    at = len(_MAGIC) + 8
    length = int.from_bytes(data[len(_MAGIC) : at], "little")
    try:
        header = json.loads(data[at : at + length])
        start = _aligned(at + length)
        if len(data) != start + header["bytes"]:
            raise DamagedArrays(str(path))
        return {
            name: np.frombuffer(data, dtype, int(np.prod(shape)), start + offset).reshape(shape)
            for name, (dtype, shape, offset) in header["layout"].items()
        }
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedArrays(f"{path}: {error}") from error


def _aligned(position: int) -> int:
    return -(-position // _ALIGNED) * _ALIGNED
