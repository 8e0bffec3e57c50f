CREATE TABLE IF NOT EXISTS document (
    model TEXT, doc_id TEXT, pages INTEGER NOT NULL, PRIMARY KEY (model, doc_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS page (
    model TEXT, doc_id TEXT, page INTEGER, pooled BLOB NOT NULL, vectors BLOB NOT NULL,
    PRIMARY KEY (model, doc_id, page)
) WITHOUT ROWID;
-- A file with other tables of these names is not ours.
SELECT model, doc_id, page, pooled, vectors FROM page LIMIT 1;
SELECT model, doc_id, pages FROM document LIMIT 1;
