"""Files of backups: whole reads and writes, atomic replacement, and a lock that all processes respect."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from .errors import BackupError, StoreBusy, storage_error
from .paths import open_regular

__all__ = ["Writable", "atomic_write", "exclusive_lock", "flush_folder", "open_existing", "read_exactly", "write_fully"]

_WAIT_SECONDS = 60


class Writable(Protocol):
    def write(self, data: bytes | memoryview, /) -> int: ...


def read_exactly(source: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or all there are before the end; a pipe may return them in pieces."""
    pieces: list[bytes] = []
    while size and (data := source.read(size)):
        pieces.append(data)
        size -= len(data)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_fully(target: Writable, data: bytes | memoryview) -> None:
    """Write all of the data; an unbuffered stream may take it in pieces."""
    written = target.write(data)
    while written < len(data):
        data = memoryview(data)[written:]
        written = target.write(data)


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a draft, readable by its owner only, that replaces `path` when the block ends without an error.

    What can be made again need not be `durable`: a power failure may then leave the former file, or an empty one.

    Until then `path` stays as it is; the draft of a failed block is removed. A killed process leaves its draft behind,
    under a name that starts with a dot and ends in `.part`.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}-", suffix=".part", dir=path.parent)
    except OSError as error:
        raise storage_error(error, path) from error
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            flush_folder(path.parent)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        # Already gone if it was renamed.
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def open_existing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; BackupError if there is none."""
    try:
        file = open_regular(path)
    except FileNotFoundError as error:
        raise BackupError(f"There is no file {path}.", remedy="Check the path.") from error
    except OSError as error:
        raise storage_error(error, path) from error
    with file:
        yield file


def flush_folder(folder: Path) -> None:
    """Make a new name survive a power failure, on systems that can flush a folder."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot do this; the file itself is on the disk.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


@contextmanager
def exclusive_lock(path: Path, busy: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock file at `path` and yield True; without `wait`, yield False if another process holds it.

    `busy` is the message of the StoreBusy error after waiting in vain.
    """
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
