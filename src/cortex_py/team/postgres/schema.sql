-- What PostgreSQL adds to the steps of the schema.

-- step 1: the text index; its words are hashes
CREATE TABLE memory_text (num INTEGER PRIMARY KEY, words TEXT[] NOT NULL);
-- Without fastupdate: neither writes nor reads should pay for a list of pending entries.
CREATE INDEX memory_text_words ON memory_text USING gin (words) WITH (fastupdate = off);

-- step 11: the space in every key, so that tables can be distributed by it
ALTER TABLE memory DROP CONSTRAINT memory_pkey;
ALTER TABLE memory ADD PRIMARY KEY (space, num);
-- For the newest number of all spaces; no lookup of a record uses it.
CREATE INDEX memory_num ON memory (num);
ALTER TABLE chunk DROP CONSTRAINT chunk_pkey;
ALTER TABLE chunk ADD PRIMARY KEY (space, num, n);
-- A new table: changing every row would write each entry of the text index twice.
CREATE TABLE memory_text_placed (space TEXT NOT NULL, num BIGINT NOT NULL, words TEXT[] NOT NULL);
INSERT INTO memory_text_placed (space, num, words)
    SELECT m.space, t.num, t.words FROM memory_text t JOIN memory m ON m.num = t.num;
DROP TABLE memory_text;
ALTER TABLE memory_text_placed RENAME TO memory_text;
ALTER TABLE memory_text ADD PRIMARY KEY (space, num);
-- Without fastupdate: neither writes nor reads should pay for a list of pending entries.
CREATE INDEX memory_text_words ON memory_text USING gin (words) WITH (fastupdate = off);
ALTER TABLE recalled RENAME CONSTRAINT recalled_placed_pkey TO recalled_pkey;

-- step 12: vectors in the engine
-- `reached` is the number up to which records were added; `ready` is 1 once the index is complete.
CREATE TABLE near_space (
    space TEXT PRIMARY KEY, part TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL,
    reached INTEGER NOT NULL, ready INTEGER NOT NULL);
-- The neighbours of a record in its line of work.
CREATE INDEX memory_line ON memory (space, branch_id, created_at, num) WHERE branch_id IS NOT NULL;
-- Notices by triggers, which step 17 drops.
CREATE FUNCTION tell_of_changes() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog AS $tell$
    BEGIN PERFORM pg_notify('cortex_changes', TG_TABLE_SCHEMA); RETURN NULL; END $tell$;
CREATE TRIGGER tell_of_changes AFTER UPDATE ON state FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changes();
CREATE TRIGGER tell_of_changes AFTER INSERT OR UPDATE ON saved_change
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changes();

-- step 17: a change sequence for each space
-- Every write changes one row: there is room for its next version beside it.
ALTER TABLE space_change SET (fillfactor = 40);
-- A commit that notifies waits for all others that do; processes notify after their commits instead.
DROP TRIGGER tell_of_changes ON saved_change;
DROP FUNCTION tell_of_changes();
