"""Which of several processes does the work that only one shall do, by locks on a connection of its own.

The server lets go of the locks when the connection ends, however that comes; then another process may have them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg

from .postgres_own import OwnConnection
from .postgres_pool import Connection

__all__ = ["Leader"]

# Ours among the advisory locks of a database, one for each schema and name; writers have another number.
_TRY = "SELECT pg_try_advisory_lock(1129601074, hashtext(coalesce(current_schema(), '') || ' ' || %s))"


class Leader:
    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._own = OwnConnection(connect)
        self._lock = threading.Lock()
        self._held: set[str] = set()

    def leads(self, name: str) -> bool:
        """Whether the name is held by this process; taken if nobody else holds it."""
        with self._lock:
            if self._own.inherited:
                self._let_go()
            try:
                return self._ask(name)
            except psycopg.OperationalError:
                # The connection was lost, and with it what was held. Whoever is first now has it.
                self._let_go()
                return self._ask(name)

    def _ask(self, name: str) -> bool:
        connection = self._own.opened()
        if name in self._held:
            connection.execute("SELECT 1")
            return True
        (taken,) = connection.execute(_TRY, (name,)).fetchone() or (False,)
        if taken:
            self._held.add(name)
        elif not self._held:
            # A process that holds nothing keeps no connection for it.
            self._let_go()
        return bool(taken)

    def _let_go(self) -> None:
        self._held.clear()
        self._own.let_go()

    def close(self) -> None:
        with self._lock:
            self._let_go()
