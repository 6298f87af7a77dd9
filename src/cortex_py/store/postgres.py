"""PostgreSQL behind the `Database` protocol, through psycopg. Imported only where a database URL asks for it.

Reads see one moment (repeatable read). Writers of all processes take turns by a lock of the
transaction, so that the change sequence follows the order of commits, as in SQLite.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import NumericBinaryLoader

from ..clock import Clock
from ..errors import ConfigurationError, StorageError, StoreBusy
from .database import Row, Session, Sql
from .migrations import migrate
from .postgres_dialect import POSTGRES_STEPS, as_postgres
from .postgres_errors import cannot_connect, translated

__all__ = ["PostgresDatabase", "open_postgres"]

_OLDEST = 160_000  # a subquery without an alias
_CONNECTIONS = 16
_WAIT_SECONDS = 30
# The URL may say otherwise. A server that vanished is noticed within two minutes, not two hours.
_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "cortex",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
}
# Idle connections that a restarted server has dropped show only when used; nothing was sent on them yet.
_ATTEMPTS = _CONNECTIONS + 1
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Ours among the advisory locks of a database; one for each schema.
_WRITE = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
    "SELECT pg_advisory_xact_lock(1129601073, hashtext(coalesce(current_schema(), '')))"
)
_PREPARE = (
    f"SET lock_timeout = '{_WAIT_SECONDS}s'; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; "
    "SET bytea_output = 'hex'"
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
        "SELECT count(*) FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.num = c.num)",
        "parts belong to no memory",
    ),
    (
        "SELECT count(*) FROM memory_text t WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.num = t.num)",
        "entries of the text index belong to no memory",
    ),
    (
        "SELECT count(*) FROM memory m WHERE m.status <> 'tombstoned' "
        "AND NOT EXISTS (SELECT 1 FROM memory_text t WHERE t.num = m.num)",
        "memories are missing in the text index; run cortex reindex",
    ),
)

# No character, by its definition, and yet allowed in a text.
_ESCAPE = "\ufdd0"

_Connection = psycopg.Connection[tuple[Any, ...]]


class _WholeNumber(Dumper):
    """A number without a type of its own: the server takes the type of what it stands beside, as SQLite does."""

    oid = 0

    def dump(self, obj: Any) -> Buffer:
        return b"%d" % obj


class _AnyText(Dumper):
    """A text without a type of its own. The server's texts cannot hold U+0000: it travels as two other characters."""

    oid = 0

    def dump(self, obj: str) -> Buffer:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class _AnyTextAgain(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE) if _ESCAPE in text else text


class _PlainNumber(NumericBinaryLoader):
    """Sums of whole numbers come as decimals; they are whole numbers."""

    def load(self, data: Buffer) -> Any:
        value = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


class _PostgresSession:
    def __init__(self, connection: _Connection) -> None:
        self._cursor = connection.cursor(binary=True)

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        self._cursor.execute(as_postgres(sql).encode(), params)
        return self._cursor.fetchall() if self._cursor.description else []

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        self._cursor.execute(as_postgres(sql).encode(), params)

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        self._cursor.executemany(as_postgres(sql).encode(), params)

    def changed(self) -> int:
        return max(0, self._cursor.rowcount)


