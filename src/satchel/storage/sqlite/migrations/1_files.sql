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
