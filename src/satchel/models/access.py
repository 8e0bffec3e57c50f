"""Read access of blocks: grants, their inheritance, and the access test for every read.

The access of a block is a set of allowed and a set of denied principals. A block inherits the access of its parent
(unless `inherits` is off), and its own grants change the inherited sets: an allow grant adds the principal and lifts an
inherited denial, a deny grant excludes the principal and removes an inherited allowance. A user may read if at least
one of the user's principals is allowed and none is denied: a denial wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from satchel.errors import InvalidInput

EVERYONE: Final = "*"
"""The principal of all named users."""

DEFAULT: Final = "@default"
"""The principal for workspaces open by default; allowed at roots and at all blocks that inherit from roots."""

# Longer than any login name or e-mail address (254); names are stored in every access list.
_MAX_NAME_CHARS: Final = 256


class Effect(StrEnum):
    """The effect of a grant on a principal."""

    ALLOW = "allow"
    DENY = "deny"


class DefaultAccess(StrEnum):
    """Who may read blocks without any grant: the owner alone, nobody, or every named user.

    A workspace belongs to its owner until the first grant; from then on the workspace has several users and denies by
    default.
    """

    OWNER = "owner"
    DENY = "deny"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Allows or denies a principal (`user:ann`, `group:staff` or `*`) to read a block and its descendants.

    With `is_path`, `block` is the path of a file, or of a folder with `/` at the end; the path need not exist now.
    """

    block: str
    principal: str
    effect: Effect = Effect.ALLOW
    is_path: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A named group of users."""

    name: str
    members: tuple[str, ...] = ()


class Access(NamedTuple):
    """Allowed and denied principals of a block; a denial wins."""

    allow: frozenset[str] = frozenset({DEFAULT})
    deny: frozenset[str] = frozenset()

    def changed_by(self, grants: Iterable[Grant]) -> Access:
        """The access of a child block with the given grants of its own."""
        allow, deny = set(self.allow), set(self.deny)
        for grant in grants:
            gains, loses = (allow, deny) if grant.effect is Effect.ALLOW else (deny, allow)
            gains.add(grant.principal)
            loses.discard(grant.principal)
        return Access(frozenset(allow), frozenset(deny))

    def lets_in(self, readers: frozenset[str]) -> bool:
        """True if a user with these principals may read."""
        return not self.allow.isdisjoint(readers) and self.deny.isdisjoint(readers)


ROOT: Final = Access()
"""The access of a block without a parent, before its own grants."""

CLOSED: Final = Access(frozenset())
"""The access of a block that inherits nothing, before its own grants."""


def user_principal(user: str) -> str:
    """The principal of a user: `user:NAME`."""
    return f"user:{_checked_name('user', user)}"


def group_principal(group: str) -> str:
    """The principal of a group: `group:NAME`."""
    return f"group:{_checked_name('group', group)}"


def principal(text: str) -> str:
    """Parse a principal: `user:ann`, `group:staff`, `*`, or a plain user name (`ann`)."""
    if text == EVERYONE:
        return text
    kind, colon, name = text.partition(":")
    if not colon:
        return user_principal(text)
    if kind not in ("user", "group"):
        raise InvalidInput("principal", text, "must be user:NAME, group:NAME, '*' or a plain name without a colon")
    return group_principal(name) if kind == "group" else user_principal(name)


def readers_for(user: str, groups: Iterable[str] = ()) -> frozenset[str]:
    """All principals of a user: the user, the groups and everyone."""
    return frozenset({user_principal(user), EVERYONE, *(group_principal(group) for group in groups)})


def _checked_name(kind: str, name: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise InvalidInput(kind, name, f"must be a name of 1 to {_MAX_NAME_CHARS} printable characters")
    return name
