"""Connections to one PostgreSQL database: a bounded number, each used by one thread at a time.

The pool waits for a server that restarts, or for a replica that is promoted: until the first statement of a transaction
is answered, nothing was done and it can be retried. A connection that breaks later is an error for the caller.

A promoted replica, or a restored backup, continues on a new timeline of the log and may lack what was acknowledged
last. `era` counts these changes: what was cached in an earlier one is dropped. A server on an older timeline than the
last one was replaced, and is refused.

Behind a pooler such as PgBouncer in transaction mode (`pooled`), each transaction may run on another connection of the
server: settings go into every transaction, and no statement is prepared.

Coordination between processes has connections of its own beside the pool: which process does work that only one may
do, and notices of changes. The server releases the locks of a leader when its connection ends; then another process may
take them.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import NumericBinaryLoader

from ...errors import ConfigurationError, StorageError, StoreBusy, StoreUnavailable
from ..database import Vitals
from .errors import cannot_connect, connection_lost, is_read_only

__all__ = ["NOTICES", "RETRY_SECONDS", "WAIT_SECONDS", "Connection", "Leader", "Notices", "Pool"]


logger = logging.getLogger(__name__)

_CONNECTIONS = 16
WAIT_SECONDS = 30
RETRY_SECONDS = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
# The driver accepts no shorter timeout.
_SHORTEST_PING = 2
# The URL may override these. A server that vanished is noticed within two minutes, not two hours.
_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "cortex",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "90000",
}
# With several hosts: each gets its time, one after the other, and the one that writes is taken, or one that follows it.
_SEVERAL = {"connect_timeout": "3", "target_session_attrs": "read-write"}
_SEVERAL_REPLICAS = _SEVERAL | {"target_session_attrs": "prefer-standby"}
# For each transaction behind a pooler, and otherwise once for each connection.
_SETTINGS = {
    "lock_timeout": f"'{WAIT_SECONDS}s'",
    # Statements are short: compiling one, or starting a parallel worker, takes longer than running it.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    # How far an index of vectors is searched. Without pgvector these are unused custom settings.
    "hnsw.ef_search": "300",
    "hnsw.iterative_scan": "'relaxed_order'",
    "hnsw.max_scan_tuples": "40000",
}
_OF_CONNECTION = _SETTINGS | {
    # A pooler keeps these two, and hex is the default.
    "client_encoding": "'UTF8'",
    "standard_conforming_strings": "on",
    "bytea_output": "'hex'",
    # The same on the server: the locks of a client that vanished are released within two minutes.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "6",
    # Settings of a transaction go to the workers that have its rows, and each worker gets one connection for what
    # changes several shards. Without Citus these are unused settings too.
    "citus.propagate_set_commands": "'local'",
    "citus.multi_shard_modify_mode": "'sequential'",
}
_PREPARE = "; ".join(f"SET {name} = {value}" for name, value in _OF_CONNECTION.items())
_LOCALLY = "; ".join(f"SET LOCAL {name} = {value}" for name, value in _SETTINGS.items())
# Null on a replica.
_TIMELINE = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END"

Connection = psycopg.Connection[tuple[Any, ...]]


class Pool:
    def __init__(
        self, url: str, retry_seconds: float = RETRY_SECONDS, *, pooled: bool = False, replica: bool = False
    ) -> None:
        parts = _parts(url)
        self._retry_seconds = retry_seconds
        self._pooled = pooled
        several = "," in f"{parts.get('host')}{parts.get('hostaddr')}"
        chosen = (_SEVERAL_REPLICAS if replica else _SEVERAL) if several else {}
        self._conninfo = make_conninfo(**{**_DEFAULTS, **chosen, **parts})
        # A server that cannot be written may be followed by another that can.
        self._may_change = several or pooled
        self.place = _place(parts)
        self._password = str(parts.get("password") or "")
        self._idle: list[Connection] = []
        self._owner = os.getpid()
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._lock = threading.Lock()
        self._closed = False
        # Whether the server was ever reached: a wrong address fails at once.
        self._met = False
        self._timeline = 0
        self.era = 0
        self._in_use = self._waited = self._reads = self._writes = self._retries = self._lost = 0

    @contextmanager
    def connection(self, *begin: str) -> Iterator[Connection]:
        """A connection for one thread, on which `begin` was run; it is reused only if it is clean afterwards."""
        self._enter()
        try:
            connection = self._begun(begin)
            try:
                yield connection
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._give(connection, begin)
        finally:
            with self._lock:
                self._in_use -= 1
            self._free.release()

    def _enter(self) -> None:
        if not self._free.acquire(blocking=False):
            with self._lock:
                self._waited += 1
            if not self._free.acquire(timeout=WAIT_SECONDS):
                raise StoreBusy(f"All connections to {self.place} are in use.", remedy="Try again.")
        with self._lock:
            self._in_use += 1

    def _begun(self, begin: Sequence[str]) -> Connection:
        """A connection on which the statements were answered; waits for a server that restarts, within bounds."""
        until, pause = time.monotonic() + self._retry_seconds, _FIRST_PAUSE
        while True:
            try:
                connection = self._attempt(begin)
            except (StoreBusy, StoreUnavailable) as error:
                worth_it = self._met or isinstance(error, StoreBusy)
                if not worth_it or time.monotonic() >= until:
                    raise
            else:
                if connection is not None:
                    return connection
                continue
            with self._lock:
                self._retries += 1
            # Jitter, so that not all processes retry at the same moment.
            time.sleep(min(random.uniform(pause / 2, pause), max(0.0, until - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self, begin: Sequence[str]) -> Connection | None:
        """A connection; None if an idle one turned out to be broken."""
        connection, fresh = self._take()
        try:
            self.begin(connection, begin)
            return connection
        except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.FeatureNotSupported) as error:
            connection.close()
            if self._may_change and is_read_only(error):
                raise StoreBusy(f"The store at {self.place} cannot be written now.", remedy="Try again.") from error
            raise
        except psycopg.OperationalError as error:
            broken = connection.broken
            connection.close()
            if not broken:
                raise
            if not fresh:
                return None
            raise connection_lost(self.place, error) from error
        except BaseException:
            connection.close()
            raise

    def begin(self, connection: Connection, messages: Sequence[str]) -> None:
        """Run the statements that begin a transaction."""
        for n, message in enumerate(messages):
            if self._pooled and n == 0:
                statement, *others = message.split(";", 1)
                begun = connection.execute("; ".join((statement, _TIMELINE, _LOCALLY, *others)).encode())
                begun.nextset()
                self._meet(begun.fetchone())
            else:
                connection.execute(message.encode())

    def _meet(self, found: tuple[Any, ...] | None) -> None:
        """Note the timeline of a server, and refuse one that was replaced."""
        timeline = int(found[0], 16) if found and found[0] else 0
        with self._lock:
            known = self._timeline
            self._timeline = max(known, timeline)
            self.era += 0 < known < timeline
        if 0 < known < timeline:
            logger.warning(
                "the store at %s goes on with timeline %d of its log, after %d: a replica was promoted or a backup "
                "restored, and what it had not received is lost",
                *(self.place, timeline, known),
            )
        elif 0 < timeline < known:
            raise StoreUnavailable(
                f"A server at {self.place} was replaced: it is on timeline {timeline}, the store on {known}.",
                remedy="Stop that server. If the store was put back on purpose, start Cortex again.",
            )

    def _take(self) -> tuple[Connection, bool]:
        with self._lock:
            if self._closed:
                raise StorageError("The store is closed.", remedy="Open a new Cortex.")
            if self._owner != os.getpid():
                # A forked process must neither use nor close a connection of its parent.
                keep_inherited(*self._idle)
                self._idle, self._owner = [], os.getpid()
            if self._idle:
                return self._idle.pop(), False
        return self.connect(), True

    def connect(self) -> Connection:
        """A connection that does not count against the limit; the caller closes it."""
        try:
            # 5 is what the driver does by itself.
            threshold = None if self._pooled else 5
            connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=threshold)
        except psycopg.Error as error:
            # Without the cause: its message may contain the whole URL.
            raise cannot_connect(self.place, self._password, error) from None
        try:
            _register(connection)
            if not self._pooled:
                connection.execute(_PREPARE.encode())
                self._meet(_timeline(connection))
        except psycopg.OperationalError as error:
            connection.close()
            raise connection_lost(self.place, error) from error
        except BaseException:
            connection.close()
            raise
        self._met = True
        return connection

    def ping(self, seconds: float) -> None:
        """Raise an error if the server takes no new connection; tries once."""
        limit = str(max(_SHORTEST_PING, round(seconds)))
        try:
            psycopg.connect(make_conninfo(self._conninfo, connect_timeout=limit), autocommit=True).close()
        except psycopg.Error as error:
            raise cannot_connect(self.place, self._password, error) from None

    def pids(self) -> list[int]:
        """The server's processes behind the idle connections."""
        with self._lock:
            return [connection.info.backend_pid for connection in self._idle]

    def vitals(self) -> Vitals:
        with self._lock:
            counted = (self._waited, self._reads, self._writes, self._retries, self._lost)
            return Vitals(self._in_use, len(self._idle), _CONNECTIONS, *counted, failovers=self.era)

    def _give(self, connection: Connection, begin: Sequence[str]) -> None:
        with self._lock:
            if begin:
                self._reads += "READ ONLY" in begin[0]
                self._writes += "READ ONLY" not in begin[0]
                self._lost += connection.broken
            fit = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
            if fit and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._owner != os.getpid():
            keep_inherited(*idle)
            return
        for connection in idle:
            connection.close()


