"""One at a time in all processes: work of a home that must not meet itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import StoreBusy, storage_error

__all__ = ["alone"]

_WAIT_SECONDS = 60


@contextmanager
def alone(path: Path, busy: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock file at `path`; whether it is ours, which without waiting it may not be. `busy` says who has it."""
    # Imported here, since most programs never take this lock.
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=_WAIT_SECONDS if wait else 0, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        if wait:
            raise StoreBusy(busy, remedy="Try again.") from error
        yield False
        return
    except OSError as error:
        raise storage_error(error, path) from error
    try:
        yield True
    finally:
        lock.release()
