"""What a workspace is made of when it comes from outside or goes there: one value after the other."""

from __future__ import annotations

from dataclasses import dataclass

from satchel.models.access import DefaultAccess, Grant, Group
from satchel.models.block import Activity, Block, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may read what nothing was said about."""

    default: DefaultAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that could not be taken over as it was: where, and what was done instead."""

    where: str
    problem: str


Record = Block | Link | Activity | Grant | Group | Policy | Notice
