"""Brings a database to this version of the schema: the steps of `schema.sql`, and those that an engine adds to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..clock import Clock, to_micros
from ..errors import StoreTooNew
from .database import Database, Session, first

__all__ = ["MIGRATIONS", "SCHEMA_VERSION", "migrate", "read_steps", "refuse_newer"]

_STEP = re.compile(r"^-- step (\d+):.*\n", re.MULTILINE)


def read_steps(path: Path) -> dict[int, tuple[str, ...]]:
    """The statements of each step in a file; a statement ends with a semicolon at the end of a line."""
    _, *parts = _STEP.split(path.read_text("utf-8"))
    steps = {}
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        sql = "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))
        steps[int(number)] = tuple(statement for statement in re.split(r";(?:\n|\Z)", sql) if statement)
    return steps


MIGRATIONS: tuple[tuple[str, ...], ...] = tuple(read_steps(Path(__file__).with_name("schema.sql")).values())
SCHEMA_VERSION = len(MIGRATIONS)


def _version(database: Database, session: Session) -> int:
    if not database.has_table(session, "schema_step"):
        return 0
    row = first(session, "SELECT version FROM schema_step ORDER BY version DESC LIMIT 1")
    return int(row[0]) if row else 0


def refuse_newer(database: Database, session: Session) -> int:
    """The version of the schema; raises an error if it is a later one than this Cortex knows."""
    found = _version(database, session)
    if found > SCHEMA_VERSION:
        raise StoreTooNew(
            f"The store has schema {found}; this Cortex knows {SCHEMA_VERSION}.",
            remedy="Upgrade Cortex, and start its servers again; the store was left as it is.",
        )
    return found


def migrate(
    database: Database,
    clock: Clock,
    engine_steps: tuple[tuple[str, ...], ...],
    *,
    begin: Sequence[str] = (),
    later: frozenset[str] = frozenset(),
) -> None:
    """Migrate the database to this version of the schema, in one transaction.

    `engine_steps` are the statements that the engine adds to each step, such as its text index. It runs `begin` first,
    and the statements in `later` itself, after this, where the store is not new.
    """
    with database.read() as session:
        if _version(database, session) == SCHEMA_VERSION:
            return
    with database.write() as session:
        # Checked again under the lock: another process may have migrated meanwhile.
        found = refuse_newer(database, session)
        for statement in begin:
            session.run(statement)
        if found == 0:
            later = frozenset()
            session.run("CREATE TABLE schema_step (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL)")
        for version in range(found + 1, SCHEMA_VERSION + 1):
            for statement in (*MIGRATIONS[version - 1], *engine_steps[version - 1]):
                if statement not in later:
                    session.run(statement)
            session.run(
                "INSERT INTO schema_step (version, applied_at) VALUES (?, ?)", (version, to_micros(clock.now()))
            )
