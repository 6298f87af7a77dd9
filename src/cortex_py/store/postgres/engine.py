"""PostgreSQL behind the `Database` protocol, through psycopg. Imported only where a database URL asks for it.

Reads see one moment (repeatable read). Writers of all processes take turns by a lock of the
transaction, so that the change sequence follows the order of commits, as in SQLite.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from ..clock import Clock
from ..errors import ConfigurationError, StorageError, StoreBusy, StoreDenied, StoreReadOnly
from ..tracing import span
from .bounds import Bounds, BoundsNow, unbounded
from .database import Row, Session, Sql, Vitals, marks
from .migrations import migrate
from .nearest import Nearest
from .postgres_dialect import POSTGRES_STEPS, as_postgres
from .postgres_errors import committing, translated
from .postgres_leader import Leader
from .postgres_nearest import PostgresNearest
from .postgres_notices import Notices
from .postgres_pool import RETRY_SECONDS, WAIT_SECONDS, Connection, Pool
from .postgres_role import binding, find_role, make_role
from .postgres_text import PostgresText

__all__ = ["PostgresDatabase", "open_postgres"]

_OLDEST = 160_000  # a subquery without an alias
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Ours among the advisory locks of a database; one for each schema.
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
    "SELECT pg_advisory_xact_lock(1129601073, hashtext(coalesce(current_schema(), '')))"
)
_OWN_TABLES = (
    "SELECT c.oid FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = "
    "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
)
# Questions whose answer must be zero, and what it means when it is not.
_CHECKS = (
    (
        f"SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indrelid IN ({_OWN_TABLES})",
        "indexes are not valid; REINDEX them",
    ),
    (
        "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()",
        "pages failed their checksum",
    ),
    (
        "SELECT count(*) FROM chunk c "
        "WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.space = c.space AND m.num = c.num)",
        "parts belong to no memory",
    ),
    (
        "SELECT count(*) FROM memory_text t "
        "WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.space = t.space AND m.num = t.num)",
        "entries of the text index belong to no memory",
    ),
    (
        "SELECT count(*) FROM memory m WHERE m.status <> 'tombstoned' "
        "AND NOT EXISTS (SELECT 1 FROM memory_text t WHERE t.space = m.space AND t.num = m.num)",
        "memories are missing in the text index; run cortex reindex",
    ),
)


# How often a word occurs, and how much a filter lets through, decides how it is best looked up: statements with one of
# these are planned for their values each time.
_PLANNED = ("memory_text", " near_", "unnest(")


class _PostgresSession:
    def __init__(self, connection: Connection, bounds: Bounds | None) -> None:
        self._cursor = connection.cursor(binary=True)
        self.bounds = bounds

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        prepare = False if any(name in sql for name in _PLANNED) else None
        self._cursor.execute(as_postgres(sql).encode(), params, prepare=prepare)
        return self._cursor.fetchall() if self._cursor.description else []

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        self._cursor.execute(as_postgres(sql).encode(), params)

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        self._cursor.executemany(as_postgres(sql).encode(), params)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        if self.bounds is not None:
            # Not open to transactions done for a caller: policies look at every row.
            self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks(len(columns))})", rows)
            return
        with self._cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as stream:
            for row in rows:
                stream.write_row(row)

    def changed(self) -> int:
        return max(0, self._cursor.rowcount)


class PostgresDatabase(PostgresText):
    """One database, a bounded number of connections, each used by one thread at a time."""

    name = "postgresql"

    def __init__(self, url: str, retry_seconds: float = RETRY_SECONDS) -> None:
        self._pool = Pool(url, retry_seconds)
        self._leader = Leader(self._pool.connect)
        self._notices = Notices(self._pool.connect)
        self._writing = threading.Lock()
        self.nearest: Nearest | None = PostgresNearest(self._pool, lambda: self._writing_as(None))
        self._bounds: BoundsNow = unbounded
        self._role = ""

    def bind(self, bounds: BoundsNow) -> None:
        """Ask from now on, whenever a transaction begins, for whom it is."""
        self._bounds = bounds

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._transaction(_READ, self._bounds()) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        with self._writing_as(self._bounds()) as session:
            yield session

    @contextmanager
    def _writing_as(self, bounds: Bounds | None) -> Iterator[Session]:
        # Threads of one process take turns here, so that those who wait hold no connection.
        if not self._writing.acquire(timeout=WAIT_SECONDS):
            raise StoreBusy(f"The store at {self._pool.place} is busy.", remedy="Nothing was written; try again.")
        try:
            with self._transaction(_WRITE, bounds) as session:
                yield session
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(self, begin: str, bounds: Bounds | None = None) -> Iterator[Session]:
        access = "read" if begin == _READ else "write"
        if bounds is not None:
            begin += binding(self.caller_role(), bounds)
        with (
            span(f"store {access}", {"db.system.name": self.name}),
            translated(self._pool.place, bound=bounds is not None),
            self._pool.connection(begin) as connection,
        ):
            yield _PostgresSession(connection, bounds)
            with nullcontext() if access == "read" else committing(self._pool.place):
                done = connection.execute("COMMIT").statusmessage
            if done == "ROLLBACK":
                raise StorageError(
                    f"A transaction at {self._pool.place} had failed before it was committed.",
                    remedy="Nothing was written; try again.",
                )

    def caller_role(self) -> str:
        """The role as which work for callers is done. Without it none is done: the error says how it is made."""
        if not self._role:
            with self._transaction(_READ) as session:
                found = find_role(session)
            if not found.usable:
                raise found.missing()
            self._role = found.name
        return self._role

    def prepare_role(self) -> None:
        """Make the role of callers, as far as this login may; whoever needs it and lacks it is told then."""
        with self._transaction(_READ) as session:
            found = find_role(session)
        if found.usable or not found.can_be_made:
            return
        with suppress(StoreDenied, StoreReadOnly), self._transaction(_WRITE) as session:
            # Looked up again: another process may have been quicker to the lock.
            make_role(session, find_role(session))

    def has_table(self, session: Session, name: str) -> bool:
        return bool(
            session.rows("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?", (name,))
        )

    def new_numbers(self, session: Session, spaces: Sequence[str]) -> list[int]:
        rows = session.rows(
            "SELECT nextval(pg_get_serial_sequence('memory', 'num')) FROM generate_series(1, ?)", (len(spaces),)
        )
        return [row[0] for row in rows]

    def wait_for_change(self, seconds: float, /) -> bool | None:
        with translated(self._pool.place):
            return self._notices.wait(seconds)

    def compact(self) -> None:
        with translated(self._pool.place), self._pool.connection() as connection:
            tables = connection.execute(
                "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() "
                "AND tableowner = current_user ORDER BY tablename"
            ).fetchall()
            for (table,) in tables:
                connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {table}".encode())

    def check(self) -> list[str]:
        with self._transaction(_READ) as session:
            counted = [(session.rows(statement)[0][0], meaning) for statement, meaning in _CHECKS]
        return [f"{count} {meaning}" for count, meaning in counted if count]

    def size_bytes(self) -> int:
        with self._transaction(_READ) as session:
            statement = f"SELECT coalesce(sum(pg_total_relation_size(o.oid)), 0) FROM ({_OWN_TABLES}) o"
            return int(session.rows(statement)[0][0])

    def ping(self, seconds: float) -> None:
        self._pool.ping(seconds)

    def leads(self, name: str) -> bool:
        with translated(self._pool.place):
            return self._leader.leads(name)

    def vitals(self) -> Vitals:
        return self._pool.vitals()

    def close(self) -> None:
        self._notices.close()
        self._leader.close()
        self._pool.close()


def open_postgres(
    url: str,
    clock: Clock,
    bounds: BoundsNow = unbounded,
    *,
    required: bool = False,
    retry_seconds: float = RETRY_SECONDS,
) -> PostgresDatabase:
    """Connect, and bring the schema up to date. `bounds` is asked when a transaction begins: for whom it is.

    `required` refuses a database in which nothing can be done for a caller; else that is told when one comes. A server
    that restarts later is waited for that long.
    """
    database = PostgresDatabase(url, retry_seconds)
    try:
        with database.read() as session:
            ((version, encoding),) = session.rows(
                "SELECT current_setting('server_version_num'), current_setting('server_encoding')"
            )
        if int(version) < _OLDEST or encoding != "UTF8":
            raise ConfigurationError(
                f"The database has PostgreSQL {int(version) // 10_000} and the encoding {encoding}.",
                remedy="Use PostgreSQL 16 or later and a database with the encoding UTF8.",
                field="database_url",
            )
        migrate(database, clock, POSTGRES_STEPS)
        database.prepare_role()
        if required:
            database.caller_role()
        database.bind(bounds)
    except BaseException:
        database.close()
        raise
    return database
