"""Stores as earlier versions made them, made with today's code."""

from __future__ import annotations

import pytest

from cortex_py.core.store import migrations, sqlite
from cortex_py.core.store.database import Session
from cortex_py.core.store.sqlite import SqliteDatabase
from cortex_py.session import ProjectSessions
from cortex_py.team.postgres import engine as postgres
from cortex_py.team.postgres.engine import PostgresDatabase

# What today's code writes to and a version before the step did not have: how to add it, and how to take it away.
_LATER = {
    14: ("ALTER TABLE memory ADD COLUMN personal TEXT", ["ALTER TABLE memory DROP COLUMN personal"]),
    17: (
        "CREATE TABLE space_change (space TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL)",
        ["UPDATE state SET seq = (SELECT COALESCE(max(seq), 0) FROM space_change)", "DROP TABLE space_change"],
    ),
    18: (
        "CREATE TABLE kept_request (space TEXT NOT NULL, key TEXT NOT NULL, result TEXT NOT NULL, at INTEGER NOT NULL)",
        ["DROP TABLE kept_request"],
    ),
}


def turn_back_indexes(session: Session) -> None:
    """Give an open store of today the indexes that versions before step 20 had."""
    for statement in migrations.MIGRATIONS[19]:
        if statement.startswith("CREATE"):
            session.run(f"DROP INDEX {statement.split()[2]}")
    for statement in migrations.MIGRATIONS[0]:
        if statement.startswith(("CREATE INDEX memory_namespace ", "CREATE INDEX memory_branch ")):
            session.run(statement)


def turn_back_spaces(session: Session) -> None:
    """Give an open store of today one change sequence for all spaces, as versions before step 17 had it."""
    turn_back_indexes(session)
    for table in ("space_change", "kept_request"):
        session.run(f"DROP TABLE IF EXISTS {table}")
    for statement in migrations.MIGRATIONS[0][:2]:
        session.run(statement)
    session.run("UPDATE state SET seq = (SELECT COALESCE(max(seq), 0) FROM memory)")


def use_schema(old: pytest.MonkeyPatch, version: int) -> None:
    """Give stores that are opened from now on the schema of a version; closing takes away what came later."""
    later = [change for step, change in _LATER.items() if step > version]
    *steps, last = migrations.MIGRATIONS[:version]
    old.setattr(migrations, "MIGRATIONS", (*steps, (*last, *(add for add, _ in later))))
    old.setattr(migrations, "SCHEMA_VERSION", version)
    old.setattr(sqlite, "_ENGINE_STEPS", sqlite._ENGINE_STEPS[:version])
    old.setattr(postgres, "POSTGRES_STEPS", postgres.POSTGRES_STEPS[:version])
    old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
    drops = [drop for _, drops in later for drop in drops]
    for engine in (SqliteDatabase, PostgresDatabase):
        _close_without(old, engine, drops)


def _close_without(
    old: pytest.MonkeyPatch, engine: type[SqliteDatabase] | type[PostgresDatabase], drops: list[str]
) -> None:
    close = engine.close

    def forget_and_close(database: SqliteDatabase | PostgresDatabase) -> None:
        with database.write() as session:
            for drop in drops:
                session.run(drop)
        close(database)  # type: ignore[arg-type]

    old.setattr(engine, "close", forget_and_close)
