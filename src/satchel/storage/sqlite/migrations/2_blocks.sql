-- Blocks that are not read from files: each has a row in `file`, under which its words and its vector are found, and one
-- in `node`. Ids are bytes, because names of files are.
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
