-- Every table has the workspace as a column, as in PostgreSQL, so that both run the same statements. It stands last in
-- keys and indexes: it is the same in every row, and SQLite would take it for a choice of few. An index that answered a
-- statement by itself still does.
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
CREATE INDEX mention_name ON mention(name, file, workspace);
DROP INDEX activity_path;
CREATE INDEX activity_path ON activity(path, at, workspace);
DROP INDEX node_parent;
CREATE INDEX node_parent ON node(parent, position, id, workspace);
DROP INDEX bond_source;
CREATE INDEX bond_source ON bond(source, kind, target, name, workspace);
DROP INDEX member_person;
CREATE INDEX member_person ON member(person, workspace);
