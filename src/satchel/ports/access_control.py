"""The store as the keeper of access: grants, groups, access lists and the default access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from satchel.models.access import DefaultAccess, Grant, Group
    from satchel.models.search import Filters


class AccessControl(Protocol):
    """Says who may read what."""

    def access_key(self, filters: Filters) -> object:
        """A value that is equal for two readers if and only if they may read the same."""

    def groups_of(self, user: str) -> frozenset[str]:
        """The groups that a user is in."""

    def default_access(self) -> DefaultAccess:
        """Who may read files and blocks without a grant."""


class AccessWriter(Protocol):
    """Changes who may read what; part of one commit."""

    def is_closed(self, block_id: str) -> bool:
        """True if a block denies access that its parent allows."""

    def grant(self, grant: Grant) -> None:
        """Allow or deny a principal access to a block and everything below it."""

    def revoke(self, block_id: str, who: str) -> None:
        """Remove what was granted to a principal at exactly this block."""

    def set_inherits(self, block_id: str, inherits: bool) -> None:
        """Set whether a block inherits the access to its parent."""

    def set_default(self, default: DefaultAccess) -> None:
        """Set who may read files and blocks without a grant."""

    def put_group(self, group: Group) -> None:
        """Store a group in place of what was stored under its name."""
