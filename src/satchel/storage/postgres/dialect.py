"""Our statements as PostgreSQL wants them, each bound to one workspace.

The statements that stores share are written for a database that holds one workspace. Here each table holds many, with
the workspace's number as the first column of every key. No statement leaves this module without that number beside
every table that it names; that is what lets a cluster send it to one shard.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

TABLES: Final = (
    "fact", "access", "file", "content", "block", "piece", "page", "vector", "mention", "activity",
    "node", "bond", "deed", "permit", "member", "chunk", "posting", "dead", "dense",
)  # fmt: skip
"""Every table that holds what is in workspaces."""

_NAMES: Final = "|".join(TABLES)
_READ: Final = re.compile(rf"\b(FROM|JOIN) ({_NAMES})\b")
_INSERT: Final = re.compile(rf"^INSERT INTO ({_NAMES}) \((.*?)\) VALUES \(")
_UPDATE: Final = re.compile(rf"^UPDATE ({_NAMES}) SET (.*?)(?: WHERE (.*))?$", re.DOTALL)
_DELETE: Final = re.compile(rf"^DELETE FROM ({_NAMES})(?: WHERE (.*))?$", re.DOTALL)
_CONFLICT: Final = re.compile(r"ON CONFLICT \((.*?)\)")
_BYTES: Final = re.compile(r"x'([0-9a-f]*)'")


@lru_cache(maxsize=4096)
def translated(statement: str, workspace: int) -> str:
    """The statement for one workspace, with psycopg's marks for values."""
    text = _BYTES.sub(r"'\\x\1'::bytea", statement.replace("%", "%%"))
    text = text.replace(" IS ?", " IS NOT DISTINCT FROM ?").replace(" LIKE ?", " ILIKE ? ESCAPE ''").replace("?", "%s")
    inserted = _INSERT.match(text)
    if inserted:
        table, columns = inserted.groups()
        rest = _CONFLICT.sub(r"ON CONFLICT (workspace, \1)", text[inserted.end() :])
        return f"INSERT INTO {table} (workspace, {columns}) VALUES ({workspace}, {rest}"
    updated = _UPDATE.match(text)
    if updated:
        table, changes, where = updated.groups()
        return f"UPDATE {table} SET {changes} WHERE workspace = {workspace}{_and(where, workspace)}"
    deleted = _DELETE.match(text)
    if deleted:
        table, where = deleted.groups()
        return f"DELETE FROM {table} WHERE workspace = {workspace}{_and(where, workspace)}"
    return _bound(text, workspace)


def _and(where: str | None, workspace: int) -> str:
    return f" AND ({_bound(where, workspace)})" if where else ""


def _bound(text: str, workspace: int) -> str:
    """Each table that is read, narrowed to the workspace; the planner takes the parentheses away again."""
    return _READ.sub(rf"\1 (SELECT * FROM \2 WHERE workspace = {workspace}) AS \2", text)
