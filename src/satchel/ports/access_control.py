"""The store as the keeper of access: grants, groups, access lists and the default access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from satchel.models.access import DefaultAccess, Grant, Group
    from satchel.models.search import Filters


class AccessControl(Protocol):
    """Answers questions about read access."""

    def access_key(self, filters: Filters) -> object:
        """A value that is equal for two readers if and only if both have the same read access."""

    def groups_of(self, user: str) -> frozenset[str]:
        """The names of the user's groups."""

    def default_access(self) -> DefaultAccess:
        """Who may read files and blocks without a grant."""


class AccessWriter(Protocol):
    """Changes grants, groups and the default access within a commit."""

    def is_closed(self, block_id: str) -> bool:
        """True if a block denies access that the parent block allows."""

    def grant(self, grant: Grant) -> None:
        """Allow or deny a principal access to a block and everything below the block."""

    def revoke(self, block_id: str, who: str) -> None:
        """Remove a principal's grant at exactly this block."""

    def set_inherits(self, block_id: str, inherits: bool) -> None:
        """Set whether a block inherits access from the parent block."""

    def set_default(self, default: DefaultAccess) -> None:
        """Set who may read files and blocks without a grant."""

    def put_group(self, group: Group) -> None:
        """Store a group and replace any stored group of the same name."""
