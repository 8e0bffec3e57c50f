"""Detection of zip bombs, and errors of broken archives."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from typing import Final

# Text shrinks to a tenth, tables to a fiftieth; what shrinks to a thousandth was made to.
_MAX_COMPRESSION_RATIO: Final = 500
_MIN_CHECKED_BYTES: Final = 1_000_000  # smaller entries do no harm at any ratio

# zipfile itself raises NotImplementedError for ways of packing that it does not know.
_BROKEN_PACKING: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError)
BROKEN_ZIP: Final = (*_BROKEN_PACKING, EOFError, OSError, RuntimeError, ValueError, OverflowError)
"""All that opening or reading a broken archive raises."""


def grows_too_much(entry: zipfile.ZipInfo) -> bool:
    """True if the compression ratio of an entry marks a zip bomb."""
    return entry.file_size > _MIN_CHECKED_BYTES and entry.file_size > _MAX_COMPRESSION_RATIO * max(
        entry.compress_size, 1
    )
