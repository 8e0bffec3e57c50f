"""The folder that a server on stdio is for; it is opened when the first tool is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InvalidOption
from satchel.service.client import OWNER, Caller

if TYPE_CHECKING:
    from satchel.service.local_client import LocalSatchel

PATIENCE_S: Final = 20.0


@dataclass(slots=True, eq=False)
class Folder:
    """A folder and who asks about it."""

    path: str
    _: KW_ONLY
    caller: Caller = OWNER
    allow_home: bool = False
    patience: float = PATIENCE_S
    settings: Mapping[str, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, init=False)
    _opened: LocalSatchel | None = field(default=None, init=False)

    def opened(self) -> LocalSatchel:
        """The workspace in it."""
        with self._lock:
            if self._opened is None:
                from satchel.service.factory.opening import is_database, workspace
                from satchel.service.local_client import open_local

                place: Path | str = self.path
                if not is_database(place):
                    place = workspace(place)
                    if not self.allow_home:
                        _refuse_home(place, self.path)
                self._opened = open_local(place, caller=self.caller, patience=self.patience, **self.settings)
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
        problem = f"is {root}, which is the home directory or holds it, and is not indexed"
        raise InvalidOption("path", given, f"{problem}; start the server with the folder to search: satchel mcp PATH")


def warm_up() -> None:
    """Load what the first question needs, but touch neither the folder nor the index."""
    from satchel.service.token_counts import count_tokens

    count_tokens(" satchel")
