"""A file that takes its name only when it is whole: written beside it, flushed to the disk, renamed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import BackupError, storage_error

__all__ = ["flush_folder", "replacing", "whole_file"]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A draft, readable by its owner only, that replaces `path` when the block ends without an error.

    Until then whatever was at `path` stays as it is; a draft that fails is removed. A process that is
    killed leaves its draft behind, under a name that starts with a dot and ends in `.part`.
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
            os.fsync(file.fileno())
        draft.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        # Gone already where it was renamed.
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file opened for reading, with an error of ours where there is none."""
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise BackupError(f"There is no file {path}.", remedy="Check the path.") from error
    except OSError as error:
        raise storage_error(error, path) from error
    with file:
        yield file


def flush_folder(folder: Path) -> None:
    """Make the new name last through a power failure, where a folder can be flushed at all."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems know no such thing; the file itself is in its place and on the disk.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
