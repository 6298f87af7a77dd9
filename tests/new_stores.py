"""The world of tests: stores begin as a copy, no disk is waited for, and new notes are read when a test knows.

A new store is a copy of one that this process has made and migrated before. Tests of migrations, of encrypted homes and
of `cortex` in an interpreter of its own make theirs from nothing. Nothing is forced to the disk: what a process has
written outlives it all the same, and no test cuts the power.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from cortex_py import Cortex
from cortex_py.core.clock import Clock, SystemClock
from cortex_py.core.jobs import Pace
from cortex_py.core.store import migrations
from cortex_py.core.store.sqlite import SqliteDatabase, open_sqlite
from cortex_py.opening import World

__all__ = ["ASKED", "BESIDE", "WITH_CAPTURES", "spare_the_disk", "use_world"]

_NEWEST = migrations.SCHEMA_VERSION  # `old_schemas.use_schema` sets an older one

# New notes are read for the graph right after their capture, when somebody asks for the graph, or in a thread as
# shipped. On a busy machine the two seconds that a query of the graph waits may be too short.
WITH_CAPTURES = Pace(reads="with", finish=60.0)
ASKED = Pace(reads="asks", finish=60.0)
BESIDE = Pace()


def use_world(pace: Pace = WITH_CAPTURES) -> None:
    """Open every home of this process in the world of tests."""
    Cortex.world = World(pace=pace, durable=False, open_file=_open)


def spare_the_disk() -> None:
    """Let files beside the store wait for no disk either."""
    os.fsync = lambda _: None


def _open(path: Path, clock: Clock, key: bytes | None = None, *, durable: bool = True) -> SqliteDatabase:
    if key is None and not path.exists() and _NEWEST == migrations.SCHEMA_VERSION:
        # Whatever is wrong with the place, the real function says.
        with suppress(OSError):
            _copy_to(path)
    return open_sqlite(path, clock, key, durable=durable)


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
