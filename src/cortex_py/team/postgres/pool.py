"""Connections to one PostgreSQL database: a bounded number, each used by one thread at a time.

The pool waits for a server that restarts, or for a replica that is promoted: until the first statement of a transaction
is answered, nothing was done and it can be retried. A connection that breaks later is an error for the caller.

A promoted replica, or a restored backup, continues on a new timeline of the log and may lack what was acknowledged
last. `era` counts these changes: what was cached in an earlier one is dropped. A server on an older timeline than the
last one was replaced, and is refused.

Behind a pooler such as PgBouncer in transaction mode (`pooled`), each transaction may run on another connection of the
server: settings go into every transaction, and no statement is prepared.

This is not `psycopg_pool`: that connects in threads of its own, so a refused password or an unreachable server is a
time-out without a reason, and its check of a connection is one more round trip for each transaction.
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
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from ...core.errors import ConfigurationError, StorageError, StoreBusy, StoreUnavailable
from ...core.jobs import renew_in_forks
from ...core.store.database import Vitals
from .errors import cannot_connect, connection_lost, is_read_only
from .values import register_values

__all__ = ["RETRY_SECONDS", "WAIT_SECONDS", "Connection", "ConnectionPool", "full_conninfo", "keep_inherited"]


logger = logging.getLogger(__name__)

_CONNECTIONS = 16
WAIT_SECONDS = 30.0
RETRY_SECONDS = 10.0
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
# Null on a replica.
_TIMELINE = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END"

Connection = psycopg.Connection[tuple[Any, ...]]


class ConnectionPool:
    def __init__(
        self,
        url: str,
        retry_seconds: float = RETRY_SECONDS,
        *,
        pooled: bool = False,
        replica: bool = False,
        connections: int = _CONNECTIONS,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`wait_seconds` limits the waits for one of so many `connections`, and for a lock of the server."""
        parts = _parts(url)
        self._conninfo = full_conninfo(url, replica=replica)
        self._retry_seconds = retry_seconds
        self._pooled = pooled
        # A server that cannot be written may be followed by another that can.
        self._may_change = pooled or _has_several_hosts(parts)
        self.place = _place(parts)
        self._password = str(parts.get("password") or "")
        self._size = connections
        self._wait_seconds = wait_seconds
        patience = {"lock_timeout": f"'{round(1_000 * wait_seconds)}ms'"}
        self._prepare = "; ".join(f"SET {name} = {value}" for name, value in (patience | _OF_CONNECTION).items())
        self._locally = "; ".join(f"SET LOCAL {name} = {value}" for name, value in (patience | _SETTINGS).items())
        self._idle: list[Connection] = []
        self._closed = False
        # Whether the server was ever reached: a wrong address fails at once.
        self._met = False
        self._timeline = 0
        self.era = 0
        self._waited = self._reads = self._writes = self._retries = self._lost = 0
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        """Begin without connections: a forked process must neither use nor close one of its parent."""
        keep_inherited(*self._idle)
        self._idle = []
        self._in_use = 0
        self._changed = threading.Condition()

    @contextmanager
    def connection(self, *begin: str) -> Iterator[Connection]:
        """A connection for one thread, on which `begin` was run; it is reused only if it is clean afterwards."""
        self._enter()
        process = os.getpid()
        connection: Connection | None = None
        try:
            connection = self._begun(begin)
            yield connection
        except BaseException:
            if connection is not None and os.getpid() == process:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
            raise
        finally:
            if os.getpid() == process:
                self._leave(connection, begin)
            elif connection is not None:
                keep_inherited(connection)

    def _enter(self) -> None:
        with self._changed:
            if self._in_use >= self._size:
                self._waited += 1
                if not self._changed.wait_for(lambda: self._in_use < self._size, self._wait_seconds):
                    raise StoreBusy(f"All connections to {self.place} are in use.", remedy="Try again.")
            self._in_use += 1

    def _leave(self, connection: Connection | None, begin: Sequence[str]) -> None:
        with self._changed:
            self._in_use -= 1
            self._changed.notify()
            if connection is None:
                return
            if begin:
                self._reads += "READ ONLY" in begin[0]
                self._writes += "READ ONLY" not in begin[0]
                self._lost += connection.broken
            fit = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
            if fit and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _begun(self, begin: Sequence[str]) -> Connection:
        """A connection on which the statements were answered; waits for a server that restarts, within bounds."""
        until, pause = time.monotonic() + self._retry_seconds, _FIRST_PAUSE
        while True:
            try:
                while (connection := self._attempt(begin)) is None:
                    pass
                return connection
            except (StoreBusy, StoreUnavailable) as error:
                worth_it = self._met or isinstance(error, StoreBusy)
                if not worth_it or time.monotonic() >= until:
                    raise
            with self._changed:
                self._retries += 1
            # Jitter, so that not all processes retry at the same moment.
            time.sleep(min(random.uniform(pause / 2, pause), max(0.0, until - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self, begin: Sequence[str]) -> Connection | None:
        """A connection; None if an idle one turned out to be broken."""
        with self._changed:
            if self._closed:
                raise StorageError("The store is closed.", remedy="Open a new Cortex.")
            idle = self._idle.pop() if self._idle else None
        connection = idle or self.connect()
        try:
            self.begin(connection, begin)
            return connection
        except BaseException as error:
            broken = connection.broken
            connection.close()
            if self._may_change and isinstance(error, psycopg.Error) and is_read_only(error):
                raise StoreBusy(f"The store at {self.place} cannot be written now.", remedy="Try again.") from error
            if not (broken and isinstance(error, psycopg.OperationalError)):
                raise
            if idle:
                return None
            raise connection_lost(self.place, error) from error

    def begin(self, connection: Connection, messages: Sequence[str]) -> None:
        """Run the statements that begin a transaction."""
        if self._pooled and messages:
            statement, *others = messages[0].split(";", 1)
            begun = connection.execute("; ".join((statement, _TIMELINE, self._locally, *others)).encode())
            begun.nextset()
            self._meet(begun.fetchone())
            messages = messages[1:]
        for message in messages:
            connection.execute(message.encode())

    def _meet(self, found: tuple[Any, ...] | None) -> None:
        """Note the timeline of a server, and refuse one that was replaced."""
        timeline = int(found[0], 16) if found and found[0] else 0
        with self._changed:
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
            register_values(connection)
            if not self._pooled:
                connection.execute(self._prepare.encode())
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
        with self._changed:
            return [connection.info.backend_pid for connection in self._idle]

    def vitals(self) -> Vitals:
        with self._changed:
            counted = (self._waited, self._reads, self._writes, self._retries, self._lost)
            return Vitals(self._in_use, len(self._idle), self._size, *counted, failovers=self.era)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
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


def full_conninfo(url: str, *, replica: bool = False) -> str:
    """The address with everything that it leaves open."""
    parts = _parts(url)
    several = _SEVERAL_REPLICAS if replica else _SEVERAL
    return make_conninfo(**{**_DEFAULTS, **(several if _has_several_hosts(parts) else {}), **parts})


def _has_several_hosts(parts: Mapping[str, Any]) -> bool:
    return "," in f"{parts.get('host')}{parts.get('hostaddr')}"


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
