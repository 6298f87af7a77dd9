"""Changes of the schema while a PostgreSQL store is used: no lock of a large table is held or awaited for long.

The statements of a step are quick by a rule in `tests/store/test_online_schema.py`: a step adds a column or a table,
upkeep fills it, and a later version drops what nobody uses. They run in one transaction, which gives up and tries again
where a table is in use, because all others queue up behind a statement that waits for a table. An index of a table that
may have rows is built afterwards, without a lock; until then queries are slower and right. If that is interrupted, the
next process that opens the store completes it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import psycopg

from ...core.clock import Clock
from ...core.errors import StoreBusy
from ...core.store import migrations
from ...core.store.database import column
from .errors import translate_errors
from .queries import QUERIES

if TYPE_CHECKING:
    from .engine import PostgresDatabase

__all__ = ["later_indexes", "migrate_online"]

logger = logging.getLogger(__name__)

# Released stores have the steps before this one.
_FIRST_LATER = 14
_PATIENCE_SECONDS, _PAUSE_SECONDS = 60.0, 0.2
_BEGIN = ("SET LOCAL lock_timeout = '500ms'",)
# One advisory lock for each schema; writers, leaders and builders of vector indexes have other numbers.
_LOCK = "1129601076, hashtext(coalesce(current_schema(), ''))"
_INDEX = re.compile(r"\s*CREATE INDEX (\w+) ON (\w+)\b")
_TABLE = re.compile(r"\s*CREATE TABLE (\w+)\b")


def later_indexes(steps: Iterable[Iterable[str]]) -> dict[str, str]:
    """Indexes by name, with their statements, that later steps give to tables of an earlier one."""
    found: dict[str, str] = {}
    for number, statements in enumerate(steps, 1):
        new = {table[1] for table in map(_TABLE.match, statements) if table}
        for statement in statements if number >= _FIRST_LATER else ():
            index = _INDEX.match(statement)
            if index and index[2] not in new:
                found[index[1]] = statement
    return found


def migrate_online(database: PostgresDatabase, clock: Clock, engine_steps: tuple[tuple[str, ...], ...]) -> None:
    """Migrate a store to this version of the schema; others may read and write meanwhile."""
    steps = migrations.MIGRATIONS[: migrations.SCHEMA_VERSION]
    together = [(*ours, *own) for ours, own in zip(steps, engine_steps, strict=False)]
    later = later_indexes(together)
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            migrations.migrate(database, clock, engine_steps, begin=_BEGIN, later=frozenset(later.values()))
            break
        except StoreBusy:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE_SECONDS)
    with database.read() as session:
        valid = set(column(session, QUERIES["valid_indexes"]))
    missing = {name: statement for name, statement in later.items() if name not in valid}
    if missing:
        _build(database, missing)


def _build(database: PostgresDatabase, indexes: Mapping[str, str]) -> None:
    """Build indexes while others write, unless another process does."""
    with translate_errors(database.direct.place), database.direct.connection() as connection:
        ((mine,),) = connection.execute(f"SELECT pg_try_advisory_lock({_LOCK})".encode()).fetchall()
        if not mine:
            return
        try:
            for name, statement in indexes.items():
                # One that was left half built.
                connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
                connection.execute(statement.replace("CREATE INDEX", "CREATE INDEX CONCURRENTLY", 1).encode())
        except psycopg.errors.LockNotAvailable:
            logger.warning("indexes wait for an old transaction; the next start completes them: %s", ", ".join(indexes))
        finally:
            connection.execute(f"SELECT pg_advisory_unlock({_LOCK})".encode())
