"""SQLite behind the `Database` protocol, through apsw and its own current SQLite library.

Several processes share the file: WAL, every write transaction begins immediate (a deferred one that turns into a
writer cannot wait for its lock), and every commit reaches the disk before it returns. Nothing else in the process may
open this file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from ..clock import Clock, check_deadline, deadline_is_over
from ..errors import StorageError, StoreBusy, StoreCorrupt, StoreDenied, StoreFull, StoreReadOnly, storage_error
from ..jobs import span
from ..sqlite_file import CIPHER, SqliteFile, check_library, connect, is_plain, remove
from .database import Cleaner, Row, ScreenedSession, Session, Sql, Vitals
from .migrations import MIGRATIONS, migrate, refuse_newer
from .search.kept_spaces import KEPT_FOLDER, KeptSpaces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .search.vector_index import VectorIndex

__all__ = ["SqliteDatabase", "open_sqlite", "rekey"]


_APPLICATION = 0x43545831
_BUSY_MS = 30_000
# Virtual machine instructions between two checks of the deadline: some milliseconds.
_LOOK_EVERY = 100_000
_READ, _WRITE = "BEGIN DEFERRED", "BEGIN IMMEDIATE"
# Around a transaction that need not reach the disk by itself: the next one that does takes it along.
_UNHURRIED = ("PRAGMA synchronous = NORMAL", "PRAGMA synchronous = FULL")
_LOOK_AGAIN_SECONDS = 0.01

_STEPS: dict[int, tuple[str, ...]] = {
    1: (
        # Words are hashes; the index only records which record contains which.
        "CREATE VIRTUAL TABLE memory_text USING fts5("
        "words, content='', contentless_delete=1, detail='none', tokenize='ascii')",
    )
}
_ENGINE_STEPS = tuple(_STEPS.get(number, ()) for number in range(1, len(MIGRATIONS) + 1))


class _SqliteSession(Session):
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        check_deadline()
        return self._connection.execute(sql, params).fetchall()

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        check_deadline()
        self._connection.execute(sql, params)

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        check_deadline()
        self._connection.executemany(sql, params)

    def changed(self) -> int:
        return self._connection.changes()


class SqliteDatabase:
    """One file, a small pool of connections, each used by one thread at a time."""

    name = "sqlite"
    vector_index: VectorIndex | None = None
    distributed = False
    era = 0
    cleaner: Cleaner | None = None

    def __init__(self, path: Path, key: bytes | None = None, *, durable: bool = True) -> None:
        self._path = path
        self._durable = durable
        self._file = SqliteFile(path, lambda: _connect(path, key, "FULL" if durable else "OFF"))
        # An encrypted store keeps none: they would hold in the clear what it protects.
        self.kept_spaces = KeptSpaces(path.parent / KEPT_FOLDER) if key is None and hasattr(os, "pread") else None

    @contextmanager
    def read(self, *, behind: bool = False) -> Iterator[Session]:  # noqa: ARG002 - a file has no replica
        with self._transaction(_READ) as session:
            yield session

    @contextmanager
    def write(self, *spaces: str, derived: bool = False) -> Iterator[Session]:  # noqa: ARG002 - a file has one writer
        # Threads of one process take turns here; SQLite would let them poll.
        turn = self._file.lock
        if not turn.acquire(timeout=_BUSY_MS / 1000):
            raise StoreBusy(f"The store {self._path} is busy.", remedy="Try again.")
        try:
            with self._transaction(_WRITE, derived=derived) as session:
                yield ScreenedSession(session, self.cleaner) if self.cleaner else session
        finally:
            turn.release()

    @contextmanager
    def _transaction(self, begin: str, *, derived: bool = False) -> Iterator[Session]:
        access = "read" if begin == _READ else "write"
        with (
            span(f"store {access}", {"db.system.name": self.name}),
            translate_errors(self._path),
            self._file.transaction(begin, _UNHURRIED if derived and self._durable else None) as connection,
        ):
            session = _SqliteSession(connection)
            try:
                yield session
            except apsw.SQLError:
                # A later version may have taken away what this one uses, while it had the store open.
                refuse_newer(self, session)
                raise

    def has_table(self, session: Session, name: str) -> bool:
        return bool(session.rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)))

    def new_numbers(self, session: Session, spaces: Sequence[str]) -> list[int]:
        (last,) = session.rows("SELECT COALESCE(max(num), 0) FROM memory")[0]
        return list(range(last + 1, last + 1 + len(spaces)))

    # One file has all spaces, and its text index knows records by number.

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
        word: str,
        space_words: Sequence[str],
        limit: int,
        above: int = 0,
        below: int = 0,
    ) -> list[int]:
        within = f" AND ({' OR '.join(space_words)})" if space_words else ""
        bounds = [("rowid > ?", above)] * (above > 0) + [("rowid < ?", below)] * (below > 0)
        where = f"WHERE {' AND '.join(one for one, _ in bounds)} " if bounds else ""
        found = f"SELECT rowid FROM memory_text(?) {where}ORDER BY rowid DESC LIMIT ?"
        # As one row: for each row the interpreter is let go, and other threads fight for it.
        statement = f"SELECT json_group_array(rowid) FROM ({found})"
        rows = session.rows(statement, (word + within, *(number for _, number in bounds), limit))
        nums: list[int] = json.loads(rows[0][0])
        return nums

    def numbers(self, session: Session, sql: str, params: Sequence[Sql]) -> NDArray[np.int64]:
        """As one text: three times as fast as a row for each."""
        import numpy as np

        (text,) = session.rows(f"SELECT group_concat(num, ' ') FROM ({sql})", params)[0]
        return np.fromstring(text or "", np.int64, sep=" ")

    def text_condition(
        self,
        session: Session,  # noqa: ARG002
        spaces: Sequence[str],  # noqa: ARG002
        words: Sequence[str],
    ) -> tuple[str, list[Sql]]:
        return "m.num IN (SELECT rowid FROM memory_text(?))", [" AND ".join(words)]

    def wait_for_change(self, seconds: float, /) -> bool | None:  # noqa: ARG002
        """A file sends no notices; callers poll."""
        return None

    def compact(self) -> None:
        with translate_errors(self._path), self._file.connection() as connection:
            connection.execute("PRAGMA incremental_vacuum")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

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
        """A file is reachable if it can be read."""
        with self.read() as session:
            session.rows("SELECT 1 FROM sqlite_schema LIMIT 1")

    def leads(self, _name: str, /) -> bool:
        """Every process may lead: each does, in transactions of its own, what the others left."""
        return True

    def vitals(self) -> Vitals:
        used, idle = self._file.counts()
        return Vitals(used, idle, used + idle, reads=self._file.begun(_READ), writes=self._file.begun(_WRITE))

    def replica_lag(self) -> int | None:
        return None

    def server_load(self) -> None:
        return None

    def close(self) -> None:
        self._file.close()


def open_sqlite(path: Path, clock: Clock, key: bytes | None = None, *, durable: bool = True) -> SqliteDatabase:
    """Open or create the file of the store and migrate its schema. `key` encrypts it.

    Unless it is `durable`, an acknowledged write outlives the process and not the machine.
    """
    check_library()
    _make_folder(path.parent)
    database = SqliteDatabase(path, key, durable=durable)
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


def _connect(path: Path, key: bytes | None, synchronous: str = "FULL") -> apsw.Connection:
    """A connection to the file that has this name now: encryption may replace the file while this waits for it."""
    while True:
        before = _identity(path)
        try:
            connection = _connected(path, key, synchronous)
        except OSError as error:
            raise storage_error(error, path) from error
        if before in (None, _identity(path)):
            return connection
        connection.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connected(path: Path, key: bytes | None, synchronous: str) -> apsw.Connection:
    if is_plain(path):
        # Its encryption was started and not finished.
        key = None
    connection = connect(path, key, _BUSY_MS)
    try:
        (found,) = connection.execute("PRAGMA application_id").fetchone() or (0,)
        if found == 0:
            _prepare(connection, path)
        elif found != _APPLICATION:
            raise _foreign(path)
        elif not connection.readonly("main"):
            # The mode differs while the file is encrypted or decrypted.
            _write_ahead(connection)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        # Purged data is overwritten, not just unlinked.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.set_progress_handler(deadline_is_over, _LOOK_EVERY)
        # In WAL mode, the first read takes a lock that lasts as long as the connection.
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> None:
    """Mark an empty file as a store. A file that already has tables belongs to another program."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() or (0,)
    if tables:
        # Unless another process has marked it meanwhile.
        (found,) = connection.execute("PRAGMA application_id").fetchone() or (0,)
        if found == _APPLICATION:
            return
        raise _foreign(path)
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _write_ahead(connection)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")


