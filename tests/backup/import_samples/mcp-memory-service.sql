-- Written by mcp-memory-service 12.2.0 with its backend sqlite_vec; tables without indexes of vectors and words.
CREATE TABLE metadata (
                key TEXT PRIMARY KEY,
                value TEXT NOT NULL
            );
INSERT INTO metadata VALUES('distance_metric','cosine');
INSERT INTO metadata VALUES('fts5_enabled','true');
INSERT INTO metadata VALUES('schema_version','19');
INSERT INTO metadata VALUES('sync_hlc_physical','0');
INSERT INTO metadata VALUES('sync_hlc_logical','0');
CREATE TABLE memories (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        content_hash TEXT UNIQUE NOT NULL,
                        content TEXT NOT NULL,
                        tags TEXT,
                        memory_type TEXT,
                        metadata TEXT,
                        created_at REAL,
                        updated_at REAL,
                        created_at_iso TEXT,
                        updated_at_iso TEXT,
                        deleted_at REAL DEFAULT NULL
                    , store TEXT DEFAULT 'default', parent_id TEXT, version INTEGER DEFAULT 1, confidence REAL DEFAULT 1.0, last_accessed INTEGER, superseded_by TEXT, embedding_pending INTEGER NOT NULL DEFAULT 0);
INSERT INTO memories VALUES(1,'65119a6c8426bc3e60485b11be768e56f746559f174cb46ab4ac6246729fbf2e','We chose SQLite because one machine is enough','decision,database','decision','{"source": "cli"}',1.79490906317294430733e+09,1.79490906317294430733e+09,'2026-11-17T09:51:03.172944Z','2026-11-17T09:51:03.172944Z',NULL,'default',NULL,1,1.0,NULL,NULL,0);
INSERT INTO memories VALUES(2,'8b9cf08ee334ca3ab473d0e077d5cccf18df79634fa0f67a28dde35ed6565af9','The CI needs Node 22','ci','note','{"source": "cli"}',1.79490906319705605508e+09,1.79490906319705605508e+09,'2026-11-17T09:51:03.197056Z','2026-11-17T09:51:03.197056Z',NULL,'default',NULL,1,1.0,NULL,NULL,0);
INSERT INTO memories VALUES(3,'7f74542e71444e1aa2353c53fa799709bef0c7f97cfe5a28ab3660cbddc6e6b8','To be deleted','untagged','note','{"source": "cli"}',1.79490906319833421703e+09,1.79490906319833421703e+09,'2026-11-17T09:51:03.198334Z','2026-11-17T09:51:03.198334Z',1.79490906319951534276e+09,'default',NULL,1,1.0,NULL,NULL,0);
CREATE TABLE memory_graph (
    source_hash TEXT NOT NULL,
    target_hash TEXT NOT NULL,
    similarity REAL NOT NULL,
    connection_types TEXT NOT NULL,  -- JSON array: ["semantic", "temporal", "causal", "thematic"]
    metadata TEXT,                   -- JSON object: {discovery_date, confidence, context}
    created_at REAL NOT NULL, relationship_type TEXT DEFAULT 'related',
    PRIMARY KEY (source_hash, target_hash)
);
CREATE TABLE beliefs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    belief_hash TEXT UNIQUE NOT NULL,
    content TEXT NOT NULL,
    confidence REAL NOT NULL DEFAULT 0.5,
    status TEXT NOT NULL DEFAULT 'candidate',  -- candidate, active, disputed, superseded
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    derived_from TEXT NOT NULL DEFAULT '[]',  -- JSON array of observation content_hashes (provenance)
    contradicted_by TEXT NOT NULL DEFAULT '[]',  -- JSON array of observation content_hashes
    metadata TEXT DEFAULT '{}'
);
