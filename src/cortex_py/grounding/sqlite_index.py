"""The file in the home that holds what was read of one project folder: its definitions, its words, its history.

All of it can be read again from the folder, so that losing the file costs time and nothing else: a damaged one is begun
anew, and where none can be kept, the index lives in memory as long as the process. Several processes may use the file:
each writes what it found, and what two find is the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ..errors import StorageError

__all__ = ["IndexFile", "Rows"]

Rows = list[tuple[Any, ...]]
_T = TypeVar("_T")

_BUSY_MS = 5_000
# Grows with the tables or with what is read into them: a file of another layout is begun anew.
_LAYOUT = 1
# Names keep their underscores; all else that is written into a word column is separated by spaces.
_WORDS = "tokenize=\"unicode61 remove_diacritics 0 tokenchars '_$'\", content='', contentless_delete=1"
_SCHEMA = f"""
CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, name TEXT NOT NULL, mark TEXT NOT NULL,
    state TEXT NOT NULL, lines INTEGER NOT NULL);
CREATE INDEX file_name ON file (name);
CREATE TABLE symbol (file INTEGER NOT NULL, name TEXT NOT NULL, lower TEXT NOT NULL, qualified TEXT NOT NULL,
    kind TEXT NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL);
CREATE INDEX symbol_file ON symbol (file);
CREATE INDEX symbol_lower ON symbol (lower);
CREATE TABLE import (file INTEGER NOT NULL, module TEXT NOT NULL, names TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX import_file ON import (file);
CREATE TABLE dependency (file INTEGER NOT NULL, name TEXT NOT NULL, wanted TEXT NOT NULL, version TEXT,
    line INTEGER NOT NULL, sort TEXT NOT NULL);
CREATE INDEX dependency_file ON dependency (file);
CREATE TABLE setting (file INTEGER NOT NULL, key TEXT NOT NULL, last TEXT NOT NULL, value TEXT NOT NULL,
    line INTEGER NOT NULL);
CREATE INDEX setting_file ON setting (file);
CREATE INDEX setting_last ON setting (last);
CREATE TABLE stated (file INTEGER NOT NULL, name TEXT, version TEXT NOT NULL, line INTEGER NOT NULL);
CREATE INDEX stated_file ON stated (file);
CREATE VIRTUAL TABLE word USING fts5 (words, detail=none, {_WORDS});
CREATE TABLE revision (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, parents TEXT NOT NULL, time INTEGER NOT NULL,
    author TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL, whole INTEGER NOT NULL);
CREATE TABLE change (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, path TEXT NOT NULL, old_path TEXT,
    name TEXT NOT NULL, status TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL);
CREATE INDEX change_revision ON change (revision);
CREATE INDEX change_name ON change (name);
CREATE VIRTUAL TABLE change_word USING fts5 (introduced, dropped, touched, detail=column, {_WORDS});
CREATE VIRTUAL TABLE message_word USING fts5 (words, detail=none, {_WORDS});
"""


# What says nothing against the content of the file: it may not be written, or not now.
_OUT_OF_REACH = (
    apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError, apsw.FullError, apsw.IOError,
    apsw.BusyError, apsw.LockedError, OSError,
)  # fmt: skip
# Connections of the process that this one was forked from: it may neither use nor close them.
_INHERITED: list[apsw.Connection] = []


class _Failed(Exception):
    """The index did not do what was asked of it; `opening` tells which of its connections that was."""

    def __init__(self, opening: int) -> None:
        super().__init__("the index of the project failed")
        self.opening = opening


class IndexFile:
    """One connection to the file, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path: Path | None = path
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._process: int | None = None
        self._openings = 0

    @property
    def opening(self) -> int:
        """Which connection is in use, counted from 1: what an earlier one had in it need not be there any more."""
        with self._lock, self._failing():
            self._opened()
            return self._openings

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """One transaction; nothing of it stays where it fails."""
        with self._lock, self._failing():
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> Rows:
        with self._lock, self._failing():
            return self._opened().execute(statement, values).fetchall()

    def value(self, key: str) -> str:
        """A note that was kept under a key, "" for none."""
        found = self.rows("SELECT value FROM note WHERE key = ?", (key,))
        return str(found[0][0]) if found else ""

    def guarded(self, work: Callable[[], _T]) -> _T:
        """Do the work; where the file turns out to be damaged, begin it anew and do the work once more.

        Where that does not help either, or the file cannot be written, it is done with an index in memory.
        """
        for mend in (self._begin_anew, self._leave):
            try:
                return work()
            except _Failed as failed:
                with self._lock:
                    # Otherwise another thread has seen to it.
                    if failed.opening == self._openings:
                        (self._leave if isinstance(failed.__cause__, _OUT_OF_REACH) else mend)()
        try:
            return work()
        except _Failed as failed:
            raise StorageError(
                f"The index of the project failed: {failed.__cause__}", remedy="Try again, or look at 'cortex doctor'."
            ) from failed

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise _Failed(self._openings) from error

    def _begin_anew(self) -> None:
        """Delete the file; it is made again when it is next used."""
        self.close()
        if (path := self._path) is None:
            return
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                path.with_name(path.name + suffix).unlink()

    def _leave(self) -> None:
        """Go on without the file, in memory."""
        self.close()
        self._path = None

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            elif self._connection is not None:
                _INHERITED.append(self._connection)
            self._connection = None

    def _opened(self) -> apsw.Connection:
        # A connection must not be used in a process that was forked from the one that made it.
        if self._process != os.getpid():
            self.close()
        if self._connection is None:
            self._connection = self._open()
            self._process = os.getpid()
        return self._connection

    def _open(self) -> apsw.Connection:
        self._openings += 1
        if self._path is not None:
            try:
                return self._open_file(self._path)
            except _OUT_OF_REACH:
                self._path = None
        return _prepared(apsw.Connection(":memory:"))

    def _open_file(self, path: Path) -> apsw.Connection:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            # For the owner alone from the beginning: the files beside it take their permissions from it.
            path.touch(mode=0o600, exist_ok=False)
        connection = apsw.Connection(str(path))
        try:
            return _prepared(connection)
        except BaseException:
            connection.close()
            raise


def _prepared(connection: apsw.Connection) -> apsw.Connection:
    """With the tables in it; those of another layout are taken away."""
    connection.set_busy_timeout(_BUSY_MS)
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000")
    connection.execute("BEGIN IMMEDIATE")
    if connection.pragma("user_version") != _LAYOUT:
        _clear(connection)
        connection.execute(_SCHEMA)
        connection.pragma("user_version", _LAYOUT)
    connection.execute("COMMIT")
    return connection


def _clear(connection: apsw.Connection) -> None:
    """Take away the tables of another layout. Virtual ones first: they take the tables behind them along."""
    wanted = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    for kind in (" AND sql LIKE 'CREATE VIRTUAL%'", ""):
        for (name,) in connection.execute(wanted + kind).fetchall():
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')
