"""Being told of changes: the server notifies whoever listens when memories or prompts have changed, in any process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg

from .postgres_own import OwnConnection
from .postgres_pool import Connection

__all__ = ["NOTICES", "Notices"]

_CHANNEL = "cortex_changes"
# Whoever closes it is noticed this soon.
_SLICE = 0.5
# By triggers, so that no statement can forget it and none costs a journey more. The schema is what was changed in:
# several stores in one database share the channel.
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


class Notices:
    """One connection that listens, made when first needed."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._own = OwnConnection(connect)
        self._lock = threading.Lock()
        self._schema = ""

    def wait(self, seconds: float) -> bool:
        """Wait for the next change, at most that long. A first call returns at once: nothing was heard before it.

        Whether there was one, or might have been: a lost connection has told nothing.
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
        except psycopg.Error:
            self.close()
            return True
        return False

    def _listening(self) -> Connection | None:
        """The connection; None where it was only made just now."""
        with self._lock:
            if self._own.inherited:
                self._own.let_go()
            if self._own.current is not None:
                return self._own.current
            try:
                self._listen(self._own.opened())
            except BaseException:
                # One that does not listen would be waited on in vain.
                self._own.let_go()
                raise
            return None

    def _listen(self, connection: Connection) -> None:
        (self._schema,) = connection.execute("SELECT coalesce(current_schema(), '')").fetchone() or ("",)
        connection.execute(f"LISTEN {_CHANNEL}".encode())

    def close(self) -> None:
        with self._lock:
            self._own.let_go()
