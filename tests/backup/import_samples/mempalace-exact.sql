-- Written by mempalace 3.11.0 with its backend sqlite_exact; the tables of drawers.
CREATE TABLE collections (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                name TEXT NOT NULL UNIQUE,
                dimension INTEGER,
                created_at TEXT NOT NULL
            );
INSERT INTO "collections" VALUES(1,'mempalace_drawers',4,'2026-11-17T12:53:47.707611+00:00');
CREATE TABLE documents (
                collection_id INTEGER NOT NULL,
                id TEXT NOT NULL,
                document TEXT NOT NULL,
                metadata_json TEXT NOT NULL,
                embedding BLOB NOT NULL,
                dim INTEGER NOT NULL,
                created_at TEXT NOT NULL,
                updated_at TEXT NOT NULL, wing TEXT GENERATED ALWAYS AS (json_extract(metadata_json, '$.wing')) VIRTUAL, room TEXT GENERATED ALWAYS AS (json_extract(metadata_json, '$.room')) VIRTUAL, hall TEXT GENERATED ALWAYS AS (json_extract(metadata_json, '$.hall')) VIRTUAL,
                PRIMARY KEY (collection_id, id),
                FOREIGN KEY(collection_id) REFERENCES collections(id) ON DELETE CASCADE
            );
INSERT INTO "documents" VALUES(1,'drawer_shop_decisions_55326ea7baacbd5609ad5bf9','We deploy from the main branch only','{"added_by":"mcp","chunk_index":0,"filed_at":"2026-11-17T12:53:47.715616","id_recipe":"v3","last_modified":"2026-11-17T12:53:47.715616","room":"decisions","source_file":"notes.md","wing":"shop"}',X'D5595F3FD559DF3E2C27FA3CD5595F3E',4,'2026-11-17T12:53:47.724231+00:00','2026-11-17T12:53:47.724231+00:00');
INSERT INTO "documents" VALUES(1,'drawer_shop_runbooks_a92b0d82e1d784530c801080_chunk_000000','Runbook: Step 1 restarts worker 1 and waits for its queue. Step 2 restarts worker 2 and waits for its queue. Step 3 restarts worker 3 and waits for its queue. Step 4 restarts worker 4 and waits for its queue. Step 5 restarts worker 5 and waits for its queue. Step 6 restarts worker 6 and waits for its queue. Step 7 restarts worker 7 and waits for its queue. Step 8 restarts worker 8 and waits for its queue. Step 9 restarts worker 9 and waits for its queue. Step 10 restarts worker 10 and waits for its queue. Step 11 restarts worker 11 and waits for its queue. Step 12 restarts worker 12 and waits for its queue. Step 13 restarts worker 13 and waits for its queue. Step 14 restarts worker 14 and waits for its queue. Step 15 restarts worker 15 and waits for its queue. Step 16 restarts worker 16 an','{"added_by":"mcp","chunk_index":0,"filed_at":"2026-11-17T12:53:47.732880","id_recipe":"v3","last_modified":"2026-11-17T12:53:47.732880","parent_drawer_id":"drawer_shop_runbooks_a92b0d82e1d784530c801080","room":"runbooks","source_file":"","wing":"shop"}',X'4035373F4035B73E0091123F4035373E',4,'2026-11-17T12:53:47.740079+00:00','2026-11-17T12:53:47.740079+00:00');
INSERT INTO "documents" VALUES(1,'drawer_shop_runbooks_a92b0d82e1d784530c801080_chunk_000001','d waits for its queue. Step 17 restarts worker 17 and waits for its queue.','{"added_by":"mcp","chunk_index":1,"filed_at":"2026-11-17T12:53:47.732880","id_recipe":"v3","last_modified":"2026-11-17T12:53:47.732880","parent_drawer_id":"drawer_shop_runbooks_a92b0d82e1d784530c801080","room":"runbooks","source_file":"","wing":"shop"}',X'8DFD5E3F8DFDDE3EA502843D8DFD5E3E',4,'2026-11-17T12:53:47.740079+00:00','2026-11-17T12:53:47.740079+00:00');
