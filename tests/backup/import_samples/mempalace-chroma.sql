-- Written by mempalace 3.11.0 with its backend chroma; tables without indexes of vectors and words.
CREATE TABLE "collections" (
    id TEXT PRIMARY KEY, -- unique globally
    name TEXT NOT NULL, -- unique per database
    dimension INTEGER,
    database_id TEXT NOT NULL REFERENCES databases(id) ON DELETE CASCADE, config_json_str TEXT, schema_str TEXT,
    UNIQUE (name, database_id)
);
INSERT INTO "collections" VALUES('8cd3f503-0fae-4b71-944d-166155757d82','mempalace_drawers',384,'00000000-0000-0000-0000-000000000000','{}',NULL);
CREATE TABLE embedding_metadata (
    id INTEGER REFERENCES embeddings(id),
    key TEXT NOT NULL,
    string_value TEXT,
    int_value INTEGER,
    float_value REAL, bool_value INTEGER,
    PRIMARY KEY (id, key)
);
INSERT INTO "embedding_metadata" VALUES(1,'room','decisions',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'wing','shop',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'chunk_index',NULL,0,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'chroma:document','We deploy from the main branch only',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'filed_at','2026-11-17T09:52:41.462505',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'last_modified','2026-11-17T09:52:41.462505',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'added_by','mcp',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'id_recipe','v3',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'source_file','notes.md',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'chunk_index',NULL,0,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'source_file','',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'id_recipe','v3',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'added_by','mcp',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'chroma:document','Grace owns the billing service',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'wing','shop',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'last_modified','2026-11-17T09:52:41.482643',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'filed_at','2026-11-17T09:52:41.482643',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'room','people',NULL,NULL,NULL);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    segment_id TEXT NOT NULL,
    embedding_id TEXT NOT NULL,
    seq_id BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (segment_id, embedding_id)
);
INSERT INTO "embeddings" VALUES(1,'f576d550-85f4-4868-b490-628a3da79a53','drawer_shop_decisions_55326ea7baacbd5609ad5bf9',1,'2026-11-17 09:52:41');
INSERT INTO "embeddings" VALUES(2,'f576d550-85f4-4868-b490-628a3da79a53','drawer_shop_people_ccd0f6fc6b726864c5025484',2,'2026-11-17 09:52:41');
CREATE TABLE "segments" (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    scope TEXT NOT NULL,
    collection TEXT REFERENCES collection(id) NOT NULL
);
INSERT INTO "segments" VALUES('4ea07fb4-22ab-4073-b3a3-abb7afb3790e','urn:chroma:segment/vector/hnsw-local-persisted','VECTOR','8cd3f503-0fae-4b71-944d-166155757d82');
INSERT INTO "segments" VALUES('f576d550-85f4-4868-b490-628a3da79a53','urn:chroma:segment/metadata/sqlite','METADATA','8cd3f503-0fae-4b71-944d-166155757d82');
