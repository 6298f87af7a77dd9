"""Stores as earlier versions made them, made with today's code."""

from __future__ import annotations

import pytest

from cortex_py.context.session import ProjectSessions
from cortex_py.store import migrations, sqlite
from cortex_py.store.postgres import engine as postgres
from cortex_py.store.postgres.engine import PostgresDatabase
from cortex_py.store.sqlite import SqliteDatabase

# What today's code writes into a table that an earlier version had without it.
_LATER_COLUMN = "memory ADD COLUMN personal TEXT", "memory DROP COLUMN personal"


def use_schema(old: pytest.MonkeyPatch, version: int) -> None:
    """Give stores that are opened from now on the schema of a version; closing takes away what came later."""
    add, drop = (f"ALTER TABLE {change}" for change in _LATER_COLUMN)
    *steps, last = migrations.MIGRATIONS[:version]
    old.setattr(migrations, "MIGRATIONS", (*steps, (*last, add)))
    old.setattr(migrations, "SCHEMA_VERSION", version)
    old.setattr(sqlite, "_ENGINE_STEPS", sqlite._ENGINE_STEPS[:version])
    old.setattr(postgres, "POSTGRES_STEPS", postgres.POSTGRES_STEPS[:version])
    old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
    for engine in (SqliteDatabase, PostgresDatabase):
        _close_without(old, engine, drop)


def _close_without(old: pytest.MonkeyPatch, engine: type[SqliteDatabase] | type[PostgresDatabase], drop: str) -> None:
    close = engine.close

    def forget_and_close(database: SqliteDatabase | PostgresDatabase) -> None:
        with database.write() as session:
            session.run(drop)
        close(database)  # type: ignore[arg-type]

    old.setattr(engine, "close", forget_and_close)
