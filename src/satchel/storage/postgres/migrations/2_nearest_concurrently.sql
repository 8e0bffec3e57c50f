CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_256 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(256)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 256;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_384 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(384)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 384;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_512 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(512)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 512;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_768 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(768)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 768;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_1024 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(1024)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 1024;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_1536 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(1536)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 1536;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_3072 ON satchel.dense
    USING hnsw ((vector::{vector}.halfvec(3072)) {vector}.halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 3072;
