"""Who may read a block: grants, how they are inherited, and the test that every read goes through.

A block's access is a set of principals that are let in and a set that are kept out. A block takes its parent's
access (unless it is told not to inherit), and its own grants change that: an allowance lets a principal in and lifts
an inherited refusal of it, a refusal keeps it out and takes an inherited allowance away. A person is let in when one
of the names under which they read is let in and none is kept out: a refusal wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from satchel.errors import InvalidInput

EVERYONE: Final = "*"
"""The principal that every named user is."""

DEFAULT: Final = "@default"
"""The principal of a workspace that is open by default; it is held by the roots, and by all that inherit from them."""

_MOST_NAME_CHARS: Final = 256


class Effect(StrEnum):
    """What a grant does."""

    ALLOW = "allow"
    DENY = "deny"


class DefaultAccess(StrEnum):
    """Who may read what nothing was said about: its owner alone, nobody, or every named user.

    A workspace is its owner's until the first grant; from then on it has several users, and denies by default.
    """

    OWNER = "owner"
    DENY = "deny"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A principal (`user:ann`, `group:staff` or `*`) that is let in or kept out at a block and below it.

    With `is_path`, `block` is the path of a file, or of a folder with `/` at its end, whether or not it is there now.
    """

    block: str
    principal: str
    effect: Effect = Effect.ALLOW
    is_path: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A name for several users."""

    name: str
    members: tuple[str, ...] = ()


class Access(NamedTuple):
    """Who is let in, and who is kept out all the same."""

    allow: frozenset[str] = frozenset({DEFAULT})
    deny: frozenset[str] = frozenset()

    def changed_by(self, grants: Iterable[Grant]) -> Access:
        """The access of a block that inherits this one and has these grants of its own."""
        allow, deny = set(self.allow), set(self.deny)
        for grant in grants:
            gains, loses = (allow, deny) if grant.effect is Effect.ALLOW else (deny, allow)
            gains.add(grant.principal)
            loses.discard(grant.principal)
        return Access(frozenset(allow), frozenset(deny))

    def lets_in(self, readers: frozenset[str]) -> bool:
        """Whether somebody who reads under these names may read."""
        return not self.allow.isdisjoint(readers) and self.deny.isdisjoint(readers)


ROOT: Final = Access()
"""What a block without a parent starts from."""

CLOSED: Final = Access(frozenset())
"""What a block that inherits nothing starts from."""


def user_principal(user: str) -> str:
    """The principal of a user."""
    return f"user:{_checked_name('user', user)}"


def group_principal(group: str) -> str:
    """The principal of a group."""
    return f"group:{_checked_name('group', group)}"


def principal(text: str) -> str:
    """The principal that a text names: `user:ann`, `group:staff`, `*`, or plainly `ann`."""
    if text == EVERYONE:
        return text
    kind, colon, name = text.partition(":")
    if not colon:
        return user_principal(text)
    if kind not in ("user", "group"):
        raise InvalidInput("principal", text, "must be user:NAME, group:NAME, '*' or a plain name without a colon")
    return group_principal(name) if kind == "group" else user_principal(name)


def readers_for(user: str, groups: Iterable[str] = ()) -> frozenset[str]:
    """The names under which a user reads."""
    return frozenset({user_principal(user), EVERYONE, *(group_principal(group) for group in groups)})


def _checked_name(kind: str, name: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise InvalidInput(kind, name, f"must be a name of 1 to {_MOST_NAME_CHARS} printable characters")
    return name
