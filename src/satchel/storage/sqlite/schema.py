"""The tables, and how an older file becomes a newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.errors import IndexTooNew

if TYPE_CHECKING:
    import apsw

_FIRST: Final = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE access (id INTEGER PRIMARY KEY, readers TEXT NOT NULL UNIQUE);
CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    read_ns INTEGER NOT NULL,
    language TEXT,
    note TEXT NOT NULL,
    generation INTEGER NOT NULL,
    access INTEGER NOT NULL REFERENCES access(id),
    central REAL NOT NULL DEFAULT 0
);
CREATE INDEX file_generation ON file(generation);
CREATE TABLE content (file INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE TABLE gone (file INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE INDEX gone_generation ON gone(generation);
CREATE TABLE block (
    file INTEGER NOT NULL,
    place INTEGER NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    qualified TEXT NOT NULL,
    parent INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    signature TEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (file, place)
) WITHOUT ROWID;
CREATE INDEX block_name ON block(name);
CREATE TABLE piece (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    start INTEGER NOT NULL,
    finish INTEGER NOT NULL,
    block INTEGER NOT NULL,
    defines TEXT NOT NULL,
    hash BLOB NOT NULL
);
CREATE INDEX piece_file ON piece(file);
CREATE TABLE vector (hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE mention (
    file INTEGER NOT NULL,
    block INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (file, block, kind, name)
) WITHOUT ROWID;
CREATE INDEX mention_name ON mention(name);
CREATE TABLE activity (
    path TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL,
    reference TEXT NOT NULL
);
CREATE INDEX activity_path ON activity(path, at);
CREATE INDEX activity_at ON activity(at);
INSERT INTO fact VALUES ('generation', 0);
INSERT INTO access VALUES (1, '*');
"""

# Blocks that are not read from files: each has a row in `file`, under which its words and its vector are found, and one
# in `node`. Ids are bytes, because names of files are.
_WORKSPACE: Final = """
CREATE TABLE node (
    file INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    parent BLOB,
    position REAL NOT NULL,
    summary TEXT NOT NULL,
    source_path TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    modified INTEGER,
    metadata TEXT NOT NULL,
    due INTEGER,
    done INTEGER NOT NULL,
    inherits INTEGER NOT NULL,
    origin TEXT NOT NULL
);
CREATE INDEX node_origin ON node(origin) WHERE origin != '';
CREATE INDEX node_parent ON node(parent, position, id);
CREATE INDEX node_due ON node(done, due) WHERE due IS NOT NULL;
CREATE TABLE bond (
    source BLOB NOT NULL,
    kind TEXT NOT NULL,
    target BLOB,
    name TEXT NOT NULL
);
CREATE INDEX bond_source ON bond(source, kind, target, name);
CREATE INDEX bond_target ON bond(target, source);
CREATE TABLE deed (
    block BLOB NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL,
    reference TEXT NOT NULL
);
CREATE INDEX deed_actor ON deed(actor, at);
CREATE INDEX deed_at ON deed(at);
CREATE INDEX deed_block ON deed(block);
CREATE TABLE permit (
    block BLOB NOT NULL,
    principal TEXT NOT NULL,
    effect TEXT NOT NULL,
    PRIMARY KEY (block, principal)
) WITHOUT ROWID;
CREATE INDEX permit_principal ON permit(principal);
CREATE TABLE member (
    team TEXT NOT NULL,
    person TEXT NOT NULL,
    PRIMARY KEY (team, person)
) WITHOUT ROWID;
CREATE INDEX member_person ON member(person);
ALTER TABLE file ADD COLUMN granted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX file_granted ON file(granted);
CREATE INDEX activity_actor ON activity(actor, at);
"""

# Documents: their pages, and on which of them each block and piece stands.
_DOCUMENTS: Final = """
ALTER TABLE file ADD COLUMN own_readers INTEGER NOT NULL DEFAULT 0;
UPDATE file SET own_readers = 1 WHERE path >= x'01' AND access != 1;
ALTER TABLE file ADD COLUMN called TEXT NOT NULL DEFAULT '';
ALTER TABLE block ADD COLUMN page INTEGER NOT NULL DEFAULT 0;
ALTER TABLE piece ADD COLUMN page INTEGER NOT NULL DEFAULT 0;
CREATE INDEX file_hash ON file(hash);
CREATE TABLE page (
    file INTEGER NOT NULL,
    number INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    start INTEGER NOT NULL,
    finish INTEGER NOT NULL,
    name TEXT NOT NULL,
    section_path TEXT NOT NULL,
    parent_heading TEXT NOT NULL,
    headings INTEGER NOT NULL,
    tables INTEGER NOT NULL,
    pictures INTEGER NOT NULL,
    captions TEXT NOT NULL,
    is_recognized INTEGER NOT NULL,
    PRIMARY KEY (file, number)
) WITHOUT ROWID;
"""

