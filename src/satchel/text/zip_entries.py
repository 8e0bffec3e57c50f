"""Detection of zip bombs, and errors of broken archives."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from typing import Final

# Text compresses to a tenth, tables to a fiftieth; data that compresses to a thousandth is a zip bomb.
_MAX_COMPRESSION_RATIO: Final = 500
_MIN_CHECKED_BYTES: Final = 1_000_000  # smaller entries do no harm at any ratio

# zipfile raises NotImplementedError for unknown compression methods.
_BROKEN_PACKING: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError)
BROKEN_ZIP: Final = (*_BROKEN_PACKING, EOFError, OSError, RuntimeError, ValueError, OverflowError)
"""Exceptions raised by opening or reading a broken archive."""


def grows_too_much(entry: zipfile.ZipInfo) -> bool:
    """True if the compression ratio of an entry marks a zip bomb."""
    return entry.file_size > _MIN_CHECKED_BYTES and entry.file_size > _MAX_COMPRESSION_RATIO * max(
        entry.compress_size, 1
    )
