-- The schema, as numbered steps that only go forward. A released step is never edited.
--
-- The space (a project, a person, an organisation) is part of every key, so that the same statements run on a sharded
-- database. `num` is the engine's own number of a record: it joins the record, its chunks and its text-index entry, and
-- never leaves the store. A statement ends with a semicolon at the end of a line.

-- step 1: records, their index and their history
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL);
INSERT INTO state (one, seq) VALUES (1, 0);
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE project (
    id TEXT PRIMARY KEY, root TEXT, remote TEXT, name TEXT NOT NULL, root_commit TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE branch (
    project_id TEXT NOT NULL, id TEXT NOT NULL, topic TEXT NOT NULL, parent_id TEXT, git_branch TEXT,
    status TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, id));
CREATE INDEX branch_git ON branch (project_id, git_branch);
CREATE TABLE memory (
    num INTEGER PRIMARY KEY,
    space TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL,
    domain TEXT NOT NULL, project_id TEXT, branch_id TEXT, namespace TEXT NOT NULL,
    category TEXT, role TEXT, status TEXT NOT NULL, version INTEGER NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, accessed_at INTEGER,
    expires_at INTEGER, tombstoned_at INTEGER, prior_status TEXT,
    git_branch TEXT, user_id TEXT, agent_id TEXT, source TEXT, path TEXT,
    superseded_by TEXT, grounding REAL, duplicate_of TEXT, redactions TEXT NOT NULL,
    idempotency_key TEXT, digest BLOB NOT NULL,
    length INTEGER NOT NULL, flags INTEGER NOT NULL, author INTEGER NOT NULL,
    tags TEXT NOT NULL, summary TEXT, content TEXT NOT NULL,
    UNIQUE (space, id));