# Every table has the workspace as a column, as in PostgreSQL, so that both run the same statements. It stands last in
# keys and indexes: it is the same in every row, and SQLite would take it for a choice of few. An index that answered a
# statement by itself still does.
_WORKSPACE_COLUMN: Final = """
CREATE TABLE new_fact (name TEXT, value, workspace INTEGER NOT NULL, PRIMARY KEY (name, workspace)) WITHOUT ROWID;
INSERT INTO new_fact SELECT name, value, 1 FROM fact;
DROP TABLE fact;
ALTER TABLE new_fact RENAME TO fact;

CREATE TABLE new_vector (
    hash BLOB NOT NULL, workspace INTEGER NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (hash, workspace)
) WITHOUT ROWID;
INSERT INTO new_vector SELECT hash, 1, vector FROM vector;
DROP TABLE vector;
ALTER TABLE new_vector RENAME TO vector;

CREATE TABLE new_permit (
    block BLOB NOT NULL,
    principal TEXT NOT NULL,
    workspace INTEGER NOT NULL,
    effect TEXT NOT NULL,
    PRIMARY KEY (block, principal, workspace)
) WITHOUT ROWID;
INSERT INTO new_permit SELECT block, principal, 1, effect FROM permit;
DROP TABLE permit;
ALTER TABLE new_permit RENAME TO permit;

CREATE TABLE new_file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace INTEGER NOT NULL,
    path TEXT NOT NULL,
    hash BLOB NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    read_ns INTEGER NOT NULL,
    language TEXT,
    note TEXT NOT NULL,
    generation INTEGER NOT NULL,
    access INTEGER NOT NULL,
    central REAL NOT NULL DEFAULT 0,
    granted INTEGER NOT NULL DEFAULT 0,
    own_readers INTEGER NOT NULL DEFAULT 0,
    called TEXT NOT NULL DEFAULT '',
    UNIQUE (path, workspace)
);
INSERT INTO new_file (id, workspace, path, hash, size, modified_ns, read_ns, language, note, generation, access,
    central, granted, own_readers, called)
SELECT id, 1, path, hash, size, modified_ns, read_ns, language, note, generation, access, central, granted, own_readers,
    called FROM file ORDER BY id;
-- A number that was given once is never given again.
DELETE FROM sqlite_sequence WHERE name = 'new_file';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_file', seq FROM sqlite_sequence WHERE name = 'file';
DROP TABLE file;
ALTER TABLE new_file RENAME TO file;
CREATE INDEX file_generation ON file(generation, workspace);
CREATE INDEX file_granted ON file(granted);
CREATE INDEX file_hash ON file(hash);

ALTER TABLE access ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE content ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE block ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE piece ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE page ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE mention ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE activity ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE node ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE bond ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE deed ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
ALTER TABLE member ADD COLUMN workspace INTEGER NOT NULL DEFAULT 1;
DROP INDEX block_name;
CREATE INDEX block_name ON block(name, workspace);
DROP INDEX piece_file;
CREATE INDEX piece_file ON piece(file, workspace);
DROP INDEX mention_name;
CREATE INDEX mention_name ON mention(name, workspace);
DROP INDEX activity_path;
CREATE INDEX activity_path ON activity(path, at, workspace);
DROP INDEX node_parent;
CREATE INDEX node_parent ON node(parent, position, id, workspace);
DROP INDEX bond_source;
CREATE INDEX bond_source ON bond(source, kind, target, name, workspace);
DROP INDEX member_person;
CREATE INDEX member_person ON member(person, workspace);
"""

_MIGRATIONS: Final = (_FIRST, _WORKSPACE, _DOCUMENTS, _WORKSPACE_COLUMN)
"""Each takes the file from the version of its place in the list to the next."""

VERSION: Final = len(_MIGRATIONS)


def migrate(connection: apsw.Connection, where: str) -> None:
    """Bring the file to our version, each step whole or not at all."""
    version = connection.pragma("user_version")
    if version > VERSION:
        raise IndexTooNew(where, version, VERSION)
    while version < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster.
            version = connection.pragma("user_version")
            if version < VERSION:
                connection.execute(_MIGRATIONS[version])
                version += 1
                connection.pragma("user_version", version)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has ended it already
                connection.execute("ROLLBACK")
            raise
