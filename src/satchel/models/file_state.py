"""Whether a file has changed since it was indexed."""

from __future__ import annotations

from typing import Final, NamedTuple

_CLOCK_TICK_NS: Final = 20_000_000
"""A file system's clock may lag behind ours by a few milliseconds."""

SAME_AS: Final = "same content as "
"""How the note of a document begins whose content is indexed under another path; that path follows."""


class FileState(NamedTuple):
    """What tells whether a file has changed since it was read."""

    content_hash: bytes
    size: int
    modified_ns: int
    read_ns: int
    """When it was read: a file whose status changed later has to be looked at again, whatever its own time says."""


def is_untouched(state: FileState, size: int, modified_ns: int, changed_ns: int) -> bool:
    """True if nothing can have been written to a file since it was read.

    Its own time can be set at will; the time of its last change of any kind cannot, and has to lie before the reading.
    """
    return (state.size, state.modified_ns) == (size, modified_ns) and changed_ns + _CLOCK_TICK_NS < state.read_ns
