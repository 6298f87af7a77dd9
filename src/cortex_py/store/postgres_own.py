"""A connection beside those of the pool: of one process, made when it is first asked for, kept until it is let go."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import psycopg

from .postgres_pool import Connection, keep_inherited

__all__ = ["OwnConnection"]


class OwnConnection:
    """Not safe between threads; whoever has it holds a lock."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._owner = os.getpid()

    @property
    def inherited(self) -> bool:
        """Whether it was made before a fork: what was done on it was done by another process."""
        return self._owner != os.getpid()

    @property
    def current(self) -> Connection | None:
        return self._connection

    def opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self.inherited:
            # A forked process must not speak on its parent's connections, nor say goodbye on them.
            keep_inherited(connection)
        elif connection is not None:
            with suppress(psycopg.Error):
                connection.close()
        self._owner = os.getpid()
