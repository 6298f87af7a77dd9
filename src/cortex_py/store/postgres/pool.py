"""Connections to one PostgreSQL database: a bounded number, each used by one thread at a time.

A server that restarts is waited for: until the first statement of a transaction was answered nothing has been done,
so that much may be tried again. What breaks later is told to the caller.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from ..errors import ConfigurationError, StorageError, StoreBusy, StoreUnavailable
from .database import Vitals
from .postgres_errors import cannot_connect, connection_lost
from .postgres_values import register

__all__ = ["RETRY_SECONDS", "WAIT_SECONDS", "Connection", "Pool", "keep_inherited"]

_CONNECTIONS = 16
WAIT_SECONDS = 30
RETRY_SECONDS = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
# Less than this the driver does not take for a limit.
_SHORTEST_PING = 2
# The URL may say otherwise. A server that vanished is noticed within two minutes, not two hours.
_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "cortex",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
}
_PREPARE = (
    f"SET lock_timeout = '{WAIT_SECONDS}s'; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; "
    "SET bytea_output = 'hex'; "
    # The server's side of the same: a machine that vanished with a lock in hand lets go of it within two minutes.
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6; "
    # Statements are short: compiling one takes longer than it runs, and a second process longer to start.
    "SET jit = off; SET max_parallel_workers_per_gather = 0; "
    # How far an index of vectors is searched. An engine without pgvector takes them for names of nobody.
    "SET hnsw.ef_search = 300; SET hnsw.iterative_scan = 'relaxed_order'; SET hnsw.max_scan_tuples = 40000"
)

Connection = psycopg.Connection[tuple[Any, ...]]


class Pool:
    def __init__(self, url: str, retry_seconds: float = RETRY_SECONDS) -> None:
        parts = _parts(url)
        self._retry_seconds = retry_seconds
        self._conninfo = make_conninfo(**{**_DEFAULTS, **parts})
        self.place = _place(parts)
        self._password = str(parts.get("password") or "")
        self._idle: list[Connection] = []
        self._owner = os.getpid()
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._lock = threading.Lock()
        self._closed = False
        # Whether the server was ever reached: an address that is wrong is told at once.
        self._met = False
        self._in_use = self._waited = self._reads = self._writes = self._retries = self._lost = 0

    @contextmanager
    def connection(self, begin: str = "") -> Iterator[Connection]:
        """A connection for one thread, with a statement sent; it comes back only if it is fit for the next."""
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

    def _begun(self, begin: str) -> Connection:
        """A connection on which the statement was answered. A server that restarts is waited for, within bounds."""
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
            # Not all at the same moment: a server that comes up has enough to do.
            time.sleep(min(random.uniform(pause / 2, pause), max(0.0, until - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self, begin: str) -> Connection | None:
        """A connection; None if an idle one had been dropped, which shows only when it is used."""
        connection, fresh = self._take()
        try:
            if begin:
                connection.execute(begin.encode())
            return connection
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

    def _take(self) -> tuple[Connection, bool]:
        with self._lock:
            if self._closed:
                raise StorageError("The store is closed.", remedy="Open a new Cortex.")
            if self._owner != os.getpid():
                # A forked process must not speak on its parent's connections, nor say goodbye on them.
                keep_inherited(*self._idle)
                self._idle, self._owner = [], os.getpid()
            if self._idle:
                return self._idle.pop(), False
        return self.connect(), True

    def connect(self) -> Connection:
        """A connection beside those that are counted; whoever asks closes it."""
        try:
            connection = psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            # Without the cause: its own words may hold the whole URL.
            raise cannot_connect(self.place, self._password, error) from None
        try:
            register(connection)
            connection.execute(_PREPARE.encode())
        except psycopg.OperationalError as error:
            connection.close()
            raise connection_lost(self.place, error) from error
        except BaseException:
            connection.close()
            raise
        self._met = True
        return connection

    def ping(self, seconds: float) -> None:
        """Raise why the server takes no connection; it does not wait for those in use, and tries once."""
        limit = str(max(_SHORTEST_PING, round(seconds)))
        try:
            psycopg.connect(make_conninfo(self._conninfo, connect_timeout=limit), autocommit=True).close()
        except psycopg.Error as error:
            raise cannot_connect(self.place, self._password, error) from None

    def vitals(self) -> Vitals:
        with self._lock:
            counted = (self._waited, self._reads, self._writes, self._retries, self._lost)
            return Vitals(self._in_use, len(self._idle), _CONNECTIONS, *counted)

    def _give(self, connection: Connection, begin: str) -> None:
        with self._lock:
            if begin:
                self._reads += "READ ONLY" in begin
                self._writes += "READ ONLY" not in begin
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


# Connections of a parent process: kept, because letting go of one would end it for the parent too.
_INHERITED: list[Connection] = []


def keep_inherited(*connections: Connection) -> None:
    """Never to be spoken on or closed by this process."""
    _INHERITED.extend(connections)


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
