"""A PostgreSQL store spread over the workers of a Citus cluster, by the space of each row.

All rows of a space are on one worker. Tables without a space stay on the coordinator, where clients connect: if each
worker had a copy, a single one that is down would stop all writes. Nothing joins the two kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import ConfigurationError, Conflict
from ...core.store.database import DISTRIBUTED, Session, column
from .queries import QUERIES
from .security import find_role

if TYPE_CHECKING:
    from .engine import PostgresDatabase

__all__ = [
    "DEFAULT_SHARDS", "Distribution", "complete", "distribute", "distributed_tables", "size_on_workers",
    "spaces_by_worker",
]  # fmt: skip

# Shards are what moves between workers, so that there are more of them than there will ever be workers.
DEFAULT_SHARDS = 32
# Vectors of large spaces are in partitions, which cannot be distributed with the rest.
_WITHOUT_PARTITIONS = (
    "DROP TRIGGER IF EXISTS forget_vectors ON chunk",
    "DROP TABLE IF EXISTS near",
    "DELETE FROM near_space",
)


@dataclass(frozen=True, slots=True)
class Distribution:
    """`tables` are those that were distributed just now; none if all were before."""

    workers: tuple[str, ...]
    tables: tuple[str, ...]


def distributed_tables(session: Session) -> set[str]:
    """The tables of this store that are on workers."""
    return set(column(session, QUERIES["distributed_tables"])) if session.rows(QUERIES["citus"])[0][0] else set()


def size_on_workers(session: Session) -> int:
    """Bytes of all distributed tables with their indexes."""
    return sum(map(int, column(session, QUERIES["size_on_workers"])))


def spaces_by_worker(session: Session) -> dict[str, int]:
    """How many spaces each worker has."""
    return dict(session.rows(QUERIES["spaces_by_worker"]))


def distribute(database: PostgresDatabase, shards: int = DEFAULT_SHARDS) -> Distribution:
    """Distribute the tables with all their rows, in one transaction; those that are distributed already stay."""
    if not 1 <= shards <= 1_024:
        raise ConfigurationError(
            "There can be 1 to 1024 shards.", remedy="Give a number in this range.", field="shards"
        )
    with database.read() as session:
        workers = _workers(session)
        if session.rows(QUERIES["other_processes"], (f"{{{','.join(map(str, database.pool.pids()))}}}",))[0][0]:
            raise Conflict(
                "Other processes of Cortex use the database.",
                remedy="Stop all servers and commands, and run this again.",
            )
    with database.writing_as(None) as session:
        tables = complete(session, shards)
    database.on_workers()
    return Distribution(workers, tables)


def complete(session: Session, shards: int = DEFAULT_SHARDS) -> tuple[str, ...]:
    """Distribute the tables that are not yet, such as those of a newer schema; their names."""
    spread = distributed_tables(session)
    missing = {table: key for table, key in DISTRIBUTED.items() if table not in spread}
    if not missing:
        return ()
    # A copy of all rows may have to wait longer than a statement of a call.
    session.run("SET LOCAL lock_timeout = '10min'")
    session.run(f"SET LOCAL citus.shard_count = {shards}")
    if not spread:
        for statement in _WITHOUT_PARTITIONS:
            session.run(statement)
    _make_role_on_workers(session)
    for table, key in missing.items():
        beside = "memory" if table != "memory" else "none"
        session.rows("SELECT create_distributed_table(?, ?, colocate_with => ?)", (f'"{table}"', key, beside))
    return tuple(missing)


def _workers(session: Session) -> tuple[str, ...]:
    if not session.rows(QUERIES["citus"])[0][0]:
        raise ConfigurationError(
            "The database has no Citus.",
            remedy="Let an administrator run CREATE EXTENSION citus on the coordinator and on every worker.",
            field="database_url",
        )
    workers = tuple(column(session, QUERIES["workers"]))
    if not workers:
        raise ConfigurationError(
            "The coordinator knows no worker.",
            remedy="Let an administrator run SELECT citus_set_coordinator_host(…) and SELECT citus_add_node(…) there.",
            field="database_url",
        )
    return workers


def _make_role_on_workers(session: Session) -> None:
    """Create the role of callers on workers that do not know it: one that is older than the cluster is nowhere else."""
    role = find_role(session)
    if role.exists:
        made = f"CREATE ROLE {role.name} {role.attributes}"
        known = f"DO $make$ BEGIN {made}; EXCEPTION WHEN duplicate_object THEN NULL; END $make$"
        session.rows("SELECT run_command_on_workers(?)", (f"SET citus.enable_ddl_propagation = off; {known}",))
