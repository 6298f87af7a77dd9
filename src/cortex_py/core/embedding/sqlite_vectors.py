"""The vector cache file in the home. Losing it costs time, never data: it is not synced; a damaged file is replaced.

Every entry has a checksum over key and vector; an entry that does not match is dropped and computed again. The size
limit applies to the pages in use.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw

from ..errors import StorageError
from ..sqlite_file import SqliteFile, connect, remove

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SqliteVectors"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_CHECK_BYTES = 8
# Requests wait for this lock; computing a vector again costs less than a long wait.
_BUSY_MS = 250
_BATCH = 200
# The last-use time is renewed only if it is older than this, because renewing is a write.
_RENEW_MS = 60_000
# Evict below the limit, so that not every write evicts.
_KEEP = 0.9

# With rowids: a WITHOUT ROWID table would give each vector of usual size an overflow page of its own.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vector (
    key BLOB PRIMARY KEY, used INTEGER NOT NULL, sum BLOB NOT NULL, vector BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS vector_used ON vector (used);
"""


class SqliteVectors:
    """Vectors in a file that several processes share, bounded in bytes; `key` encrypts it."""

    def __init__(
        self, path: Path, most_bytes: int, now: Callable[[], float] = time.time, *, key: bytes | None = None
    ) -> None:
        self._path = path
        self._key = key
        self._most_bytes = most_bytes
        self._now = now
        self._kept = SqliteFile(path, self._open)
        self._file: tuple[int, int] | None = None
        self._closed = False

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        return self._guarded(lambda connection: _read(connection, keys, self._moment()), {})

    def put_many(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        self._guarded(lambda connection: _write(connection, vectors, self._moment(), self._most_bytes), None)

    def count(self) -> int:
        return self._guarded(lambda connection: _count(connection), 0)

    def close(self) -> None:
        """Close the file; from now on the cache is empty and stays so."""
        with self._kept.lock:
            self._closed = True
            self._kept.close()

    def _moment(self) -> int:
        return int(self._now() * 1000)

    def _guarded(self, work: Callable[[apsw.Connection], _T], otherwise: _T) -> _T:
        """Do the work; a cache that is busy, full, unreadable or closed counts as empty."""
        with self._kept.lock:
            if self._closed:
                return otherwise
            try:
                with self._kept.connection() as connection:
                    return work(connection)
            except (apsw.CorruptError, apsw.NotADBError) as error:
                logger.debug("the vector cache is damaged and is replaced: %s", type(error).__name__)
                self._replace_file()
                return otherwise
            except (apsw.Error, OSError, StorageError) as error:
                logger.debug("the vector cache is not used: %s", type(error).__name__)
                return otherwise

    def _open(self) -> apsw.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = _identity(self._path)
        connection = connect(self._path, self._key, _BUSY_MS)
        try:
            self._file = self._file or _identity(self._path)
            connection.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -2048; PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA journal_size_limit = 4194304")
            connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _replace_file(self) -> None:
        with suppress(apsw.Error, OSError):
            self._kept.close(for_good=False)
            # Another process may have replaced it already; its new file is not the damaged one.
            if self._file is not None and _identity(self._path) == self._file:
                remove(self._path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at the path, if any."""
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
    # The casts: in a damaged file a column may hold any type.
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
        # The vectors are valid even if nothing can be written.
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
        # Entries differ in size, so the number to delete is an estimate: check again.
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
