CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_256 ON dense
    USING hnsw ((vector::halfvec(256)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 256;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_384 ON dense
    USING hnsw ((vector::halfvec(384)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 384;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_512 ON dense
    USING hnsw ((vector::halfvec(512)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 512;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_768 ON dense
    USING hnsw ((vector::halfvec(768)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 768;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_1024 ON dense
    USING hnsw ((vector::halfvec(1024)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 1024;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_1536 ON dense
    USING hnsw ((vector::halfvec(1536)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 1536;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dense_nearest_3072 ON dense
    USING hnsw ((vector::halfvec(3072)) halfvec_ip_ops) WITH (m = 16, ef_construction = 128) WHERE indexed = 3072;