CREATE INDEX memory_seq ON memory (space, seq);
CREATE INDEX memory_id ON memory (id);
CREATE INDEX memory_time ON memory (space, status, created_at);
CREATE INDEX memory_namespace ON memory (space, namespace, status);
CREATE INDEX memory_digest ON memory (space, digest);
CREATE INDEX memory_branch ON memory (space, branch_id);
CREATE INDEX memory_git ON memory (space, git_branch);
CREATE INDEX memory_path ON memory (space, path);
CREATE UNIQUE INDEX memory_key ON memory (space, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE tag (
    space TEXT NOT NULL, tag TEXT NOT NULL, num INTEGER NOT NULL, PRIMARY KEY (space, tag, num));
CREATE INDEX tag_num ON tag (num);
CREATE TABLE chunk (
    num INTEGER NOT NULL, n INTEGER NOT NULL, space TEXT NOT NULL,
    first INTEGER NOT NULL, past INTEGER NOT NULL, by_assistant INTEGER NOT NULL,
    terms BLOB NOT NULL, vector BLOB,
    PRIMARY KEY (num, n));
CREATE TABLE history (
    space TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
    operation TEXT NOT NULL, namespace TEXT NOT NULL, tags TEXT NOT NULL, source TEXT, content TEXT NOT NULL,
    PRIMARY KEY (space, id, version));
CREATE TABLE purged (
    space TEXT NOT NULL, num INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (space, seq, num));

-- step 2: files, compression and git branches
-- The position of a record that was scanned from a file.
ALTER TABLE memory ADD COLUMN kind TEXT NOT NULL DEFAULT 'note';
ALTER TABLE memory ADD COLUMN symbol TEXT;
ALTER TABLE memory ADD COLUMN first_line INTEGER;
ALTER TABLE memory ADD COLUMN last_line INTEGER;
ALTER TABLE memory ADD COLUMN confinement TEXT;
-- The content of a packed record; `content` is empty then. `packed_with` is the number of the dictionary, 0 for
-- none, or -1 where packing was tried and did not pay off.
ALTER TABLE memory ADD COLUMN packed BLOB;
ALTER TABLE memory ADD COLUMN packed_with INTEGER;
CREATE INDEX memory_idle ON memory (updated_at) WHERE packed IS NULL AND packed_with IS NULL;
CREATE INDEX memory_confined ON memory (space, git_branch) WHERE confinement IS NOT NULL;
CREATE TABLE dictionary (
    space TEXT NOT NULL, num INTEGER NOT NULL, data BLOB NOT NULL, created_at INTEGER NOT NULL,
    PRIMARY KEY (space, num));
CREATE TABLE scanned_file (
    project_id TEXT NOT NULL, path TEXT NOT NULL, blob TEXT NOT NULL, parts INTEGER NOT NULL,
    whole INTEGER NOT NULL, scanned_at INTEGER NOT NULL, PRIMARY KEY (project_id, path));
CREATE TABLE symbol (
    project_id TEXT NOT NULL, path TEXT NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, qualified TEXT NOT NULL,
    kind TEXT NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL, PRIMARY KEY (project_id, path, n));
CREATE INDEX symbol_name ON symbol (project_id, name);
CREATE TABLE import (
    project_id TEXT NOT NULL, path TEXT NOT NULL, n INTEGER NOT NULL, module TEXT NOT NULL, names TEXT NOT NULL,
    line INTEGER NOT NULL, PRIMARY KEY (project_id, path, n));
CREATE INDEX import_module ON import (project_id, module);
-- The summariser's state, up to the change `summary_seq`.
ALTER TABLE branch ADD COLUMN summary TEXT;
ALTER TABLE branch ADD COLUMN summary_seq INTEGER NOT NULL DEFAULT 0;
-- The last commit seen on a git branch with confined records: decides whether a deleted branch was merged.
CREATE TABLE git_tip (
    project_id TEXT NOT NULL, git_branch TEXT NOT NULL, tip TEXT NOT NULL, seen_at INTEGER NOT NULL,
    PRIMARY KEY (project_id, git_branch));

-- step 3: the knowledge graph
-- `folded` is the case-folded name, for listing by prefix; `key` is the canonical spelling; `given` is 1 for an
-- entity that a user created, and 0 for one that exists only because memories mention it.
CREATE TABLE entity (
    space TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL, type TEXT NOT NULL,
    key TEXT NOT NULL, properties TEXT NOT NULL, given INTEGER NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, PRIMARY KEY (space, id));
CREATE INDEX entity_name ON entity (space, folded, id);
CREATE INDEX entity_type ON entity (space, type, folded, id);
CREATE INDEX entity_key ON entity (space, key);
CREATE TABLE entity_alias (
    space TEXT NOT NULL, entity_id TEXT NOT NULL, alias TEXT NOT NULL, key TEXT NOT NULL,
    PRIMARY KEY (space, entity_id, alias));
CREATE INDEX entity_alias_key ON entity_alias (space, key);
CREATE TABLE mention (
    space TEXT NOT NULL, entity_id TEXT NOT NULL, num INTEGER NOT NULL, first INTEGER NOT NULL,
    past INTEGER NOT NULL, confidence REAL NOT NULL, method TEXT NOT NULL,
    PRIMARY KEY (space, entity_id, num, first));
CREATE INDEX mention_num ON mention (num);
CREATE TABLE relationship (
    space TEXT NOT NULL, id TEXT NOT NULL, source_id TEXT NOT NULL, target_id TEXT NOT NULL, type TEXT NOT NULL,
    confidence REAL NOT NULL, method TEXT NOT NULL, evidence TEXT NOT NULL, properties TEXT NOT NULL,
    valid_from INTEGER, valid_to INTEGER, recorded_at INTEGER NOT NULL, ended_at INTEGER, num INTEGER,
    PRIMARY KEY (space, id));
-- In the order in which the surest edges of a hub are read.
CREATE INDEX relationship_source ON relationship (space, source_id, confidence, id);
CREATE INDEX relationship_target ON relationship (space, target_id, confidence, id);
CREATE INDEX relationship_pair ON relationship (space, source_id, target_id);
CREATE INDEX relationship_num ON relationship (num) WHERE num IS NOT NULL;
-- What a merge changed, one row per item. `num` lets a purge remove it.
CREATE TABLE entity_history (
    space TEXT NOT NULL, merge_id TEXT NOT NULL, n INTEGER NOT NULL, into_id TEXT NOT NULL, kind TEXT NOT NULL,
    num INTEGER, data TEXT NOT NULL, recorded_at INTEGER NOT NULL,
    PRIMARY KEY (space, merge_id, n));
CREATE INDEX entity_history_into ON entity_history (space, into_id);
CREATE INDEX entity_history_num ON entity_history (num) WHERE num IS NOT NULL;
-- 0 for records that were not read for the graph yet.
ALTER TABLE memory ADD COLUMN graphed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memory_ungraphed ON memory (num) WHERE graphed = 0 AND kind = 'note';
CREATE INDEX scanned_at ON scanned_file (project_id, scanned_at);

-- step 4: prompts and templates
-- What lists show. Contents are stored with the versions, so that a list reads little.
CREATE TABLE saved (
    space TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, domain TEXT NOT NULL, version INTEGER NOT NULL,
    description TEXT, tags TEXT NOT NULL, variables TEXT NOT NULL, redactions TEXT NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (space, kind, name));
CREATE TABLE saved_version (
    space TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
    description TEXT, tags TEXT NOT NULL, variables TEXT NOT NULL, redactions TEXT NOT NULL,
    saved_at INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (space, kind, name, version));
CREATE TABLE saved_tag (
    space TEXT NOT NULL, kind TEXT NOT NULL, tag TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (space, kind, tag, name));
-- Apart from the text: uses of texts in files count too, and a use is not a change.
CREATE TABLE saved_use (
    space TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, uses INTEGER NOT NULL, used_at INTEGER NOT NULL,
    PRIMARY KEY (space, kind, name));
-- Grows with every change, so that other processes notice it.
CREATE TABLE saved_change (
    space TEXT NOT NULL, kind TEXT NOT NULL, changes INTEGER NOT NULL, PRIMARY KEY (space, kind));

-- step 5: consolidations and use
CREATE TABLE consolidation (
    space TEXT NOT NULL, id TEXT NOT NULL, result_id TEXT NOT NULL, strategy TEXT NOT NULL, method TEXT NOT NULL,
    created_at INTEGER NOT NULL, undone_at INTEGER, PRIMARY KEY (space, id));
CREATE INDEX consolidation_result ON consolidation (space, result_id);
CREATE TABLE consolidation_part (
    space TEXT NOT NULL, consolidation_id TEXT NOT NULL, n INTEGER NOT NULL, memory_id TEXT NOT NULL,
    prior_status TEXT NOT NULL, PRIMARY KEY (space, consolidation_id, n));
CREATE INDEX memory_superseded ON memory (space, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE TABLE llm_use (
    day TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (day, model));
-- Beside the records, so that a recall does not change any.
CREATE TABLE recalled (
    memory_id TEXT PRIMARY KEY, recalls INTEGER NOT NULL, recalled_at INTEGER NOT NULL);

-- step 6: verifications
CREATE TABLE verification (
    space TEXT NOT NULL, memory_id TEXT NOT NULL, checked_at INTEGER NOT NULL, result TEXT NOT NULL,
    PRIMARY KEY (space, memory_id));
CREATE INDEX memory_grounding ON memory (space, grounding) WHERE grounding IS NOT NULL;

-- step 7: suggestions
CREATE TABLE reference (
    project_id TEXT NOT NULL, n INTEGER NOT NULL, memory_id TEXT NOT NULL, kind TEXT NOT NULL, branch_id TEXT,
    task TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (project_id, n));
CREATE INDEX reference_branch ON reference (project_id, branch_id, n);
CREATE INDEX reference_memory ON reference (project_id, memory_id);
CREATE INDEX reference_kind ON reference (project_id, kind, n);
-- How much a record was used, and how much together with another. A pair has its ids in order.
CREATE TABLE referred (
    project_id TEXT NOT NULL, memory_id TEXT NOT NULL, strength REAL NOT NULL, times INTEGER NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (project_id, memory_id));
CREATE TABLE referred_together (
    project_id TEXT NOT NULL, memory_id TEXT NOT NULL, other_id TEXT NOT NULL, strength REAL NOT NULL,
    times INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (project_id, memory_id, other_id));
CREATE INDEX referred_strongest ON referred_together (project_id, memory_id, strength);
CREATE INDEX referred_other ON referred_together (project_id, other_id, strength);
CREATE TABLE suggestion_session (
    project_id TEXT NOT NULL, id TEXT NOT NULL, task TEXT NOT NULL, branch_id TEXT, created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, state TEXT NOT NULL, answered_at INTEGER, reason TEXT NOT NULL, share REAL,
    PRIMARY KEY (project_id, id));
CREATE INDEX suggestion_pending ON suggestion_session (project_id, state, created_at);
-- Without the reason that was shown: it quotes other records, which may be purged.
CREATE TABLE suggestion (
    project_id TEXT NOT NULL, session_id TEXT NOT NULL, n INTEGER NOT NULL, memory_id TEXT NOT NULL,
    source TEXT NOT NULL, raw REAL NOT NULL, confidence REAL NOT NULL, accepted INTEGER,
    PRIMARY KEY (project_id, session_id, n));
CREATE INDEX suggestion_memory ON suggestion (project_id, memory_id);
-- What was learned: how often something of a kind was accepted or refused, both fading.
CREATE TABLE trust (
    project_id TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, accepted REAL NOT NULL, refused REAL NOT NULL,
    at INTEGER NOT NULL, PRIMARY KEY (project_id, kind, key));

-- step 8: sync
CREATE TABLE sync_entry (
    space TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, versions TEXT NOT NULL,
    stamp INTEGER NOT NULL, latest INTEGER NOT NULL, digest TEXT, pack TEXT NOT NULL, maker TEXT NOT NULL,
    PRIMARY KEY (space, target, kind, key));
CREATE TABLE sync_fact (
    space TEXT NOT NULL, target TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (space, target, key));
CREATE TABLE sync_day (
    day TEXT NOT NULL, direction TEXT NOT NULL, calls INTEGER NOT NULL, PRIMARY KEY (day, direction));

-- step 9: tokens and the audit log
CREATE TABLE api_token (
    id TEXT PRIMARY KEY, digest TEXT NOT NULL, user_id TEXT NOT NULL, agent_id TEXT, scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER);
CREATE UNIQUE INDEX api_token_digest ON api_token (digest);
CREATE TABLE audit_event (n INTEGER PRIMARY KEY, event TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE audit_head (
    one INTEGER PRIMARY KEY CHECK (one = 1), events INTEGER NOT NULL, hash TEXT NOT NULL, seal TEXT NOT NULL);
INSERT INTO audit_head (one, events, hash, seal) VALUES (1, 0, '', '');

-- step 10: organisations
CREATE TABLE organisation (name TEXT PRIMARY KEY, created_at INTEGER NOT NULL);
CREATE TABLE org_member (
    org TEXT NOT NULL, user_id TEXT NOT NULL, level TEXT NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (org, user_id));
CREATE TABLE org_group (
    org TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (org, name));
CREATE TABLE group_member (
    org TEXT NOT NULL, group_name TEXT NOT NULL, user_id TEXT NOT NULL, PRIMARY KEY (org, group_name, user_id));
CREATE INDEX group_member_user ON group_member (org, user_id);
-- A project without a row belongs to the organisation of the settings.
CREATE TABLE project_org (project_id TEXT PRIMARY KEY, org TEXT NOT NULL, restricted INTEGER NOT NULL);
CREATE TABLE project_grant (
    project_id TEXT NOT NULL, kind TEXT NOT NULL, grantee TEXT NOT NULL, level TEXT NOT NULL,
    PRIMARY KEY (project_id, kind, grantee));
CREATE INDEX project_grant_to ON project_grant (kind, grantee);
-- Grows with every change to the tables above; what is derived from them is valid while it stays the same.
CREATE TABLE tenancy (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL);
INSERT INTO tenancy (one, revision) VALUES (1, 0);
ALTER TABLE api_token ADD COLUMN org TEXT;
ALTER TABLE api_token ADD COLUMN project_id TEXT;

-- step 11: the space in every key
CREATE TABLE recalled_placed (
    space TEXT NOT NULL, memory_id TEXT NOT NULL, recalls INTEGER NOT NULL, recalled_at INTEGER NOT NULL,
    PRIMARY KEY (space, memory_id));
INSERT INTO recalled_placed (space, memory_id, recalls, recalled_at)
    SELECT m.space, r.memory_id, r.recalls, r.recalled_at FROM recalled r JOIN memory m ON m.id = r.memory_id;
DROP TABLE recalled;
ALTER TABLE recalled_placed RENAME TO recalled;

-- step 12: of PostgreSQL only: vectors in the engine

-- step 13: of PostgreSQL only: row-level security

-- step 14: personal data
-- A JSON list of kinds of personal data with their counts; NULL if the record was not checked yet.
ALTER TABLE memory ADD COLUMN personal TEXT;
CREATE INDEX memory_unlooked ON memory (num) WHERE personal IS NULL;

-- step 15: filters by who wrote a record
CREATE INDEX memory_user ON memory (space, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX memory_agent ON memory (space, agent_id) WHERE agent_id IS NOT NULL;

-- step 16: notes that are read for the graph after they were acknowledged
-- `graphed` is 2 from the capture until then; 0 if a note is to be read at leisure, 1 if it was read.
CREATE INDEX memory_pending ON memory (num) WHERE graphed = 2;

-- step 17: a change sequence for each space
-- Beside the rows of its space: writers of different spaces do not wait for each other. Each goes on from the one of the
-- whole store, so that what was derived up to a change stays right.
CREATE TABLE space_change (space TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL);
INSERT INTO space_change (space, seq) SELECT f.space, s.seq FROM (
    SELECT space FROM memory UNION SELECT space FROM purged UNION SELECT project_id FROM branch) f CROSS JOIN state s;
-- A process of an earlier version fails without it; with it, it would miss the changes of others.
DROP TABLE state;

-- step 18: requests that may be repeated
-- `result` is what a request has stored: the id of a memory, or the version of a saved text.
CREATE TABLE kept_request (
    space TEXT NOT NULL, key TEXT NOT NULL, result TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (space, key));
CREATE INDEX kept_request_at ON kept_request (space, at);
CREATE INDEX kept_request_result ON kept_request (space, result);

-- step 19: of PostgreSQL only: policies that distributed tables can have

-- step 20: lists of a namespace by time, what changed in a line of work, where records are from, and which expire
-- With the columns that say whether a record is visible, and those that are counted: counts read no records.
CREATE INDEX memory_filed ON memory (
    space, namespace, status, created_at, expires_at, confinement, git_branch, user_id, agent_id, project_id);
DROP INDEX memory_namespace;
CREATE INDEX memory_of_line ON memory (space, branch_id, seq) WHERE branch_id IS NOT NULL;
DROP INDEX memory_branch;
CREATE INDEX memory_source ON memory (space, source) WHERE source IS NOT NULL;
CREATE INDEX memory_expiring ON memory (space, expires_at) WHERE expires_at IS NOT NULL;