# Connections of a parent process: kept, because closing one would end it for the parent too.
_INHERITED: list[Connection] = []


def keep_inherited(*connections: Connection) -> None:
    """Keep connections that this process must never use or close."""
    _INHERITED.extend(connections)


def _parts(url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.Error:
        # Without the cause: its message quotes the URL.
        raise ConfigurationError(
            "database_url cannot be read as the address of a PostgreSQL database.",
            remedy="Write postgresql://user:password@host:5432/database, with special signs percent-encoded.",
            field="database_url",
        ) from None


def _timeline(connection: Connection) -> tuple[Any, ...] | None:
    """The timeline of the server's log; None where a hosted server does not show its log."""
    try:
        return connection.execute(_TIMELINE.encode()).fetchone()
    except (psycopg.NotSupportedError, psycopg.ProgrammingError) as error:
        logger.debug("the timeline of the log is not known: %s", type(error).__name__)
        return None


def _place(parts: Mapping[str, Any]) -> str:
    """The location of the database, without the password."""
    hosts = str(parts.get("host") or parts.get("hostaddr") or "localhost").split(",")
    ports = str(parts.get("port") or "").split(",")
    # One port is for all hosts.
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    servers = ",".join(f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=True))
    return f"{servers}/{parts.get('dbname') or parts.get('user') or ''}"


