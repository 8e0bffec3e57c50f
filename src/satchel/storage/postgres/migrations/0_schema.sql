-- The empty schema, which an administrator makes. It may be run again.
CREATE SCHEMA IF NOT EXISTS satchel AUTHORIZATION satchel_owner;
SET LOCAL ROLE satchel_owner;
GRANT USAGE ON SCHEMA satchel TO satchel_writer, satchel_reader;
CREATE TABLE IF NOT EXISTS satchel.schema_version (version integer NOT NULL);
GRANT SELECT ON satchel.schema_version TO satchel_writer, satchel_reader;
INSERT INTO satchel.schema_version SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM satchel.schema_version);
