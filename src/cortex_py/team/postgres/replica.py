"""Reads from a streaming replica: never without what this process has written or read from the primary before.

A position in the write-ahead log is known after each commit. A read that may be behind asks the replica whether it has
replayed that position, waits for it shortly, and is otherwise answered by the primary. So is one whose replica is away,
or is none: a promoted server goes on without the former primary.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import psycopg

from ...core.errors import StorageError
from .pool import Connection, ConnectionPool

__all__ = ["ReplicaReads"]

logger = logging.getLogger(__name__)

# How long a read waits for its position; the primary answers sooner than a replica that is further behind.
_WAIT_SECONDS, _PAUSE_SECONDS = 0.05, 0.005
# After a replica did not answer, reads leave it alone for so long.
_AWAY_SECONDS = 5.0
_REPLAYED = b"SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() - '0/0', -1)"
_WRITTEN = b"SELECT pg_current_wal_insert_lsn() - '0/0'"
# What a replica can have received: the end of the log may stay in memory for as long as nobody commits.
_SENDABLE = b"SELECT pg_current_wal_flush_lsn() - '0/0'"


class ReplicaReads:
    def __init__(self, url: str, *, pooled: bool = False) -> None:
        # No retries: the primary answers meanwhile.
        self.pool = ConnectionPool(url, 0, pooled=pooled, replica=True)
        self._lock = threading.Lock()
        # The position up to which this process has seen the log; None where it is not known.
        self._seen: int | None = 0
        self._away_until = 0.0
        self.reads = self.passed = 0

    def see(self, primary: Connection) -> None:
        """Reads from now on are not older than what the primary has now; called after a commit there."""
        try:
            self._see(_number(primary, _WRITTEN))
        except psycopg.Error as error:
            logger.debug("the position of a commit is not known: %s", type(error).__name__)
            self.lose_sight()

    def lose_sight(self) -> None:
        """A commit of which nothing is known: the primary answers until a position is known again."""
        with self._lock:
            self._seen = None

    def _see(self, position: int) -> None:
        with self._lock:
            self._seen = max(self._seen or 0, position)

    def begin(self, stack: ExitStack, messages: Sequence[str]) -> Connection | None:
        """A connection on which a transaction has begun that is not too old; None if the primary has to answer."""
        connection = self._begun(stack, messages) if time.monotonic() >= self._away_until else None
        with self._lock:
            self.reads += connection is not None
            self.passed += connection is None
        return connection

    def _begun(self, stack: ExitStack, messages: Sequence[str]) -> Connection | None:
        try:
            with ExitStack() as own:
                connection = own.enter_context(self.pool.connection())
                if not self._has_replayed(connection):
                    return None
                # Only now: the transaction sees the moment of its first statement.
                self.pool.begin(connection, messages)
                stack.push(own.pop_all())
                return connection
        except (StorageError, psycopg.Error) as error:
            logger.warning("the replica at %s does not answer: %s", self.pool.place, type(error).__name__)
            self._away_until = time.monotonic() + _AWAY_SECONDS
            return None

    def _has_replayed(self, connection: Connection) -> bool:
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            with self._lock:
                seen = self._seen
            in_recovery, position = connection.execute(_REPLAYED).fetchone() or (False, -1)
            if seen is None or not in_recovery:
                return False
            if position >= seen:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE_SECONDS)

    def lag(self, primary: ConnectionPool) -> int | None:
        """How many bytes of the log it has not replayed; None if it cannot be asked."""
        try:
            with primary.connection() as there:
                written = _number(there, _SENDABLE)
            with self.pool.connection() as here:
                in_recovery, position = here.execute(_REPLAYED).fetchone() or (False, -1)
        except (StorageError, psycopg.Error) as error:
            logger.debug("the lag of the replica is not known: %s", type(error).__name__)
            return None
        return max(0, written - int(position)) if in_recovery else None

    def close(self) -> None:
        self.pool.close()


def _number(connection: psycopg.Connection[Any], statement: bytes) -> int:
    (found,) = connection.execute(statement).fetchone() or (0,)
    return int(found)
