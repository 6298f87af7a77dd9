"""How every SQLite file of the home is opened: readable by its owner only, with the key of the home, by the process
that uses it, and read-only if it cannot be written.

SQLite keeps its locks per process, in memory that a fork copies: a child would believe it holds its parent's locks. So
every file is closed before a fork and opened again after it, in both processes. If that is impossible, because a
transaction is open, the child refuses to open the file.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from weakref import WeakSet

import apsw

from .errors import ConfigurationError, StorageError, StoreBusy, StoreReadOnly, storage_error
from .paths import open_regular

__all__ = ["CIPHER", "SqliteFile", "can_encrypt", "check_library", "connect", "is_plain", "remove"]

logger = logging.getLogger(__name__)

CIPHER = "chacha20"

# Before 3.51.3, two processes in WAL mode can corrupt the file.
_SAFE_LIBRARY = (3, 51, 3)
_PLAIN_START = b"SQLite format 3\0"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
# How long a fork waits for transactions of other threads.
_FORK_WAIT_SECONDS = 5.0

_Stamp = tuple[tuple[int, int, int] | None, ...]


def check_library() -> None:
    """Raise an error if this SQLite can corrupt a file that several processes share."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < _SAFE_LIBRARY:
        raise StorageError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a store that several processes share.",
            remedy="Install a current version: pip install -U apsw-sqlite3mc.",
        )


def can_encrypt() -> bool:
    """Whether this SQLite supports encryption."""
    return hasattr(apsw, "mc_version")


def is_plain(path: Path) -> bool:
    """Whether the file exists and is not encrypted."""
    try:
        with open_regular(path) as file:
            return file.read(len(_PLAIN_START)) == _PLAIN_START
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error, path) from error


def remove(path: Path) -> None:
    """Remove a file and those that SQLite keeps beside it."""
    for suffix in _SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def connect(path: Path, key: bytes | None, busy_ms: int, *, uri: bool = False) -> apsw.Connection:
    """Open a file, which is created if it is missing, or read-only if it cannot be written.

    `uri`: statements may name other files by URI. Raises the errors of SQLite and of the operating system.
    """
    _refuse_inherited(path)
    if not path.exists():
        # Readable by the owner only from the start: the files beside it inherit its permissions.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | (apsw.SQLITE_OPEN_URI if uri else 0)
    connection = _keyed(apsw.Connection(str(path), flags=flags), key, busy_ms)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
        if os.access(path.parent, os.W_OK) or not os.access(path, os.R_OK):
            raise
        connection = _immutable(path, key, busy_ms)
    except BaseException:
        connection.close()
        raise
    return connection


def _immutable(path: Path, key: bytes | None, busy_ms: int) -> apsw.Connection:
    """A connection without locks, for a folder in which SQLite cannot create the files for its locks.

    The file is consistent if there is no log beside it. `SqliteFile` checks before and after every use whether another
    user has written it.
    """
    if _size(path.with_name(f"{path.name}-wal")):
        raise StoreReadOnly(
            f"{path} has changes in a log beside it, which cannot be read where the folder cannot be written.",
            remedy="Copy the folder to a place that can be written.",
        )
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return _keyed(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags), key, busy_ms)


