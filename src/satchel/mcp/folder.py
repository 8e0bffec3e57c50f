"""The folder that a server on stdio is for; it is opened when the first tool is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidOption
from satchel.service.identity import OWNER, Caller

if TYPE_CHECKING:
    from satchel.service.local_client import LocalSatchel

PATIENCE_S: Final = 20.0


class Folder:
    """A folder and who asks about it."""

    def __init__(
        self,
        path: str,
        *,
        caller: Caller = OWNER,
        allow_home: bool = False,
        patience: float = PATIENCE_S,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.caller = caller
        self._path = path
        self._allow_home = allow_home
        self._patience = patience
        self._settings = settings or {}
        self._lock = Lock()
        self._opened: LocalSatchel | None = None

    def opened(self) -> LocalSatchel:
        """The workspace in it."""
        with self._lock:
            if self._opened is None:
                from satchel.service.factory.locations import is_database
                from satchel.service.factory.opening import workspace
                from satchel.service.local_client import open_local

                place: Path | str = self._path
                if not is_database(place):
                    place = workspace(place)
                    if not self._allow_home:
                        _refuse_home(place, self._path)
                self._opened = open_local(place, caller=self.caller, patience=self._patience, **self._settings)
            return self._opened

    def close(self, within: float) -> None:
        """Let go of it; what takes longer is left to the end of the process. What was committed stays."""
        bag = self._opened
        if bag is not None:
            closing = Thread(target=bag.close, name="satchel-closing", daemon=True)
            closing.start()
            closing.join(within)


def _refuse_home(root: Path, given: str) -> None:
    """An agent that was started at home must not read everything there."""
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):
        home = root if root == root.parent else Path("/")
    if root == home or root in home.parents or root == root.parent:
        raise InvalidOption(
            "path", given, f"is {root}, which is the home directory or holds it, and is not indexed; start the server "
            "with the folder to search: satchel mcp PATH",
        )  # fmt: skip


def warm_up() -> None:
    """Load what the first question needs, but touch neither the folder nor the index."""
    from satchel.service.token_counts import count_tokens

    count_tokens(" satchel")
