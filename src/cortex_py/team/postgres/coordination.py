"""What the processes of one store agree on, over connections of their own beside the pool: which process does work that
only one may do, and notices of changes.

The server releases the locks of a leader when its connection ends; then another process may take them.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress

import psycopg

from ...core.errors import StorageError
from ...core.jobs import renew_in_forks
from .pool import Connection, ConnectionPool, keep_inherited

__all__ = ["Leader", "Notices"]

logger = logging.getLogger(__name__)

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
# One advisory lock for each schema and name; writers have another number.
_TRY = "SELECT pg_try_advisory_lock(1129601074, hashtext(coalesce(current_schema(), '') || ' ' || %s))"


class _BesidePool:
    """A connection that is opened on first use; a forked process opens its own."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._connections = pool
        self._current: Connection | None = None
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        if self._current is not None:
            keep_inherited(self._current)
            self._current = None

    def _open(self) -> Connection:
        if self._current is None:
            self._current = self._connections.connect()
        return self._current

    def _release(self) -> None:
        connection, self._current = self._current, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()


class Leader(_BesidePool):
    """The named locks that this process holds."""

    def renew(self) -> None:
        super().renew()
        self._held: set[str] = set()

    def leads(self, name: str) -> bool:
        """Whether this process holds the name; it takes it if no other does."""
        with self._lock:
            try:
                return self._try(name)
            except psycopg.OperationalError as error:
                logger.debug("the connection of the leader was lost: %s", type(error).__name__)
                # All locks are lost with it; any process may take them now.
                self._release()
                return self._try(name)

    def _try(self, name: str) -> bool:
        connection = self._open()
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
        super()._release()

    def close(self) -> None:
        with self._lock:
            # The server notices a closed connection a moment later; the next leader need not wait for that.
            if self._held and self._current is not None:
                with suppress(psycopg.Error):
                    self._current.execute("SELECT pg_advisory_unlock_all()")
            self._release()


class Notices(_BesidePool):
    """Reports changes to memories or prompts, and waits for those of any process.

    A process that is killed right after a commit does not report it: who waits also looks from time to time.
    """

    def __init__(self, pool: ConnectionPool, direct: ConnectionPool) -> None:
        super().__init__(direct)
        self._pool = pool
        self._schema = ""

    def renew(self) -> None:
        super().renew()
        self._is_due = False

    def announce(self) -> None:
        """Report a committed change soon."""
        with self._lock:
            if self._is_due:
                return
            self._is_due = True
        timer = threading.Timer(_GAP, self._report)
        timer.daemon = True
        timer.start()

    def _report(self) -> None:
        with self._lock:
            due, self._is_due = self._is_due, False
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
            while connection is self._current and (left := until - time.monotonic()) > 0:
                heard = connection.notifies(timeout=min(left, _SLICE), stop_after=1)
                if any(notice.payload == self._schema for notice in heard):
                    return True
        except psycopg.Error as error:
            logger.debug("the connection that waits for changes was lost: %s", type(error).__name__)
            with self._lock:
                self._release()
            return True
        return False

    def _listening(self) -> Connection | None:
        """The connection; None if it was opened just now."""
        with self._lock:
            if self._current is not None:
                return self._current
            try:
                connection = self._open()
                (self._schema,) = connection.execute("SELECT coalesce(current_schema(), '')").fetchone() or ("",)
                connection.execute(f"LISTEN {_CHANNEL}".encode())
            except BaseException:
                # A connection that does not listen would never report anything.
                self._release()
                raise
            return None

    def close(self) -> None:
        self._report()
        with self._lock:
            self._release()