def _foreign(path: Path) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is a database of another program.", remedy="Choose another home; it was not touched.")


def _write_ahead(connection: apsw.Connection) -> None:
    """Switch to WAL. SQLite does not wait if two processes change the mode of a new file at once."""
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


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors of the store, each with a remedy."""
    try:
        yield
    except apsw.InterruptError:
        check_deadline()
        raise
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
            f"{path} cannot be written.", remedy="Make the home folder writable, or set CORTEX_HOME to one that is."
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(
            f"{path} is damaged or not a Cortex store.",
            remedy="It was left untouched; restore it from a backup, or move it away. "
            "A home that was encrypted needs its home.key.",
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


_REKEY_BUSY_MS = 2_000


def rekey(
    path: Path, old: bytes | None, new: bytes | None, ready: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Replace a file by the same under another key; `step` is called with the name of each step.

    Raises `StoreBusy` if another process has the file open; `ready` is called once none has or can open it. The caller
    makes sure that only one process does this at a time.
    """
    draft = path.with_name(f".{path.name}.part")
    remove(draft)
    with translate_errors(path):
        source = _exclusive(path, old)
        try:
            ready()
            step("copy")
            # Readable by the owner only, before anything is in it.
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            source.execute("VACUUM INTO ?", (_address(draft, new),))
            _flush(draft)
            step("check")
            _compare(source, draft, new)
            step("replace")
            if os.name == "nt":
                # Windows cannot replace an open file. A process that opens it now makes the replacement fail.
                source.close()
            draft.replace(path)
            _flush(path.parent)
            step("close")
        finally:
            source.close()
            remove(draft)