def _keyed(connection: apsw.Connection, key: bytes | None, busy_ms: int) -> apsw.Connection:
    try:
        connection.set_busy_timeout(busy_ms)
        if key is not None:
            if not can_encrypt():
                raise ConfigurationError(
                    "The home is encrypted, and the SQLite of this Python knows no ciphers.",
                    remedy="Run: pip uninstall -y apsw && pip install --force-reinstall --no-deps apsw-sqlite3mc",
                )
            connection.execute(f"PRAGMA cipher = '{CIPHER}'")
            # A raw key: deriving one would cost time for every connection.
            connection.execute(f"PRAGMA key = 'raw:{key.hex()}'")
        connection.execute("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _stamp(path: Path) -> _Stamp:
    """A value that differs after the file or its log was written or replaced."""
    found: list[tuple[int, int, int] | None] = []
    for suffix in ("", "-wal"):
        try:
            state = path.with_name(path.name + suffix).stat()
        except OSError:
            found.append(None)
        else:
            found.append((state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)


class SqliteFile:
    """A file and this process's connections to it, each used by one thread at a time.

    `make` opens a connection. A path of None is a database in memory, which no fork closes.
    """

    def __init__(self, path: Path | None, make: Callable[[], apsw.Connection]) -> None:
        self.path = path
        # For callers that need one thread at a time; a forked child has a new one.
        self.lock = threading.RLock()
        self._make = make
        self._changed = threading.Condition()
        self._idle: list[apsw.Connection] = []
        self._used: set[apsw.Connection] = set()
        # The threads that use a connection or open one.
        self._threads: list[int] = []
        self._is_forking = False
        self._stamps: dict[apsw.Connection, _Stamp] = {}
        self._begun: Counter[str] = Counter()
        self._closed = False
        self._clean = True
        _files.add(self)

    @contextlib.contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """A connection for the block."""
        connection = self._take()
        process = os.getpid()
        try:
            yield connection
            if not self._is_current(connection):
                raise StoreBusy(f"{self.path} changed while it was read.", remedy="Try again.")
        finally:
            # In a child that was forked meanwhile, the connection belongs to the parent.
            if os.getpid() == process:
                self._give(connection)

    @contextlib.contextmanager
    def transaction(self, begin: str, around: tuple[str, str] | None = None) -> Iterator[apsw.Connection]:
        """A transaction for the block; an error rolls it back. `around` are statements to run before and after it."""
        with self.connection() as connection:
            process = os.getpid()
            with self._changed:
                self._begun[begin] += 1
            if around is not None:
                connection.execute(around[0])
            try:
                connection.execute(begin)
                yield connection
                if os.getpid() != process:
                    raise StorageError(
                        f"This process was forked while {self.path} was in use.",
                        remedy="Fork before the work begins, or start a new process.",
                    )
                connection.execute("COMMIT")
            except BaseException:
                # A full disk or an interrupt may have rolled back already.
                if os.getpid() == process and connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                if around is not None and os.getpid() == process:
                    connection.execute(around[1])

    def _take(self) -> apsw.Connection:
        with self._changed:
            # A thread that has one already is waited for, and goes on.
            while self._is_forking and threading.get_ident() not in self._threads:
                self._changed.wait()
            if self._closed:
                raise StorageError("The store is closed.", remedy="Open a new Cortex.")
            while self._idle:
                connection = self._idle.pop()
                if self._is_current(connection):
                    self._used.add(connection)
                    self._threads.append(threading.get_ident())
                    return connection
                del self._stamps[connection]
                connection.close()
            self._threads.append(threading.get_ident())
        try:
            # Taken before the file is read: a write in between counts as a change.
            stamp = _stamp(self.path) if self.path is not None else None
            connection = self._make()
        except BaseException:
            self._leave()
            raise
        with self._changed:
            self._used.add(connection)
            if stamp is not None and connection.open_flags & apsw.SQLITE_OPEN_READONLY:
                self._stamps[connection] = stamp
        return connection

    def _give(self, connection: apsw.Connection) -> None:
        with self._changed:
            self._used.discard(connection)
            self._leave()
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _leave(self) -> None:
        with self._changed:
            self._threads.remove(threading.get_ident())
            self._changed.notify_all()

    def _is_current(self, connection: apsw.Connection) -> bool:
        stamp = self._stamps.get(connection)
        return stamp is None or self.path is None or _stamp(self.path) == stamp

    def counts(self) -> tuple[int, int]:
        """How many connections are in use, and how many are idle."""
        with self._changed:
            return len(self._used), len(self._idle)

    def begun(self, begin: str) -> int:
        """How many transactions began with a statement."""
        with self._changed:
            return self._begun[begin]

    def close(self, *, for_good: bool = True) -> None:
        """Close idle connections now, and those in use when they are returned."""
        with self._changed:
            self._closed = for_good
            idle, self._idle = self._idle, []
            self._stamps.clear()
        for connection in idle:
            connection.close()

    # -- forks -----------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait until no other thread uses a connection, let none begin to, and close all; `_changed` stays locked."""
        self._changed.acquire()
        self._is_forking = True
        if self.path is None:
            return
        deadline = time.monotonic() + _FORK_WAIT_SECONDS
        own = threading.get_ident()
        while self._threads and own not in self._threads:
            if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                break
        self._clean = not self._threads
        if self._clean:
            while self._idle:
                self._idle.pop().close()
            self._stamps.clear()

    def after_fork_in_parent(self) -> None:
        self._is_forking = False
        self._changed.notify_all()
        self._changed.release()

    def after_fork_in_child(self) -> None:
        for connection in (*self._idle, *self._used):
            _leave_alone(connection)
        if not self._clean and self.path is not None:
            _mark_inherited(self.path)
        self.lock = threading.RLock()
        self._changed = threading.Condition()
        self._is_forking = False
        self._idle, self._used, self._threads, self._stamps = [], set(), [], {}


_files: WeakSet[SqliteFile] = WeakSet()
_forking: list[SqliteFile] = []
# Files that the parent was using at the moment of the fork, by device and inode.
_inherited: set[tuple[int, int]] = set()


def _leave_alone(connection: apsw.Connection) -> None:
    """Never close a connection of the parent, not even at exit: that would remove the parent's log."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _mark_inherited(path: Path) -> None:
    try:
        state = path.stat()
    except OSError as error:
        logger.debug("an inherited file was not marked: %s", type(error).__name__)
    else:
        _inherited.add((state.st_dev, state.st_ino))


def _refuse_inherited(path: Path) -> None:
    if not _inherited:
        return
    with contextlib.suppress(FileNotFoundError):
        state = path.stat()
        if (state.st_dev, state.st_ino) in _inherited:
            raise StorageError(
                f"This process was forked while {path} was in use.",
                remedy="Fork before the work begins, or start a new process.",
            )


def _before() -> None:
    _forking[:] = list(_files)
    for file in _forking:
        file.before_fork()


def _in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()


def _in_child() -> None:
    while _forking:
        _forking.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
