"""The tables, who may see their rows, and how an older database becomes a newer one.

Roles: `satchel_owner` owns everything and logs in nowhere; `satchel_writer` sees one workspace whole; `satchel_reader`
sees of one workspace what the names under which it reads let it see. Policies are forced, so that the owner is bound
too. Whoever logs in takes on one of the two for each transaction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROLES: Final = ("satchel_owner", "satchel_writer", "satchel_reader")

TABLES: Final = (
    *("fact", "access", "file", "content", "block", "piece", "page", "vector", "mention", "activity"),
    *("node", "bond", "deed", "permit", "member", "chunk", "posting", "dead", "dense"),
)
"""Every table that holds what is in workspaces."""

DIMENSIONS: Final = (256, 384, 512, 768, 1024, 1536, 3072)
"""Vectors of so many numbers are found through an index; others are scanned."""

EMPTY_SCHEMA: Final = "0_schema.sql"
MIGRATIONS: Final = ("1_tables.sql", "2_nearest_concurrently.sql")
"""Each takes the schema to the version of its number: in one transaction, or statement by statement where each may be
run again (`_concurrently`: beside the readers and writers at work, none of whom waits)."""

VERSION: Final = len(MIGRATIONS)


def migration(name: str) -> str:
    """The statements of a migration."""
    return Path(__file__).with_name("migrations").joinpath(name).read_text()