# -- values ------------------------------------------------------------------------------------------

# A noncharacter of Unicode, which a text may nevertheless contain.
_ESCAPE = "\ufdd0"


class _NumberDumper(Dumper):
    """A number without a type: the server infers it from the context, as SQLite does."""

    oid = 0

    def dump(self, obj: Any) -> Buffer:
        return b"%d" % obj


class _TextDumper(Dumper):
    """A text without a type. PostgreSQL texts cannot contain U+0000, so it is escaped."""

    oid = 0

    def dump(self, obj: str) -> Buffer:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE) if _ESCAPE in text else text


class _NumericLoader(NumericBinaryLoader):
    """Sums of integers arrive as decimals; they are integers."""

    def load(self, data: Buffer) -> Any:
        value = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


def _register(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(int, _NumberDumper)
    connection.adapters.register_dumper(bool, _NumberDumper)
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_loader("text", _TextLoader)
    connection.adapters.register_loader("numeric", _NumericLoader)


_CHANNEL = "cortex_changes"
# A waiting thread notices within this time that it was closed.
_SLICE = 0.5
# Many changes in this time are reported at once.
_GAP = 0.02
# After the commit, in a transaction of its own: PostgreSQL lets commits that notify wait for each other, disk included.
# The payload is the schema: several stores in one database share the channel.
_ANNOUNCE = (
    f"BEGIN; SET LOCAL synchronous_commit = off; SELECT pg_notify('{_CHANNEL}', coalesce(current_schema(), '')); COMMIT"
)
# Earlier versions notified by triggers; a later step of the schema drops them.
NOTICES: tuple[str, ...] = (
    f"""CREATE FUNCTION tell_of_changes() RETURNS trigger LANGUAGE plpgsql
        SET search_path = pg_catalog AS $tell$
        BEGIN PERFORM pg_notify('{_CHANNEL}', TG_TABLE_SCHEMA); RETURN NULL; END $tell$""",
    *(
        f"CREATE TRIGGER tell_of_changes AFTER {events} ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION tell_of_changes()"
        for table, events in (("state", "UPDATE"), ("saved_change", "INSERT OR UPDATE"))
    ),
)
# One advisory lock for each schema and name; writers have another number.
_TRY = "SELECT pg_try_advisory_lock(1129601074, hashtext(coalesce(current_schema(), '') || ' ' || %s))"


class _OwnConnection:
    """A connection of one process, opened on first use. Not thread-safe; the owner holds a lock."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._owner = os.getpid()
        self.current: Connection | None = None

    @property
    def inherited(self) -> bool:
        """Whether it was opened before a fork, by another process."""
        return self._owner != os.getpid()

    def open(self) -> Connection:
        if self.current is None:
            self.current = self._pool.connect()
        return self.current

    def release(self) -> None:
        connection, self.current = self.current, None
        if connection is not None and self.inherited:
            # A forked process must neither use nor close a connection of its parent.
            keep_inherited(connection)
        elif connection is not None:
            with suppress(psycopg.Error):
                connection.close()
        self._owner = os.getpid()


class Leader:
    """The named locks that this process holds."""

    def __init__(self, pool: Pool) -> None:
        self._own = _OwnConnection(pool)
        self._lock = threading.Lock()
        self._held: set[str] = set()

    def leads(self, name: str) -> bool:
        """Whether this process holds the name; it takes it if no other does."""
        with self._lock:
            if self._own.inherited:
                self._release()
            try:
                return self._try(name)
            except psycopg.OperationalError as error:
                logger.debug("the connection of the leader was lost: %s", type(error).__name__)
                # All locks are lost with it; any process may take them now.
                self._release()
                return self._try(name)

    def _try(self, name: str) -> bool:
        connection = self._own.open()
        if name in self._held:
            connection.execute("SELECT 1")
            return True
        (taken,) = connection.execute(_TRY, (name,)).fetchone() or (False,)
        if taken:
            self._held.add(name)
        elif not self._held:
            # A process without a lock needs no connection.
            self._release()
        return bool(taken)

    def _release(self) -> None:
        self._held.clear()
        self._own.release()

    def close(self) -> None:
        with self._lock:
            # The server notices a closed connection a moment later; the next leader need not wait for that.
            if self._held and self._own.current is not None and not self._own.inherited:
                with suppress(psycopg.Error):
                    self._own.current.execute("SELECT pg_advisory_unlock_all()")
            self._release()


class Notices:
    """Reports changes to memories or prompts, and waits for those of any process.

    A process that is killed right after a commit does not report it: who waits also looks from time to time.
    """

    def __init__(self, pool: Pool, direct: Pool) -> None:
        self._pool = pool
        self._own = _OwnConnection(direct)
        self._lock = threading.Lock()
        self._schema = ""
        # The process in which a report is due.
        self._due = 0

    def announce(self) -> None:
        """Report a committed change soon."""
        with self._lock:
            if self._due == os.getpid():
                return
            self._due = os.getpid()
        timer = threading.Timer(_GAP, self._report)
        timer.daemon = True
        timer.start()

    def _report(self) -> None:
        with self._lock:
            due, self._due = self._due == os.getpid(), 0
        if not due:
            return
        try:
            with self._pool.connection() as connection:
                connection.execute(_ANNOUNCE.encode())
        except (StorageError, psycopg.Error) as error:
            logger.debug("a change was not reported: %s", type(error).__name__)

    def wait(self, seconds: float) -> bool:
        """Wait for the next change, at most that long; whether there was one, or may have been.

        The first call returns at once, and so does one whose connection is lost: nobody listened before.
        """
        connection = self._listening()
        if connection is None:
            return True
        until = time.monotonic() + seconds
        try:
            while connection is self._own.current and (left := until - time.monotonic()) > 0:
                heard = connection.notifies(timeout=min(left, _SLICE), stop_after=1)
                if any(notice.payload == self._schema for notice in heard):
                    return True
        except psycopg.Error as error:
            logger.debug("the connection that waits for changes was lost: %s", type(error).__name__)
            with self._lock:
                self._own.release()
            return True
        return False

    def _listening(self) -> Connection | None:
        """The connection; None if it was opened just now."""
        with self._lock:
            if self._own.inherited:
                self._own.release()
            if self._own.current is not None:
                return self._own.current
            try:
                connection = self._own.open()
                (self._schema,) = connection.execute("SELECT coalesce(current_schema(), '')").fetchone() or ("",)
                connection.execute(f"LISTEN {_CHANNEL}".encode())
            except BaseException:
                # A connection that does not listen would never report anything.
                self._own.release()
                raise
            return None

    def close(self) -> None:
        self._report()
        with self._lock:
            self._own.release()
