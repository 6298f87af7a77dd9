"""The schema, as numbered steps that only go forward. A released step is never edited.

The space (a project, a person, an organisation) is part of every key, so that the same statements
run on a sharded database. `num` is the engine's own number of a record: it joins the record, its
chunks and its text-index entry, and never leaves the store.
"""

from __future__ import annotations

from ..clock import Clock, to_micros
from ..errors import StoreTooNew
from .access import ACCESS_STEP
from .consolidations import CONSOLIDATION_STEP
from .database import Database, Session
from .graph_schema import GRAPH_STEP
from .placement import PLACEMENT_STEP
from .replicas import REPLICA_STEP
from .saved import SAVED_STEP
from .suggestions import SUGGESTION_STEP
from .tenants import TENANCY_STEP
from .verifications import VERIFICATION_STEP

__all__ = ["MIGRATIONS", "SCHEMA_VERSION", "migrate"]

_FIRST = (
    "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL)",
    "INSERT INTO state (one, seq) VALUES (1, 0)",
    "CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE project (
        id TEXT PRIMARY KEY, root TEXT, remote TEXT, name TEXT NOT NULL, root_commit TEXT,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL)""",
    """CREATE TABLE branch (
        project_id TEXT NOT NULL, id TEXT NOT NULL, topic TEXT NOT NULL, parent_id TEXT, git_branch TEXT,
        status TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        PRIMARY KEY (project_id, id))""",
    "CREATE INDEX branch_git ON branch (project_id, git_branch)",
    """CREATE TABLE memory (
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
        UNIQUE (space, id))""",
    "CREATE INDEX memory_seq ON memory (space, seq)",
    "CREATE INDEX memory_id ON memory (id)",
    "CREATE INDEX memory_time ON memory (space, status, created_at)",
    "CREATE INDEX memory_namespace ON memory (space, namespace, status)",
    "CREATE INDEX memory_digest ON memory (space, digest)",
    "CREATE INDEX memory_branch ON memory (space, branch_id)",
    "CREATE INDEX memory_git ON memory (space, git_branch)",
    "CREATE INDEX memory_path ON memory (space, path)",
    "CREATE UNIQUE INDEX memory_key ON memory (space, idempotency_key) WHERE idempotency_key IS NOT NULL",
    """CREATE TABLE tag (
        space TEXT NOT NULL, tag TEXT NOT NULL, num INTEGER NOT NULL, PRIMARY KEY (space, tag, num))""",
    "CREATE INDEX tag_num ON tag (num)",
    """CREATE TABLE chunk (
        num INTEGER NOT NULL, n INTEGER NOT NULL, space TEXT NOT NULL,
        first INTEGER NOT NULL, past INTEGER NOT NULL, by_assistant INTEGER NOT NULL,
        terms BLOB NOT NULL, vector BLOB,
        PRIMARY KEY (num, n))""",
    """CREATE TABLE history (
        space TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, recorded_at INTEGER NOT NULL,
        operation TEXT NOT NULL, namespace TEXT NOT NULL, tags TEXT NOT NULL, source TEXT, content TEXT NOT NULL,
        PRIMARY KEY (space, id, version))""",
    """CREATE TABLE purged (
        space TEXT NOT NULL, num INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (space, seq, num))""",
)

_SECOND = (
    # A part of a file that was scanned, and where it stands there.
    "ALTER TABLE memory ADD COLUMN kind TEXT NOT NULL DEFAULT 'note'",
    "ALTER TABLE memory ADD COLUMN symbol TEXT",
    "ALTER TABLE memory ADD COLUMN first_line INTEGER",
    "ALTER TABLE memory ADD COLUMN last_line INTEGER",
    "ALTER TABLE memory ADD COLUMN confinement TEXT",
    # A packed record has its content here, and an empty one in `content`. The number is that of the dictionary: 0 for
    # none, and -1, without anything packed, where it was tried and did not pay.
    "ALTER TABLE memory ADD COLUMN packed BLOB",
    "ALTER TABLE memory ADD COLUMN packed_with INTEGER",
    "CREATE INDEX memory_idle ON memory (updated_at) WHERE packed IS NULL AND packed_with IS NULL",
    "CREATE INDEX memory_confined ON memory (space, git_branch) WHERE confinement IS NOT NULL",
    """CREATE TABLE dictionary (
        space TEXT NOT NULL, num INTEGER NOT NULL, data BLOB NOT NULL, created_at INTEGER NOT NULL,
        PRIMARY KEY (space, num))""",
    """CREATE TABLE scanned_file (
        project_id TEXT NOT NULL, path TEXT NOT NULL, blob TEXT NOT NULL, parts INTEGER NOT NULL,
        whole INTEGER NOT NULL, scanned_at INTEGER NOT NULL, PRIMARY KEY (project_id, path))""",
    """CREATE TABLE symbol (
        project_id TEXT NOT NULL, path TEXT NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, qualified TEXT NOT NULL,
        kind TEXT NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL, PRIMARY KEY (project_id, path, n))""",
    "CREATE INDEX symbol_name ON symbol (project_id, name)",
    """CREATE TABLE import (
        project_id TEXT NOT NULL, path TEXT NOT NULL, n INTEGER NOT NULL, module TEXT NOT NULL, names TEXT NOT NULL,
        line INTEGER NOT NULL, PRIMARY KEY (project_id, path, n))""",
    "CREATE INDEX import_module ON import (project_id, module)",
    # The summariser's state, up to the change `summary_seq`.
    "ALTER TABLE branch ADD COLUMN summary TEXT",
    "ALTER TABLE branch ADD COLUMN summary_seq INTEGER NOT NULL DEFAULT 0",
    # The last commit seen on a git branch that has confined records: it tells what became of a deleted one.
    """CREATE TABLE git_tip (
        project_id TEXT NOT NULL, git_branch TEXT NOT NULL, tip TEXT NOT NULL, seen_at INTEGER NOT NULL,
        PRIMARY KEY (project_id, git_branch))""",
)

_THIRD = (
    *GRAPH_STEP,
    # Which records were read for the graph: those stored before it came are caught up with.
    "ALTER TABLE memory ADD COLUMN graphed INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX memory_ungraphed ON memory (num) WHERE graphed = 0 AND kind = 'note'",
    "CREATE INDEX scanned_at ON scanned_file (project_id, scanned_at)",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _FIRST,
    _SECOND,
    _THIRD,
    SAVED_STEP,
    CONSOLIDATION_STEP,
    VERIFICATION_STEP,
    SUGGESTION_STEP,
    REPLICA_STEP,
    ACCESS_STEP,
    TENANCY_STEP,
    PLACEMENT_STEP,
    # Only for engines that need more than this: vectors in the engine, and row-level security.
    (),
    (),
)
SCHEMA_VERSION = len(MIGRATIONS)


def _version(database: Database, session: Session) -> int:
    if not database.has_table(session, "schema_step"):
        return 0
    rows = session.rows("SELECT version FROM schema_step ORDER BY version DESC LIMIT 1")
    return int(rows[0][0]) if rows else 0


def migrate(database: Database, clock: Clock, engine_steps: tuple[tuple[str, ...], ...]) -> None:
    """Bring the database to this version of the schema, in one transaction.

    `engine_steps` are what the engine adds at each step, such as its text index.
    """
    with database.read() as session:
        if _version(database, session) == SCHEMA_VERSION:
            return
    with database.write() as session:
        # Looked up again: another process may have been quicker to the lock.
        found = _version(database, session)
        if found > SCHEMA_VERSION:
            raise StoreTooNew(
                f"The store has schema {found}; this Cortex knows {SCHEMA_VERSION}.",
                remedy="Upgrade Cortex; the store was left as it is.",
            )
        if found == 0:
            session.run("CREATE TABLE schema_step (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)")
        for version in range(found + 1, SCHEMA_VERSION + 1):
            for statement in (*MIGRATIONS[version - 1], *engine_steps[version - 1]):
                session.run(statement)
            session.run(
                "INSERT INTO schema_step (version, applied_at) VALUES (?, ?)",
                (version, to_micros(clock.now())),
            )
