"""SQLite behind the `Database` protocol, through apsw and its own current SQLite library.

Several processes share the file: WAL, every write transaction begins immediate (a deferred one
that turns into a writer cannot wait for its lock), and every commit reaches the disk before it is
acknowledged. Nothing else in the process may open this file.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from ..clock import Clock
from ..errors import (
    StorageError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreReadOnly,
    storage_error,
)
from ..tracing import span
from .bounds import Bounds
from .database import Row, Session, Sql, Vitals, marks
from .migrations import MIGRATIONS, migrate
from .nearest import Nearest

__all__ = ["SqliteDatabase", "open_sqlite"]

# Fixed in 3.51.3: before it, two processes in WAL mode can corrupt the file.
_SAFE_LIBRARY = (3, 51, 3)
_APPLICATION = 0x43545831
_BUSY_MS = 30_000
_LOOK_AGAIN_SECONDS = 0.01

_STEPS: dict[int, tuple[str, ...]] = {
    1: (
        # Words are hashes made by us; the engine keeps only which record holds which.
        "CREATE VIRTUAL TABLE memory_text USING fts5("
        "words, content='', contentless_delete=1, detail='none', tokenize='ascii')",
    ),
}
_ENGINE_STEPS = tuple(_STEPS.get(number, ()) for number in range(1, len(MIGRATIONS) + 1))


class _SqliteSession:
    bounds: Bounds | None = None

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        self._connection.execute(sql, params)

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        self._connection.executemany(sql, params)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks(len(columns))})", rows)

    def changed(self) -> int:
        return self._connection.changes()


class SqliteDatabase:
    """One file, a small pool of connections, each used by one thread at a time."""

    name = "sqlite"
    nearest: Nearest | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[apsw.Connection] = []
        self._open: set[apsw.Connection] = set()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False
        self._reads = self._writes = 0

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._transaction("BEGIN DEFERRED") as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        # Threads of one process take turns here; SQLite itself would have them try and sleep.
        if not self._writing.acquire(timeout=_BUSY_MS / 1000):
            raise StoreBusy(f"The store {self._path} is busy.", remedy="Try again.")
        try:
            with self._transaction("BEGIN IMMEDIATE") as session:
                yield session
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Session]:
        access = "read" if begin == "BEGIN DEFERRED" else "write"
        with span(f"store {access}", {"db.system.name": self.name}), _translated(self._path):
            connection = self._take()
            with self._lock:
                self._reads += access == "read"
                self._writes += access == "write"
            try:
                connection.execute(begin)
                try:
                    yield _SqliteSession(connection)
                except BaseException:
                    _roll_back(connection)
                    raise
                try:
                    connection.execute("COMMIT")
                except apsw.Error:
                    _roll_back(connection)
                    raise
            finally:
                self._give(connection)

    def _take(self) -> apsw.Connection:
        with self._lock:
            if self._closed:
                raise StorageError("The store is closed.", remedy="Open a new Cortex.")
            if self._idle:
                return self._idle.pop()
        connection = _connect(self._path)
        with self._lock:
            self._open.add(connection)
        return connection

    def _give(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def has_table(self, session: Session, name: str) -> bool:
        return bool(session.rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)))

    def new_numbers(self, session: Session, spaces: Sequence[str]) -> list[int]:
        (last,) = session.rows("SELECT COALESCE(max(num), 0) FROM memory")[0]
        return list(range(last + 1, last + 1 + len(spaces)))

    # One file holds all spaces, and its text index knows records by their number.

    def index_texts(self, session: Session, entries: Sequence[tuple[str, int, str]]) -> None:
        session.run_many("INSERT INTO memory_text (rowid, words) VALUES (?, ?)", [entry[1:] for entry in entries])

    def index_text(self, session: Session, space: str, num: int, words: str) -> None:  # noqa: ARG002
        session.run("INSERT OR REPLACE INTO memory_text (rowid, words) VALUES (?, ?)", (num, words))

    def unindex_text(self, session: Session, space: str, num: int) -> None:  # noqa: ARG002
        session.run("DELETE FROM memory_text WHERE rowid = ?", (num,))

    def text_matches(
        self,
        session: Session,
        space: str,  # noqa: ARG002
        words: Sequence[str],
        space_words: Sequence[str],
        limit: int,
        above: int = 0,
    ) -> list[list[int]]:
        within = f" AND ({' OR '.join(space_words)})" if space_words else ""
        newer, least = ("WHERE rowid > ? ", (above,)) if above > 0 else ("", ())
        statement = f"SELECT rowid FROM memory_text(?) {newer}ORDER BY rowid DESC LIMIT ?"
        return [[row[0] for row in session.rows(statement, (word + within, *least, limit))] for word in words]

    def text_condition(
        self,
        session: Session,  # noqa: ARG002
        spaces: Sequence[str],  # noqa: ARG002
        words: Sequence[str],
    ) -> tuple[str, list[Sql]]:
        return "m.num IN (SELECT rowid FROM memory_text(?))", [" AND ".join(words)]

    def wait_for_change(self, seconds: float, /) -> bool | None:  # noqa: ARG002
        """The file tells nobody; whoever wants to know looks again."""
        return None

    def compact(self) -> None:
        with _translated(self._path):
            connection = self._take()
            try:
                connection.execute("PRAGMA incremental_vacuum")
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._give(connection)

    def check(self) -> list[str]:
        with self.read() as session:
            found = [str(row[0]) for row in session.rows("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def size_bytes(self) -> int:
        total = 0
        for suffix in ("", "-wal"):
            try:
                total += os.stat(f"{self._path}{suffix}").st_size  # noqa: PTH116 - the suffix is not a path part
            except FileNotFoundError:
                continue
        return total

    def ping(self, _seconds: float, /) -> None:
        """A file needs no way to it; that it can be read is all there is to see."""
        with self.read() as session:
            session.rows("SELECT 1 FROM sqlite_schema LIMIT 1")

    def leads(self, _name: str, /) -> bool:
        """Every process of a machine may: each finds only what the others have left, in transactions of its own."""
        return True

    def vitals(self) -> Vitals:
        with self._lock:
            return Vitals(
                len(self._open) - len(self._idle),
                len(self._idle),
                len(self._open),
                reads=self._reads,
                writes=self._writes,
            )

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            self._open.clear()
        for connection in idle:
            connection.close()


def open_sqlite(path: Path, clock: Clock) -> SqliteDatabase:
    """Open or create the store's file and bring its schema up to date."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < _SAFE_LIBRARY:
        raise StorageError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a store that several processes share.",
            remedy="Install a current apsw: pip install -U apsw.",
        )
    _make_folder(path.parent)
    database = SqliteDatabase(path)
    try:
        migrate(database, clock, _ENGINE_STEPS)
    except BaseException:
        database.close()
        raise
    return database


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise storage_error(error, folder) from error


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(_BUSY_MS)
        (found,) = connection.execute("PRAGMA application_id").fetchone() or (0,)
        if found == 0:
            _prepare(connection, path)
        elif found != _APPLICATION:
            raise StoreCorrupt(
                f"{path} is a database of another program.", remedy="Choose another home; it was not touched."
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        # What is purged is overwritten, not only unlinked.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    """Mark an empty file as ours. A file that already holds tables is not ours to mark."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() or (0,)
    if tables:
        # Another process may have marked it between our two looks.
        (found,) = connection.execute("PRAGMA application_id").fetchone() or (0,)
        if found == _APPLICATION:
            return
        raise StoreCorrupt(
            f"{path} is a database of another program.", remedy="Choose another home; it was not touched."
        )
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _write_ahead(connection)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    # The file holds private notes: nobody but the owner reads it, whatever the umask says.
    for suffix in ("", "-wal", "-shm"):
        try:
            os.chmod(f"{path}{suffix}", 0o600)  # noqa: PTH101 - the suffix is not a path part
        except FileNotFoundError:
            continue


def _write_ahead(connection: apsw.Connection) -> None:
    """Choose the write-ahead log. SQLite does not wait where two processes change the mode of a new file at once."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_AGAIN_SECONDS)
        else:
            return


def _roll_back(connection: apsw.Connection) -> None:
    # A full disk or an interrupt may have rolled back already.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Engine errors as ours, each with what to do about it."""
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusy(
            f"{path} stayed locked by another process for {_BUSY_MS // 1000} seconds.",
            remedy="Nothing was written; try again.",
        ) from error
    except apsw.FullError as error:
        raise StoreFull(
            f"The disk that holds {path} is full.", remedy="Nothing was written; free some space and repeat."
        ) from error
    except apsw.ReadOnlyError as error:
        raise StoreReadOnly(
            f"{path} cannot be written.",
            remedy="Make the home folder writable, or set CORTEX_HOME to one that is.",
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(
            f"{path} is damaged or not a Cortex store.",
            remedy="It was left untouched; restore it from a backup, or move it away to begin anew.",
        ) from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError) as error:
        raise _cannot_open(path) from error
    except apsw.IOError as error:
        if isinstance(error.__cause__, OSError):
            raise storage_error(error.__cause__, path) from error
        raise StorageError(f"Reading or writing {path} failed: {error}.", remedy="Check the disk.") from error


def _cannot_open(path: Path) -> StorageError:
    folder = path.parent
    if folder.exists() and not os.access(folder, os.W_OK) and os.access(folder, os.R_OK | os.X_OK):
        return StoreReadOnly(
            f"The folder {folder} cannot be written.",
            remedy="Make it writable, or set CORTEX_HOME to a folder that is.",
        )
    return StoreDenied(f"{path} cannot be opened.", remedy="Check the owner and the permissions of the home folder.")
