-- By the models of OpenMemory (mem0ai/mem0, openmemory/api/app/models.py); not written by the program itself.
CREATE TABLE memories (id CHAR(32) PRIMARY KEY, user_id CHAR(32), app_id CHAR(32), content VARCHAR NOT NULL,
  vector VARCHAR, metadata JSON, state VARCHAR(8), created_at DATETIME, updated_at DATETIME, archived_at DATETIME,
  deleted_at DATETIME);
CREATE TABLE categories (id CHAR(32) PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE memory_categories (memory_id CHAR(32), category_id CHAR(32), PRIMARY KEY (memory_id, category_id));
INSERT INTO memories VALUES('a1','u','p','Lunch is at noon',NULL,'{}','active','2026-01-02 03:04:05','',NULL,NULL);
INSERT INTO memories VALUES('a2','u','p','Forgotten',NULL,'{}','deleted','2026-01-02 03:04:05','',NULL,'2026-01-03');
INSERT INTO categories VALUES('c1','food');
INSERT INTO memory_categories VALUES('a1','c1');