class PostgresDatabase:
    """One database, a bounded number of connections, each used by one thread at a time."""

    name = "postgresql"

    def __init__(self, url: str) -> None:
        parts = _parts(url)
        self._conninfo = make_conninfo(**{**_DEFAULTS, **parts})
        self._place = _place(parts)
        self._password = str(parts.get("password") or "")
        self._idle: list[_Connection] = []
        self._owner = os.getpid()
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._transaction(_READ) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        # Threads of one process take turns here, so that those who wait hold no connection.
        if not self._writing.acquire(timeout=_WAIT_SECONDS):
            raise StoreBusy(f"The store at {self._place} is busy.", remedy="Nothing was written; try again.")
        try:
            with self._transaction(_WRITE) as session:
                yield session
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Session]:
        with translated(self._place), self._connection(begin) as connection:
            yield _PostgresSession(connection)
            if connection.execute("COMMIT").statusmessage == "ROLLBACK":
                raise StorageError(
                    f"A transaction at {self._place} had failed before it was committed.",
                    remedy="Nothing was written; try again.",
                )

    @contextmanager
    def _connection(self, begin: str = "") -> Iterator[_Connection]:
        """A connection for one thread, with a statement sent; it comes back only if it is fit for the next."""
        if not self._free.acquire(timeout=_WAIT_SECONDS):
            raise StoreBusy(f"All connections to {self._place} are in use.", remedy="Try again.")
        try:
            connection = self._begun(begin)
            try:
                yield connection
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._give(connection)
        finally:
            self._free.release()

    def _begun(self, begin: str) -> _Connection:
        for attempt in range(_ATTEMPTS):
            connection, fresh = self._take()
            try:
                if begin:
                    connection.execute(begin.encode())
                return connection
            except psycopg.OperationalError:
                broken = connection.broken
                connection.close()
                if fresh or not broken or attempt == _ATTEMPTS - 1:
                    raise
            except BaseException:
                connection.close()
                raise
        raise AssertionError("the last attempt returns or raises")

    def _take(self) -> tuple[_Connection, bool]:
        with self._lock:
            if self._closed:
                raise StorageError("The store is closed.", remedy="Open a new Cortex.")
            if self._owner != os.getpid():
                # A forked process must not speak on its parent's connections, nor say goodbye on them.
                _INHERITED.extend(self._idle)
                self._idle, self._owner = [], os.getpid()
            if self._idle:
                return self._idle.pop(), False
        return self._connect(), True

    def _connect(self) -> _Connection:
        try:
            connection = psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            # Without the cause: its own words may hold the whole URL.
            raise cannot_connect(self._place, self._password, error) from None
        try:
            connection.adapters.register_dumper(int, _WholeNumber)
            connection.adapters.register_dumper(bool, _WholeNumber)
            connection.adapters.register_dumper(str, _AnyText)
            connection.adapters.register_loader("text", _AnyTextAgain)
            connection.adapters.register_loader("numeric", _PlainNumber)
            connection.execute(_PREPARE.encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _give(self, connection: _Connection) -> None:
        with self._lock:
            fit = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
            if fit and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def has_table(self, session: Session, name: str) -> bool:
        return bool(
            session.rows("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?", (name,))
        )

    def index_text(self, session: Session, num: int, words: str) -> None:
        session.run(
            "INSERT INTO memory_text (num, words) VALUES (?, string_to_array(?, ' ')) "
            "ON CONFLICT (num) DO UPDATE SET words = excluded.words",
            (num, words),
        )

    def unindex_text(self, session: Session, num: int) -> None:
        session.run("DELETE FROM memory_text WHERE num = ?", (num,))

    def text_matches(
        self, session: Session, words: Sequence[str], space_words: Sequence[str], limit: int
    ) -> list[list[int]]:
        within = " AND words && string_to_array(?, ' ')" if space_words else ""
        statement = (
            f"SELECT num FROM memory_text WHERE words @> string_to_array(?, ' '){within} ORDER BY num DESC LIMIT ?"
        )
        spaces = (" ".join(space_words),) if space_words else ()
        return [[row[0] for row in session.rows(statement, (word, *spaces, limit))] for word in words]

    def text_condition(self, words: Sequence[str]) -> tuple[str, list[Sql]]:
        return "m.num IN (SELECT num FROM memory_text WHERE words @> string_to_array(?, ' '))", [" ".join(words)]

    def compact(self) -> None:
        with translated(self._place), self._connection() as connection:
            tables = connection.execute(
                "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema() "
                "AND tableowner = current_user ORDER BY tablename"
            ).fetchall()
            for (table,) in tables:
                connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {table}".encode())

    def check(self) -> list[str]:
        with self.read() as session:
            counted = [(session.rows(statement)[0][0], meaning) for statement, meaning in _CHECKS]
        return [f"{count} {meaning}" for count, meaning in counted if count]

    def size_bytes(self) -> int:
        with self.read() as session:
            statement = f"SELECT coalesce(sum(pg_total_relation_size(o.oid)), 0) FROM ({_OWN_TABLES}) o"
            return int(session.rows(statement)[0][0])

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._owner != os.getpid():
            _INHERITED.extend(idle)
            return
        for connection in idle:
            connection.close()


# Connections of a parent process: kept, because letting go of one would end it for the parent too.
_INHERITED: list[_Connection] = []


def open_postgres(url: str, clock: Clock) -> PostgresDatabase:
    """Connect, and bring the schema up to date."""
    database = PostgresDatabase(url)
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
    except BaseException:
        database.close()
        raise
    return database


def _parts(url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.Error:
        # Without the cause: its words quote the URL.
        raise ConfigurationError(
            "database_url cannot be read as the address of a PostgreSQL database.",
            remedy="Write postgresql://user:password@host:5432/database, with special signs percent-encoded.",
            field="database_url",
        ) from None


def _place(parts: Mapping[str, Any]) -> str:
    """Where the database is, to be shown."""
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{host}{port}/{parts.get('dbname') or parts.get('user') or ''}"
