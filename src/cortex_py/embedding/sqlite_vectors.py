"""The cache file in the home. Losing it costs time, never data: it is not synced, and if damaged it is begun anew.

Every entry carries a checksum over its key and vector; one that does not match is dropped and computed again.
The bound holds for the file: what is counted are the pages in use.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SqliteVectors"]

_T = TypeVar("_T")
_CHECK_BYTES = 8
# A request waits for this, and an event loop with it: a vector that is not kept costs less.
_BUSY_MS = 250
_BATCH = 200
# How old the mark of the last use may be before reading an entry renews it. Renewing is a write.
_RENEW_MS = 60_000
# Evicting down to less than the bound means not evicting at every write.
_KEEP = 0.9

# With row numbers: a table that is one index keeps at most a quarter of a page in place and gives each vector of
# usual size a page of its own.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vector (
    key BLOB PRIMARY KEY, used INTEGER NOT NULL, sum BLOB NOT NULL, vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS vector_used ON vector (used);
"""


class SqliteVectors:
    """Vectors in a file that several processes share, bounded in bytes."""

    def __init__(self, path: Path, most_bytes: int, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._now = now
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._process: int | None = None
        self._closed = False

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        return self._guarded(lambda connection: _read(connection, keys, self._moment()), {})

    def put_many(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        self._guarded(lambda connection: _write(connection, vectors, self._moment(), self._most_bytes), None)

    def count(self) -> int:
        return self._guarded(lambda connection: _count(connection), 0)

    def close(self) -> None:
        """Close the file; from now on the cache is empty and stays so."""
        if self._inherited:
            return
        with self._lock:
            self._closed = True
            self._close()

    def _moment(self) -> int:
        return int(self._now() * 1000)

    def _guarded(self, work: Callable[[apsw.Connection], _T], otherwise: _T) -> _T:
        """Do the work; a cache that is busy, full, forbidden or closed is as good as an empty one."""
        if self._inherited:
            return otherwise
        with self._lock:
            if self._closed:
                return otherwise
            try:
                return work(self._opened())
            except (apsw.CorruptError, apsw.NotADBError):
                self._begin_anew()
                return otherwise
            except (apsw.Error, OSError):
                return otherwise

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # For the owner alone from the beginning: the files beside it take their permissions from it.
            with suppress(FileExistsError):
                self._path.touch(mode=0o600, exist_ok=False)
            self._file = _identity(self._path)
            connection = apsw.Connection(str(self._path))
            try:
                connection.set_busy_timeout(_BUSY_MS)
                connection.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; PRAGMA cache_size = -2048")
                connection.execute("PRAGMA journal_size_limit = 4194304")
                connection.execute(_SCHEMA)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._process = os.getpid()
        return self._connection

    @property
    def _inherited(self) -> bool:
        """Whether the file was opened before a fork: the child may neither use nor close the connection."""
        return self._process not in (None, os.getpid())

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _begin_anew(self) -> None:
        with suppress(apsw.Error, OSError):
            self._close()
            # Another process may have done so already; its new file is not the one that was damaged.
            if self._file is not None and _identity(self._path) == self._file:
                for suffix in ("", "-wal", "-shm"):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at the path, if any."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read(connection: apsw.Connection, keys: Sequence[bytes], moment: int) -> dict[bytes, NDArray[np.float32]]:
    import numpy as np

    found: dict[bytes, NDArray[np.float32]] = {}
    damaged: list[bytes] = []
    stale: list[bytes] = []
    # The casts: in a damaged file any column may hold anything.
    columns = "key, CAST(used AS INTEGER), CAST(sum AS BLOB), CAST(vector AS BLOB)"
    for low in range(0, len(keys), _BATCH):
        part = list(keys[low : low + _BATCH])
        marks = ",".join("?" * len(part))
        for key, used, checksum, blob in connection.execute(
            f"SELECT {columns} FROM vector WHERE key IN ({marks})", part
        ):
            if not blob or len(blob) % 4 or _checksum(key, blob) != checksum:
                damaged.append(key)
                continue
            found[key] = np.frombuffer(blob, np.float32)
            if used is None or abs(moment - used) >= _RENEW_MS:
                stale.append(key)
    if damaged or stale:
        # What was found is good even where nothing can be written.
        with suppress(apsw.Error), connection:
            connection.executemany("DELETE FROM vector WHERE key = ?", [(key,) for key in damaged])
            connection.executemany("UPDATE vector SET used = ? WHERE key = ?", [(moment, key) for key in stale])
    return found


def _write(
    connection: apsw.Connection, vectors: Mapping[bytes, NDArray[np.float32]], moment: int, most_bytes: int
) -> None:
    blobs = {key: vector.tobytes() for key, vector in vectors.items()}
    rows = [(key, moment, _checksum(key, blob), blob) for key, blob in blobs.items()]
    with connection:
        connection.executemany("INSERT OR REPLACE INTO vector (key, used, sum, vector) VALUES (?, ?, ?, ?)", rows)
        # Entries differ in size, so the share of them that is too much is only about right: look again.
        while (size := _size(connection)) > most_bytes and (count := _count(connection)):
            over = count - int(count * _KEEP * most_bytes / size)
            connection.execute(
                "DELETE FROM vector WHERE key IN (SELECT key FROM vector ORDER BY used LIMIT ?)", (over,)
            )


def _size(connection: apsw.Connection) -> int:
    """Bytes of the pages in use."""
    whole, free, page = (
        int(connection.execute(f"PRAGMA {name}").fetchall()[0][0])  # type: ignore[arg-type]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (whole - free) * page


def _count(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM vector").fetchall()[0][0])  # type: ignore[arg-type]


def _checksum(key: bytes, vector: bytes) -> bytes:
    return hashlib.blake2b(key + vector, digest_size=_CHECK_BYTES).digest()