def _exclusive(path: Path, key: bytes | None) -> apsw.Connection:
    """A connection to a file that nobody else has open, or can open while this one lasts."""
    connection = connect(path, key, _REKEY_BUSY_MS, uri=True)
    try:
        # Fails while anybody else is connected, and checkpoints the log.
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute("BEGIN EXCLUSIVE; COMMIT")
        if connection.pragma("journal_mode") != "delete":
            raise apsw.BusyError("opened meanwhile")
    except apsw.BusyError as error:
        connection.close()
        raise StoreBusy(
            f"Another process has {path} open.", remedy="Stop the servers and commands that use the home, and repeat."
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _address(path: Path, key: bytes | None) -> str:
    return f"{path.absolute().as_uri()}?" + ("key=" if key is None else f"cipher={CIPHER}&key=raw:{key.hex()}")


def _compare(source: apsw.Connection, draft: Path, key: bytes | None) -> None:
    """Read all of the new file, and check that it has as many rows as the old one."""
    target = connect(draft, key, _REKEY_BUSY_MS)
    try:
        faults = [str(row[0]) for row in target.execute("PRAGMA integrity_check(5)")]
        if faults != ["ok"] or _counts(target) != _counts(source):
            raise StorageError(
                f"The new file is not as it should be: {'; '.join(faults)}.", remedy="Nothing was changed; try again."
            )
    finally:
        target.close()


def _counts(connection: apsw.Connection) -> dict[str, int]:
    tables = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: _count(connection, name) for name in tables}


def _count(connection: apsw.Connection, table: str) -> int:
    return int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchall()[0][0])  # type: ignore[arg-type]


def _flush(path: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
