"""Who calls: the owner of the workspace, who may do everything and ask on behalf of others, or one of its users."""

from __future__ import annotations

from dataclasses import dataclass

from satchel.errors import InvalidOption, NotAllowed
from satchel.models.request import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who has shown who they are. An owner without a user is the workspace's own key."""

    user: User | None = None
    is_owner: bool = False

    def __post_init__(self) -> None:
        if self.user is None and not self.is_owner:
            raise InvalidOption("caller", None, "must be a user, or the owner")

    def asking(self, user: User | None) -> User | None:
        """On whose behalf a question is asked: only an owner may name somebody else."""
        if user is None or user == self.user:
            return self.user
        if self.is_owner:
            return user
        assert self.user is not None
        if user.id != self.user.id or not set(user.groups) <= set(self.user.groups):
            raise NotAllowed("user", user.id, f"this token is {self.user.id}'s; only an owner's may ask for others")
        return User(
            id=self.user.id,
            name=user.name or self.user.name,
            groups=self.user.groups,
            preferred_types=user.preferred_types,
            pinned=user.pinned,
        )

    def on_behalf_of(self, user: User | None) -> Caller:
        """The caller who asks as this user."""
        return Caller(user=self.asking(user), is_owner=self.is_owner)

    def must_be_owner(self, to_do: str) -> None:
        """Refuse what only an owner may do."""
        if not self.is_owner:
            name = self.user.id if self.user else ""
            raise NotAllowed("user", name, f"only an owner's token may {to_do}")


OWNER = Caller(is_owner=True)
"""Whoever sits at the machine."""
