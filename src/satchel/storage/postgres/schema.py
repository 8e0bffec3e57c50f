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

_OF_FILES: Final = ("content", "block", "piece", "page", "mention", "node")
"""The tables whose rows belong to files."""
_OF_LIST: Final = "access = ANY ((SELECT lists())::integer[])"
_BLOCK: Final = "EXISTS (SELECT 1 FROM node WHERE node.workspace = {0}.workspace AND node.id = {0}.{1})"
_FILE_PATH: Final = "EXISTS (SELECT 1 FROM file WHERE file.workspace = {0}.workspace AND file.path = {0}.{1})"

READERS_SEE: Final = {
    "fact": "name IN ('generation', 'multi_user', 'default_access', 'embedder', 'dimensions', 'nearest', 'pieces')",
    "access": "id = ANY ((SELECT lists())::integer[])",
    "file": _OF_LIST,
    **dict.fromkeys(_OF_FILES, "reach = ANY ((SELECT lists())::integer[])"),
    "activity": _FILE_PATH.format("activity", "path"),
    "bond": f"{_BLOCK.format('bond', 'source')} AND (target IS NULL OR {_BLOCK.format('bond', 'target')})",
    "deed": _BLOCK.format("deed", "block"),
    "member": "('user:' || person) = ANY ((SELECT names())::text[])",
    **dict.fromkeys(("chunk", "posting", "dead", "dense"), _OF_LIST),
}
"""What of each table one who reads may see; of what is not named, nothing."""


def _policies() -> str:
    here = "workspace = (SELECT here())"
    statements = []
    for table in TABLES:
        statements += [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY writer ON {table} TO satchel_writer USING ({here}) WITH CHECK ({here})",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO satchel_writer",
            # A workspace that is not in the statistics yet would be taken for empty, and joined row by row.
            f"ALTER TABLE {table} ALTER COLUMN workspace SET STATISTICS 0",
        ]
        if table in _OF_FILES:
            statements.append(
                f"CREATE TRIGGER take_reach BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION take_reach()"
            )
        if table in READERS_SEE:
            statements += [
                f"CREATE POLICY reader ON {table} FOR SELECT TO satchel_reader USING ({here} AND {READERS_SEE[table]})",
                f"GRANT SELECT ON {table} TO satchel_reader",
            ]
    # `enter` runs as the owner, and reads these two.
    statements += [
        f"CREATE POLICY owner ON {table} FOR SELECT TO satchel_owner USING (true)" for table in ("fact", "access")
    ]
    statements += [
        "ALTER TABLE workspace ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE workspace FORCE ROW LEVEL SECURITY",
        "CREATE POLICY owner ON workspace TO satchel_owner USING (true)",
        "CREATE POLICY writer ON workspace FOR INSERT TO satchel_writer WITH CHECK (true)",
        "GRANT INSERT ON workspace TO satchel_writer",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA satchel TO satchel_writer",
        "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA satchel FROM PUBLIC",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA satchel TO satchel_writer, satchel_reader",
    ]
    return ";\n".join(statements) + ";\n"


def _nearest() -> tuple[str, ...]:
    """Made beside the readers and writers at work: none of them waits."""
    return tuple(
        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_{count} ON dense"
        f" USING hnsw ((vector::halfvec({count})) halfvec_ip_ops) WITH (m = 16, ef_construction = 128)"
        f" WHERE indexed = {count}"
        for count in DIMENSIONS
    )


MIGRATIONS: Final[tuple[str | tuple[str, ...], ...]] = (
    Path(__file__).with_name("migrations").joinpath("1_tables.sql").read_text() + _policies(),
    _nearest(),
)
"""Each takes the schema from the version of its place in the list to the next: a text as one transaction, a list of
statements one after the other, each of which may be run again."""

VERSION: Final = len(MIGRATIONS)
