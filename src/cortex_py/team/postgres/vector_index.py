"""The vectors of large spaces in PostgreSQL (pgvector): an HNSW index over half precision for each space.

A filter is applied inside the search: the index is read until enough records have passed. If few records pass, all of
them are compared instead, which is faster and exact. Filters are conditions on `memory m`.

pgvector may be missing, so only the list of spaces is part of the schema; the other tables are created when the first
space has grown large. An index is built while others read and write: a partition, all vectors in batches, then the HNSW
graph. Once the partition exists, every writer adds its vectors to it, so nothing is missed between the batches. An
interrupted build is continued.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from ...core.records import LIVE_STATUSES
from ...core.store.database import Row, Session, Sql, column, everywhere, first, marks
from ...core.store.search.filters import Where
from ...core.store.search.vector_index import Extent, RankingColumns
from .errors import translate_errors
from .security import find_role, granted, protection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...core.store.search.codes import Codes
    from .engine import PostgresDatabase
    from .pool import Connection

__all__ = ["BUILD_LOCK", "PostgresVectorIndex", "as_vector"]


# The trigger removes the vectors of every chunk that any statement removes.
ALL_SPACES: tuple[str, ...] = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """CREATE TABLE IF NOT EXISTS near (
        space TEXT NOT NULL, num INTEGER NOT NULL, n INTEGER NOT NULL, vector halfvec NOT NULL,
        PRIMARY KEY (space, num, n)) PARTITION BY LIST (space)""",
    """CREATE OR REPLACE FUNCTION cortex_forget_vectors() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path FROM CURRENT AS $forget$
        BEGIN
            DELETE FROM near v USING gone g WHERE v.space = g.space AND v.num = g.num AND v.n = g.n;
            RETURN NULL;
        END $forget$""",
    """CREATE OR REPLACE TRIGGER forget_vectors AFTER DELETE ON chunk REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION cortex_forget_vectors()""",
)

# -- searching
# Chunks to ask for per wanted record: long records have several.
_PARTS = 1.1
# So many more, if some may not pass the filter; and more chunks than any records have.
_SPARE, _ALL = 2, 1_000_000_000
_LIVE = ", ".join(f"'{status}'" for status in LIVE_STATUSES)
_OF_LINE = f"o.space = m.space AND o.branch_id = m.branch_id AND o.status IN ({_LIVE})"
_BEFORE = (
    f"(SELECT o.num FROM memory o WHERE {_OF_LINE} AND (o.created_at, o.num) < (m.created_at, m.num) "
    "ORDER BY o.created_at DESC, o.num DESC LIMIT 1)"
)
_AFTER = (
    f"(SELECT o.num FROM memory o WHERE {_OF_LINE} AND (o.created_at, o.num) > (m.created_at, m.num) "
    "ORDER BY o.created_at, o.num LIMIT 1)"
)
_AMONG = "m.space = ? AND m.num = ANY (?::bigint[])"
# -- building
_LOOK_SECONDS = 0.25
# One advisory lock for each schema and space; writers and leaders have other numbers.
BUILD_LOCK = "1129601075, hashtext(coalesce(current_schema(), '') || ' ' || %s)"
# The graph is built in memory; beyond this the engine writes it out and slows down.
_MOST_MB = 4_096
_BYTES_OF_LINKS = 700


class PostgresVectorIndex:
    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        # Up to so many records, all are compared.
        self.exact_up_to = 4_000
        # So many records are copied in one transaction.
        self.batch = 1_000

    def covered(self, session: Session, spaces: Sequence[str]) -> set[str]:
        statement = f"SELECT space FROM near_space WHERE space IN ({marks(len(spaces))}) AND ready = 1"
        return set(column(session, statement, tuple(spaces))) if spaces else set()

    def add(self, session: Session, rows: Sequence[tuple[str, int, int, bytes | None]]) -> None:
        given = [(space, num, n, vector) for space, num, n, vector in rows if vector is not None]
        lengths = {space: len(vector) // 4 for space, _, _, vector in given}
        listed = f"SELECT space, part, dimensions FROM near_space WHERE space IN ({marks(len(lengths))})"
        covered = session.rows(listed, list(lengths)) if lengths else []
        for space, part, dimensions in covered:
            if dimensions != lengths[space]:
                # Another model: the index is useless now. The next build makes a new one.
                _forget(session, space, part)
        kept = {space for space, _, dimensions in covered if dimensions == lengths[space]}
        if kept:
            session.run_many(
                "INSERT INTO near (space, num, n, vector) VALUES (?, ?, ?, ?::halfvec)",
                [(space, num, n, as_vector(vector)) for space, num, n, vector in given if space in kept],
            )

    def forget_all(self, session: Session) -> None:
        """Drop the indexes of all spaces; the next builds make new ones."""
        for space, part in session.rows(everywhere("all spaces", "SELECT space, part FROM near_space")):
            _forget(session, space, part)

    # -- searching -------------------------------------------------------------------------------

    def extent(self, session: Session, space: str) -> Extent:
        part, _ = self._part(session, space)
        rows = session.rows(f"SELECT count(*), coalesce(min(num), 0), coalesce(max(num), 0) FROM {part} WHERE n = 0")
        return Extent(*rows[0])

    def sample(self, session: Session, space: str, count: int, records: int) -> list[int]:
        part, _ = self._part(session, space)
        # Whole pages are drawn, so there may be more than asked for.
        share = min(100.0, 130.0 * count / max(1, records))
        nums = column(session, f"SELECT DISTINCT num FROM {part} TABLESAMPLE SYSTEM (?) REPEATABLE (7)", (share,))
        return nums[: 2 * count]

    def passing(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[tuple[int, int]]:
        if not nums:
            return []
        asked = "unnest(?::bigint[]) asked (num)"
        params: tuple[Sql, ...] = (_array(nums),)
        if where.tagged is not None:
            # OFFSET makes the engine check tags first, which is cheaper than reading records.
            listed, given = where.tagged
            asked = f"(SELECT a.num FROM unnest(?::bigint[]) a (num) WHERE a.num IN ({listed}) OFFSET 0) asked"
            params = (*params, *given)
        rows = session.rows(
            f"SELECT m.num, m.length FROM {asked} JOIN memory m ON m.space = ? AND m.num = asked.num WHERE {where.sql}",
            (*params, space, *where.params),
        )
        lengths: dict[int, int] = dict(rows)
        return [(num, lengths[num]) for num in nums if num in lengths]

    def closest(
        self, session: Session, space: str, query: NDArray[np.float32], where: Where, count: int, open_records: int
    ) -> list[int]:
        if open_records <= self.exact_up_to:
            return self._of_all(session, space, query, where, count)
        if where.tagged is not None:
            listed, given = where.tagged
            found = self._checked(session, space, query, where, count, f"v.num IN ({listed})", given)
            if len(found) >= count:
                return found
        part, dimensions = self._part(session, space)
        # The inner order is that of the index, which is nearly right; the outer one is exact.
        statement = (
            f"SELECT f.num FROM (SELECT v.num, {_distance(dimensions)} AS distance FROM {part} v "
            f"JOIN memory m ON m.space = v.space AND m.num = v.num WHERE {where.sql} "
            "ORDER BY distance LIMIT ?) f ORDER BY f.distance"
        )
        params = (as_vector(query.tobytes()), *where.params, int(_PARTS * count))
        return _distinct(session.rows(statement, params), count)

    def _of_all(self, session: Session, space: str, query: NDArray[np.float32], where: Where, count: int) -> list[int]:
        part, dimensions = self._part(session, space)
        statement = (
            f"WITH allowed AS MATERIALIZED (SELECT m.num FROM memory m WHERE m.space = ? AND {where.sql}) "
            f"SELECT v.num FROM allowed a JOIN {part} v ON v.space = ? AND v.num = a.num "
            f"ORDER BY {_distance(dimensions)} LIMIT ?"
        )
        params = (space, *where.params, space, as_vector(query.tobytes()), int(_PARTS * count))
        return _distinct(session.rows(statement, params), count)

    def _checked(
        self,
        session: Session,
        space: str,
        query: NDArray[np.float32],
        where: Where,
        count: int,
        among: str,
        given: Sequence[Sql],
        spare: int = _SPARE,
    ) -> list[int]:
        """The nearest of some vectors; the filter is applied to those only, because nearly all pass it."""
        part, dimensions = self._part(session, space)
        statement = (
            f"SELECT f.num FROM (SELECT v.num, {_distance(dimensions)} AS distance FROM {part} v "
            f"WHERE v.space = ? AND {among} ORDER BY distance LIMIT ?) f "
            f"JOIN memory m ON m.space = ? AND m.num = f.num WHERE {where.sql} ORDER BY f.distance"
        )
        params = (as_vector(query.tobytes()), space, *given, int(_PARTS * count) + spare, space, *where.params)
        return _distinct(session.rows(statement, params), count)

    def numbers(self, session: Session, space: str, where: Where) -> bytes:
        every = (f"SELECT m.num FROM memory m WHERE m.space = ? AND {where.sql}", (space, *where.params))
        statement, params = where.tagged or every
        # As one value: many rows would take longer to transfer than to read.
        sent = f"SELECT coalesce(string_agg(int8send(f.num), ''::bytea), ''::bytea) FROM ({statement}) f (num)"
        ((numbers,),) = session.rows(sent, params)
        return bytes(numbers)

    def compared(
        self, session: Session, space: str, query: NDArray[np.float32], where: Where, nums: Sequence[int], count: int
    ) -> list[int]:
        among, given = "v.num = ANY (?::bigint[])", (_array(nums),)
        found = self._checked(session, space, query, where, count, among, given)
        return found if len(found) >= count else self._checked(session, space, query, where, count, among, given, _ALL)

    def changed(self, session: Session, space: str, seq: int, most: int) -> list[int]:
        statement = "SELECT num FROM memory WHERE space = ? AND seq > ? ORDER BY seq LIMIT ?"
        return column(session, statement, (space, seq, most))

    def codes(self, session: Session, space: str, nums: Sequence[int]) -> Codes:
        part, dimensions = self._part(session, space)
        asked: tuple[Sql, ...]
        if isinstance(nums, range):
            among, asked = "num >= ? AND num < ?", (nums.start, nums.stop)
        else:
            among, asked = "num = ANY (?::bigint[])", (_array(nums),)
        statement = (
            "SELECT coalesce(string_agg(int8send(num), ''::bytea), ''::bytea), "
            f"coalesce(string_agg(bit_send(binary_quantize(vector::halfvec({dimensions}))), ''::bytea), ''::bytea) "
            f"FROM {part} WHERE space = ? AND {among}"
        )
        ((numbers, bits),) = session.rows(statement, (space, *asked))
        # Imported here: a process that never searches does not load numpy.
        from ...core.store.search.codes import Codes

        return Codes.sent(numbers, bits, dimensions)

    def around(self, session: Session, space: str, nums: Sequence[int]) -> list[int]:
        if not nums:
            return []
        statement = f"SELECT {_BEFORE}, {_AFTER} FROM memory m WHERE {_AMONG} AND m.branch_id IS NOT NULL"
        rows = session.rows(statement, (space, _array(nums)))
        return [num for row in rows for num in row if num is not None]

    def columns(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[RankingColumns]:
        if not nums:
            return []
        statement = (
            f"SELECT m.num, m.created_at, m.length, m.flags, m.author, m.branch_id, {_BEFORE}, {_AFTER} "
            f"FROM memory m WHERE {_AMONG} AND {where.sql} ORDER BY m.num"
        )
        return [RankingColumns(*row) for row in session.rows(statement, (space, _array(nums), *where.params))]

    def _part(self, session: Session, space: str) -> tuple[str, int]:
        ((part, dimensions),) = session.rows("SELECT part, dimensions FROM near_space WHERE space = ?", (space,))
        return str(part), int(dimensions)

    # -- building --------------------------------------------------------------------------------

    def build(self, space: str, dimensions: int, stop: Callable[[], bool]) -> bool:
        """Complete the index of a space; False if pgvector is missing, another process builds it, or on `stop`."""
        pool = self._database.direct
        with translate_errors(pool.place), pool.connection() as connection:
            if not _value(connection, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"):
                return False
            if not _value(connection, f"SELECT pg_try_advisory_lock({BUILD_LOCK})", (space,)):
                return False
            try:
                part = self._partition(space, dimensions)
                if not self._fill(space, part, stop) or stop() or not _build_graph(connection, part, dimensions, stop):
                    return False
                with self._database.writing_as(None) as session:
                    session.run("UPDATE near_space SET ready = 1 WHERE space = ?", (space,))
                return True
            finally:
                connection.execute(f"SELECT pg_advisory_unlock({BUILD_LOCK})".encode(), (space,))

    def _partition(self, space: str, dimensions: int) -> str:
        """The partition of a space; one for vectors of another length is replaced."""
        with self._database.writing_as(None) as session:
            if not session.rows("SELECT 1 FROM pg_class WHERE oid = to_regclass('near')"):
                for statement in ALL_SPACES:
                    session.run(statement)
                _protect(session, "near")
            known = first(session, "SELECT part, dimensions FROM near_space WHERE space = ?", (space,))
            if known and known[1] == dimensions:
                return str(known[0])
            if known:
                _forget(session, space, known[0])
            ((number, literal),) = session.rows(
                "SELECT coalesce(max(substr(part, 6)::bigint), 0) + 1, quote_literal(?::text) FROM near_space", (space,)
            )
            part = f"near_{number}"
            session.run(f"CREATE TABLE {part} PARTITION OF near FOR VALUES IN ({literal})")
            # Vectors stay in line: every search reads them.
            session.run(f"ALTER TABLE {part} ALTER COLUMN vector SET STORAGE PLAIN")
            _protect(session, part)
            session.run(
                "INSERT INTO near_space (space, part, dimensions, reached, ready) VALUES (?, ?, ?, 0, 0)",
                (space, part, dimensions),
            )
            return part

    def _fill(self, space: str, part: str, stop: Callable[[], bool]) -> bool:
        """Copy all vectors of the space into its partition, in batches so that writers do not wait long."""
        while not stop():
            with self._database.writing_as(None) as session:
                ((reached,),) = session.rows("SELECT reached FROM near_space WHERE space = ?", (space,))
                ((last,),) = session.rows(
                    "SELECT max(num) FROM (SELECT num FROM memory WHERE space = ? AND num > ? ORDER BY num LIMIT ?) f",
                    (space, reached, self.batch),
                )
                if last is None:
                    return True
                _copy(session, part, space, reached, last)
                session.run("UPDATE near_space SET reached = ? WHERE space = ?", (last, space))
        return False


def as_vector(stored: bytes) -> str:
    """A stored vector as pgvector reads it; half precision has no more digits than these."""
    return f"[{','.join([f'{value:.5g}' for value in array('f', stored)])}]"


def _distance(dimensions: int) -> str:
    return f"v.vector::halfvec({dimensions}) <#> ?::halfvec({dimensions})"


def _distinct(rows: Sequence[Row], count: int) -> list[int]:
    return list(dict.fromkeys(row[0] for row in rows))[:count]


def _array(nums: Sequence[int]) -> str:
    return f"{{{','.join(map(str, nums))}}}"


def _value(connection: Connection, statement: str, params: tuple[str, ...] = ()) -> object:
    row = connection.execute(statement.encode(), params).fetchone()
    return row[0] if row else None


def _forget(session: Session, space: str, part: str) -> None:
    """Drop the index of a space."""
    session.run(f"DROP TABLE {part}")
    session.run("DELETE FROM near_space WHERE space = ?", (space,))


def _protect(session: Session, table: str) -> None:
    """Give the table the same row-level security as the tables of the schema."""
    for statement in protection(table):
        session.run(statement)
    role = find_role(session)
    if role.exists:
        session.run(granted(role.name, table))


def _copy(session: Session, part: str, space: str, above: int, last: int) -> None:
    """Copy the missing vectors of the records in a range of numbers."""
    known = set(session.rows(f"SELECT num, n FROM {part} WHERE num > ? AND num <= ?", (above, last)))
    stored = session.rows(
        "SELECT num, n, vector FROM chunk WHERE space = ? AND num > ? AND num <= ? AND vector IS NOT NULL",
        (space, above, last),
    )
    fresh = [(space, num, n, as_vector(vector)) for num, n, vector in stored if (num, n) not in known]
    session.copy(part, ("space", "num", "n", "vector"), fresh)


def index_statement(part: str, dimensions: int) -> str:
    # Vectors have length 1, so the inner product orders them as the cosine does, at a lower cost.
    return (
        f"CREATE INDEX CONCURRENTLY {part}_hnsw ON {part} "
        f"USING hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops) WITH (m = 16, ef_construction = 96)"
    )


def _build_graph(connection: Connection, part: str, dimensions: int, stop: Callable[[], bool]) -> bool:
    """Build the HNSW graph concurrently; one that was left half built is built again."""
    valid = _value(connection, "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (f"{part}_hnsw",))
    if valid:
        return True
    connection.execute(f"DROP INDEX IF EXISTS {part}_hnsw".encode())
    # After many inserts at once the statistics are stale: the engine would plan for few rows and prefer table scans.
    connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {part}, memory, memory_text, chunk, tag".encode())
    rows = _value(connection, f"SELECT count(*) FROM {part}")
    wanted = int(str(rows)) * (2 * dimensions + _BYTES_OF_LINKS) // 1_000_000 * 5 // 4 + 64
    connection.execute(f"SET maintenance_work_mem = '{min(wanted, _MOST_MB)}MB'".encode())
    # It waits for every older transaction, however long that takes, and blocks nobody meanwhile.
    ((patience,),) = connection.execute("SHOW lock_timeout").fetchall()
    connection.execute(b"SET lock_timeout = 0")
    try:
        with _cancelled_by(stop, connection):
            _create_index(connection, part, dimensions)
        return True
    except psycopg.errors.QueryCanceled:
        if not stop():
            raise
        return False
    finally:
        connection.execute(f"SET lock_timeout = '{patience}'".encode())
        connection.execute(b"RESET maintenance_work_mem")
        connection.execute(b"RESET max_parallel_maintenance_workers")


def _create_index(connection: Connection, part: str, dimensions: int) -> None:
    try:
        connection.execute(index_statement(part, dimensions).encode())
    except psycopg.errors.DiskFull:
        # Workers share memory through a file system that is small in containers; a single worker does not need it.
        connection.execute(f"DROP INDEX IF EXISTS {part}_hnsw".encode())
        connection.execute(b"SET max_parallel_maintenance_workers = 0")
        connection.execute(index_statement(part, dimensions).encode())


@contextmanager
def _cancelled_by(stop: Callable[[], bool], connection: Connection) -> Iterator[None]:
    """Cancel the statement inside once `stop` returns True: it takes minutes, a server that stops has seconds."""
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
