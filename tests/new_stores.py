"""Stores for tests in less time: each begins as a copy of one that this process has made and migrated before.

Tests of migrations, of encrypted homes and of `cortex` in an interpreter of its own make theirs from nothing. Nothing
is forced to the disk: what a process has written outlives it all the same, and no test cuts the power.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import apsw

from cortex_py import opening
from cortex_py.clock import Clock, SystemClock
from cortex_py.store import migrations, sqlite
from cortex_py.store.sqlite import SqliteDatabase, open_sqlite

__all__ = ["connect_as_shipped", "copy_new_stores", "spare_the_disk"]

connect_as_shipped = sqlite._connected
_NEWEST = migrations.SCHEMA_VERSION  # `old_schemas.use_schema` sets an older one


def copy_new_stores() -> None:
    """Let every home that this process creates begin with the copy."""
    opening.open_sqlite = _open


def spare_the_disk() -> None:
    """Let this process wait for no disk. `test_what_is_stored_is_forced_to_the_disk` looks at one that does."""

    def unforced(path: Path, key: bytes | None) -> apsw.Connection:
        connection = connect_as_shipped(path, key)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    sqlite._connected = unforced
    sqlite._UNHURRIED = None  # type: ignore[assignment]
    os.fsync = lambda _: None


def _open(path: Path, clock: Clock, key: bytes | None = None) -> SqliteDatabase:
    if key is None and not path.exists() and _NEWEST == migrations.SCHEMA_VERSION:
        # Whatever is wrong with the place, the real function says.
        with suppress(OSError):
            _copy_to(path)
    return open_sqlite(path, clock, key)


def _copy_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, draft = tempfile.mkstemp(dir=path.parent)
    try:
        os.write(descriptor, _migrated())
        # Whole or not at all: another process may open the same home now.
        os.link(draft, path)
    finally:
        os.close(descriptor)
        Path(draft).unlink()


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="cortex-store-") as folder:
        path = Path(folder, "store")
        open_sqlite(path, SystemClock()).close()
        return path.read_bytes()
