-- Written by mem0ai 2.2.1 (infer=False): two memories, one of them updated, and one deleted.
CREATE TABLE history (
                        id           TEXT PRIMARY KEY,
                        memory_id    TEXT,
                        old_memory   TEXT,
                        new_memory   TEXT,
                        event        TEXT,
                        created_at   DATETIME,
                        updated_at   DATETIME,
                        is_deleted   INTEGER,
                        actor_id     TEXT,
                        role         TEXT
                    );
INSERT INTO "history" VALUES('025cf4a1-c626-4fa6-8686-690addfe19f7','c0479162-877a-4dba-be3d-cc32fd608cdc',NULL,'Ada prefers tabs over spaces','ADD','2026-11-17T09:49:33.967568+00:00','2026-11-17T09:49:33.967568+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('d2f261a5-a754-4315-9773-9100bea84383','ec189d84-29a9-4b73-8a59-c7d233157d5e',NULL,'The billing service runs on port 8080','ADD','2026-11-17T09:49:33.999533+00:00','2026-11-17T09:49:33.999533+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('0e587444-6091-4cb6-864d-4832309d9991','ec189d84-29a9-4b73-8a59-c7d233157d5e','The billing service runs on port 8080','The billing service runs on port 9090','UPDATE','2026-11-17T09:49:33.999533+00:00','2026-11-17T09:49:34.029901+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('cc49584d-db10-4f53-8193-412717eb7b9c','30fbaf25-3fb2-41f0-bae8-69e021d5b83b',NULL,'Temporary note','ADD','2026-11-17T09:49:34.063740+00:00','2026-11-17T09:49:34.063740+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('0032e0f1-3917-4d7e-9748-84f1b2f92a1a','30fbaf25-3fb2-41f0-bae8-69e021d5b83b','Temporary note',NULL,'DELETE','2026-11-17T09:49:34.063740+00:00','2026-11-17T09:49:34.099511+00:00',1,NULL,'user');
CREATE TABLE messages (
                        id TEXT PRIMARY KEY,
                        session_scope TEXT,
                        role TEXT,
                        content TEXT,
                        name TEXT,
                        created_at DATETIME
                    );
