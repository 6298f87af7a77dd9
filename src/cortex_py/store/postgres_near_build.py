"""Making the index of a space while others read and write: a partition, all vectors in batches, then the HNSW graph.

From the moment the partition is there, whoever adds a record adds its vectors too; so nothing is missed between the
batches. What was begun and not finished is gone on with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import psycopg

from .database import Session
from .postgres_errors import translated
from .postgres_near_tables import ALL_SPACES, as_vector, index_statement, part_statements
from .postgres_policies import granted, protection
from .postgres_role import find_role

if TYPE_CHECKING:
    from .postgres_pool import Connection, Pool

__all__ = ["build", "forget"]

_BATCH = 1_000
_LOOK_SECONDS = 0.25
# Ours among the advisory locks of a database, one for each schema and space.
_LOCK = "1129601075, hashtext(coalesce(current_schema(), '') || ' ' || %s)"
# The graph should lie in memory while it is made; beyond this the engine writes it out and slows down.
_MOST_MB = 4_096
_BYTES_OF_LINKS = 700


def build(
    pool: Pool,
    write: Callable[[], AbstractContextManager[Session]],
    space: str,
    dimensions: int,
    stop: Callable[[], bool],
) -> bool:
    """Make what is missing of a space's index; False where the engine has no pgvector, or `stop` said so."""
    with translated(pool.place), pool.connection() as connection:
        if not _has_vectors(connection):
            return False
        # One process makes it; the others go on without.
        lock = (f"SELECT pg_try_advisory_lock({_LOCK})", (space,))
        if not _value(connection, *lock):
            return False
        try:
            part = _begun(write, space, dimensions)
            if not _filled(write, space, part, stop) or stop():
                return False
            if not _indexed(connection, part, dimensions, stop):
                return False
            with write() as session:
                session.run("UPDATE near_space SET ready = 1 WHERE space = ?", (space,))
            return True
        finally:
            connection.execute(f"SELECT pg_advisory_unlock({_LOCK})".encode(), (space,))


def forget(session: Session, space: str, part: str) -> None:
    """Drop the index of a space."""
    session.run(f"DROP TABLE {part}")
    session.run("DELETE FROM near_space WHERE space = ?", (space,))


def _has_vectors(connection: Connection) -> bool:
    return bool(_value(connection, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"))


def _value(connection: Connection, statement: str, params: tuple[str, ...] = ()) -> object:
    row = connection.execute(statement.encode(), params).fetchone()
    return row[0] if row else None


def _begun(write: Callable[[], AbstractContextManager[Session]], space: str, dimensions: int) -> str:
    """The partition of a space; one of another length of vectors is thrown away."""
    with write() as session:
        if not session.rows("SELECT 1 FROM pg_class WHERE oid = to_regclass('near')"):
            for statement in ALL_SPACES:
                session.run(statement)
            _protect(session, "near")
        rows = session.rows("SELECT part, dimensions FROM near_space WHERE space = ?", (space,))
        if rows and rows[0][1] == dimensions:
            return str(rows[0][0])
        if rows:
            forget(session, space, rows[0][0])
        ((number, literal),) = session.rows(
            "SELECT coalesce(max(substr(part, 6)::bigint), 0) + 1, quote_literal(?::text) FROM near_space", (space,)
        )
        part = f"near_{number}"
        for statement in part_statements(part, literal):
            session.run(statement)
        _protect(session, part)
        session.run(
            "INSERT INTO near_space (space, part, dimensions, reached, ready) VALUES (?, ?, ?, 0, 0)",
            (space, part, dimensions),
        )
        return part


def _protect(session: Session, table: str) -> None:
    """Callers see of it what their spaces let them see, here as in the tables of the schema."""
    for statement in protection(table):
        session.run(statement)
    role = find_role(session)
    if role.exists:
        session.run(granted(role.name, table))


def _filled(
    write: Callable[[], AbstractContextManager[Session]], space: str, part: str, stop: Callable[[], bool]
) -> bool:
    """All vectors of the space in its partition, some at a time: those who write need not wait long."""
    while not stop():
        with write() as session:
            ((reached,),) = session.rows("SELECT reached FROM near_space WHERE space = ?", (space,))
            ((last,),) = session.rows(
                "SELECT max(num) FROM (SELECT num FROM memory WHERE space = ? AND num > ? ORDER BY num LIMIT ?) f",
                (space, reached, _BATCH),
            )
            if last is None:
                return True
            _copy(session, part, space, reached, last)
            session.run("UPDATE near_space SET reached = ? WHERE space = ?", (last, space))
    return False


def _copy(session: Session, part: str, space: str, above: int, last: int) -> None:
    """Vectors of the records in a range of numbers, as far as they are not there yet."""
    known = set(session.rows(f"SELECT num, n FROM {part} WHERE num > ? AND num <= ?", (above, last)))
    stored = session.rows(
        "SELECT num, n, vector FROM chunk WHERE space = ? AND num > ? AND num <= ? AND vector IS NOT NULL",
        (space, above, last),
    )
    fresh = [(space, num, n, as_vector(vector)) for num, n, vector in stored if (num, n) not in known]
    session.copy(part, ("space", "num", "n", "vector"), fresh)


def _indexed(connection: Connection, part: str, dimensions: int, stop: Callable[[], bool]) -> bool:
    """The graph, made beside the running work; one that an interruption left half made is made anew."""
    valid = _value(connection, "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"{part}_hnsw",))
    if valid:
        return True
    connection.execute(f"DROP INDEX IF EXISTS {part}_hnsw".encode())
    # So many rows may have come at once that the engine has not looked at them yet: it would plan for few, and read
    # the table after each index.
    connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {part}, memory, memory_text, chunk, tag".encode())
    rows = _value(connection, f"SELECT count(*) FROM {part}")
    wanted = int(str(rows)) * (2 * dimensions + _BYTES_OF_LINKS) // 1_000_000 * 5 // 4 + 64
    connection.execute(f"SET maintenance_work_mem = '{min(wanted, _MOST_MB)}MB'".encode())
    # It waits for every transaction that is older than itself, however long that takes, and holds nobody up meanwhile.
    ((patience,),) = connection.execute("SHOW lock_timeout").fetchall()
    connection.execute(b"SET lock_timeout = 0")
    try:
        with _ended_by(stop, connection):
            _make(connection, part, dimensions)
        return True
    except psycopg.errors.QueryCanceled:
        if not stop():
            raise
        return False
    finally:
        connection.execute(f"SET lock_timeout = '{patience}'".encode())
        connection.execute(b"RESET maintenance_work_mem")
        connection.execute(b"RESET max_parallel_maintenance_workers")


def _make(connection: Connection, part: str, dimensions: int) -> None:
    try:
        connection.execute(index_statement(part, dimensions).encode())
    except psycopg.errors.DiskFull:
        # Workers share memory through a file system that containers keep small; one worker needs none of it.
        connection.execute(f"DROP INDEX IF EXISTS {part}_hnsw".encode())
        connection.execute(b"SET max_parallel_maintenance_workers = 0")
        connection.execute(index_statement(part, dimensions).encode())


@contextmanager
def _ended_by(stop: Callable[[], bool], connection: Connection) -> Iterator[None]:
    """Cancel the statement inside once `stop` says so: it takes minutes, a server that ends has seconds."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            if stop():
                connection.cancel_safe()
                return

    watcher = threading.Thread(target=watch, name="cortex-index", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
