-- Written by mempalace 3.11.0.
CREATE TABLE entities (
                id TEXT PRIMARY KEY,
                name TEXT NOT NULL,
                type TEXT DEFAULT 'unknown',
                properties TEXT DEFAULT '{}',
                created_at TEXT DEFAULT CURRENT_TIMESTAMP
            );
INSERT INTO "entities" VALUES('grace','Grace','unknown','{}','2026-11-17 09:52:41');
INSERT INTO "entities" VALUES('billing_service','billing service','unknown','{}','2026-11-17 09:52:41');
CREATE TABLE triples (
                id TEXT PRIMARY KEY,
                subject TEXT NOT NULL,
                predicate TEXT NOT NULL,
                object TEXT NOT NULL,
                valid_from TEXT,
                valid_to TEXT,
                confidence REAL DEFAULT 1.0,
                source_closet TEXT,
                source_file TEXT,
                source_drawer_id TEXT,
                adapter_name TEXT,
                extracted_at TEXT DEFAULT CURRENT_TIMESTAMP,
                FOREIGN KEY (subject) REFERENCES entities(id),
                FOREIGN KEY (object) REFERENCES entities(id)
            );
INSERT INTO "triples" VALUES('t_grace_owns_billing_service_f33fca11bbf0','grace','owns','billing_service','2026-01-01',NULL,1.0,NULL,NULL,NULL,NULL,'2026-11-17 09:52:41');
