-- Documents: their pages, and on which of them each block and piece stands.
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
